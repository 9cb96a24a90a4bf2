package keyring_test

import (
	"testing"

	"macronode/ci/takes"
	"macronode/core/keyring"
)

// TestBytes: a ring takes what it says.
func TestBytes(t *testing.T) {
	takes.Says(t, "keys", keyring.Bytes(100_000), func() keyring.Ring { return keyring.New(100_000, 1) })
}
