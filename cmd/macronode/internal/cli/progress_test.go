package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// TestProgressReporter: once a second, and at the end.
func TestProgressReporter(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{false, true} {
		var out bytes.Buffer
		at := time.Unix(0, 0)
		tell := progressReporter(&out, live, func() time.Time { return at })
		for n := range int64(41) {
			tell(journalfile.Progress{Segment: "s", Done: n << 20, Total: 40 << 20, Last: types.LSN(n)})
			at = at.Add(100 * time.Millisecond)
		}
		want := []string{"verify:  25.0 % of 40.0 MiB, s, @10", "verify:  50.0 % of 40.0 MiB, s, @20", "verify:  75.0 % of 40.0 MiB, s, @30", "verify: 100.0 % of 40.0 MiB, s, @40"}
		sep := "\n"
		if live {
			sep = "\r"
		}
		if got := strings.Split(strings.Trim(out.String(), "\r\n"), sep); !slices.Equal(got, want) {
			t.Errorf("live %v: %q", live, got)
		}
	}
}
