package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"macronode/cmd/internal/usagefile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/invoice"
)

// beforePeriod is how long before a period a window can begin whose correction is sealed within it: events are accepted
// for 35 days, and a window has at most an hour.
const beforePeriod = 36 * 24 * time.Hour

// Run writes a bundle, and verifies what it has written.
func (v *bundleUsageCmd) Run(c *Console) error {
	return v.withBilling(c, func(ctx context.Context, b *billing) error {
		of, err := b.bill(ctx)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(v.Out, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return exit.Unable(fmt.Errorf("--out: %w", err))
		}
		verified, err := b.writeBundle(ctx, f, of)
		if err = errors.Join(err, f.Close()); err != nil {
			return errors.Join(err, os.Remove(v.Out))
		}
		if c.tree.JSON {
			return c.printJSON(struct {
				File     string              `json:"file"`
				Verified *usagefile.Verified `json:"verified"`
			}{v.Out, verified})
		}
		for i := range verified.Chains {
			if err := c.printLine("%s", &verified.Chains[i]); err != nil {
				return err
			}
		}
		return c.printLine("the bundle of %d invoice lines is in %s: verify-usage %s", len(of.Lines), v.Out, quote(v.Out))
	})
}

// writeBundle writes slices, prices and invoice.
func (b *billing) writeBundle(ctx context.Context, f *os.File, of *bill) (*usagefile.Verified, error) {
	buffered := bufio.NewWriter(f)
	w, err := usagefile.NewBundleWriter(buffered, &of.text, of.Prices)
	for _, r := range of.Ranges {
		if err == nil {
			err = b.writeChain(ctx, w, r)
		}
	}
	if err == nil {
		err = w.End(&of.text)
	}
	if err = errors.Join(err, buffered.Flush(), f.Sync()); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	v, err := usagefile.VerifyBundle(f, usagefile.Known{})
	if err != nil {
		err = fmt.Errorf("the slices of the node make no valid bundle: %w", err)
	}
	return v, err
}

// writeChain writes all slices from the first to the last of a range, also corrections of windows outside the period:
// without them the chain would have gaps.
func (b *billing) writeChain(ctx context.Context, w *usagefile.BundleWriter, r invoice.Range) error {
	q := b.query
	q.Dimension, q.From, q.To = r.Dimension, b.query.From.Add(-beforePeriod), time.Time{}
	if q.From.Unix() < 0 {
		q.From = time.Unix(0, 0)
	}
	for s, err := range b.node.UsageSlices(ctx, q, listOptions(0)) {
		if err == nil && uint64(s.Seq) >= r.First && uint64(s.Seq) <= r.Last {
			err = w.Slice(s.Raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
