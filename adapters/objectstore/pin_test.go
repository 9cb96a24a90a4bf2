package objectstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/placement"
)

// TestPinCoversEachProvider: while any directory is pinned, the store is not unpinned. A missing directory is left out, and
// is an error if there is no other one.
func TestPinCoversEachProvider(t *testing.T) {
	var list []objectstore.Provider
	var dirs []fs.Dir
	for _, name := range []string{"a", "b", "missing"} {
		dir := fs.Dir(filepath.Join(t.TempDir(), name))
		if name != "missing" {
			if _, err := fs.Make(string(dir)); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: dir}})
	}
	s := objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 1}, objectstore.Limits{})
	free := func(open func() (interface{ Close() error }, error)) {
		t.Helper()
		c, err := open()
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	unpinned := func() (interface{ Close() error }, error) { return s.Unpinned() }
	for _, dir := range dirs[:2] {
		pin, err := fs.Pin(dir)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := s.Unpinned(); !errors.Is(err, fs.ErrHeld) {
			t.Fatalf("%s is pinned: %v, %v", dir, held, err) // Pin would wait for it
		}
		free(func() (interface{ Close() error }, error) { return pin, nil })
		free(unpinned)
	}
	pin, err := s.Pin()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs[:2] {
		if held, err := fs.Unpinned(dir); !errors.Is(err, fs.ErrHeld) {
			t.Fatalf("%s is not pinned: %v, %v", dir, held, err)
		}
	}
	free(func() (interface{ Close() error }, error) { return pin, nil })
	free(unpinned)
	none := objectstore.New(dirs[2], objectstore.Limits{})
	if _, err := none.Pin(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
