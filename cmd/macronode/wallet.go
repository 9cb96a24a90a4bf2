package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"macronode/adapters/client"
)

// An order is one intention: how it is sent, and what says the same again beside its
// key.
type order struct {
	send  func(context.Context, *client.Client, []client.How) (*client.Receipt, error)
	again string
	nonce int64
}

// Run issues.
func (v *issueCmd) Run(c *console) error {
	return c.order(v.reach, v.Key, false, func(context.Context, *client.Client) (order, error) {
		o := client.IssueRequest{To: v.To, Asset: v.Asset, AmountMinor: v.Amount, Memo: v.Memo, Ref: v.Ref}
		return order{send: func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Issue(ctx, o, how...)
		}}, nil
	})
}

// Run transfers.
func (v *transferCmd) Run(c *console) error {
	return c.order(v.reach, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (order, error) {
		n, err := v.next(ctx, k, v.Asset)
		o := client.TransferRequest{From: v.From, To: v.To, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, Ref: v.Ref}
		return numberedOrder(n, func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Transfer(ctx, o, how...)
		}), err
	})
}

// Run burns.
func (v *burnCmd) Run(c *console) error {
	return c.order(v.reach, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (order, error) {
		n, err := v.next(ctx, k, v.Asset)
		o := client.BurnRequest{From: v.From, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, Ref: v.Ref}
		return numberedOrder(n, func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Burn(ctx, o, how...)
		}), err
	})
}

// Run holds. A time from now is made one of the calendar once, so that the same can be
// said again.
func (v *holdCmd) Run(c *console) error {
	until, err := c.moment("--expires", v.Expires)
	if err != nil {
		return err
	}
	return c.order(v.reach, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (order, error) {
		n, err := v.next(ctx, k, v.Asset)
		o := client.HoldRequest{From: v.From, Beneficiary: v.For, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, ExpiresAt: until}
		made := numberedOrder(n, func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Hold(ctx, o, how...)
		})
		made.again += " --expires " + until.Format(stampLayout)
		return made, err
	})
}

// Run captures.
func (v *captureCmd) Run(c *console) error {
	return c.order(v.reach, v.Key, false, func(context.Context, *client.Client) (order, error) {
		return order{send: func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Capture(ctx, v.Hold, client.CaptureRequest{AmountMinor: v.Amount, To: v.To}, how...)
		}}, nil
	})
}

// Run releases.
func (v *releaseCmd) Run(c *console) error {
	return c.order(v.reach, v.Key, false, func(context.Context, *client.Client) (order, error) {
		return order{send: func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return k.Release(ctx, v.Hold, how...)
		}}, nil
	})
}

// Run freezes.
func (v *freezeCmd) Run(c *console) error { return c.freeze(v, (*client.Client).Freeze) }

// Run ends a freeze.
func (v *unfreezeCmd) Run(c *console) error { return c.freeze(&v.freezeCmd, (*client.Client).Unfreeze) }

func (c *console) freeze(v *freezeCmd, send func(*client.Client, context.Context, string, string, ...client.How) (*client.Receipt, error)) error {
	return c.order(v.reach, v.Key, false, func(context.Context, *client.Client) (order, error) {
		return order{send: func(ctx context.Context, k *client.Client, how []client.How) (*client.Receipt, error) {
			return send(k, ctx, v.Account, v.Reason, how...)
		}}, nil
	})
}

// numberedOrder is one with a nonce, which is part of saying the same again.
func numberedOrder(n int64, send func(context.Context, *client.Client, []client.How) (*client.Receipt, error)) order {
	return order{send: send, nonce: n, again: fmt.Sprintf(" --nonce %d", n)}
}

// next is the nonce to use: the one that was given, or what the node says.
func (n *numbered) next(ctx context.Context, k *client.Client, asset string) (int64, error) {
	if n.Nonce > 0 {
		return n.Nonce, nil
	}
	b, err := k.Balance(ctx, n.From, asset, 0)
	if err != nil {
		return 0, err
	}
	return b.NextNonce, nil
}

// order sends an order under one key, and says what became of it.
func (c *console) order(r reach, key string, wait bool, prepare func(context.Context, *client.Client) (order, error)) error {
	return c.asked(r, func(ctx context.Context, k *client.Client) error {
		o, err := prepare(ctx, k)
		if err != nil {
			return err
		}
		if key == "" {
			key = c.draw()
		}
		how := []client.How{client.Under(key)}
		if wait {
			how = append(how, client.UntilNext())
		}
		got, err := o.send(ctx, k, how)
		if u := new(client.Unknown); errors.As(err, &u) {
			return &ending{unknown, &doubt{u.Err, key, o.nonce, "--key " + quote(key) + o.again}}
		}
		if err != nil {
			return err
		}
		return c.receipt(got)
	})
}

// A doubt says how to ask again, for only that tells whether it was done.
type doubt struct {
	err   error
	key   string
	nonce int64
	again string
}

func (d *doubt) Error() string {
	return fmt.Sprintf("outcome unknown (%v): retry with %s", d.err, d.again)
}

func (d *doubt) Unwrap() error { return d.err }

// MarshalJSON is for those who want JSON.
func (d *doubt) MarshalJSON() ([]byte, error) {
	return line(struct {
		Outcome string `json:"outcome"`
		Key     string `json:"idempotency_key"`
		Nonce   int64  `json:"nonce,omitzero"`
	}{"unknown", d.key, d.nonce})
}

// doneWords are what operations did.
var doneWords = map[string]string{"issue": "issued", "transfer": "moved", "burn": "burned", "hold": "held", "capture": "paid", "release": "released",
	"freeze": "froze", "unfreeze": "unfroze"}

// receipt tells of what was done.
func (c *console) receipt(r *client.Receipt) error {
	if c.tree.JSON {
		return c.say("%s", r.Raw)
	}
	return c.say("%s", sentence(r))
}

// sentence is a receipt for a person.
func sentence(r *client.Receipt) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Txid, doneWords[string(r.Op)])
	from, to := " from ", " to "
	switch r.Op {
	case "freeze", "unfreeze":
		from = " "
	case "release":
		from = " of "
	case "hold":
		from, to = " of ", " for "
	default: // from one to the other
	}
	if r.AmountMinor != "" {
		fmt.Fprintf(&b, " %s %s", r.AmountMinor, r.Asset)
	}
	if r.From != "" {
		b.WriteString(from + r.From)
	}
	if r.To != "" {
		b.WriteString(to + r.To)
	}
	if r.Op == "hold" {
		fmt.Fprintf(&b, " until %s as %s", r.ExpiresAt.Format(stampLayout), r.HoldID)
	}
	if r.Replayed {
		b.WriteString(", already applied with this key")
	}
	fmt.Fprintf(&b, ", seq %d", r.Seq)
	return b.String()
}

// stampLayout is how times are written: RFC 3339 with milliseconds.
const stampLayout = "2006-01-02T15:04:05.000Z07:00"

// moment reads a time, or how long from now.
func (c *console) moment(flag, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return c.now().Add(d).UTC().Truncate(time.Millisecond), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, cannot(fmt.Errorf("%s %s must be a time such as 2026-01-31T12:00:00Z, or a duration from now such as 48h", flag, text))
	}
	return at.UTC(), nil
}
