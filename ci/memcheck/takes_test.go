package memcheck_test

import (
	"testing"

	"macronode/ci/memcheck"
)

// TestSays: what is told right passes, with what the runtime rounds up.
func TestSays(t *testing.T) {
	for _, n := range []int64{0, 1000, 1 << 20, 5_000_001} {
		memcheck.Says(t, "bytes", n, func() []byte { return make([]byte, n) })
	}
}
