package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestLostSegmentStopsWrites: when another program removes, cuts or replaces the open segment, the node stops
// writing and reports it, because what it wrote would be lost at the next start.
func TestLostSegmentStopsWrites(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 64) },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, 1<<16), 0o600))
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := startNode(t)
			segments, err := filepath.Glob(filepath.Join(p.dir, "journal", "*.seg"))
			if err != nil || len(segments) != 1 {
				t.Fatal(segments, err)
			}
			if err := do(segments[0]); err != nil {
				t.Fatal(err)
			}
			for check := testkit.HangGuard(t); !strings.Contains(p.log.String(), "degraded_by=journal_failed"); time.Sleep(time.Millisecond) {
				check()
			}
			if log := p.log.String(); !strings.Contains(log, "removed, replaced or cut: writes stopped") || !strings.Contains(log, filepath.Base(segments[0])) {
				t.Errorf("the log does not name the segment:\n%s", log)
			}
		})
	}
}
