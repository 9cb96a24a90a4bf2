package objectstore_test

import (
	"bytes"
	"errors"
	"testing"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/storage"
)

// diskOf returns the disk of a shard, and the name of its file.
func (w *copies) diskOf(o storage.Stored, shard int) (disk int, name string) {
	good, _ := w.survey(o)
	for _, p := range good.List() {
		if p.Shard == shard {
			return p.Provider, w.names(p.Provider)[0]
		}
	}
	return -1, ""
}

// spare returns a disk without files.
func (w *copies) spare() int {
	for i := range w.disks {
		if len(w.names(i)) == 0 {
			return i
		}
	}
	return -1
}

// duplicate copies the file of a shard to another disk, as a repair does while the disk of the shard has failed.
func (w *copies) duplicate(t *testing.T, o storage.Stored, shard, to int) {
	t.Helper()
	disk, name := w.diskOf(o, shard)
	b, err := fs.ReadAll(w.disks[disk], name)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, to, name, b)
}

// write writes a file.
func (w *copies) write(t *testing.T, disk int, name string, b []byte) {
	t.Helper()
	f, err := w.disks[disk].Create(name)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err = errors.Join(err, f.Sync(), f.Close(), w.disks[disk].SyncDir()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedShardIsReadElsewhere: a shard that is in two providers is as good as both files of it are together.
func TestDamagedShardIsReadElsewhere(t *testing.T) {
	for what, harm := range map[string]func(t *testing.T, w *copies, name string, disk, spare int, size int){
		"the one in its place": func(t *testing.T, w *copies, name string, disk, _, _ int) { flip(t, w.disks[disk], name, 100) },
		"each in a stripe": func(t *testing.T, w *copies, name string, disk, spare, _ int) {
			flip(t, w.disks[disk], name, 100)
			flip(t, w.disks[spare], name, digest.Group+100)
		},
		"its nodes": func(t *testing.T, w *copies, name string, disk, _, size int) { flip(t, w.disks[disk], name, size-1) },
	} {
		for shard := range 5 {
			w, b := newCopies(6, threeTwo), random(6*digest.Group+5000)
			o, spare := w.store(t, b), w.spare()
			w.duplicate(t, o, shard, spare)
			for _, lost := range [...]int{1, 2} {
				disk, _ := w.diskOf(o, (shard+lost)%5)
				w.remove(disk)
			}
			disk, name := w.diskOf(o, shard)
			file, _ := fs.ReadAll(w.disks[disk], name)
			harm(t, w, name, disk, spare, len(file))
			for n := range 2 {
				if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
					t.Fatalf("%s of shard %d: %d bytes, %v", what, shard, len(got), err)
				}
				if r, err := w.Restore(o, true, free); err != nil || r.Lost || r.Lacks || r.Good.AreEnough() != (n > 0 || what != "each in a stripe") {
					t.Fatalf("%s of shard %d: %+v, %v", what, shard, r, err)
				}
			}
			if is, bad := w.survey(o); is.Count() != 5 || bad.Count() > 0 {
				t.Errorf("%s of shard %d: good %+v, bad %+v", what, shard, is, bad)
			}
		}
	}
}

// TestDuplicatesDoNotBlockRepair: a shard gets the provider of one that another provider has as well, if all have one.
func TestDuplicatesDoNotBlockRepair(t *testing.T) {
	w := newCopies(6, threeTwo)
	o := w.store(t, random(4*digest.Group))
	spare, places, files := w.spare(), [5]int{}, [5][]byte{}
	var names [5]string
	for shard := range places {
		places[shard], names[shard] = w.diskOf(o, shard)
		files[shard], _ = fs.ReadAll(w.disks[places[shard]], names[shard])
	}
	for i := range w.disks {
		w.remove(i)
	}
	for shard, at := range [...][]int{1: {spare, places[0]}, 2: {places[1], places[4]}, 3: {places[2]}, 4: {places[3]}} { // shard 0 is lost
		for _, i := range at {
			w.write(t, i, names[shard], files[shard])
		}
	}
	if r, err := w.Restore(o, true, free); err != nil || r.Lacks || len(r.Written) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := w.Restore(o, true, free); err != nil || r.Lacks || len(r.Written) > 0 {
		t.Errorf("repaired again: %+v, %v", r, err)
	}
	if is, _ := w.survey(o); is.Count() != 5 {
		t.Errorf("parts %+v", is)
	}
	if r, err := w.Move(o, free); err != nil || !r.IsDone {
		t.Errorf("%+v, %v", r, err)
	}
	if err := w.isMoved(o); err != nil {
		t.Error(err)
	}
}

// TestReadableObjectIsNotLost: what could be read, and not be written for lack of space, is repaired later.
func TestReadableObjectIsNotLost(t *testing.T) {
	for _, full := range [][]int{{0}, {1}, {0, 1}} {
		w, b := newCopies(2, two), content(4)
		o := w.store(t, b)
		w.damage(t, 0, 5)
		w.damage(t, 1, 3*digest.Group)
		for _, i := range full {
			w.disks[i].Full = true
		}
		if r, err := w.Restore(o, true, free); err != nil || r.Lost || !r.Lacks {
			t.Errorf("disks %d are full: %+v, %v", full, r, err)
		}
		if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
			t.Errorf("disks %d are full: %d bytes, %v", full, len(got), err)
		}
		for _, i := range full {
			w.disks[i].Full = false
		}
		if r, err := w.Restore(o, true, free); err != nil || r.Lost || r.Lacks {
			t.Errorf("disks %d have space: %+v, %v", full, r, err)
		}
	}
}
