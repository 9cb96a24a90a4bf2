package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// walletCommands are the verbs of operations.
type walletCommands struct{ nodeAccess }

// A walletOrder is one operation: how it is sent, and the flags beside the key that repeat it.
type walletOrder struct {
	send       func(context.Context, *client.Client, []client.RequestOption) (*client.Receipt, error)
	retryFlags string
	nonce      int64
}

// Run issues money.
func (v *issueCmd) Run(c *Console) error {
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, false, func(context.Context, *client.Client) (walletOrder, error) {
		o := client.IssueRequest{To: v.To, Asset: v.Asset, AmountMinor: v.Amount, Memo: v.Memo, Ref: v.Ref}
		return walletOrder{send: func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Issue(ctx, o, how...)
		}}, nil
	})
}

// Run transfers money.
func (v *transferCmd) Run(c *Console) error {
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (walletOrder, error) {
		n, err := v.nextNonce(ctx, k, v.Asset)
		o := client.TransferRequest{From: v.From, To: v.To, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, Ref: v.Ref}
		return nonceOrder(n, func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Transfer(ctx, o, how...)
		}), err
	})
}

// Run burns money.
func (v *burnCmd) Run(c *Console) error {
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (walletOrder, error) {
		n, err := v.nextNonce(ctx, k, v.Asset)
		o := client.BurnRequest{From: v.From, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, Ref: v.Ref}
		return nonceOrder(n, func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Burn(ctx, o, how...)
		}), err
	})
}

// Run creates a hold. A relative expiry is resolved once, so that the request can be repeated.
func (v *holdCmd) Run(c *Console) error {
	until, err := c.parseMoment("--expires", v.Expires)
	if err != nil {
		return err
	}
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, v.Wait, func(ctx context.Context, k *client.Client) (walletOrder, error) {
		n, err := v.nextNonce(ctx, k, v.Asset)
		o := client.HoldRequest{From: v.From, Beneficiary: v.For, Asset: v.Asset, AmountMinor: v.Amount, Nonce: n, Memo: v.Memo, ExpiresAt: until}
		made := nonceOrder(n, func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Hold(ctx, o, how...)
		})
		made.retryFlags += " --expires " + until.Format(stampLayout)
		return made, err
	})
}

// Run captures a hold.
func (v *captureCmd) Run(c *Console) error {
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, false, func(context.Context, *client.Client) (walletOrder, error) {
		return walletOrder{send: func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Capture(ctx, v.Hold, client.CaptureRequest{AmountMinor: v.Amount, To: v.To}, how...)
		}}, nil
	})
}

// Run releases a hold.
func (v *releaseCmd) Run(c *Console) error {
	return walletCommands{c.node()}.sendOrder(v.clientFlags, v.Key, false, func(context.Context, *client.Client) (walletOrder, error) {
		return walletOrder{send: func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return k.Release(ctx, v.Hold, how...)
		}}, nil
	})
}

// Run freezes an account.
func (v *freezeCmd) Run(c *Console) error {
	return walletCommands{c.node()}.freeze(v, (*client.Client).Freeze)
}

// Run unfreezes an account.
func (v *unfreezeCmd) Run(c *Console) error {
	return walletCommands{c.node()}.freeze(&v.freezeCmd, (*client.Client).Unfreeze)
}

func (c walletCommands) freeze(v *freezeCmd, send func(*client.Client, context.Context, string, string, ...client.RequestOption) (*client.Receipt, error)) error {
	return c.sendOrder(v.clientFlags, v.Key, false, func(context.Context, *client.Client) (walletOrder, error) {
		return walletOrder{send: func(ctx context.Context, k *client.Client, how []client.RequestOption) (*client.Receipt, error) {
			return send(k, ctx, v.Account, v.Reason, how...)
		}}, nil
	})
}

// nonceOrder returns an order with a nonce, which a repetition must have too.
func nonceOrder(n int64, send func(context.Context, *client.Client, []client.RequestOption) (*client.Receipt, error)) walletOrder {
	return walletOrder{send: send, nonce: n, retryFlags: fmt.Sprintf(" --nonce %d", n)}
}

// nextNonce returns the nonce of the flags, or the next one of the node.
func (n *payerFlags) nextNonce(ctx context.Context, k *client.Client, asset string) (int64, error) {
	if n.Nonce > 0 {
		return n.Nonce, nil
	}
	b, err := k.Balance(ctx, n.From, asset, 0)
	if err != nil {
		return 0, err
	}
	return b.NextNonce, nil
}

// sendOrder sends an order under one idempotency key and prints its outcome.
func (c walletCommands) sendOrder(r clientFlags, key string, wait bool, prepare func(context.Context, *client.Client) (walletOrder, error)) error {
	return c.withClient(r, func(ctx context.Context, k *client.Client) error {
		o, err := prepare(ctx, k)
		if err != nil {
			return err
		}
		if key == "" {
			key = c.newKey()
		}
		retry := "retry with --key " + quote(key) + o.retryFlags
		c.executions.again = retry + ", which takes effect once"
		how := []client.RequestOption{client.WithIdempotencyKey(key)}
		if wait {
			how = append(how, client.UntilNext())
		}
		got, err := o.send(ctx, k, how)
		if u := new(client.UnknownOutcome); errors.As(err, &u) {
			return exit.New(exit.CodeUnknown, &unknownOutcome{u.Err, key, o.nonce, retry})
		}
		if err != nil {
			return err
		}
		return c.printReceipt(got)
	})
}

// An unknownOutcome has the flags that repeat the request, which finds out its outcome.
type unknownOutcome struct {
	err   error
	key   string
	nonce int64
	retry string // the flags that repeat it
}

func (d *unknownOutcome) Error() string {
	return fmt.Sprintf("outcome unknown (%v): %s", d.err, d.retry)
}

func (d *unknownOutcome) Unwrap() error { return d.err }

// MarshalJSON is the outcome for --json.
func (d *unknownOutcome) MarshalJSON() ([]byte, error) {
	return line(struct {
		Outcome string `json:"outcome"`
		Key     string `json:"idempotency_key"`
		Nonce   int64  `json:"nonce,omitzero"`
	}{"unknown", d.key, d.nonce})
}

// pastTense has the verbs of receipts.
var pastTense = map[string]string{"issue": "issued", "transfer": "moved", "burn": "burned", "hold": "held", "capture": "paid", "release": "released",
	"freeze": "froze", "unfreeze": "unfroze"}

// printReceipt prints a receipt.
func (c walletCommands) printReceipt(r *client.Receipt) error {
	if c.tree.JSON {
		return c.printLine("%s", r.Raw)
	}
	return c.printLine("%s", receiptText(r))
}

// receiptText returns a receipt as a sentence.
func receiptText(r *client.Receipt) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Txid, pastTense[string(r.Op)])
	from, to := " from ", " to "
	switch r.Op {
	case "freeze", "unfreeze":
		from = " "
	case "release":
		from = " of "
	case "hold":
		from, to = " of ", " for "
	default: // between two accounts
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

// parseMoment parses a time, or a duration from now.
func (c *Console) parseMoment(flag, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return c.now().Add(d).UTC().Truncate(time.Millisecond), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, exit.Unable(fmt.Errorf("%s %s must be a time such as 2026-01-31T12:00:00Z, or a duration from now such as 48h", flag, text))
	}
	return at.UTC(), nil
}
