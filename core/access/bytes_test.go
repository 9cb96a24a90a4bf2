package access_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/access"
)

// TestBytes: a ring takes what it says.
func TestBytes(t *testing.T) {
	memcheck.Says(t, "keys", access.Bytes(100_000), func() access.Keys { return access.New(100_000, 1) })
}
