package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"macronode/adapters/config"
	"macronode/core/types"
)

// TestDurationsOfLogs are milliseconds, in text as in JSON.
func TestDurationsOfLogs(t *testing.T) {
	for format, want := range map[string]string{"text": "msg=a took_ms=1234.567 n=5", "json": `"msg":"a","took_ms":1234.567,"n":5}`} {
		var b strings.Builder
		log, _ := NewLog(config.Log{Format: format, Level: "info"}, &b)
		log.Info("a", "took", 1234567*time.Microsecond+89, slog.Int("n", 5))
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s", format, &b)
		}
	}
}

// TestReadyIsLoggedByOneOfTwo: announce and the sampler log once that the node is ready, in either order. A node
// that recovers later gets another line.
func TestReadyIsLoggedByOneOfTwo(t *testing.T) {
	for _, c := range []struct {
		before, now types.Phase
		announced   bool
		want        bool
	}{
		{types.Starting, types.Ready, false, true},
		{types.Starting, types.Ready, true, true}, // announce was first
		{types.Degraded, types.Ready, false, true},
		{types.Degraded, types.Ready, true, false},
		{types.Starting, types.Degraded, false, false},
		{types.Ready, types.Degraded, true, false},
	} {
		if got := loggedByAnnounce(c.before, c.now, c.announced); got != c.want {
			t.Errorf("%v to %v, announced %v: %v, want %v", c.before, c.now, c.announced, got, c.want)
		}
	}
}
