package idem_test

import (
	"testing"

	"macronode/ci/takes"
	"macronode/core/idem"
)

// TestBytes: a window takes what it says, of each of its limits.
func TestBytes(t *testing.T) {
	for name, l := range map[string]idem.Limits{"keys": {Keys: 100_000, Tenants: 1}, "tenants": {Keys: 1, Tenants: 100_000}} {
		takes.Says(t, name, idem.Bytes(l), func() idem.Window { return idem.New(l, 1) })
	}
}
