package memcheck_test

import (
	"testing"

	"macronode/ci/memcheck"
)

// TestCorrectReportPasses: a correct report passes, with the rounding of the runtime.
func TestCorrectReportPasses(t *testing.T) {
	for _, n := range []int64{0, 1000, 1 << 20, 5_000_001} {
		memcheck.Check(t, "bytes", n, func() []byte { return make([]byte, n) })
	}
}
