package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// TestUntrustedClockIsLogged: the log has once by how much the machine's clock is ahead or behind.
func TestUntrustedClockIsLogged(t *testing.T) {
	for by, c := range map[types.Condition]struct {
		offset time.Duration
		want   string
	}{
		types.ClockUntrusted: {2*time.Hour + 3*time.Millisecond, "offset=2h0m0s"},
		types.ClockAhead:     {-26*time.Hour - 3*time.Millisecond, "offset=-26h0m0s"},
	} {
		var text strings.Builder
		m := &sampler{log: slog.New(slog.NewTextHandler(&text, nil))}
		s := event.Status{DegradedBy: types.Conditions(0).With(by), Offset: c.offset}
		m.logClock(&s)
		m.lastStatus = s
		m.logClock(&s)
		if got := text.String(); strings.Count(got, "msg=") != 1 || !strings.Contains(got, c.want) {
			t.Error(got)
		}
	}
}
