package accounting_test

import (
	"fmt"
	"testing"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// TestShortageNamesTheLimit: a report that exceeds a limit is rejected with the limit, what it needs and what is left.
func TestShortageNamesTheLimit(t *testing.T) {
	const at = types.Time(1_700_000_000_000)
	// Events use at most 7 rows, and 5 of a tenant: the rest is for metered usage.
	explicit := accounting.Limits{Rows: 9, Streams: 3, Tenants: 2, TenantRow: 6, TenantDim: 2, Window: window, Grace: grace}
	type usage struct {
		tenant     types.Tenant
		dimensions int
		services   int // series of each dimension
	}
	for _, c := range []struct {
		before []usage
		report usage
		want   event.Shortage
		detail string
		shared bool // there is no limit of a tenant
	}{
		{report: usage{1, 1, 5}, want: event.Shortage{}},
		{report: usage{1, 1, 6}, want: event.Shortage{Limit: event.UsageTenantRows, Needed: 6, Left: 5},
			detail: "accounting.max_rows_per_tenant limits the rows of usage of the tenant: needed 6, left 5, until windows are sealed. No event of the request was recorded."},
		{before: []usage{{1, 1, 4}}, report: usage{1, 1, 6}, want: event.Shortage{Limit: event.UsageTenantRows, Needed: 2, Left: 1},
			detail: "accounting.max_rows_per_tenant limits the rows of usage of the tenant: needed 2, left 1, until windows are sealed. No event of the request was recorded."},
		{before: []usage{{1, 1, 4}}, report: usage{2, 1, 4}, want: event.Shortage{Limit: event.UsageRows, Needed: 4, Left: 3},
			detail: "accounting.rows limits the rows of usage of all tenants: needed 4, left 3, until windows are sealed. No event of the request was recorded."},
		{before: []usage{{1, 1, 1}}, report: usage{1, 3, 1}, want: event.Shortage{Limit: event.UsageTenantDimensions, Needed: 2, Left: 1},
			detail: "accounting.max_dimensions_per_tenant limits the dimensions of the tenant: needed 2, left 1. No event of the request was recorded."},
		{before: []usage{{1, 2, 1}}, report: usage{2, 2, 1}, want: event.Shortage{Limit: event.UsageStreams, Needed: 2, Left: 1},
			detail: "accounting.streams limits the dimensions of all tenants: needed 2, left 1. No event of the request was recorded."},
		{before: []usage{{1, 1, 1}, {2, 1, 1}}, report: usage{3, 1, 1}, want: event.Shortage{Limit: event.UsageTenants, Needed: 1, Left: 0},
			detail: "wallet.limits.tenants limits the tenants with usage: needed 1, left 0. No event of the request was recorded."},
		{shared: true, report: usage{1, 1, 4}},
		{shared: true, report: usage{1, 1, 5}, want: event.Shortage{Limit: event.UsageTenantRows, Needed: 5, Left: 4, Shared: true},
			detail: "Without accounting.max_rows_per_tenant, the rows of usage of the tenant leave room for those of others: needed 5, left 4, until windows are sealed. No event of the request was recorded."},
		{shared: true, before: []usage{{1, 1, 4}}, report: usage{2, 1, 2}},
		{shared: true, before: []usage{{1, 1, 4}}, report: usage{2, 1, 3}, want: event.Shortage{Limit: event.UsageTenantRows, Needed: 3, Left: 2, Shared: true},
			detail: "Without accounting.max_rows_per_tenant, the rows of usage of the tenant leave room for those of others: needed 3, left 2, until windows are sealed. No event of the request was recorded."},
		{shared: true, before: []usage{{1, 1, 4}}, report: usage{2, 1, 4}, want: event.Shortage{Limit: event.UsageRows, Needed: 4, Left: 3},
			detail: "accounting.rows limits the rows of usage of all tenants: needed 4, left 3, until windows are sealed. No event of the request was recorded."},
	} {
		limits := explicit
		if c.shared {
			limits.TenantRow = 0
		}
		p := accounting.New(limits, 1)
		f := &direct{plane: p, at: at}
		var reply event.Reply
		for i, u := range append(c.before, c.report) {
			in := &accounting.RecordEvents{Header: command.Header{Tenant: u.tenant}}
			for d := range u.dimensions {
				for s := range u.services {
					of := series(t, fmt.Sprintf("custom:%d", d), []accounting.Label{{Name: "service", Value: fmt.Sprint(s)}})
					in.Events = append(in.Events, accounting.Event{Source: "s", ID: fmt.Sprint(i, d, s), Series: of, Value: 1, Time: at, Place: uint16(len(in.Events))})
				}
			}
			if err := in.Seal(); err != nil {
				t.Fatal(err)
			}
			reply = event.Reply{}
			p.Decide(at, in, f, &reply)
		}
		if reply.Shortage != c.want || (reply.Problem == event.UsageCapacity) != (c.detail != "") {
			t.Errorf("%+v after %+v: %v, %+v", c.report, c.before, reply.Problem, reply.Shortage)
		}
		if c.detail != "" && reply.Shortage.Detail() != c.detail {
			t.Errorf("detail %s", reply.Shortage.Detail())
		}
	}
}

// TestMeteredUsageNeedsNoDimension: a tenant that has all its dimensions is metered, and gets no other dimension.
func TestMeteredUsageNeedsNoDimension(t *testing.T) {
	const at = types.Time(1_700_000_000_000)
	f := &direct{plane: accounting.New(accounting.Limits{Rows: 9, Streams: 4, Tenants: 1, TenantRow: 9, TenantDim: 1, Window: window, Grace: grace}, 1), at: at}
	one := func(dimension string) command.Command {
		in := &accounting.RecordEvents{Header: command.Header{Tenant: 1}, Events: []accounting.Event{{Source: "s", ID: dimension, Series: series(t, dimension, nil), Value: 1, Time: at}}}
		if err := in.Seal(); err != nil {
			t.Fatal(err)
		}
		return in
	}
	metered := func(dimensions ...string) command.Command {
		in := &accounting.RecordMetered{Header: command.Header{Tenant: 1}}
		for _, d := range dimensions {
			in.Metered = append(in.Metered, accounting.Metered{Series: series(t, d, nil), Time: at, Count: accounting.Count{Value: 1, Events: 1}})
		}
		in.Sort()
		return in
	}
	for i, c := range []struct {
		command command.Command
		want    event.Limit
	}{
		{one("custom:a"), event.NoLimit}, {metered("requests", "bytes_in"), event.NoLimit}, {one("custom:b"), event.UsageTenantDimensions},
		{one("requests"), event.NoLimit}, {metered("bytes_out", "cpu_ms"), event.UsageStreams}, {metered("bytes_out"), event.NoLimit},
	} {
		var reply event.Reply
		if f.plane.Decide(at, c.command, f, &reply); reply.Shortage.Limit != c.want || (reply.Problem == event.None) != (c.want == event.NoLimit) {
			t.Errorf("%d: %v, %+v", i, reply.Problem, reply.Shortage)
		}
	}
}
