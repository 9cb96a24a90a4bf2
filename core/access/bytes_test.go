package access_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/access"
)

// TestBytes: a keyring takes the memory that Bytes returns.
func TestBytes(t *testing.T) {
	memcheck.Check(t, "keys", access.Bytes(100_000), func() access.Keys { return access.New(100_000, 1) })
}
