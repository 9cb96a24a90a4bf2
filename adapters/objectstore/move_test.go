package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// grow adds disks, and starts the store again.
func (w *copies) grow(t interface{ Fatal(...any) }, disks int, c objectstore.Copies) {
	for range disks {
		w.disks = append(w.disks, world.NewDisk())
		w.devices = append(w.devices, &brokenDir{FS: w.disks[len(w.disks)-1]})
	}
	w.start(c)
	if err := w.Recover(); err != nil {
		t.Fatal(err)
	}
}

// free sets no limit to reads.
func free(int) error { return nil }

// goodParts returns the parts of an object that are whole: every provider is asked for each of them.
func (w *copies) goodParts(o storage.Stored) (list []objectstore.Part) {
	for i := range w.disks {
		for shard := range threeTwo.Coding.Shards() {
			if p := (objectstore.Part{Provider: i, Scheme: threeTwo.Coding, Shard: shard}); w.VerifyPart(o, p, nil) == nil {
				list = append(list, p)
			}
		}
		if p := (objectstore.Part{Provider: i}); w.VerifyPart(o, p, nil) == nil {
			list = append(list, p)
		}
	}
	return list
}

// whole returns how many different shards are whole, or how many copies of those that an object has.
func (w *copies) whole(o storage.Stored) int {
	list := w.goodParts(o)
	if !threeTwo.Coding.Applies(o.Size) {
		return min(len(list), threeTwo.Count)
	}
	var shards placement.Set
	for _, p := range list {
		shards = shards.With(p.Shard)
	}
	return shards.Len()
}

// isMoved reports whether an object has what it needs, in the providers where an upload writes it, and no other file.
func (w *copies) isMoved(o storage.Stored) error {
	files, err := w.Files()
	if err != nil {
		return err
	}
	has, n := files.Parts(o), threeTwo.Count
	if has.Scheme.IsSet() {
		n = has.Scheme.Shards()
	}
	places, want := w.Table().Choose(uint64(o.File), n, w.all(), 0), placement.Set(0)
	for i := range places.Len() {
		want = want.With(places.At(i))
	}
	if _, isNeeded := w.ToMove(o, &has); isNeeded || has.Providers() != want || len(has.List()) != n || w.whole(o) != n {
		return fmt.Errorf("file %d: parts %+v, places %b, %d whole, a move is needed: %v", o.File, has.List(), want, w.whole(o), isNeeded)
	}
	return nil
}

// TestMoveToNewProviders adds providers: each object moves at most one part for each of them, is read meanwhile and afterwards, and a second move
// finds nothing. Before the move, reads find the shards where they are, and report no defect.
func TestMoveToNewProviders(t *testing.T) {
	w, contents := newCopies(5, threeTwo), map[storage.Stored][]byte{}
	for n := range 12 {
		b := slices.Concat(random(3*digest.Group+1+n*50_000), []byte{byte(n)})
		contents[w.store(t, b)] = b
	}
	small := []byte("one group")
	contents[w.store(t, small)] = small
	for added := 1; added <= 3; added += 2 {
		w.grow(t, added, threeTwo)
		written := 0
		for o, b := range contents {
			read := func(when string) {
				t.Helper()
				if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) || len(w.defects) > 0 {
					t.Fatalf("%s, file %d: %d bytes, %v, defects %v", when, o.File, len(got), err, w.defects)
				}
			}
			read("before")
			files, err := w.Files()
			if err != nil {
				t.Fatal(err)
			}
			has := files.Parts(o)
			missing, isNeeded := w.ToMove(o, &has)
			if len(missing) > added || isNeeded != (len(missing) > 0) {
				t.Fatalf("file %d: %d new providers get %+v, a move is needed: %v", o.File, added, missing, isNeeded)
			}
			is, err := w.Move(o, free)
			if bytes := sizeOf(o, missing); err != nil || !is.IsDone || !slices.Equal(is.Written, missing) || is.Bytes != bytes {
				t.Fatalf("file %d: %+v, %v, want %+v, %d bytes", o.File, is, err, missing, bytes)
			}
			if err := w.isMoved(o); err != nil {
				t.Fatal(err)
			}
			written += len(missing)
			read("after")
			if is, err := w.Move(o, free); err != nil || !is.IsDone || len(is.Written) > 0 {
				t.Fatalf("again: %+v, %v", is, err)
			}
		}
		if written == 0 {
			t.Fatalf("nothing is moved to %d new providers", added)
		}
	}
}

// sizeOf returns the bytes of some parts.
func sizeOf(o storage.Stored, list []objectstore.Part) (n uint64) {
	for _, p := range list {
		n += p.Size(o)
	}
	return n
}

// toMove returns a store of five disks and two new ones with one object, whose content is like b, and of which each new disk gets a part.
func toMove(t *testing.T, b []byte) (*copies, storage.Stored) {
	t.Helper()
	w, all := newCopies(5, threeTwo), []storage.Stored(nil)
	for n := range 16 {
		all = append(all, w.store(t, append(slices.Clone(b[:len(b)-1]), byte(n))))
	}
	w.grow(t, 2, threeTwo)
	files, err := w.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		has := files.Parts(o)
		if missing, _ := w.ToMove(o, &has); len(missing) == 2 {
			if _, err := w.Collect(func(_ storage.Address, f storage.File) bool { return f == o.File }); err != nil {
				t.Fatal(err)
			}
			return w, o
		}
	}
	t.Fatal("of no object both new disks get a part")
	return nil, storage.Stored{}
}

var movedContents = map[string][]byte{"shards": random(3*digest.Group*2 + 5), "copies": random(3 * digest.Group), "one group": random(500)}

// eachOperation is the step from one operation of a move or a read to the next one that is tried. For the race detector some are enough.
func eachOperation() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// TestMoveSurvivesPowerLoss ends the power of all disks at each operation of a move: at no point are fewer shards or copies whole than before, also
// after a restart, and a move then brings the object to its places.
func TestMoveSurvivesPowerLoss(t *testing.T) {
	for what, b := range movedContents {
		for fuse, ended := 1, false; !ended; fuse += eachOperation() {
			w, o := toMove(t, b)
			before := w.whole(o)
			var left atomic.Int64 // the operations of several disks run at once
			left.Store(int64(fuse))
			for i, d := range w.disks {
				d.OnOperation = func(string, string) {
					if left.Add(-1) <= 0 {
						d.Fuse = 0
					}
				}
				w.devices[i].FS = d
			}
			_, _ = w.Move(o, free) // the disks are what counts
			ended = left.Load() > 0
			for i, d := range w.disks {
				d.OnOperation = nil
				d.Crash(world.NewSeeded(uint64(fuse)<<8 + uint64(i)))
				d.Fuse = -1
			}
			w.start(threeTwo)
			if err := w.Recover(); err != nil {
				t.Fatal(err)
			}
			if n := w.whole(o); n < before {
				t.Fatalf("%s, fuse %d: %d whole, %d were", what, fuse, n, before)
			}
			if _, err := w.Collect(func(storage.Address, storage.File) bool { return true }); err != nil {
				t.Fatal(err)
			}
			is, err := w.Move(o, free)
			if moved := w.isMoved(o); err != nil || !is.IsDone || moved != nil {
				t.Fatalf("%s, fuse %d: %+v, %v, %v", what, fuse, is, err, moved)
			}
			if ended && fuse < 20 {
				t.Fatalf("%s: %d operations", what, fuse)
			}
		}
	}
}

// TestMoveSurvivesFailures lets the new disks fail in each way: nothing is lost, the part that could be written is in its place, and a
// later move does the rest.
func TestMoveSurvivesFailures(t *testing.T) {
	for what, b := range movedContents {
		for how, harm := range map[string]func(*world.Disk){
			"write": func(d *world.Disk) { d.FailWrite = true }, "sync": func(d *world.Disk) { d.FailSync = true },
			"directory": func(d *world.Disk) { d.FailDir = true }, "full": func(d *world.Disk) { d.Leave(100) }, "read": func(d *world.Disk) { d.FailRead = true },
		} {
			for failed := range 2 {
				w, o := toMove(t, b)
				before := w.whole(o)
				for i := range failed + 1 {
					harm(w.disks[5+i])
				}
				is, err := w.Move(o, free)
				for _, d := range w.disks {
					d.FailWrite, d.FailSync, d.FailDir, d.FailRead = false, false, false, false
					d.Leave(1 << 40)
				}
				if is.IsDone || w.whole(o) < before {
					t.Fatalf("%s, %s: %+v, %v, %d whole, %d were", what, how, is, err, w.whole(o), before)
				}
				if w.Usable() != w.all() {
					if _, err := w.Move(o, free); !errors.Is(err, objectstore.ErrProviderFailed) {
						t.Fatalf("%s, %s: %v while a provider has failed", what, how, err)
					}
				}
				for i := range w.disks {
					if _, err := w.Probe(i); err != nil {
						t.Fatal(err)
					}
				}
				is, err = w.Move(o, free)
				if moved := w.isMoved(o); err != nil || !is.IsDone || moved != nil {
					t.Fatalf("%s, %s: %+v, %v, %v", what, how, is, err, moved)
				}
			}
		}
	}
}

// TestMoveReadsWhatIsThere: a file in the place of a part is damaged, and the part is good elsewhere. It is written again before that is removed.
func TestMoveReadsWhatIsThere(t *testing.T) {
	for what, b := range movedContents {
		w, o := toMove(t, b)
		old, before := w.goodParts(o), w.whole(o)
		if is, err := w.Move(o, free); err != nil || !is.IsDone {
			t.Fatalf("%s: %+v, %v", what, is, err)
		}
		placed := w.goodParts(o)
		for _, p := range old {
			if !slices.Contains(placed, p) {
				if err := errors.Join(w.Repair(o, []objectstore.Part{p}, nil)...); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, p := range placed {
			if !slices.Contains(old, p) {
				flip(t, w.disks[p.Provider], w.names(p.Provider)[0], 100)
			}
		}
		is, err := w.Move(o, free)
		if moved := w.isMoved(o); err != nil || !is.IsDone || len(is.Written) != 2 || is.Bytes > 0 || moved != nil || w.whole(o) < before {
			t.Fatalf("%s: %+v, %v, %v", what, is, err, moved)
		}
	}
}

// TestMoveIsPaced: each read of a move is asked for first, in pieces of a group at most. An error of the budget ends it with nothing removed.
func TestMoveIsPaced(t *testing.T) {
	for what, b := range movedContents {
		w, o := toMove(t, b)
		before, reads, asked, enough := w.goodParts(o), 0, 0, errors.New("enough")
		_, err := w.Move(o, func(int) error {
			reads++
			return nil
		})
		if moved := w.isMoved(o); err != nil || moved != nil {
			t.Fatalf("%s: %v, %v", what, err, moved)
		}
		for limit := range reads {
			w, o := toMove(t, b)
			n := 0
			is, err := w.Move(o, func(int) error {
				if n++; n > limit {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) || is.IsDone {
				t.Fatalf("%s: %v after %d of %d reads", what, err, limit, reads)
			}
			for _, p := range before {
				if !slices.Contains(w.goodParts(o), p) {
					t.Fatalf("%s: %+v is gone after %d of %d reads", what, p, limit, reads)
				}
			}
		}
		w, o = toMove(t, b)
		is, err := w.Move(o, func(n int) error {
			if n > digest.Group {
				t.Errorf("%d bytes at once", n)
			}
			asked += n
			return nil
		})
		if err != nil || uint64(asked) < o.Size+is.Bytes { // the object is read, and what was written is read back
			t.Errorf("%s: %d bytes asked for, %v", what, asked, err)
		}
	}
}

// TestMoveDuringReads moves an object at each operation of a read: it gets the whole content.
func TestMoveDuringReads(t *testing.T) {
	for what, b := range movedContents {
		for at, ended := 1, false; !ended; at += eachOperation() {
			w, o := toMove(t, b)
			for _, p := range w.goodParts(o)[:2] { // what is left is just enough, or moves
				if o.Size > threeTwo.Coding.Stripe() {
					_ = w.disks[p.Provider].Remove(w.names(p.Provider)[0])
				}
			}
			want, _ := read(w.Store, o.Address, o.Object, 0, o.Size)
			var left atomic.Int64 // the move writes several disks at once
			left.Store(int64(at))
			for i, d := range w.disks {
				d.OnOperation = func(string, string) {
					if left.Add(-1) == 0 {
						if is, err := w.Move(o, free); err != nil || !is.IsDone {
							t.Fatalf("%s: %+v, %v", what, is, err)
						}
					}
				}
				w.devices[i].FS = d
			}
			got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
			if err != nil || !bytes.Equal(got, want) || len(got) != len(b) {
				t.Fatalf("%s, operation %d: %d bytes, %v", what, at, len(got), err)
			}
			ended = left.Load() > 0
		}
	}
}

// TestBackupKeepsWhatMoved: while the directories are pinned, parts are written and none is removed. A later move removes the others.
func TestBackupKeepsWhatMoved(t *testing.T) {
	var list []objectstore.Provider
	for i := range 2 {
		name := fmt.Sprint("dir", i)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: dirPort(t)})
	}
	one := objectstore.Copies{Count: 1, Required: 1}
	s, b := objectstore.NewCopies(list[:1], one, limits), random(1000)
	var all []storage.Stored
	for n := range 16 {
		u, a, err := put(s, append(slices.Clone(b), byte(n)), 100)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		all = append(all, storage.Stored{Address: a, Object: storage.Object{Size: u.Size(), File: u.File()}})
	}
	s = objectstore.NewCopies(list, one, limits)
	pin, err := s.Pin()
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, o := range all {
		is, err := s.Move(o, free)
		if err != nil || is.IsHeld == is.IsDone || is.IsHeld != (len(is.Written) > 0) {
			t.Fatalf("%+v, %v", is, err)
		}
		moved += len(is.Written)
	}
	if err := pin.Close(); err != nil || moved == 0 {
		t.Fatalf("%d moved, %v", moved, err)
	}
	for _, o := range all {
		if is, err := s.Move(o, free); err != nil || !is.IsDone || len(is.Written) > 0 {
			t.Fatalf("%+v, %v", is, err)
		}
		files, err := s.Files()
		if has := files.Parts(o); err != nil || len(has.List()) != 1 {
			t.Fatalf("%+v, %v", has.List(), err)
		}
	}
}

// dirPort returns a provider in a directory of its own.
func dirPort(t *testing.T) provider.Port {
	t.Helper()
	return provider.Dir{FS: fs.Dir(t.TempDir())}
}

// move moves an object of a vault, as a worker of the node does: what was whole is so afterwards, and if the object can be read, each part is in
// its place and nowhere else.
func (v *vault) move(t *rapid.T) {
	o := v.draw(t)
	for i := range v.disks {
		_, _ = v.Probe(i)
	}
	before := v.whole(o)
	fails := v.disks[rapid.IntRange(0, len(v.disks)-1).Draw(t, "disk")]
	fails.FailWrite, fails.FailSync = v.rarely(t), v.rarely(t)
	failed := fails.FailWrite || fails.FailSync
	is, err := v.Move(o, free)
	fails.FailWrite, fails.FailSync = false, false
	if after := v.whole(o); after < before {
		t.Fatalf("%d whole, %d were: %+v, %v", after, before, is, err)
	}
	good, _ := v.survey(o)
	if !good.AreEnough() || failed {
		return
	}
	files, listed := v.Files()
	has := files.Parts(o)
	if _, isNeeded := v.ToMove(o, &has); err != nil || !is.IsDone || listed != nil || isNeeded {
		t.Fatalf("%+v, %v: parts %+v, a move is needed: %v", is, err, has.List(), isNeeded)
	}
}

// addDisk adds a provider to a vault.
func (v *vault) addDisk(t *rapid.T) {
	if len(v.disks) == 8 {
		t.Skip("there are many disks already: another action is drawn")
	}
	v.grow(t, 1, threeTwo)
}
