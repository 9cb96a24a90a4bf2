package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/fs"
)

// TestLockFileHasOneHolder: a second lock is refused and names the holder, the directory can be pinned meanwhile, and a removed file is noticed.
func TestLockFileHasOneHolder(t *testing.T) {
	dir := fs.Dir(t.TempDir())
	held, err := fs.LockFile(dir, "x.lock", "the first one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.LockFile(dir, "x.lock", "the second one"); !errors.Is(err, fs.ErrHeld) || !strings.Contains(err.Error(), ", the first one") {
		t.Errorf("a second lock: %v", err)
	}
	if pin, err := fs.Unpinned(dir); err != nil {
		t.Errorf("pin: %v", err)
	} else if err := pin.Close(); err != nil {
		t.Error(err)
	}
	if err := held.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(string(dir), "x.lock")); err != nil {
		t.Fatal(err)
	}
	if err := held.Check(); !errors.Is(err, fs.ErrLost) {
		t.Errorf("check of a removed file: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	again, err := fs.LockFile(dir, "x.lock", "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
