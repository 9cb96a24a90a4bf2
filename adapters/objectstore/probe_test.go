package objectstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/core/storage"
)

// faultyDir is a directory whose files cannot be created or opened.
type faultyDir struct {
	fs.Dir
	create, open error
}

func (d faultyDir) Create(name string) (fs.File, error) {
	if d.create != nil {
		return nil, d.create
	}
	return d.Dir.Create(name)
}

func (d faultyDir) Open(name string) (fs.File, error) {
	if d.open != nil {
		return nil, d.open
	}
	return d.Dir.Open(name)
}

// scarceDir is a directory with little free space.
type scarceDir struct{ fs.Dir }

func (scarceDir) Free() (uint64, error) { return 1 << 20, nil }

// TestProbeFindsWhatFails: a probe reports a directory that is missing, that cannot be read, that cannot be written, or that has
// no space for uploads, and leaves no file.
func TestProbeFindsWhatFails(t *testing.T) {
	dir := fs.Dir(t.TempDir())
	if err := os.WriteFile(filepath.Join(string(dir), ".probe"), nil, 0o600); err != nil { // left by a crash
		t.Fatal(err)
	}
	for _, c := range []struct {
		in                     fs.FS
		unreadable, unwritable error
		failed                 bool
		full                   string
	}{
		{dir, nil, nil, false, ""},
		{faultyDir{Dir: dir, create: syscall.EROFS}, nil, syscall.EROFS, true, ""},
		{faultyDir{Dir: dir, create: syscall.ENOSPC}, nil, syscall.ENOSPC, false, "probe objects: no space left on device"},
		{faultyDir{Dir: dir, open: syscall.EIO}, syscall.EIO, syscall.EIO, true, ""},
		{faultyDir{Dir: dir, create: syscall.EMFILE}, nil, syscall.EMFILE, false, ""},
		{faultyDir{Dir: dir, open: syscall.ENFILE}, syscall.ENFILE, syscall.ENFILE, false, ""},
		{scarceDir{dir}, nil, objectstore.ErrNoSpace, false, "objectstore: the free space of the disk is reserved: 1048576 bytes are free, 4195304 are reserved"},
		{dir, nil, nil, false, ""},
		{fs.Dir(filepath.Join(string(dir), "missing")), os.ErrNotExist, os.ErrNotExist, true, ""},
	} {
		store := objectstore.New(c.in, objectstore.Limits{Reserve: 1000})
		unreadable, unwritable := store.Probe(0)
		if !errors.Is(unreadable, c.unreadable) || !errors.Is(unwritable, c.unwritable) {
			t.Errorf("%+v: %v, %v", c.in, unreadable, unwritable)
		}
		if h := store.Health()[0]; (h.Failed != "") != c.failed || h.Full != c.full {
			t.Errorf("%+v: %+v", c.in, h)
		}
	}
	if left, err := dir.List(); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// TestNoFileIsNoFault: a pipe in the place of a file is a bad copy, and its provider stays healthy.
func TestNoFileIsNoFault(t *testing.T) {
	dir, o := t.TempDir(), storage.Stored{Object: storage.Object{Size: 1, File: 1}}
	if err := syscall.Mkfifo(filepath.Join(dir, fmt.Sprintf("%064x-%016x", 0, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	store := objectstore.New(fs.Dir(dir), objectstore.Limits{})
	if err := store.CheckCopy(o, 0); !errors.Is(err, fs.ErrNotRegular) || store.Health()[0].Failed != "" {
		t.Errorf("%v, %+v", err, store.Health())
	}
}
