package server

import (
	"context"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/record"
	"macronode/core/types"
)

// TestSeriesOfTheIndex: each series of the index is what the index says of itself, while no two of
// them are the same.
func TestSeriesOfTheIndex(t *testing.T) {
	m := newMetered(t, "index.memtable_frames=100")
	m.index.Rebuild()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	for range 105 {
		m.pays()
	}
	index := m.index
	go func() { over <- index.Run(ctx) }()
	testkit.Until(func() bool { return index.Mark().LSN == 105 && index.Stats().Tables > 0 })
	for range 3 {
		n := m.store.journal.Durable() + 1
		m.pays()
		testkit.Must(t, m.store.journal.Range(n, func(s record.Sealed) error { index.Offer([]record.Sealed{s}); return nil }))
	}
	testkit.Until(func() bool { return index.Mark().LSN == 108 })
	for range 2 {
		go index.Await(ctx, types.DefaultTenant, 1000)
	}
	testkit.Until(func() bool { n, _ := index.Awaited(); return n == 2 })
	tail, _ := index.Tails()
	is := index.Stats()
	want := map[string]float64{"index_tables": float64(is.Tables), "index_disk_bytes": float64(is.Disk), "index_rebuilds_total": float64(is.Rebuilt),
		testkit.QueueSeries("index_tail"): float64(tail), testkit.QueueSeries("index_await"): 2, "index_lag_lsn": 0}
	got := m.values()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, and the index has %v", name, got[name], value)
		}
		for other, same := range want {
			if other != name && same == value {
				t.Errorf("%s and %s both have %v: neither is told from the other", name, other, value)
			}
		}
	}
	stop()
	testkit.Must(t, <-over)
}
