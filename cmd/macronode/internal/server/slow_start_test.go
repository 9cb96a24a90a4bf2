package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/provider"
	"macronode/cmd/macronode/internal/settings"
)

// TestSlowDiskIsNamed: a start that waits for a disk names its directory, and one that does not wait logs nothing.
func TestSlowDiskIsNamed(t *testing.T) {
	for _, takes := range []time.Duration{0, provider.Answer - 1, provider.Answer + 1} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			end := warnOfSlowDisk([]settings.Provider{{Dir: "/disk1"}, {}}, slog.New(slog.NewTextHandler(&out, nil)))
			time.Sleep(takes)
			synctest.Wait()
			end()
			time.Sleep(time.Hour)
			if slow := takes > provider.Answer; strings.Contains(out.String(), "directories=/disk1 ") != slow || !slow && out.Len() > 0 {
				t.Errorf("after %v: %q", takes, &out)
			}
		})
	}
}
