package idempotency_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/idempotency"
)

// TestBytesMatchesMemory shows that Bytes is the memory of a window, for each limit.
func TestBytesMatchesMemory(t *testing.T) {
	for name, l := range map[string]idempotency.Limits{"keys": {Keys: 100_000, Tenants: 1}, "tenants": {Keys: 1, Tenants: 100_000}} {
		memcheck.Check(t, name, idempotency.Bytes(l), func() idempotency.Window { return idempotency.New(l, 1) })
	}
}
