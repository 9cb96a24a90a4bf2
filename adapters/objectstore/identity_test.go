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
	refused("a node of another journal", "disk0", w.Claim(objectstore.Owner{Journal: 9, Before: 7}))
	refused("a restore", `says "macronode provider disk0, journal 0000000000000007"`, w.Claim(objectstore.Owner{Journal: 7, Restoring: true}))
	if got := w.Claims(7); len(got) != 2 || got[0] != (objectstore.Claimed{Provider: "disk0", Owner: "journal 0000000000000007"}) {
		t.Errorf("claims %+v", got)
	}
	if err := w.Claim(objectstore.Owner{Journal: 7, Restoring: true, Take: true}); err != nil {
		t.Errorf("a restore that takes over: %v", err)
	}
	if got := w.Claims(7); len(got) != 0 {
		t.Errorf("claims of an interrupted restore %+v", got)
	}
	if err := w.Claim(objectstore.Owner{Journal: 7, Restoring: true}); err != nil {
		t.Errorf("a restore that is repeated: %v", err)
	}
	if err := w.Claim(objectstore.Owner{Journal: 9, Before: 7}); err != nil {
		t.Errorf("the end of the restore: %v", err)
	}
	w.start(two)
	refused("the node before", "remove none of them", w.Claim(objectstore.Owner{Journal: 7}))
	w.devices[0], w.devices[1] = w.devices[1], w.devices[0]
	w.start(two)
	refused("exchanged directories", "provider disk0: its directory says \"macronode provider disk1", w.Claim(objectstore.Owner{Journal: 9, Restoring: true, Take: true}))

	w = newCopies(2, two)
	w.store(t, content(1))
	w.start(two)
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
	up, err := w.Begin(1)
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

// TestLeftoversAreClaimed: a directory that lost its identity is used again although it has files of deleted objects: if it also has a
// file of an object, or if uploads of this run wrote its files. Otherwise it is failed, and the node starts with the other one.
func TestLeftoversAreClaimed(t *testing.T) {
	for name, c := range map[string]struct {
		live   int // objects of the two that rows still name
		starts bool
		want   bool
	}{"another object": {live: 1, want: true}, "another object, after a start": {1, true, true}, "no object": {want: true}, "no object, after a start": {0, true, false}} {
		w := newCopies(2, two)
		if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
			t.Fatal(err)
		}
		all := rows{w.store(t, content(1)), w.store(t, content(2))}[:c.live]
		elsewhere := storage.Stored{Object: storage.Object{File: 99}}
		if err := w.disks[0].Remove("provider.id"); err != nil {
			t.Fatal(err)
		}
		if c.starts {
			w.start(two)
		}
		if err := w.Claim(objectstore.Owner{Journal: 7, Rows: append(all, elsewhere)}); err != nil {
			t.Errorf("%s: claim: %v", name, err)
		}
		_, err := w.Probe(0)
		if failed := w.Health()[0].Failed; (err == nil) != c.want || (failed == "") != c.want {
			t.Errorf("%s: %v, failed %q", name, err, failed)
		}
	}
}

// TestUnclaimedIsNotWritten: a provider that could not be claimed at the start may be of another node.
func TestUnclaimedIsNotWritten(t *testing.T) {
	w, other := newCopies(2, objectstore.Copies{Count: 2, Required: 2}), newCopies(2, two)
	w.devices[0].err = syscall.EIO
	if err := errors.Join(other.Claim(objectstore.Owner{Journal: 8}), w.Claim(objectstore.Owner{Journal: 7})); err != nil {
		t.Fatal(err)
	}
	w.devices[0].err, w.devices[0].FS = nil, other.disks[0]
	_, _, err := put(w.Store, random(2*digest.Group+5), digest.Group)
	if names, listErr := other.disks[0].List(); listErr != nil || !slices.Equal(names, []string{"provider.id"}) {
		t.Errorf("the directory of another node has %v, %v; the upload: %v", names, listErr, err)
	}
}

// TestDamagedIdentity: one that is empty, cut or overwritten is like none: the directory is claimed if it has no files but those of this node.
// Otherwise the provider is failed, and the start is not refused.
func TestDamagedIdentity(t *testing.T) {
	for _, text := range []string{"", "macronode provider disk1\n", "macronode provider disk1\njournal 00000000", "macronode provider disk1\njournal 0000000000000007\n\n", strings.Repeat("\x00", 60)} {
		for name, known := range map[string]bool{"its own file": true, "no file": true, "a stranger's": false} {
			w := newCopies(2, two)
			if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
				t.Fatal(err)
			}
			all := rows{w.store(t, content(1)), {Object: storage.Object{File: 99}}}
			if !known {
				all = all[1:]
			}
			if name == "no file" {
				w.disks[1].LoseAll()
			} else if err := w.disks[1].Remove("provider.id"); err != nil {
				t.Fatal(err)
			}
			f, err := w.disks[1].Create("provider.id")
			if err == nil {
				_, err = f.WriteAt([]byte(text), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.start(two)
			if err := w.Claim(objectstore.Owner{Journal: 7, Rows: all}); err != nil || (w.Health()[1].Failed == "") != known {
				t.Errorf("%s, %q: %v, %+v", name, text, err, w.Health())
			}
			if _, err := w.Probe(1); (err == nil) != known {
				t.Errorf("%s, %q: a probe: %v", name, text, err)
			}
		}
	}
}

// TestCopyNeedsIdentity: a disk that is replaced or not mounted gets no copy before it is claimed. The next start claims it.
func TestCopyNeedsIdentity(t *testing.T) {
	w := newCopies(2, two)
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	kept := w.store(t, content(1))
	w.disks[1].LoseAll()
	lost := w.store(t, content(2))
	if names := w.disks[1].Names(); len(names) > 0 || len(w.defects) != 1 || w.defects[0] != lost {
		t.Errorf("the new disk has %q, defects %v", names, w.defects)
	}
	if w.Health()[1].Failed == "" {
		t.Error("the provider has not failed")
	}
	w.start(two)
	if err := w.Claim(objectstore.Owner{Journal: 7, Rows: rows{kept}}); err != nil || w.Health()[1].Failed != "" {
		t.Errorf("the next start: %v, %+v", err, w.Health())
	}
	if err := w.RepairCopy(kept, 1, nil); err != nil {
		t.Error(err)
	}
	w.disks[1].LoseAll()
	if err := w.RepairCopy(kept, 1, nil); err == nil {
		t.Error("a repair writes into a directory that was not claimed")
	}
	w = newCopies(1, objectstore.Copies{Count: 1, Required: 1})
	if err := w.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	w.disks[0].LoseAll()
	u, _, err := put(w.Store, content(1), 10)
	if u.Done(); err == nil {
		t.Error("an upload succeeds in another directory")
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

// TestDirectoryHasOneHolder: while a store has claimed a directory, another one of the same journal is refused and removes nothing. A directory
// that comes back later is locked when it is claimed, and is failed while another process holds it. The file of the lock is no object.
func TestDirectoryHasOneHolder(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	open := func(first string) *objectstore.Store {
		var list []objectstore.Provider
		for i, d := range []string{first, dirs[1]} {
			name := fmt.Sprintf("disk%d", i)
			list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: fs.Dir(d)}})
		}
		return objectstore.NewCopies(list, two, limits)
	}
	owner := func(name string) objectstore.Owner { return objectstore.Owner{Journal: 7, Holder: name} }
	none := func(storage.Address, storage.File) bool { return false }
	held, second := open(dirs[0]), open(dirs[0])
	if err := held.Claim(owner("one")); err != nil {
		t.Fatal(err)
	}
	if files, err := held.Files(); err != nil || files.HasObjects() {
		t.Errorf("objects in a new directory: %+v, %v", files.Names, err)
	}
	row := (&copies{Store: held}).store(t, content(1))
	err := second.Claim(owner("two"))
	if !errors.Is(err, fs.ErrHeld) || !strings.Contains(err.Error(), "provider disk0: ") || !strings.Contains(err.Error(), fmt.Sprintf("is held by process %d, one;", os.Getpid())) {
		t.Errorf("a second claim: %v", err)
	}
	if _, err := second.Get(row.Address, row.Object); err == nil {
		t.Error("the second store reads")
	}
	second.Reserve(99)
	if c, _ := second.Collect(none); c.Files != 0 {
		t.Errorf("the second store has removed %d files", c.Files)
	}
	if err := second.Claim(objectstore.Owner{Journal: 7, Restoring: true, Take: true, Holder: "a restore"}); !errors.Is(err, fs.ErrHeld) {
		t.Errorf("a restore: %v", err)
	}
	held.Release()

	away := dirs[0] + ".away"
	if err := os.Rename(dirs[0], away); err != nil {
		t.Fatal(err)
	}
	late := open(dirs[0])
	if err := late.Claim(owner("late")); err != nil || late.Health()[0].Failed == "" {
		t.Fatalf("%v, %+v", err, late.Health())
	}
	lock, err := fs.LockFile(fs.Dir(away), "provider.lock", "the one before")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, dirs[0]); err != nil {
		t.Fatal(err)
	}
	late.Reserve(99)
	if _, err := late.Collect(none); !errors.Is(err, objectstore.ErrAbsent) {
		t.Errorf("collected in a directory that was not claimed: %v", err)
	}
	if no, _ := late.Probe(0); !errors.Is(no, fs.ErrHeld) || !strings.Contains(late.Health()[0].Failed, "the one before") {
		t.Errorf("probe of a held directory: %v, %+v", no, late.Health())
	}
	if files, _ := os.ReadDir(dirs[0]); len(files) < 3 {
		t.Errorf("files of a held directory: %v", files)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if no, _ := late.Probe(0); no != nil || late.Health()[0].Failed != "" {
		t.Errorf("probe: %v, %+v", no, late.Health())
	}
	if err := held.Claim(owner("one")); !errors.Is(err, fs.ErrHeld) || !strings.Contains(err.Error(), ", late;") {
		t.Errorf("a claim while the late one holds it: %v", err)
	}
	late.Release()
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
		up, _ := s.Begin(1)
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
		if no, _ := s.Probe(0); no != nil || s.Verify(o) != nil || !s.Settled()(120) || s.Settled()(121) {
			t.Errorf("%s: mounted again: %v, %v, or the newest file is not 120", what, no, s.Verify(o))
		}
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if no, _ := s.Probe(0); !errors.Is(no, objectstore.ErrAbsent) || s.Verify(o) == nil {
			t.Errorf("%s: unmounted: %v", what, no)
		}
	}
}
