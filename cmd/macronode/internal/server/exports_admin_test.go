package server

import (
	"log/slog"
	"testing"
	"time"

	"macronode/adapters/export"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/types"
)

// TestWaitingSinkIsShown: a receiver that has not answered for a while is not ok, before the attempt has failed.
func TestWaitingSinkIsShown(t *testing.T) {
	at, err := newExporter(&exports{log: slog.New(slog.DiscardHandler), lanes: 4}, settings.Sink{Config: export.Config{Name: "app", Kind: export.KindHTTP, URL: "http://127.0.0.1:9", Inflight: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ago           time.Duration
		stopped       bool
		state, reason string
	}{
		{0, false, "ok", ""},
		{time.Minute, false, "waiting", "no answer for 1m0s"},
		{time.Minute, true, "stopped", ""},
	} {
		at.state.Stopped = c.stopped
		at.began = map[types.LaneID]time.Time{{Tenant: 1}: time.Now(), {Tenant: 2}: time.Now().Add(-c.ago)}
		if s := at.status(); s.State != c.state || s.Reason != c.reason {
			t.Errorf("an attempt began %v ago: %s %q", c.ago, s.State, s.Reason)
		}
	}
}
