package fs_test

import (
	"errors"
	"testing"

	"macronode/adapters/fs"
)

// TestPinsExcludeOneHolder: a pinned directory is not unpinned until the last pin is closed.
func TestPinsExcludeOneHolder(t *testing.T) {
	dir := fs.Dir(t.TempDir())
	first, err1 := fs.Pin(dir)
	second, err2 := fs.Pin(dir)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, pin := range []interface{ Close() error }{first, second} {
		if _, err := fs.Unpinned(dir); !errors.Is(err, fs.ErrHeld) {
			t.Errorf("pinned: %v", err)
		}
		if err := pin.Close(); err != nil {
			t.Error(err)
		}
	}
	held, err := fs.Unpinned(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
