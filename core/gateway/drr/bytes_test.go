package drr_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/gateway/drr"
)

// TestBytes: a queue takes the memory that Bytes returns.
func TestBytes(t *testing.T) {
	l := limits(100_000)
	memcheck.Check(t, "places", drr.Bytes(l), func() drr.Queue { return drr.New(l, 1) })
}
