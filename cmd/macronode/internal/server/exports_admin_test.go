package server

import (
	"log/slog"
	"testing"
	"time"

	"macronode/adapters/export"
	"macronode/adapters/index"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/types"
)

func laneOf(t types.Tenant) laneKey { return laneKey{lane: types.LaneID{Tenant: t}} }

// TestWaitingSinkIsShown: a receiver that has not answered for a while is not ok, before the attempt has failed. Nor is one that answers
// each attempt, and so slowly that its oldest item is old.
func TestWaitingSinkIsShown(t *testing.T) {
	at, err := newExporter(&exports{log: slog.New(slog.DiscardHandler), lanes: 4}, settings.Sink{Config: export.Config{Name: "app", Kind: export.KindHTTP, URL: "http://127.0.0.1:9", Inflight: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ago, lag      time.Duration
		stopped       bool
		state, reason string
	}{
		{0, 0, false, "ok", ""},
		{0, time.Second, false, "ok", ""},
		{time.Minute, 0, false, "waiting", "no answer for 1m0s"},
		{time.Minute, 0, true, "stopped", ""},
		{time.Second, time.Hour, false, "waiting", "the oldest item waits for 1h0m0s"},
		{time.Second, time.Hour, true, "stopped", ""},
		{time.Minute, time.Hour, false, "waiting", "no answer for 1m0s"},
	} {
		at.state.Stopped = c.stopped
		at.began = map[laneKey]time.Time{laneOf(1): time.Now(), laneOf(2): time.Now().Add(-c.ago)}
		at.oldest = map[laneKey]time.Time{laneOf(1): time.Now(), laneOf(2): time.Now().Add(-c.lag)}
		if s := at.status(); s.State != c.state || s.Reason != c.reason {
			t.Errorf("an attempt began %v ago, the lag is %v: %s %q", c.ago, c.lag, s.State, s.Reason)
		}
	}
}

// TestNothingIsKnownBeforeStreamsAreRead: until the node has read its streams, a sink is neither ok nor without pending items, and a
// scrape says nothing about it. A script that waits for 0 pending items after a restart would end at once.
func TestNothingIsKnownBeforeStreamsAreRead(t *testing.T) {
	m := newMetered(t)
	pending, up := testkit.Series("export_pending", "sink", "app"), testkit.Series("export_sink_up", "sink", "app")
	m.exports.streams.known.Store(nil)
	first := exportsAdmin{m.exports}.status().Sinks[0]
	if first.State != "starting" || first.Pending != nil {
		t.Errorf("before: %+v", first)
	}
	values := m.values()
	for _, name := range []string{pending, up} {
		if got, is := values[name]; is {
			t.Errorf("before: %s is %v", name, got)
		}
	}
	m.exports.streams.known.Store(&[]streamHead{{index.Stream{Tenant: 1, Dimension: "requests"}, 3}})
	if s := (exportsAdmin{m.exports}).status().Sinks[0]; s.State != "ok" || s.Pending == nil || *s.Pending != 3 {
		t.Errorf("after: %+v", s)
	}
	if values = m.values(); values[pending] != 3 || values[up] != 1 {
		t.Errorf("after: %v %v", values[pending], values[up])
	}
}
