package server

import (
	"log/slog"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
)

// TestOpenCircuitDegrades: the log reports once that a circuit has opened, and once that it has closed, with the group of
// callers.
func TestOpenCircuitDegrades(t *testing.T) {
	var text strings.Builder
	l := &sampler{applied: new(currentConfig), log: slog.New(slog.NewTextHandler(&text, nil))}
	l.applied.Store(&appliedConfig{Reload: settings.Reload{Numbers: settings.Numbers{Upstreams: settings.Slots{Names: []string{"a", "", "c"}}}}})
	for _, c := range []struct {
		broken   [event.NumCallers]uint64
		contains []string
	}{{}, {[2]uint64{4}, []string{"opened", "upstream=c callers=authenticated"}}, {[2]uint64{4}, nil}, {[2]uint64{4, 4}, []string{"opened", "upstream=c callers=anonymous"}}, {[2]uint64{5, 4}, []string{"opened", "upstream=a"}},
		{[2]uint64{1, 4}, []string{"closed", "upstream=c callers=authenticated"}}, {[2]uint64{3, 4}, nil}, {[2]uint64{3, 0}, []string{"closed", "upstream=c callers=anonymous"}}} {
		text.Reset()
		l.logCircuits(c.broken)
		if got := text.String(); !testkit.ContainsAll(got, c.contains) || strings.Count(got, "msg=") != len(c.contains)/2 {
			t.Errorf("%b: %q", c.broken, got)
		}
	}
}
