package objectstore_test

import (
	"bytes"
	"errors"
	"testing"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/storage"
	"macronode/core/types"
)

// filled returns a store with one object of each shape.
func filled(t *testing.T) (d *world.Disk, s *objectstore.Store, all []storage.Stored) {
	t.Helper()
	d = world.NewDisk()
	d.Fuse = -1
	s = open(t, d)
	for n := range 5 {
		u, a, err := put(s, content(n), 4096)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		all = append(all, storage.Stored{Address: a, Object: storage.Object{Size: uint64(len(content(n))), File: u.File()}})
	}
	return d, s, all
}

// TestCopySurvivesPowerLoss cuts the power at every operation of a copy: what is there under its name afterwards is the object,
// a second copy completes the rest, and after Flush nothing is lost.
func TestCopySurvivesPowerLoss(t *testing.T) {
	_, from, all := filled(t)
	for fuse := 0; ; fuse++ {
		d := world.NewDisk()
		d.Fuse = fuse
		to := objectstore.New(d, limits)
		copyAll := func() error {
			for _, o := range all {
				if to.Check(o) == nil {
					continue
				}
				if err := to.Copy(from, o); err != nil {
					return err
				}
			}
			return to.Flush()
		}
		err := copyAll()
		whole := !d.Dead()
		if whole && err != nil {
			t.Fatal(err)
		}
		d.Crash(&world.Seeded{Dice: types.NewRand(uint64(fuse))})
		d.Fuse = -1
		to = open(t, d)
		if _, err := to.Collect(func(storage.Address, storage.File) bool { return true }); err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if err := to.Verify(o); err != nil && (whole || !errors.Is(err, objectstore.ErrGone)) {
				t.Fatalf("fuse %d: %v", fuse, err)
			}
		}
		if err := copyAll(); err != nil {
			t.Fatalf("fuse %d: %v", fuse, err)
		}
		for n, o := range all {
			if got, err := read(to, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, content(n)) {
				t.Fatalf("fuse %d: %d bytes, %v", fuse, len(got), err)
			}
		}
		if u, err := to.Begin(1); err != nil || u.File() <= all[len(all)-1].File {
			t.Fatalf("the number of a copy is used again: %v", err)
		}
		if whole {
			if fuse < 20 {
				t.Fatalf("%d operations", fuse)
			}
			return
		}
	}
}

// TestCopyReportsWhichSideFailed: an object that cannot be read is a SourceError and leaves nothing in the target; a target
// that cannot be written is none.
func TestCopyReportsWhichSideFailed(t *testing.T) {
	d, from, all := filled(t)
	last := all[len(all)-1]
	names, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if b := bytes.Repeat([]byte{7}, 8); len(n) < 90 {
			change(t, d, n, func(was []byte) []byte { return append(was[:max(0, len(was)-len(b))], b[:min(len(b), len(was))]...) })
		}
	}
	to := world.NewDisk()
	to.Fuse = -1
	store := open(t, to)
	for _, o := range all[1:] {
		var source *objectstore.SourceError
		if err := store.Copy(from, o); !errors.As(err, &source) || !errors.Is(err, objectstore.ErrDamaged) {
			t.Errorf("damaged: %v", err)
		}
	}
	gone := last
	gone.File += 100
	var source *objectstore.SourceError
	if err := store.Copy(from, gone); !errors.As(err, &source) || !errors.Is(err, objectstore.ErrGone) {
		t.Errorf("gone: %v", err)
	}
	if names, err := to.List(); err != nil || len(names) != 0 {
		t.Errorf("left in the target: %q, %v", names, err)
	}
	_, from, all = filled(t)
	to.Full = true
	if err := store.Copy(from, all[4]); err == nil || errors.As(err, &source) {
		t.Errorf("full: %v", err)
	}
	to.Full, to.FailSync = false, true
	if err := store.Copy(from, all[4]); err == nil || errors.As(err, &source) {
		t.Errorf("not durable: %v", err)
	}
}
