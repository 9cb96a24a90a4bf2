package provider_test

import (
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/adapters/provider"
)

// TestContract: a directory is a provider.
func TestContract(t *testing.T) {
	fstest.Provider(t, func(t *testing.T) provider.Port { return provider.Dir{FS: fs.Dir(t.TempDir())} })
}
