package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"macronode/adapters/client"
)

// Run says what an account has.
func (v *balanceCmd) Run(c *console) error {
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		b, err := k.Balance(ctx, v.Account, v.Asset, v.AtLeast)
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.say("%s", b.Raw)
		}
		return c.say("%s has %s %s, %s of it available; its next nonce is %d", b.Account, b.AmountMinor, b.Asset, b.AvailableMinor, b.NextNonce)
	})
}

// Run says what an account had.
func (v *balanceAtCmd) Run(c *console) error {
	var at client.At
	if v.Seq != nil {
		at.Seq = *v.Seq
	}
	if v.Time != "" {
		var err error
		if at.Time, err = time.Parse(time.RFC3339, v.Time); err != nil {
			return cannot(fmt.Errorf("--time %s must be a time such as 2026-01-31T12:00:00Z", v.Time))
		}
	}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		b, err := k.BalanceAt(ctx, v.Account, v.Asset, at)
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.say("%s", b.Raw)
		}
		return c.say("%s had %s %s, %s of it available, as of seq %d at %s", b.Account, b.AmountMinor, b.Asset, b.AvailableMinor,
			b.AsOfSeq, b.AsOf.Format(stampLayout))
	})
}

// Run shows what an operation was answered with. One that was refused fails.
func (v *txCmd) Run(c *console) error {
	said := 0
	for _, text := range []string{v.TxID, v.Ref, v.Key} {
		if text != "" {
			said++
		}
	}
	if said != 1 {
		return cannot(errors.New("tx needs one of a txid, --ref and --key"))
	}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		var o *client.Outcome
		var err error
		switch {
		case v.Ref != "":
			o, err = k.TxByRef(ctx, v.Ref)
		case v.Key != "":
			o, err = k.TxByKey(ctx, v.Key)
		default:
			o, err = k.Tx(ctx, v.TxID)
		}
		if err != nil {
			return err
		}
		return c.outcome(o, v.Verify)
	})
}

// outcome tells what an operation was answered with.
func (c *console) outcome(o *client.Outcome, check bool) error {
	if o.Problem != nil {
		return o.Problem
	}
	all := []*client.Receipt{o.Receipt}
	if o.Batch != nil {
		all = o.Batch.Receipts
	}
	for _, r := range all {
		if err := hashed(r, check); err != nil {
			return err
		}
	}
	if o.Batch == nil || c.tree.JSON {
		return c.tellOutcome(o)
	}
	for _, r := range o.Batch.Receipts {
		if err := c.say("%s", sentence(r)); err != nil {
			return err
		}
	}
	for i, one := range o.Batch.Results {
		text := fmt.Sprintf("item %d: %v", i, one.Problem)
		if one.Receipt != nil {
			if err := hashed(one.Receipt, check); err != nil {
				return err
			}
			text = sentence(one.Receipt)
		}
		if err := c.say("%s", text); err != nil {
			return err
		}
	}
	return nil
}

func (c *console) tellOutcome(o *client.Outcome) error {
	if c.tree.JSON {
		return c.say("%s", o.Raw)
	}
	return c.say("%s", sentence(o.Receipt))
}

// hashed computes the hash of a receipt anew, if that is wanted.
func hashed(r *client.Receipt, check bool) error {
	if !check {
		return nil
	}
	if err := r.Verify(); err != nil {
		return fmt.Errorf("%s: %w", r.Txid, err)
	}
	return nil
}

// A column of a table: its head, and how wide it is at least.
type column struct {
	head  string
	width int
}

// row writes a row of a table. A text that is wider than its column moves the rest.
func (c *console) row(columns []column, cells ...string) error {
	var b strings.Builder
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		if i == len(cells)-1 {
			b.WriteString(cell)
			break
		}
		fmt.Fprintf(&b, "%-*s  ", columns[i].width, cell)
	}
	return c.say("%s", strings.TrimRight(b.String(), " "))
}

func (c *console) heads(columns []column) error {
	heads := make([]string, len(columns))
	for i, col := range columns {
		heads[i] = col.head
	}
	return c.row(columns, heads...)
}

// list prints what is listed as it comes: a row each, or with --json an object each.
func list[T interface{ MarshalJSON() ([]byte, error) }](c *console, all iter.Seq2[T, error], columns []column, rows func(T) [][]string) error {
	begun := false
	for one, err := range all {
		if err != nil {
			return err
		}
		if c.tree.JSON {
			if err := c.print(one); err != nil {
				return err
			}
			continue
		}
		if !begun {
			begun = true
			if err := c.heads(columns); err != nil {
				return err
			}
		}
		for _, cells := range rows(one) {
			if err := c.row(columns, cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// upTo is how many to ask for at once: as many as there are in one go, where all are
// wanted.
func upTo(limit int) client.List { return client.List{Limit: limit, Page: client.MaxPage} }

var holdColumns = []column{{"hold", 37}, {"state", 8}, {"amount", 12}, {"asset", 8}, {"captured", 12}, {"for", 16}, {"expires", 24}}

func holdRow(h client.Hold) [][]string {
	return [][]string{{h.HoldID, string(h.State), h.AmountMinor, h.Asset, h.CapturedMinor, h.Beneficiary, h.ExpiresAt.Format(stampLayout)}}
}

// Run lists holds, or shows one.
func (v *holdsCmd) Run(c *console) error {
	if (v.Account == "") == (v.ID == "") {
		return cannot(errors.New("holds needs an account or --id"))
	}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		if v.Account != "" {
			return list(c, k.Holds(ctx, v.Account, v.State, upTo(v.Limit)), holdColumns, holdRow)
		}
		h, err := k.GetHold(ctx, v.ID)
		if err != nil {
			return err
		}
		return list(c, func(yield func(client.Hold, error) bool) { yield(*h, nil) }, holdColumns, holdRow)
	})
}

// Run lists accounts: a row for each asset that one has.
func (v *accountsCmd) Run(c *console) error {
	columns := []column{{"account", 24}, {"asset", 8}, {"amount", 12}, {"held", 12}, {"available", 12}, {"next nonce", 10}, {"state", 6}}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Accounts(ctx, v.Prefix, upTo(v.Limit)), columns, func(a client.Account) (rows [][]string) {
			state := map[bool]string{true: "frozen", false: "open"}[a.Frozen]
			for _, b := range a.Balances {
				rows = append(rows, []string{a.Account, b.Asset, b.AmountMinor, b.HeldMinor, b.AvailableMinor, fmt.Sprint(a.NextNonce), state})
			}
			if len(rows) == 0 {
				rows = append(rows, []string{a.Account, "", "", "", "", fmt.Sprint(a.NextNonce), state})
			}
			return rows
		})
	})
}

// Run lists assets.
func (v *assetsCmd) Run(c *console) error {
	columns := []column{{"asset", 12}, {"issued", 16}, {"burned", 16}, {"outstanding", 16}, {"held", 16}}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Assets(ctx, v.Prefix, upTo(v.Limit)), columns, func(a client.Asset) [][]string {
			return [][]string{{a.Asset, a.IssuedMinor, a.BurnedMinor, a.OutstandingMinor, a.HeldMinor}}
		})
	})
}

// Run lists changes, and follows them.
func (v *changesCmd) Run(c *console) error {
	columns := []column{{"seq", 8}, {"time", 24}, {"op", 8}, {"amount", 12}, {"asset", 8}, {"from", 20}, {"to", 20}, {"txid", 35}}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		all := k.Changes(ctx, client.Feed{After: v.After})
		if v.Follow {
			all = k.Stream(ctx, v.After)
		}
		err := list(c, first(all, v.Limit), columns, func(ch client.Change) [][]string {
			return [][]string{{fmt.Sprint(ch.Seq), ch.TS.Format(stampLayout), string(ch.Op), ch.AmountMinor, ch.Asset, ch.From, ch.To, ch.Txid}}
		})
		if v.Follow && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // it was told to end
		}
		return err
	})
}

// first is the first n of all; 0: all.
func first[T any](all iter.Seq2[T, error], n int) iter.Seq2[T, error] {
	if n <= 0 {
		return all
	}
	return func(yield func(T, error) bool) {
		left := n
		for one, err := range all {
			if !yield(one, err) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}
