package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// Run shows the balance of an account.
func (v *balanceCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		b, err := k.Balance(ctx, v.Account, v.Asset, v.AtLeast)
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.printLine("%s", b.Raw)
		}
		return c.printLine("%s has %s %s, %s of it available; its next nonce is %d", b.Account, b.AmountMinor, b.Asset, b.AvailableMinor, b.NextNonce)
	})
}

// Run shows a past balance of an account.
func (v *balanceAtCmd) Run(c *Console) error {
	var at client.At
	if v.Seq != nil {
		at.Seq = *v.Seq
	}
	if v.Time != "" {
		var err error
		if at.Time, err = time.Parse(time.RFC3339, v.Time); err != nil {
			return exit.Unable(fmt.Errorf("--time %s must be a time such as 2026-01-31T12:00:00Z", v.Time))
		}
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		b, err := k.BalanceAt(ctx, v.Account, v.Asset, at)
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.printLine("%s", b.Raw)
		}
		return c.printLine("%s had %s %s, %s of it available, as of seq %d at %s", b.Account, b.AmountMinor, b.Asset, b.AvailableMinor,
			b.AsOfSeq, b.AsOf.Format(stampLayout))
	})
}

// Run shows the outcome of an operation. It fails if the operation was rejected.
func (v *txCmd) Run(c *Console) error {
	given := 0
	for _, text := range []string{v.TxID, v.Ref, v.Key} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return exit.Unable(errors.New("tx needs one of a txid, --ref and --key"))
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
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
		return walletCommands{c.node()}.printOutcome(o, v.Verify)
	})
}

// printOutcome prints the outcome of an operation.
func (c walletCommands) printOutcome(o *client.Outcome, check bool) error {
	if o.Problem != nil {
		return o.Problem
	}
	all := []*client.Receipt{o.Receipt}
	if o.Batch != nil {
		all = o.Batch.Receipts
	}
	for _, r := range all {
		if err := verifyHash(r, check); err != nil {
			return err
		}
	}
	if o.Batch == nil || c.tree.JSON {
		return c.printSingleOutcome(o)
	}
	for _, r := range o.Batch.Receipts {
		if err := c.printLine("%s", receiptText(r)); err != nil {
			return err
		}
	}
	for i, one := range o.Batch.Results {
		text := fmt.Sprintf("item %d: %v", i, one.Problem)
		if one.Receipt != nil {
			if err := verifyHash(one.Receipt, check); err != nil {
				return err
			}
			text = receiptText(one.Receipt)
		}
		if err := c.printLine("%s", text); err != nil {
			return err
		}
	}
	return nil
}

func (c walletCommands) printSingleOutcome(o *client.Outcome) error {
	if c.tree.JSON {
		return c.printLine("%s", o.Raw)
	}
	return c.printLine("%s", receiptText(o.Receipt))
}

// verifyHash recomputes the hash of a receipt if check is set.
func verifyHash(r *client.Receipt, check bool) error {
	if !check {
		return nil
	}
	if err := r.Verify(); err != nil {
		return fmt.Errorf("%s: %w", r.Txid, err)
	}
	return nil
}

// A column of a table: its head and its minimum width.
type column struct {
	head  string
	width int
}

// printRow prints a row of a table. A longer text moves the following columns.
func (c *Console) printRow(columns []column, cells ...string) error {
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
	return c.printLine("%s", strings.TrimRight(b.String(), " "))
}

func (c *Console) printHeads(columns []column) error {
	heads := make([]string, len(columns))
	for i, col := range columns {
		heads[i] = col.head
	}
	return c.printRow(columns, heads...)
}

// list prints items as they arrive: rows, or one JSON object each.
func list[T interface{ MarshalJSON() ([]byte, error) }](c *Console, all iter.Seq2[T, error], columns []column, rows func(T) [][]string) error {
	begun := false
	for one, err := range all {
		if err != nil {
			return err
		}
		if c.tree.JSON {
			if err := c.printJSON(one); err != nil {
				return err
			}
			continue
		}
		if !begun {
			begun = true
			if err := c.printHeads(columns); err != nil {
				return err
			}
		}
		for _, cells := range rows(one) {
			if err := c.printRow(columns, cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// listOptions requests a limit of items in pages as large as possible.
func listOptions(limit int) client.ListOptions {
	return client.ListOptions{Limit: limit, Page: client.MaxPage}
}

var holdColumns = []column{{"hold", 37}, {"state", 8}, {"amount", 12}, {"asset", 8}, {"captured", 12}, {"for", 16}, {"expires", 24}}

func holdRow(h client.Hold) [][]string {
	return [][]string{{h.HoldID, string(h.State), h.AmountMinor, h.Asset, h.CapturedMinor, h.Beneficiary, h.ExpiresAt.Format(stampLayout)}}
}

// Run lists holds, or shows one.
func (v *holdsCmd) Run(c *Console) error {
	if (v.Account == "") == (v.ID == "") {
		return exit.Unable(errors.New("holds needs an account or --id"))
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		if v.Account != "" {
			return list(c, k.Holds(ctx, v.Account, v.State, listOptions(v.Limit)), holdColumns, holdRow)
		}
		h, err := k.GetHold(ctx, v.ID)
		if err != nil {
			return err
		}
		return list(c, func(yield func(client.Hold, error) bool) { yield(*h, nil) }, holdColumns, holdRow)
	})
}

// Run lists accounts: a row for each asset of an account.
func (v *accountsCmd) Run(c *Console) error {
	columns := []column{{"account", 24}, {"asset", 8}, {"amount", 12}, {"held", 12}, {"available", 12}, {"next nonce", 10}, {"state", 6}}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Accounts(ctx, v.Prefix, listOptions(v.Limit)), columns, func(a client.Account) (rows [][]string) {
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
func (v *assetsCmd) Run(c *Console) error {
	columns := []column{{"asset", 12}, {"issued", 16}, {"burned", 16}, {"outstanding", 16}, {"held", 16}}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Assets(ctx, v.Prefix, listOptions(v.Limit)), columns, func(a client.Asset) [][]string {
			return [][]string{{a.Asset, a.IssuedMinor, a.BurnedMinor, a.OutstandingMinor, a.HeldMinor}}
		})
	})
}

// Run lists movements, and follows them.
func (v *changesCmd) Run(c *Console) error {
	columns := []column{{"seq", 8}, {"time", 24}, {"op", 8}, {"amount", 12}, {"asset", 8}, {"from", 20}, {"to", 20}, {"txid", 35}}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		all := k.Changes(ctx, client.FeedOptions{After: v.After})
		if v.Follow {
			all = k.Stream(ctx, v.After)
		}
		err := list(c, firstN(all, v.Limit), columns, func(ch client.Change) [][]string {
			return [][]string{{fmt.Sprint(ch.Seq), ch.TS.Format(stampLayout), string(ch.Op), ch.AmountMinor, ch.Asset, ch.From, ch.To, ch.Txid}}
		})
		if v.Follow && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // interrupted
		}
		return err
	})
}

// firstN returns the first n items; 0: all.
func firstN[T any](all iter.Seq2[T, error], n int) iter.Seq2[T, error] {
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
