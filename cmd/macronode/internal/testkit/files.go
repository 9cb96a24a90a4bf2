package testkit

import (
	"os"
	"testing"
)

// WriteFile writes a file.
func WriteFile(t testing.TB, path string, what ...byte) {
	t.Helper()
	if err := os.WriteFile(path, what, 0o600); err != nil {
		t.Fatal(err)
	}
}
