package objectstore_test

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// inUse is what uploads leave free on a disk of a test.
var inUse = int64(limits.Reserve) + 4<<20

// lacksSpace are the ways in which a disk has no space for an object of a size: it is full, all that is free is reserved, or what is free is
// less than the object.
func lacksSpace(size int) map[string]func(*world.Disk) {
	return map[string]func(*world.Disk){
		"full": func(d *world.Disk) { d.Full = true }, "reserved": func(d *world.Disk) { d.Leave(inUse) },
		"smaller than the object": func(d *world.Disk) { d.Leave(inUse + int64(size)/4) },
	}
}

// spaceModes are what objects of the tests have: copies, of which one or all are required, and shards.
var spaceModes = map[string]objectstore.Copies{
	"copies": two, "required copies": {Count: 2, Required: 2}, "shards": {Count: 2, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 1}},
}

// expect uploads b, and announces its size.
func (w *copies) expect(b []byte) (o storage.Stored, err error) {
	u, err := w.Begin(1)
	if err != nil {
		return o, err
	}
	defer u.Done()
	u.Expect(uint64(len(b)))
	if _, err = u.Write(b); err != nil {
		return o, err
	}
	a, err := u.Sum()
	if err == nil {
		err = u.Store(a)
	}
	return storage.Stored{Address: a, Object: storage.Object{Size: u.Size(), File: u.File()}}, err
}

// lacking returns how many parts an object lacks, and whether a disk has one.
func (w *copies) lacking(o storage.Stored, disk int) (missing int, has bool) {
	good, _ := w.survey(o)
	return w.Wanted(&good) - good.Count(), good.Providers().Has(disk)
}

// TestFullDiskIsPassedOver: while a disk has no space for an object, others take its copies and shards, whatever is required. The disk has not
// failed, and takes others when it has space again.
func TestFullDiskIsPassedOver(t *testing.T) {
	for mode, c := range spaceModes {
		b := random(2*digest.Group + 5)
		for how, fill := range lacksSpace(len(b)) {
			w := newCopies(4, c)
			fill(w.disks[1])
			for n := range 12 {
				o, err := w.expect(b)
				if err != nil {
					t.Fatalf("%s, %s: upload %d: %v", mode, how, n, err)
				}
				if missing, has := w.lacking(o, 1); missing > 0 || has {
					t.Fatalf("%s, %s: object %d lacks %d, the disk has a part: %v", mode, how, n, missing, has)
				}
			}
			if len(w.defects) > 0 || w.Health()[1].Failed != "" || w.Usable() != w.all() {
				t.Errorf("%s, %s: defects %v, health %+v", mode, how, w.defects, w.Health())
			}
			w.disks[1].Leave(math.MaxInt64)
			used := false
			for range 12 {
				o, err := w.expect(b)
				if err != nil {
					t.Fatal(err)
				}
				_, has := w.lacking(o, 1)
				used = used || has
			}
			if !used {
				t.Errorf("%s, %s: the disk has space again, and is not used", mode, how)
			}
		}
	}
}

// TestSmallObjectFitsBesideLarge: a disk without space for a large object takes a small one, of which only what was written is known.
func TestSmallObjectFitsBesideLarge(t *testing.T) {
	w, used := newCopies(4, two), false
	w.disks[1].Leave(inUse + 20*digest.Group)
	for n := range 12 {
		_, has := w.lacking(w.store(t, content(n%3)), 1)
		used = used || has
	}
	if !used {
		t.Error("the disk is not used")
	}
}

// quotaDir is a directory that has free space and takes no file, as behind a quota.
type quotaDir struct {
	fs.FS
	err *error
}

func (q quotaDir) Create(name string) (fs.File, error) {
	if *q.err != nil {
		return nil, *q.err
	}
	return q.FS.Create(name)
}

// TestRefusedWriteIsRemembered: a disk that says it has space, and refuses a write for lack of it, is not chosen again until a probe succeeds.
func TestRefusedWriteIsRemembered(t *testing.T) {
	for _, quota := range []error{syscall.EDQUOT, syscall.ENOSPC} {
		var list []objectstore.Provider
		now, refused := quota, 0
		for i := range 4 {
			name := fmt.Sprintf("disk%d", i)
			dir := fs.FS(world.NewDisk())
			if i == 1 {
				dir = quotaDir{dir, &now}
			}
			list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: dir}})
		}
		w := &copies{Store: objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 2}, limits)}
		upload := func() (has bool) {
			o, err := w.expect(content(3))
			switch {
			case errors.Is(err, quota):
				refused++
			case err != nil:
				t.Fatal(err)
			default:
				_, has = w.lacking(o, 1)
			}
			return has
		}
		for range 20 {
			upload()
		}
		if h := w.Health()[1]; refused != 1 || h.Full == "" || h.Failed != "" {
			t.Errorf("%v: %d uploads were refused, health %+v", quota, refused, h)
		}
		if _, err := w.Probe(1); !errors.Is(err, quota) {
			t.Errorf("%v: probe: %v", quota, err)
		}
		now = nil
		if _, err := w.Probe(1); err != nil {
			t.Errorf("%v: probe: %v", quota, err)
		}
		used := false
		for range 20 {
			used = upload() || used
		}
		if refused != 1 || !used || w.Health()[1].Full != "" {
			t.Errorf("%v: %d uploads were refused, the disk is used again: %v, health %+v", quota, refused, used, w.Health()[1])
		}
	}
}

// TestUploadsNeedSpaceInEnoughDisks: with fewer disks that have space than are required, an upload fails for lack of space, and is not stored.
func TestUploadsNeedSpaceInEnoughDisks(t *testing.T) {
	for mode, c := range spaceModes {
		b := random(2*digest.Group + 5)
		for how, fill := range lacksSpace(len(b)) {
			for full := range 5 {
				w := newCopies(4, c)
				for i := range full {
					fill(w.disks[i])
				}
				_, err := w.expect(b)
				if fits := 4-full >= c.Domains(); fits && err != nil || !fits && !errors.Is(err, objectstore.ErrNoSpace) && !errors.Is(err, world.ErrFull) && how != "smaller than the object" {
					t.Errorf("%s, %s, %d disks: %v", mode, how, full, err)
				}
			}
		}
	}
}

// TestRepairPassesOverFullDisk: what an object lacks is written into disks with space, also if its place is full. Afterwards it stays there, and a
// move brings it to its place.
func TestRepairPassesOverFullDisk(t *testing.T) {
	for mode, c := range spaceModes {
		b := random(2*digest.Group + 5)
		for how, fill := range lacksSpace(len(b)) {
			for gone := range 4 {
				w := newCopies(4, c)
				o := w.store(t, b)
				before, _ := w.survey(o)
				w.remove(gone)
				fill(w.disks[gone])
				r, err := w.Restore(o, false, free)
				if missing, has := w.lacking(o, gone); err != nil || r.Lost || r.Lacks || missing > 0 || has {
					t.Fatalf("%s, %s, disk %d: %+v, %v; %d are missing, the disk has a part: %v", mode, how, gone, r, err, missing, has)
				}
				w.disks[gone].Leave(math.MaxInt64)
				if r, err := w.Restore(o, true, free); err != nil || r.Lacks || len(r.Written) > 0 {
					t.Errorf("%s, %s, disk %d: with space: %+v, %v", mode, how, gone, r, err)
				}
				if _, err := w.Probe(gone); err != nil {
					t.Error(err)
				}
				if r, err := w.Move(o, free); err != nil || !r.IsDone {
					t.Errorf("%s, %s, disk %d: move: %+v, %v", mode, how, gone, r, err)
				}
				if after, _ := w.survey(o); after.Providers() != before.Providers() {
					t.Errorf("%s, %s, disk %d: in %b, before in %b", mode, how, gone, after.Providers(), before.Providers())
				}
			}
		}
	}
}

// TestRepairOfDamageOnFullDisk: a damaged part that its disk has no space to replace is written into another disk. What only full disks could take
// is lacking until they have space.
func TestRepairOfDamageOnFullDisk(t *testing.T) {
	for mode, c := range spaceModes {
		b := random(2*digest.Group + 5)
		w := newCopies(4, c)
		o := w.store(t, b)
		good, _ := w.survey(o)
		disk := good.List()[0].Provider
		w.damage(t, disk, 5)
		w.disks[disk].Leave(inUse)
		if r, err := w.Restore(o, true, free); err != nil || r.Lost || r.Lacks || len(r.Written) != 1 || r.Written[0].Provider == disk {
			t.Errorf("%s: %+v, %v", mode, r, err)
		}
		if missing, has := w.lacking(o, disk); missing > 0 || has {
			t.Errorf("%s: %d are missing, the damaged one is good: %v", mode, missing, has)
		}
		if r, err := w.Restore(o, true, free); err != nil || r.Lacks || len(r.Written) > 0 {
			t.Errorf("%s: again: %+v, %v", mode, r, err)
		}

		w = newCopies(4, c)
		o = w.store(t, b)
		w.damage(t, disk, 5)
		for _, d := range w.disks {
			d.Leave(inUse)
		}
		r, err := w.Restore(o, true, free)
		if err != nil || r.Lost || !r.Lacks || len(r.Errs) == 0 || !errors.Is(r.Errs[0], objectstore.ErrNoSpace) {
			t.Errorf("%s: all are full: %+v, %v", mode, r, err)
		}
		for _, d := range w.disks {
			d.Leave(math.MaxInt64)
		}
		if r, err := w.Restore(o, true, free); err != nil || r.Lacks || len(r.Written) != 1 || r.Written[0].Provider != disk {
			t.Errorf("%s: with space: %+v, %v", mode, r, err)
		}
	}
}

// TestRepairLeavesFullDiskAlone: a repair that finds too little space for a part begins no file.
func TestRepairLeavesFullDiskAlone(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, random(4*digest.Group))
	w.remove(1)
	w.disks[1].Leave(inUse + digest.Group)
	before := w.disks[1].Ops
	if r, err := w.Restore(o, false, free); err != nil || !r.Lacks || len(r.Errs) != 1 || !errors.Is(r.Errs[0], objectstore.ErrNoSpace) {
		t.Errorf("%+v, %v", r, err)
	}
	if names := w.names(1); len(names) > 0 || w.disks[1].Ops == before {
		t.Errorf("the disk has %q after %d operations", names, w.disks[1].Ops-before)
	}
}

// TestRefusalIsReportedOnce: an upload that failed for lack of space is reported to the next probe. A repair and an upload that failed otherwise are not.
func TestRefusalIsReportedOnce(t *testing.T) {
	w := newCopies(2, objectstore.Copies{Count: 2, Required: 2})
	o := w.store(t, content(3))
	w.remove(1)
	w.disks[1].Leave(inUse)
	if r, err := w.Restore(o, false, free); err != nil || !r.Lacks {
		t.Errorf("repair: %+v, %v", r, err)
	}
	if err := w.Refused(); err != nil {
		t.Errorf("a repair is reported: %v", err)
	}
	if _, err := w.expect(content(3)); !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("upload: %v", err)
	}
	if err := w.Refused(); err == nil {
		t.Error("a refusal is not reported")
	}
	if err := w.Refused(); err != nil {
		t.Errorf("it is reported again: %v", err)
	}
	w.disks[1].Leave(math.MaxInt64)
	w.disks[1].FailWrite = true
	if _, err := w.expect(content(3)); err == nil {
		t.Error("an upload succeeds with one of two required copies")
	}
	if err := w.Refused(); err != nil {
		t.Errorf("a fault is reported: %v", err)
	}
}
