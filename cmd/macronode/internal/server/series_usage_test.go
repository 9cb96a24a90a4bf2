package server

import (
	"fmt"
	"log/slog"
	"time"

	"macronode/adapters/metering"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/record"
	"macronode/core/types"
)

// usageFrames has a frame for each record of a command, which the read model folds at once.
type usageFrames struct {
	*metered
	record record.Record
	at     types.Time
}

func (f *usageFrames) Record() *record.Record { return &f.record }
func (f *usageFrames) Savepoint()             {}
func (f *usageFrames) Undo()                  {}
func (f *usageFrames) Commit()                {}
func (f *usageFrames) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

func (f *usageFrames) Add() types.Position {
	f.fold(f.at, &f.record)
	return types.Position{LSN: f.store.readModel.Mark()}
}

// fold folds a frame of a time with a record, or with none.
func (m *metered) fold(at types.Time, r *record.Record) {
	lsn := m.store.readModel.Mark() + 1
	body := record.Begin(nil, lsn, at)
	if r != nil {
		body, _ = record.Add(body, 0, r)
	}
	testkit.Must(m.t, m.store.readModel.Fold([]record.Sealed{{LSN: lsn, Body: body}}))
}

// use records one usage event of a new tenant.
func (m *metered) use() (at types.Time) {
	m.tenants++
	at = types.Time(time.Now().UnixMilli())
	s, err := accounting.NewSeries("requests", nil)
	testkit.Must(m.t, err)
	c := &accounting.RecordEvents{Header: command.Header{Tenant: 1 + m.tenants}, Events: []accounting.Event{{Source: "s", ID: fmt.Sprint(m.tenants), Series: s, Value: 1, Time: at}}}
	testkit.Must(m.t, c.Seal())
	var r event.Reply
	if accounting.New(m.start.Usage, 1).Decide(at, c, &usageFrames{metered: m, at: at}, &r); r.Problem != event.None {
		m.t.Fatal(r.Problem)
	}
	return at
}

func init() {
	queue := testkit.QueueSeries("recent_frames")
	causes["usage_rows"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.use()
		return 1, testkit.Moves{queue: 2, "usage_streams": 1}
	}
	causes["usage_streams"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.use()
		return 1, testkit.Moves{queue: 2, "usage_rows": 1}
	}
	causes["usage_seal_lag_seconds"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		at, u := m.use(), m.start.Usage
		window := types.Time(u.Window.Milliseconds())
		due := (at/window+1)*window + types.Time(u.Grace.Milliseconds())
		m.fold(due+3000, nil)
		return 3, testkit.Moves{queue: 3, "usage_rows": 1, "usage_streams": 1}
	}
	causes["usage_events_total"] = func(m *metered, l []string) (float64, testkit.Moves) {
		if l[0] == "recorded" {
			m.meter.Usage(5, 0, 0)
		} else {
			m.meter.Usage(0, 5, 0)
		}
		return 5, nil
	}
	causes["metered_requests_total"] = func(m *metered, l []string) (float64, testkit.Moves) { m.meter.Metered(l[0], 4); return 4, nil }
	causes["metered_requests_waiting"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		if m.metering == nil {
			m.metering = metering.New(metering.Config{Window: time.Minute})
		}
		for range 3 {
			m.metering.Count(accounting.Request{Tenant: 1, At: types.Time(time.Now().UnixMilli()), Labels: accounting.NewRequestLabels("gateway", "get", "r")}, flow.Reservation{})
		}
		return 3, nil
	}
	line := func(m *metered, price byte, cost uint64) (at types.Time) {
		at = types.Time(time.Now().UnixMilli())
		l := accounting.LineChange{LineKey: accounting.LineKey{Tenant: 7, Price: types.NameHash{price}, Month: accounting.MonthOf(at).From},
			Line: accounting.Line{Units: types.MinorUnits(1), Cost: types.MinorUnits(cost)}}
		accounting.New(m.start.Usage, 1).RecordLines(7, accounting.Digest{}, []accounting.LineChange{l}, &usageFrames{metered: m, at: at})
		return at
	}
	causes["prepaid_lines"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		line(m, 1, 0)
		return 1, testkit.Moves{queue: 1}
	}
	causes["prepaid_uncollected_tenants"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		at := line(m, 2, 1)
		prices, err := flow.NewTerms(nil, "", "")
		testkit.Must(m.t, err)
		m.metering = metering.New(metering.Config{Window: time.Minute, Log: slog.New(slog.DiscardHandler), Read: m.store.readModel.ReadBooks,
			Status: func() event.Status { return event.Status{At: at} }, Prices: func() *flow.Terms { return prices },
			Prepaid: func() map[types.Tenant]*flow.Terms { return nil }})
		m.metering.Flush(m.t.Context())
		return 1, testkit.Moves{queue: 1, "prepaid_lines": 1}
	}
	causes["prepaid_rejected_total"] = func(m *metered, _ []string) (float64, testkit.Moves) { m.meter.PrepaidRejected(); return 1, nil }
	causes["late_events_total"] = func(m *metered, _ []string) (float64, testkit.Moves) { m.meter.Usage(0, 0, 2); return 2, nil }
}
