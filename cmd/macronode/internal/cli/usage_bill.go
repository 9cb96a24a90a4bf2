package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"macronode/adapters/client"
	"macronode/adapters/config"
	"macronode/cmd/internal/usagefile"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

// A bill is what the usage of a period costs, as the node has it now.
type bill struct {
	invoice.Invoice
	text     usagefile.Invoice
	to       types.Time  // end of the period that was asked for
	unsealed []openUsage // of the period
}

// isComplete reports whether all windows of the period are sealed.
func (b *bill) isComplete() bool { return b.Period.To == b.to }

// openUsage is usage of the period that is not sealed, so it is not in the invoice.
type openUsage struct {
	Dimension  string `json:"dimension"`
	WindowFrom string `json:"window_from,omitzero"` // empty: late usage of windows that are sealed
	WindowTo   string `json:"window_to,omitzero"`
	Value      string `json:"value"`
}

// billing makes bills of a tenant from a node.
type billing struct {
	*Console
	node   *client.Client
	tenant types.Tenant
	prices pricing.List
	query  client.UsageQuery // the period

	maxAmount types.Amount // of one transfer
}

// period returns the period that the flags select. An error of another kind than a wrong flag is left to the node.
func (v *billedPeriod) period() (accounting.Window, error) {
	var from, to time.Time
	var err error
	if v.From == "" && v.To == "" { // the parser requires --month then
		if from, err = time.Parse("2006-01", v.Month); err != nil {
			return accounting.Window{}, exit.Unable(fmt.Errorf("--month %s must be a month such as 2026-01", v.Month))
		}
		to = from.AddDate(0, 1, 0)
	} else if from, err = parseTime("--from", v.From); err == nil {
		to, err = parseTime("--to", v.To)
	}
	if err != nil {
		return accounting.Window{}, err
	}
	if from.UnixMilli() < 0 || from != from.Truncate(time.Millisecond) || to != to.Truncate(time.Millisecond) {
		return accounting.Window{}, exit.Unable(errors.New("the period must have whole milliseconds since 1970"))
	}
	return accounting.Window{From: types.Time(from.UnixMilli()), To: types.Time(to.UnixMilli())}, nil
}

// withBilling calls ask with what the flags select.
func (v *billedPeriod) withBilling(c *Console, ask func(context.Context, *billing) error) error {
	b := billing{Console: c}
	var ok bool
	if b.tenant, ok = usagefile.ParseTenant(v.Tenant); !ok {
		return exit.Unable(fmt.Errorf("the tenant %s must be default, or a number", v.Tenant))
	}
	period, err := v.period()
	if err != nil {
		return err
	}
	b.query.From, b.query.To = time.UnixMilli(int64(period.From)).UTC(), time.UnixMilli(int64(period.To)).UTC()
	cfg, err := c.pricedConfig(v.URL == "")
	if err != nil {
		return err
	}
	b.prices, b.maxAmount = cfg.PriceList(), cfg.Wallet.Limits.Amount
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		b.node = k
		return ask(ctx, &b)
	})
}

// pricedConfig returns the configuration with prices that the node of the data directory has applied, or that of this command.
func (c *Console) pricedConfig(ofNode bool) (*config.Config, error) {
	load, where := func() (*config.Config, error) { return c.load() }, "the configuration of this command"
	if ofNode {
		load, where = c.node().runningConfig, "the configuration of the running node"
	}
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	if len(cfg.PriceList()) == 0 {
		return nil, exit.Unable(fmt.Errorf("accounting.prices is empty in %s: usage has no price", where))
	}
	return cfg, nil
}

// sealedTo returns the end of the windows of the tenant that are sealed.
func (b *billing) sealedTo(ctx context.Context) (types.Time, error) {
	now, err := b.node.Usage(ctx, b.query)
	if err != nil {
		return 0, err
	}
	if of := usagefile.TenantName(b.tenant); now.Tenant != of {
		return 0, exit.Unable(fmt.Errorf("the API key is of tenant %s, not of %s", now.Tenant, of))
	}
	return types.Time(now.SealedTo.UnixMilli()), nil
}

// read returns the invoice of the slices of a period, and the sums of its chains. They are those that were sealed by one frame.
func (b *billing) read(ctx context.Context, period accounting.Window) (v invoice.Invoice, sums []accounting.VerifiedStream, err error) {
	build, chains, q := invoice.New(b.tenant, period, b.prices), accounting.NewVerifier(), b.query
	q.From, q.To = time.UnixMilli(int64(period.From)), time.UnixMilli(int64(period.To))
	for raw, err := range b.node.UsageSlices(ctx, q, listOptions(0)) {
		if err != nil {
			return v, nil, err
		}
		s, err := usagefile.AddSlice(chains, raw.Raw)
		if err == nil {
			err = build.Add(&s)
		}
		if err != nil {
			return v, nil, fmt.Errorf("the node returned an invalid slice: %w", err)
		}
	}
	v, err = build.Invoice()
	return v, chains.Streams(), err
}

// bill computes the invoice of the windows of the period that are sealed.
func (b *billing) bill(ctx context.Context) (*bill, error) {
	to, err := b.sealedTo(ctx)
	if err != nil {
		return nil, err
	}
	from, of := types.Time(b.query.From.UnixMilli()), &bill{to: types.Time(b.query.To.UnixMilli())}
	period := accounting.Window{From: from, To: max(from, min(of.to, to))}
	var sums []accounting.VerifiedStream
	if of.Invoice, sums, err = b.read(ctx, period); err != nil {
		return nil, err
	}
	of.text = usagefile.NewInvoice(&of.Invoice, of.to)
	sealed := b.query
	sealed.To = time.UnixMilli(int64(period.To))
	late, err := b.lateUsage(ctx, sealed, sums)
	if err != nil {
		return nil, err
	}
	open, err := b.openWindows(ctx, of)
	of.unsealed = append(open, late...)
	return of, err
}

// lateUsage returns the usage of sealed windows that is in no slice yet: all usage less that of the slices, which were
// listed before. So no usage is in the invoice and here, and none is missing in both.
func (b *billing) lateUsage(ctx context.Context, sealed client.UsageQuery, listed []accounting.VerifiedStream) (all []openUsage, err error) {
	if !sealed.From.Before(sealed.To) {
		return nil, nil
	}
	sums, err := b.node.Usage(ctx, sealed)
	if err != nil {
		return nil, err
	}
	for _, s := range sums.Usage {
		value, err := types.ParseAmount(s.Value)
		at := slices.IndexFunc(listed, func(of accounting.VerifiedStream) bool { return string(of.Dimension) == s.Dimension })
		ok := err == nil
		if ok && at >= 0 {
			value, ok = value.Sub(listed[at].Total)
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s %s are less than their slices", client.ErrWrongNode, s.Value, s.Dimension)
		}
		if !value.IsZero() {
			all = append(all, openUsage{Dimension: s.Dimension, Value: value.String()})
		}
	}
	return all, nil
}

// openWindows returns the usage of the windows of the period that are not sealed.
func (b *billing) openWindows(ctx context.Context, of *bill) (all []openUsage, err error) {
	if of.isComplete() {
		return nil, nil
	}
	q := b.query
	q.From, q.Group = time.UnixMilli(int64(of.Period.To)), []string{"window"}
	sums, err := b.node.Usage(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, s := range sums.Usage {
		all = append(all, openUsage{s.Dimension, s.WindowFrom.UTC().Format(stampLayout), s.WindowTo.UTC().Format(stampLayout), s.Value})
	}
	return all, nil
}

// Run prints an invoice.
func (v *invoiceUsageCmd) Run(c *Console) error {
	return v.withBilling(c, func(ctx context.Context, b *billing) error {
		of, err := b.bill(ctx)
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.printJSON(struct {
				usagefile.Invoice
				Unsealed []openUsage `json:"unsealed,omitzero"`
			}{of.text, of.unsealed})
		}
		if err := c.printLine("%s", &of.text); err != nil {
			return err
		}
		for _, u := range of.unsealed {
			when := "late, of windows that are sealed"
			if u.WindowFrom != "" {
				when = "window " + u.WindowFrom + " to " + u.WindowTo
			}
			if err := c.printLine("not sealed yet: %s %s, %s", u.Value, u.Dimension, when); err != nil {
				return err
			}
		}
		return nil
	})
}
