package objectstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/types"
)

// TestSmallObjectNeedsNoRename: the file of an object of one group is made under its name, and not before Store. A larger object has a draft.
func TestSmallObjectNeedsNoRename(t *testing.T) {
	for n, small := range []bool{true, true, true, false, false} {
		d := world.NewDisk()
		s := open(t, d)
		var ops []string
		d.OnOperation = func(op, name string) { ops = append(ops, op+" "+name) }
		u, err := s.Begin(types.DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Write(content(n)); err != nil {
			t.Fatal(err)
		}
		a, err := u.Sum()
		if err != nil || a != address(content(n)) || u.Size() != uint64(len(content(n))) {
			t.Fatalf("content %d: %s of %d bytes, %v", n, a, u.Size(), err)
		}
		if (len(ops) == 0) != small {
			t.Errorf("content %d: before Store %q", n, ops)
		}
		if err := u.Store(a); err != nil || u.Size() != uint64(len(content(n))) {
			t.Fatalf("content %d: %d bytes, %v", n, u.Size(), err)
		}
		u.Done()
		if renames := slices.ContainsFunc(ops, func(op string) bool { return strings.HasPrefix(op, "rename") }); renames == small {
			t.Errorf("content %d: %q", n, ops)
		}
	}
}

// TestUnstoredSmallObjectHasNoFile: an object whose address is not the expected one is never written.
func TestUnstoredSmallObjectHasNoFile(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	u, err := s.Begin(types.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Write(content(1))
	_, summed := u.Sum()
	u.Done()
	if names, _ := d.List(); errors.Join(err, summed) != nil || len(names) > 0 {
		t.Fatalf("files %q, %v, %v", names, err, summed)
	}
}

// TestFailedSmallObjectLeavesNoFile: an upload that fails before its content is durable removes its file at once. It is never repeated.
func TestFailedSmallObjectLeavesNoFile(t *testing.T) {
	for what, fault := range map[string]func(*world.Disk){
		"a write that fails": func(d *world.Disk) { d.FailWrite = true },
		"a sync that fails":  func(d *world.Disk) { d.FailSync = true },
		"a full disk":        func(d *world.Disk) { d.Full = true },
	} {
		d := world.NewDisk()
		s := open(t, d)
		fault(d)
		u, _, err := put(s, content(1), 10)
		if err == nil {
			t.Errorf("%s: the upload has succeeded", what)
		}
		u.Done()
		if names, _ := d.List(); len(names) > 0 {
			t.Errorf("%s: files %q", what, names)
		}
	}
}

// TestSmallObjectNeedsThePlace: no file is made in a directory that is not the claimed one. A crash would leave it there, and it looks like an
// object of another node.
func TestSmallObjectNeedsThePlace(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	if err := s.Claim(objectstore.Owner{Journal: 7}); err != nil {
		t.Fatal(err)
	}
	names, _ := d.List() // another disk is in its place
	for _, n := range names {
		if err := d.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
	d.OnOperation = func(op, name string) {
		if op == "create" {
			t.Errorf("created %s", name)
		}
	}
	u, _, err := put(s, content(1), 10)
	if u.Done(); err == nil {
		t.Error("an upload succeeds in another directory")
	}
}

// onlyDrafts is a provider without Direct.
type onlyDrafts struct{ provider.Port }

// TestSmallObjectWithoutDirect: a provider that makes files of drafts only has the same file, and a copy in one that fails is removed.
func TestSmallObjectWithoutDirect(t *testing.T) {
	disks := [...]*world.Disk{world.NewDisk(), world.NewDisk()}
	var list []objectstore.Provider
	for i, d := range disks {
		name := fmt.Sprint(i)
		p := objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: d}}
		if i == 1 {
			p.Port = onlyDrafts{p.Port}
		}
		list = append(list, p)
	}
	s := objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 1}, limits)
	for _, failing := range [...]int{-1, 0, 1} {
		b := slices.Concat(content(2)[:digest.Group-1], []byte{byte(failing)})
		if failing >= 0 {
			disks[failing].FailSync = true
		}
		u, a, err := put(s, b, digest.Group)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		for i, d := range disks {
			name := fmt.Sprintf("%x-%016x", a[:], uint64(u.File()))
			if got, err := fs.ReadAll(d, name); (err == nil && string(got) == string(b)) != (i != failing) {
				names, _ := d.List()
				t.Errorf("disk %d while disk %d fails: files %q, %v", i, failing, names, err)
			}
			if names, _ := d.List(); slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, provider.DraftSuffix) }) {
				t.Errorf("disk %d while disk %d fails: files %q", i, failing, names)
			}
		}
		for i := range disks {
			if unreadable, unwritable := s.Probe(i); unreadable != nil || unwritable != nil {
				t.Fatalf("disk %d after its fault: %v, %v", i, unreadable, unwritable)
			}
		}
	}
}
