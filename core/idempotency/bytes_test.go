package idempotency_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/idempotency"
)

// TestBytes: a window takes what it says, of each of its limits.
func TestBytes(t *testing.T) {
	for name, l := range map[string]idempotency.Limits{"keys": {Keys: 100_000, Tenants: 1}, "tenants": {Keys: 1, Tenants: 100_000}} {
		memcheck.Says(t, name, idempotency.Bytes(l), func() idempotency.Window { return idempotency.New(l, 1) })
	}
}
