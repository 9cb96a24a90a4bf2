package takes_test

import (
	"testing"

	"macronode/ci/takes"
)

// TestSays: what is told right passes, with what the runtime rounds up.
func TestSays(t *testing.T) {
	for _, n := range []int64{0, 1000, 1 << 20, 5_000_001} {
		takes.Says(t, "bytes", n, func() []byte { return make([]byte, n) })
	}
}
