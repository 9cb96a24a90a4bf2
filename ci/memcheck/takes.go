// Package memcheck holds what a machine says that its memory takes against what it takes: who
// asks how large a node will be is told by the same sums.
package memcheck

import (
	"runtime"
	"testing"
)

// Slack is what memory is rounded up by, in parts and in bytes: size classes, and pages.
const (
	slackParts = 50
	slackBytes = 64 << 10
)

// Says fails t unless made takes says bytes, or a little more. It tries a few times, for
// others may take memory meanwhile, and never give it back to what is counted.
func Says[T any](t *testing.T, name string, says int64, made func() T) {
	t.Helper()
	took := int64(1 << 62)
	for range 4 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		kept := made()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(kept)
		took = min(took, int64(after.TotalAlloc-before.TotalAlloc))
	}
	if took < says || took > says+says/slackParts+slackBytes {
		t.Errorf("%s: takes %d bytes, and says %d", name, took, says)
	}
}
