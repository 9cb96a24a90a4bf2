package fair_test

import (
	"testing"

	"macronode/ci/takes"
	"macronode/core/fair"
)

// TestBytes: a queue takes what it says.
func TestBytes(t *testing.T) {
	l := limits(100_000)
	takes.Says(t, "places", fair.Bytes(l), func() fair.Queue { return fair.New(l, 1) })
}
