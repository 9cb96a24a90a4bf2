package objectstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// TestDirectoriesBelongToOneNode: a directory of another node, of another provider or with other files is refused; a new one, and one
// that a restore takes over, is claimed. The identity survives a loss of power.
func TestDirectoriesBelongToOneNode(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	for i, d := range w.disks {
		d.Crash(world.NewSeeded(uint64(i)))
	}
	refused := func(what, text string, err error) {
		t.Helper()
		if !errors.Is(err, objectstore.ErrForeign) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.start(two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Errorf("again: %v", err)
	}
	w.start(two)
	refused("another journal", `provider disk0: its directory says "macronode provider disk0, journal 0000000000000007"`, w.Claim(objectstore.Owner{Journal: 8}))
	refused("another journal before", "disk0", w.Claim(objectstore.Owner{Journal: 9, Before: 8}))
	if err := w.Claim(objectstore.Owner{Journal: 9, Before: 7}); err != nil {
		t.Errorf("a restore: %v", err)
	}
	w.devices[0], w.devices[1] = w.devices[1], w.devices[0]
	w.start(two)
	refused("exchanged directories", "provider disk0: its directory says \"macronode provider disk1", w.Claim(objectstore.Owner{Journal: 9}))

	w = newCopies(2, two)
	w.store(t, content(1))
	refused("files without an identity", "and no file provider.id", w.Claim(objectstore.Owner{Journal: 7}))

	w = newCopies(2, two)
	w.devices[0].err = syscall.EIO
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil || w.Health()[0].Failed == "" || w.Health()[1].Failed != "" {
		t.Errorf("a failing device: %v, %+v", err, w.Health())
	}
	w.devices[0].err = nil
	if _, err := w.Probe(0); err != nil || w.Health()[0].Failed != "" {
		t.Errorf("probe: %v", err)
	}
	w.start(two)
	refused("the probe claimed it", "disk0", w.Claim(objectstore.Owner{Journal: 8}))
	w.devices[0].err, w.devices[1].err = syscall.EIO, syscall.EIO
	w.start(two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err == nil || !strings.Contains(err.Error(), "no provider of objects can be used") {
		t.Errorf("no device: %v", err)
	}
}

// TestIdentityStays: neither a collection nor a probe removes it.
func TestIdentityStays(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.Recover(); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Collect(nil); err != nil || c.Files != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for i := range w.disks {
		if _, err := w.Probe(i); err != nil {
			t.Error(err)
		}
	}
	w.start(two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Error(err)
	}
}

// TestEmptiedDirectoryIsClaimedAgain: a disk was replaced while the node runs; a directory of another node stays failed.
func TestEmptiedDirectoryIsClaimedAgain(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.disks[0].Remove("provider.id"); err != nil {
		t.Fatal(err)
	}
	w.MarkFailed(0, syscall.EIO)
	if _, err := w.Probe(0); err != nil {
		t.Error(err)
	}
	// An upload has written a copy into the new directory before it is claimed; another one is still being written.
	row := w.store(t, content(1))
	if err := errors.Join(w.Claim(objectstore.Owner{Journal: 7, Rows: rows{row}}), w.disks[0].Remove("provider.id")); err != nil {
		t.Fatal(err)
	}
	up, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.MarkFailed(0, syscall.EIO)
	if _, err := w.Probe(0); err != nil {
		t.Error(err)
	}
	up.Done()
	other := newCopies(2, two)
	if err := other.Claim(objectstore.Owner{Journal: 8}); err != nil {
		t.Fatal(err)
	}
	w.devices[0].FS = other.disks[0]
	if _, err := w.Probe(0); !errors.Is(err, objectstore.ErrForeign) || w.Health()[0].Failed == "" {
		t.Errorf("%v, %+v", err, w.Health())
	}
}

// TestNoDirectoryIsThere: if all directories of a journal with objects are new, the disks are not mounted: nothing is written there. When one
// of them is back, the other one is a new disk.
func TestNoDirectoryIsThere(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	row := w.store(t, content(1))
	bare := newCopies(2, two)
	s := bare.Store
	if err := s.Claim(objectstore.Owner{Journal: 7, Rows: rows{row}}); !errors.Is(err, objectstore.ErrAbsent) {
		t.Fatal(err)
	}
	for i := range 2 {
		if unreadable, _ := s.Probe(i); !errors.Is(unreadable, objectstore.ErrAbsent) || s.Health()[i].Failed == "" {
			t.Errorf("probe of directory %d: %v", i, unreadable)
		}
	}
	if _, err := s.Get(row.Address, row.Object); !errors.Is(err, objectstore.ErrAbsent) {
		t.Errorf("get: %v", err)
	}
	s.Reserve(99)
	if _, _, err := put(s, content(1), 10); !errors.Is(err, objectstore.ErrAbsent) {
		t.Errorf("upload: %v", err)
	}
	for i, d := range bare.disks {
		if names, _ := d.List(); len(names) > 0 {
			t.Errorf("directory %d has %v", i, names)
		}
	}
	bare.devices[1].FS = w.disks[1]
	for i := range 2 {
		if unreadable, unwritable := s.Probe(1 - i); unreadable != nil || unwritable != nil {
			t.Fatalf("probe: %v, %v", unreadable, unwritable)
		}
	}
	if _, err := s.Get(row.Address, row.Object); err != nil {
		t.Errorf("get: %v", err)
	}
	if _, _, err := put(s, content(3), 1000); err != nil {
		t.Errorf("upload: %v", err)
	}
}

// TestProviderWithoutIdentityIsThere: a directory that has objects of the journal and no identity, as older versions made it, is there. The
// other directory is a new disk, whichever is claimed first.
func TestProviderWithoutIdentityIsThere(t *testing.T) {
	w := newCopies(2, two)
	row := w.store(t, content(1))
	for old := range 2 {
		n := newCopies(2, two)
		n.devices[old].FS = w.disks[old]
		if err := n.Claim(objectstore.Owner{Journal: 7, Rows: rows{row}}); err != nil {
			t.Fatalf("directory %d is the old one: %v", old, err)
		}
		for i := range 2 {
			if unreadable, unwritable := n.Probe(i); unreadable != nil || unwritable != nil {
				t.Errorf("directory %d is the old one, probe of %d: %v, %v", old, i, unreadable, unwritable)
			}
		}
		if _, err := n.Get(row.Address, row.Object); err != nil {
			t.Errorf("directory %d is the old one: %v", old, err)
		}
	}
}

// rows are the objects of a journal.
type rows []storage.Stored

func (r rows) HasObjects() bool { return len(r) > 0 }
func (r rows) HasFile(a storage.Address, f storage.File) bool {
	return slices.ContainsFunc(r, func(o storage.Stored) bool { return o.Address == a && o.File == f })
}

// TestOnlyDirectory: the only directory of a journal that has objects is not made anew. While another one, or none, is in its place,
// reads and uploads are refused and nothing is written or removed there.
func TestOnlyDirectory(t *testing.T) {
	const journal = 7
	node := func(dir string, r objectstore.Rows) (*objectstore.Store, error) {
		s := objectstore.NewCopies([]objectstore.Provider{{Provider: placement.Provider{Name: "local", Domain: "local", Weight: 1}, Port: provider.Dir{FS: fs.Dir(dir)}, Own: true}},
			objectstore.Copies{Count: 1, Required: 1}, limits)
		return s, s.Claim(objectstore.Owner{Journal: journal, Rows: r})
	}
	write := func(dir, name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	content := func(dir string) (list []string) {
		all, _ := os.ReadDir(dir)
		for _, e := range all {
			list = append(list, e.Name())
		}
		return list
	}
	const name, identity = "provider.id", "macronode provider local\njournal 0000000000000007\n"
	o := storage.Stored{Address: storage.Address(digest.Sum([]byte("abc"))), Object: storage.Object{Size: 3, File: 5}}
	file := fmt.Sprintf("%x-%016x", o.Address[:], uint64(o.File))
	foreign := fmt.Sprintf("%x-%016x", o.Address[:], 1)
	for what, c := range map[string]struct {
		files map[string]string // nil: there is no directory
		rows  rows
		want  error
		after []string
	}{
		"new":                           {map[string]string{}, nil, nil, []string{name}},
		"its own":                       {map[string]string{name: identity, file: "abc"}, rows{o}, nil, []string{file, name}},
		"its own, without its files":    {map[string]string{name: identity}, rows{o}, nil, []string{name}},
		"of an older version":           {map[string]string{file: "abc"}, rows{o}, nil, []string{file, name}},
		"of an older version, deleted":  {map[string]string{file: "abc"}, nil, nil, []string{file, name}},
		"was a named provider":          {map[string]string{name: strings.Replace(identity, "local", "disk1", 1)}, rows{o}, nil, []string{name}},
		"missing":                       {nil, rows{o}, objectstore.ErrAbsent, nil},
		"empty":                         {map[string]string{}, rows{o}, objectstore.ErrAbsent, nil},
		"of a new file system":          {map[string]string{"lost+found": ""}, rows{o}, objectstore.ErrAbsent, []string{"lost+found"}},
		"of another node, without name": {map[string]string{foreign: "abc"}, rows{o}, objectstore.ErrAbsent, []string{foreign}},
		"of another node":               {map[string]string{name: strings.Replace(identity, "7", "8", 1), file: "abc"}, rows{o}, objectstore.ErrAbsent, []string{file, name}},
	} {
		dir := filepath.Join(t.TempDir(), "objects")
		if c.files != nil {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range c.files {
			write(dir, name, text)
		}
		s, err := node(dir, c.rows)
		if !errors.Is(err, c.want) || !slices.Equal(content(dir), c.after) {
			t.Errorf("%s: %v, %v", what, err, content(dir))
		}
		if c.want == nil {
			continue
		}
		if _, err := s.Get(o.Address, o.Object); !errors.Is(err, objectstore.ErrAbsent) {
			t.Errorf("%s: get: %v", what, err)
		}
		up, _ := s.Begin()
		if _, err := up.Write([]byte("x")); !errors.Is(err, objectstore.ErrAbsent) {
			t.Errorf("%s: upload: %v", what, err)
		}
		up.Done()
		s.Reserve(99)
		if _, err := s.Collect(func(storage.Address, storage.File) bool { return false }); err == nil {
			t.Errorf("%s: collected", what)
		}
		if no, _ := s.Probe(0); !errors.Is(no, objectstore.ErrAbsent) || !slices.Equal(content(dir), c.after) {
			t.Errorf("%s: probe: %v, %v", what, no, content(dir))
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		write(dir, name, identity) // the right one is mounted
		write(dir, file, "abc")
		write(dir, fmt.Sprintf("%016x.part", 120), "of a crash")
		if no, _ := s.Probe(0); no != nil || s.Verify(o) != nil || s.Newest() != 120 {
			t.Errorf("%s: mounted again: %v, %v, newest %d", what, no, s.Verify(o), s.Newest())
		}
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if no, _ := s.Probe(0); !errors.Is(no, objectstore.ErrAbsent) || s.Verify(o) == nil {
			t.Errorf("%s: unmounted: %v", what, no)
		}
	}
}
