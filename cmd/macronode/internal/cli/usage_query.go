package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// query returns what the flags select.
func (v *usageRange) query() (q client.UsageQuery, err error) {
	q.Dimension = v.Dimension
	if v.From != "" {
		if q.From, err = parseTime("--from", v.From); err != nil {
			return q, err
		}
	}
	if v.To != "" {
		q.To, err = parseTime("--to", v.To)
	}
	return q, err
}

// Run sums usage.
func (v *queryUsageCmd) Run(c *Console) error {
	q, err := v.query()
	switch {
	case err != nil:
		return err
	case (v.Last > 0) == (v.From != "") || v.Last > 0 && v.To != "" || v.Last < 0:
		return exit.Unable(errors.New("usage query needs --from, or --last with a duration such as 24h"))
	}
	end := c.now().UTC()
	if v.AsOf != "" {
		if q.AsOf, err = parseTime("--as-of", v.AsOf); err != nil {
			return err
		}
		end = q.AsOf
	}
	if v.Last > 0 {
		q.From = end.Add(-v.Last)
	}
	if q.To.IsZero() {
		q.To = end
	}
	q.Group = v.Group
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		format := "csv"
		if v.NDJSON {
			format = "ndjson"
		}
		if v.CSV || v.NDJSON {
			text, err := k.UsageText(ctx, q, format)
			if err != nil {
				return err
			}
			return c.printRaw(string(text))
		}
		p, err := k.Usage(ctx, q)
		switch {
		case err != nil:
			return err
		case c.tree.JSON:
			return c.printLine("%s", p.Raw)
		}
		return c.usageTable(p, v.Group)
	})
}

// usageTable prints sums with a column for each group.
func (c *Console) usageTable(p *client.UsagePage, groups []string) error {
	columns := []column{{"dimension", 16}}
	if slices.Contains(groups, "window") {
		columns = append(columns, column{"from", 24}, column{"to", 24})
	}
	labels := slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == "window" })
	for _, g := range labels {
		columns = append(columns, column{g, 16})
	}
	columns = append(columns, column{"value", 16}, column{"late", 12}, column{"open", 12}, column{"events", 0})
	for i := range p.Usage {
		if i == 0 {
			if err := c.printHeads(columns); err != nil {
				return err
			}
		}
		s := &p.Usage[i]
		cells := []string{s.Dimension}
		if len(columns) > 5+len(labels) {
			cells = append(cells, s.WindowFrom.Format(stampLayout), s.WindowTo.Format(stampLayout))
		}
		for _, g := range labels {
			cells = append(cells, map[string]string{"service": s.Labels.Service, "region": s.Labels.Region, "method": s.Labels.Method,
				"route": s.Labels.Route, "subject": s.Labels.Subject}[g])
		}
		if err := c.printRow(columns, append(cells, s.Value, s.Late, s.Open, strconv.FormatInt(s.Events, 10))...); err != nil {
			return err
		}
	}
	switch {
	case len(p.Usage) == 0:
		return c.printLine("no usage from %s to %s", p.From.Format(stampLayout), p.To.Format(stampLayout))
	case p.SealedTo.IsZero():
		return c.printLine("as of %s", p.AsOf.Format(stampLayout))
	}
	return c.printLine("windows that end by %s are sealed", p.SealedTo.Format(stampLayout))
}

// Run prints slices as the node returns them.
func (v *exportUsageCmd) Run(c *Console) error {
	q, err := v.query()
	if err != nil {
		return err
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		to := io.Writer(c.out)
		if !c.isTerminal {
			bar := c.bar("export", 0)
			defer bar.End()
			to = bar.writer(c.out)
		}
		for s, err := range k.UsageSlices(ctx, q, listOptions(0)) {
			if err == nil {
				_, err = fmt.Fprintf(to, "%s\n", s.Raw)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
