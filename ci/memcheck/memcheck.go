// Package memcheck compares the memory that a structure reports with the memory that it takes:
// the report predicts the size of a node.
package memcheck

import (
	"runtime"
	"testing"
)

// Slack is the rounding of memory, as a fraction and in bytes: size classes, and pages.
const (
	slackParts = 50
	slackBytes = 64 << 10
)

// Check fails t unless made takes the reported bytes, or slightly more. It tries a few times,
// because other goroutines may allocate meanwhile.
func Check[T any](t *testing.T, name string, reported int64, made func() T) {
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
	if took < reported || took > reported+reported/slackParts+slackBytes {
		t.Errorf("%s: takes %d bytes, and reports %d", name, took, reported)
	}
}
