package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
	model "macronode/models/coding"
)

var (
	sixThree = objectstore.Copies{Count: 4, Required: 1, Coding: coding.Scheme{Data: 6, Parity: 3}}
	threeTwo = objectstore.Copies{Count: 3, Required: 1, Coding: coding.Scheme{Data: 3, Parity: 2}}
)

// random returns bytes that are not compressible.
func random(size int) []byte {
	b, r := make([]byte, size), rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16)})
	_, _ = r.Read(b)
	return b
}

// all returns the set of all disks.
func (w *copies) all() placement.Set { return w.Table().All() }

// survey returns the parts of an object that are whole, and the others that are there.
func (w *copies) survey(o storage.Stored) (good, bad objectstore.Parts) {
	var found [2][]objectstore.Part
	scheme := w.Survey(o, w.all(), func(p objectstore.Part) error { return w.VerifyPart(o, p, nil) }, func(p objectstore.Part, err error) {
		if err == nil {
			found[0] = append(found[0], p)
		} else {
			found[1] = append(found[1], p)
		}
	})
	return w.NewParts(scheme, found[0]...), w.NewParts(scheme, found[1]...)
}

// names returns the files of a disk.
func (w *copies) names(disk int) []string {
	names, _ := w.disks[disk].List()
	return names
}

// edgeSizes are the sizes at which shards change their shape.
func edgeSizes(s coding.Scheme) (sizes []int) {
	const g = digest.Group
	stripe := int(s.Stripe())
	for _, size := range []int{0, g, 2 * g, stripe - g, stripe, stripe + g, 2*stripe - g, 2 * stripe, 2*stripe + g, 3 * stripe} {
		sizes = append(sizes, max(0, size-1), size, size+1)
	}
	return append(sizes, 2*stripe+3*g/2, 3*stripe+5*g/2)
}

// TestShardsOfEachSize stores objects whose sizes are at the edges: those that are larger than a stripe have a shard on each disk, each of which
// verifies alone, and others have copies. Ranges of them are read.
func TestShardsOfEachSize(t *testing.T) {
	for _, c := range []objectstore.Copies{threeTwo, sixThree} {
		for separate := range 2 {
			for _, size := range edgeSizes(c.Coding) {
				if size > int(limits.Object) {
					continue
				}
				w, b := newCopies(c.Coding.Shards(), c), random(size)
				if separate == 1 {
					w.SeparateNodes()
				}
				u, a, err := put(w.Store, b, 1+size*7/10)
				if err != nil || a != address(b) || u.Size() != uint64(size) {
					t.Fatalf("%v, %d bytes: %v, %v, %d", c.Coding, size, a == address(b), err, u.Size())
				}
				u.Done()
				o := storage.Stored{Address: a, Object: storage.Object{Size: uint64(size), File: u.File()}}
				good, bad := w.survey(o)
				want := c.Count
				if c.Coding.Applies(o.Size) {
					want = c.Coding.Shards()
				}
				if good.Count() != want || bad.Count() > 0 || good.Scheme.IsSet() != c.Coding.Applies(o.Size) || len(w.defects) > 0 {
					t.Fatalf("%v, %d bytes: parts %+v and %+v, defects %v", c.Coding, size, good, bad, w.defects)
				}
				files, err := w.Files()
				if listed := files.Parts(o); err != nil || !slices.Equal(listed.List(), good.List()) || !files.Has(o) {
					t.Fatalf("%v, %d bytes: listed %+v, %v", c.Coding, size, listed, err)
				}
				for n := range 6 {
					off := uint64(n * size / 7)
					length := (o.Size - off) * uint64(n+1) / 6
					if got, err := read(w.Store, a, o.Object, off, length); err != nil || !bytes.Equal(got, b[off:off+length]) {
						t.Fatalf("%v, %d bytes from %d of %d: %d bytes, %v", c.Coding, length, off, size, len(got), err)
					}
				}
			}
		}
	}
}

// TestFilesOfShards compares the files with what they are defined to be: the groups of the object, or the parity of each stripe, in which a short group
// counts as one that ends with zeros, with checksums; and the nodes.
func TestFilesOfShards(t *testing.T) {
	w, b, s := newCopies(5, threeTwo), random(4*digest.Group+5000), threeTwo.Coding
	o := w.store(t, b)
	want := model.New(b, int(s.Data), int(s.Parity), digest.Sum)
	var tree digest.Tree
	nodes := []byte(nil)
	keep := func(n [digest.NodeLen]byte) { nodes = append(nodes, n[:]...) }
	for group := range slices.Chunk(b, digest.Group) {
		tree.Add(group, keep)
	}
	tree.Sum(keep)
	good, _ := w.survey(o)
	for _, p := range good.List() {
		name := fmt.Sprintf("%x-%016x.rs3-2-%d", o.Address[:], uint64(o.File), p.Shard)
		if got, err := fs.ReadAll(w.disks[p.Provider], name); err != nil || !bytes.Equal(got, append(want.File(p.Shard, uint64(o.File)), nodes...)) {
			t.Errorf("shard %d has %d other bytes, %v", p.Shard, len(got), err)
		}
	}
}

// TestAnyShardsMayBeLost loses every set of disks: the object is read as long as as many shards are left as it has data, and else the read fails
// with the beginning of the object at most.
func TestAnyShardsMayBeLost(t *testing.T) {
	w, b := newCopies(9, sixThree), random(2*6*digest.Group+100_000)
	o := w.store(t, b)
	for lost := range uint(1) << 9 {
		if bits.OnesCount(lost) > 4 {
			continue
		}
		all := w.disks
		for i, d := range w.devices {
			if d.FS, d.err = fs.FS(all[i]), nil; lost&(1<<i) != 0 {
				d.FS = world.NewDisk()
			}
		}
		got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
		if bits.OnesCount(lost) <= 3 {
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("lost %b: %d bytes, %v", lost, len(got), err)
			}
		} else if !errors.Is(err, objectstore.ErrGone) {
			t.Fatalf("lost %b: %d bytes, %v", lost, len(got), err)
		}
		files, err := w.Files()
		if err != nil || files.Has(o) != (bits.OnesCount(lost) <= 3) {
			t.Fatalf("lost %b: %v, %v", lost, files.Has(o), err)
		}
		if check := w.Check(o); (check == nil) != (bits.OnesCount(lost) <= 3) {
			t.Fatalf("lost %b: %v", lost, check)
		}
	}
}

// TestDamageInAllShards damages each shard in another stripe, as many as the scheme has parity in each: the object is read. With one more in a
// stripe, the read ends there.
func TestDamageInAllShards(t *testing.T) {
	w, b := newCopies(5, threeTwo), random(3*3*digest.Group)
	o := w.store(t, b)
	good, _ := w.survey(o)
	harm := func(shard, stripe int) {
		for _, p := range good.List() {
			if p.Shard == shard {
				off, _ := p.Scheme.At(o.Size, uint64(stripe), shard)
				flip(t, w.disks[p.Provider], w.names(p.Provider)[0], int(off)+100)
			}
		}
	}
	for i, at := range [][2]int{{0, 0}, {3, 0}, {1, 1}, {2, 1}, {2, 2}, {4, 2}} {
		harm(at[0], at[1])
		if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("damage %d: %d bytes, %v", i, len(got), err)
		}
	}
	if len(w.defects) == 0 || w.defects[0] != o {
		t.Errorf("defects %v", w.defects)
	}
	damaged := good.List()
	if is, _ := w.survey(o); is.Count() > 0 {
		t.Fatalf("parts %+v", is)
	}
	if err := errors.Join(w.Repair(o, damaged, nil)...); err != nil { // what is left of the damaged shards is enough
		t.Fatalf("repair of all shards: %v", err)
	}
	if is, _ := w.survey(o); is.Count() != 5 {
		t.Fatalf("parts %+v", is)
	}
	harm(1, 1)
	harm(2, 1)
	harm(4, 1)
	stripe := int(threeTwo.Coding.Stripe())
	got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
	if !errors.Is(err, objectstore.ErrDamaged) || len(got) < stripe || len(got) > stripe+digest.Group || !bytes.HasPrefix(b, got) {
		t.Errorf("three of five shards are bad in a stripe: %d bytes, %v", len(got), err)
	}
	if got, err := read(w.Store, o.Address, o.Object, 2*uint64(stripe), uint64(stripe)); err != nil || !bytes.Equal(got, b[2*stripe:]) {
		t.Errorf("another stripe: %d bytes, %v", len(got), err)
	}
}

// harms change the file of a shard.
var harms = map[string]func(t *testing.T, d *world.Disk, name string, at int){
	"a bit": flip,
	"a cut": func(t *testing.T, d *world.Disk, name string, at int) {
		change(t, d, name, func(b []byte) []byte { return b[:at] })
	},
	"a byte more": func(t *testing.T, d *world.Disk, name string, _ int) {
		change(t, d, name, func(b []byte) []byte { return append(b, 0) })
	},
	"zeros": func(t *testing.T, d *world.Disk, name string, _ int) {
		change(t, d, name, func(b []byte) []byte { clear(b); return b })
	},
	"no file": func(_ *testing.T, d *world.Disk, name string, _ int) { _ = d.Remove(name) },
}

// TestEachBitOfAShardIsVerified changes each shard at many places, in its content, its checksums and its nodes: the shard does not verify, the
// others do, reads are right, and a repair writes the same bytes again.
func TestEachBitOfAShardIsVerified(t *testing.T) {
	for separate := range 2 {
		w, b := newCopies(5, threeTwo), random(2*3*digest.Group+70_000)
		if separate == 1 {
			w.SeparateNodes()
		}
		o := w.store(t, b)
		whole, _ := w.survey(o)
		for _, p := range whole.List() {
			d := w.disks[p.Provider]
			for _, name := range w.names(p.Provider) {
				content, err := fs.ReadAll(d, name)
				if err != nil {
					t.Fatal(err)
				}
				for what, harm := range harms {
					for n := range 12 {
						at := n * (len(content) - 1) / 11
						harm(t, d, name, at)
						why := fmt.Sprintf("%s of shard %d in %s at %d", what, p.Shard, name, at)
						good, bad := w.survey(o)
						if good.Count() != 4 || what != "no file" && bad.Count() != 1 {
							t.Fatalf("%s: parts %+v and %+v", why, good, bad)
						}
						if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
							t.Fatalf("%s: %d bytes, %v", why, len(got), err)
						}
						if err := w.Repair(o, []objectstore.Part{p}, nil)[0]; err != nil {
							t.Fatalf("%s: %v", why, err)
						}
						if again, err := fs.ReadAll(d, name); err != nil || !bytes.Equal(again, content) {
							t.Fatalf("%s: the repair wrote %d other bytes, %v", why, len(again), err)
						}
						if what != "a bit" && what != "a cut" {
							break
						}
					}
				}
			}
		}
	}
}

// TestShardOfAnotherUploadIsDamaged: a file with the content of another object of the same size does not verify, whichever shard it is.
func TestShardOfAnotherUploadIsDamaged(t *testing.T) {
	w := newCopies(5, threeTwo)
	size := 2*3*digest.Group + 70_000
	one, other := w.store(t, random(size)), w.store(t, slices.Concat(random(size-1), []byte{1}))
	for i, d := range w.disks {
		var files [2]string
		for _, name := range w.names(i) {
			if strings.Contains(name, fmt.Sprintf("-%016x", uint64(one.File))) {
				files[0] = name
			} else {
				files[1] = name
			}
		}
		if len(files[0]) != len(files[1]) || files[0][81:] != files[1][81:] { // another shard, which may have another length
			continue
		}
		foreign, err := fs.ReadAll(d, files[1])
		if err != nil {
			t.Fatal(err)
		}
		change(t, d, files[0], func([]byte) []byte { return foreign })
		if good, bad := w.survey(one); good.Count() != 4 || bad.Count() != 1 {
			t.Fatalf("disk %d: parts %+v and %+v", i, good, bad)
		}
		if good, _ := w.survey(other); good.Count() != 5 {
			t.Fatalf("disk %d: parts %+v", i, good)
		}
		_, bad := w.survey(one)
		if err := w.Repair(one, bad.List(), nil)[0]; err != nil {
			t.Fatal(err)
		}
	}
}

// TestForgedParityIsNotSent writes parity that is wrong and has its checksum: what it gives is not sent, and the read fails.
func TestForgedParityIsNotSent(t *testing.T) {
	w, b := newCopies(5, threeTwo), random(5*digest.Group)
	o := w.store(t, b)
	good, _ := w.survey(o)
	at := map[int]int{}
	for _, p := range good.List() {
		at[p.Shard] = p.Provider
	}
	_ = w.disks[at[1]].Remove(w.names(at[1])[0])
	forge := w.disks[at[3]]
	change(t, forge, w.names(at[3])[0], func(file []byte) []byte {
		file[7] ^= 1
		sum := threeTwo.Coding.Checksum(uint64(o.File), 0, 3, file[:digest.Group])
		copy(file[digest.Group:], sum[:])
		return file
	})
	got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
	if !bytes.HasPrefix(b, got) || !errors.Is(err, objectstore.ErrDamaged) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestShardsStayWhenTheSchemeChanges: objects of an earlier scheme, and copies of a node without one, are read, verified and repaired.
func TestShardsStayWhenTheSchemeChanges(t *testing.T) {
	w, b := newCopies(9, threeTwo), random(900_000)
	coded := w.store(t, b)
	w.start(two)
	if err := w.Recover(); err != nil {
		t.Fatal(err)
	}
	copied := w.store(t, random(800_000))
	w.start(sixThree)
	if err := w.Recover(); err != nil {
		t.Fatal(err)
	}
	third := w.store(t, random(700_000))
	for o, want := range map[storage.Stored]int{coded: 5, copied: 2, third: 9} {
		good, _ := w.survey(o)
		if good.Count() != want {
			t.Fatalf("%d parts, want %d", good.Count(), want)
		}
		lost := good.List()[0]
		for _, name := range w.names(lost.Provider) {
			if strings.Contains(name, fmt.Sprintf("-%016x", uint64(o.File))) {
				_ = w.disks[lost.Provider].Remove(name)
			}
		}
		if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, random(int(o.Size))) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		left, _ := w.survey(o)
		missing := w.Missing(o, &left, w.all())
		if want > 2 && (len(missing) != 1 || missing[0] != lost) {
			t.Fatalf("missing %+v, want %+v", missing, lost)
		}
		if err := w.Repair(o, []objectstore.Part{lost}, nil)[0]; err != nil {
			t.Fatalf("repair of %+v: %v", lost, err)
		}
		if again, _ := w.survey(o); !slices.Equal(again.List(), good.List()) {
			t.Fatalf("parts %+v, want %+v", again, good)
		}
	}
}

// TestShardIsReadElsewhere: a shard that was written into another provider while its own had failed is found there, and the repair of it in its own is
// not needed.
func TestShardIsReadElsewhere(t *testing.T) {
	for failed := range 7 {
		w, b := newCopies(7, threeTwo), random(700_000)
		w.MarkFailed(failed, syscall.EIO)
		o := w.store(t, b)
		if len(w.defects) > 0 {
			t.Fatalf("defects %v", w.defects)
		}
		if _, err := w.Probe(failed); err != nil {
			t.Fatal(err)
		}
		good, _ := w.survey(o)
		if got, err := read(w.Store, o.Address, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) || good.Count() != 5 || len(w.defects) > 0 {
			t.Fatalf("disk %d had failed: %d bytes, %v, parts %+v, defects %v", failed, len(got), err, good, w.defects)
		}
		if missing := w.Missing(o, &good, w.all()); len(missing) > 0 {
			t.Fatalf("missing %+v", missing)
		}
	}
}

// TestUploadOfShardsSurvivesFailures lets disks fail in each way: the upload succeeds if one more shard than of data is durable, or as many more as are
// required, and the object is reported. Nothing is left of an upload that fails.
func TestUploadOfShardsSurvivesFailures(t *testing.T) {
	b := random(3*digest.Group*2 + 5)
	for what, harm := range map[string]func(*world.Disk){
		"write": func(d *world.Disk) { d.FailWrite = true }, "sync": func(d *world.Disk) { d.FailSync = true },
		"directory": func(d *world.Disk) { d.FailDir = true }, "full": func(d *world.Disk) { d.Leave(digest.Group + 100) },
	} {
		for failed := range 3 {
			for required := 1; required <= 2; required++ {
				w := newCopies(5, objectstore.Copies{Count: 3, Required: required, Coding: threeTwo.Coding})
				for i := range failed {
					harm(w.disks[i])
				}
				u, a, err := put(w.Store, b, 50_000)
				size := u.Size()
				u.Done()
				why := fmt.Sprintf("%s, %d failed, %d required", what, failed, required)
				if ok := failed+required <= 2; ok != (err == nil) {
					t.Fatalf("%s: %v", why, err)
				}
				if err != nil {
					if _, err := w.Collect(func(storage.Address, storage.File) bool { return false }); err != nil {
						t.Error(err)
					}
					for i := range w.disks {
						if len(w.names(i)) > 0 {
							t.Errorf("%s: disk %d has %q", why, i, w.names(i))
						}
					}
					continue
				}
				o := storage.Stored{Address: a, Object: storage.Object{Size: size, File: u.File()}}
				if (len(w.defects) > 0) != (failed > 0) {
					t.Errorf("%s: defects %v", why, w.defects)
				}
				good, bad := w.survey(o)
				if good.Count() != 5-failed || bad.Count() > 0 {
					t.Fatalf("%s: parts %+v and %+v", why, good, bad)
				}
				for i, d := range w.disks {
					d.Leave(1 << 40)
					if _, err := w.Probe(i); err != nil {
						t.Fatal(err)
					}
				}
				if missing := w.Missing(o, &good, w.all()); len(missing) > 0 {
					if err := errors.Join(w.Repair(o, missing, nil)...); err != nil {
						t.Errorf("%s: repair: %v", why, err)
					}
				}
				if good, _ := w.survey(o); good.Count() != 5 {
					t.Errorf("%s: after the repair: %+v", why, good)
				}
			}
		}
	}
}

// TestUploadNeedsEnoughProviders: with fewer healthy ones than required shards, failed ones are tried.
func TestUploadNeedsEnoughProviders(t *testing.T) {
	w, b := newCopies(5, threeTwo), random(500_000)
	for i := range 3 {
		w.MarkFailed(i, syscall.EIO)
	}
	if o := w.store(t, b); len(w.defects) != 1 || w.defects[0] != o {
		t.Errorf("defects %v", w.defects)
	}
	for i := range 3 {
		w.devices[i].err = syscall.EIO
	}
	u, _, err := put(w.Store, b, 50_000)
	u.Done()
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("three of five disks fail: %v", err)
	}
}

// TestRepairOfShardIsPaced: each read is asked for first, in pieces of a group at most, and an error of the budget ends the repair without a file.
func TestRepairOfShardIsPaced(t *testing.T) {
	w, b := newCopies(5, threeTwo), random(700_000)
	o := w.store(t, b)
	good, _ := w.survey(o)
	for _, p := range good.List() {
		name := w.names(p.Provider)[0]
		_ = w.disks[p.Provider].Remove(name)
		asked, enough := 0, errors.New("enough")
		if err := w.Repair(o, []objectstore.Part{p}, func(int) error { return enough })[0]; !errors.Is(err, enough) {
			t.Errorf("%v", err)
		}
		if left := w.names(p.Provider); len(left) > 0 {
			t.Errorf("files %q", left)
		}
		if err := w.Repair(o, []objectstore.Part{p}, func(n int) error {
			if n > digest.Group {
				t.Errorf("%d bytes at once", n)
			}
			asked += n
			return nil
		})[0]; err != nil || asked < len(b)+int(p.Size(o)) {
			t.Errorf("%d bytes asked for, %v", asked, err)
		}
	}
}

// oneAtATime is a disk on which what an upload does at its end is done one after the other, on all disks.
type oneAtATime struct {
	fs.FS
	mu *sync.Mutex
}

func (d oneAtATime) Open(name string) (fs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return lockedFile{f, d.mu}, nil
}

func (d oneAtATime) Create(name string) (fs.File, error) {
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return lockedFile{f, d.mu}, nil
}

func (d oneAtATime) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.FS.Rename(from, to)
}

func (d oneAtATime) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.FS.SyncDir()
}

// lockedFile is a file of oneAtATime.
type lockedFile struct {
	fs.File
	mu *sync.Mutex
}

func (f lockedFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.File.Sync()
}

func (f lockedFile) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.File.Size()
}

func (f lockedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.File.Close()
}

// TestPowerLossOfShards ends the power of all disks at each operation of an upload. What Store has confirmed is read afterwards, also without two of
// the disks, and nothing else is left when it was collected.
func TestPowerLossOfShards(t *testing.T) {
	b, confirmed, lost := random(3*digest.Group+9), 0, 0
	for fuse := 0; ; fuse++ {
		w, left := newCopies(5, threeTwo), fuse
		off := func(string, string) {
			if left--; left == 0 {
				for _, d := range w.disks {
					d.Fuse = 0
				}
			}
		}
		mu := new(sync.Mutex)
		for i, d := range w.disks {
			d.OnOperation = off
			w.devices[i].FS = oneAtATime{d, mu}
		}
		u, a, err := put(w.Store, b, digest.Group)
		if u != nil {
			u.Done()
		}
		whole := left > 0 || fuse == 0
		for i, d := range w.disks {
			d.OnOperation = nil
			w.devices[i].FS = d
			d.Crash(world.NewSeeded(uint64(fuse)<<8 + uint64(i)))
			d.Fuse = -1
		}
		w.start(threeTwo)
		if err := w.Recover(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Collect(func(_ storage.Address, f storage.File) bool { return err == nil && f == u.File() }); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			lost++
			for i := range w.disks {
				if len(w.names(i)) > 0 {
					t.Fatalf("fuse %d: disk %d has %q", fuse, i, w.names(i))
				}
			}
			continue
		}
		confirmed++
		o := storage.Stored{Address: a, Object: storage.Object{Size: uint64(len(b)), File: u.File()}}
		good, bad := w.survey(o)
		if good.Count() < 4 || bad.Count() > 0 {
			t.Fatalf("fuse %d: parts %+v and %+v", fuse, good, bad)
		}
		w.devices[0].err = syscall.EIO
		if got, err := read(w.Store, a, o.Object, 0, o.Size); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("fuse %d: %d bytes, %v", fuse, len(got), err)
		}
		if whole && fuse > 0 {
			if lost < 30 || confirmed == 0 {
				t.Fatalf("%d lost, %d confirmed", lost, confirmed)
			}
			return
		}
	}
}

// vault is a store with shards, and which of them are whole.
type vault struct {
	*copies
	contents map[storage.Stored][]byte
	seed     uint64
}

func (v *vault) draw(t *rapid.T) storage.Stored {
	if len(v.contents) == 0 {
		t.Skip("no object")
	}
	rows := (&mirror{contents: v.contents}).rows()
	return rapid.SampledFrom(rows).Draw(t, "object")
}

func (v *vault) upload(t *rapid.T) {
	if len(v.contents) == 4 {
		t.Skip("there are four objects already: another action is drawn")
	}
	for _, d := range v.disks {
		d.FailWrite, d.FailSync, d.FailDir = v.rarely(t), v.rarely(t), v.rarely(t)
	}
	b := random(rapid.SampledFrom([]int{100, 3*digest.Group + 1, 4 * digest.Group, 7*digest.Group + 5}).Draw(t, "size"))
	u, a, err := put(v.Store, b, 40_000)
	size := u.Size()
	v.defects = nil
	u.Done()
	for i, d := range v.disks {
		d.FailWrite, d.FailSync, d.FailDir = false, false, false
		_, _ = v.Probe(i)
	}
	if err != nil {
		return
	}
	o := storage.Stored{Address: a, Object: storage.Object{Size: size, File: u.File()}}
	v.contents[o] = b
	good, _ := v.survey(o)
	least := 1
	if good.Scheme.IsSet() {
		least = 4
	}
	if n := good.Count(); n < least || (n < v.Wanted(&good)) != slices.Contains(v.defects, o) {
		t.Fatalf("%v has parts %+v, defects %v", o.File, good, v.defects)
	}
}

func (v *vault) rarely(t *rapid.T) bool { return rapid.IntRange(0, 12).Draw(t, "fails") == 0 }

// rot changes a byte of a file, or cuts or removes it.
func (v *vault) rot(t *rapid.T) {
	v.seed++
	d := rapid.SampledFrom(v.disks).Draw(t, "disk")
	names, _ := d.List()
	if len(names) == 0 {
		t.Skip("the disk has no file to damage: another action is drawn")
	}
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		d.Rot(world.NewSeeded(v.seed))
	case 1:
		d.Cut(world.NewSeeded(v.seed))
	case 2:
		_ = d.Remove(names[int(v.seed)%len(names)])
		_ = d.SyncDir()
	}
}

// read reads a part of an object while reads of one disk may fail: what is sent is right, and there is no error while enough parts are whole.
func (v *vault) read(t *rapid.T) {
	o := v.draw(t)
	good, _ := v.survey(o)
	off := rapid.Uint64Range(0, o.Size).Draw(t, "off")
	length := rapid.Uint64Range(0, o.Size-off).Draw(t, "length")
	fails := v.disks[rapid.IntRange(0, len(v.disks)-1).Draw(t, "disk")]
	fails.FailRead = v.rarely(t)
	spare := good.Count() - good.Needed()
	if fails.FailRead {
		spare--
	}
	got, err := read(v.Store, o.Address, o.Object, off, length)
	fails.FailRead = false
	want := v.contents[o][off : off+length]
	if !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) || err != nil && spare >= 0 {
		t.Fatalf("%d bytes of %d from %d, parts %+v: %v", len(got), length, off, good, err)
	}
}

// repair repairs an object, as the node does.
func (v *vault) repair(t *rapid.T) {
	o := v.draw(t)
	for i := range v.disks {
		_, _ = v.Probe(i)
	}
	good, bad := v.survey(o)
	held := good.Within(v.all())
	held.Join(&bad)
	if lacking := append(bad.List(), v.Missing(o, &held, v.all())...); len(lacking) > 0 {
		if err := errors.Join(v.Repair(o, lacking, nil)...); err != nil && good.AreEnough() {
			t.Fatalf("repair of %+v with %+v: %v", lacking, good, err)
		}
	}
	after, left := v.survey(o)
	if good.AreEnough() && (after.Count() < v.Wanted(&after) || left.Count() > 0) {
		t.Fatalf("parts %+v and %+v after %+v", after, left, good)
	}
}

// lose loses power on all disks at once.
func (v *vault) lose(t *rapid.T) {
	before := map[storage.Stored]int{}
	for o := range v.contents {
		good, _ := v.survey(o)
		before[o] = good.Count()
	}
	v.seed++
	for i, d := range v.disks {
		d.Crash(world.NewSeeded(v.seed<<8 + uint64(i)))
	}
	v.start(threeTwo)
	if err := v.Recover(); err != nil {
		t.Fatal(err)
	}
	for o, n := range before {
		v.Reserve(o.File)
		if good, _ := v.survey(o); good.Count() < n { // a removed file may be back
			t.Fatalf("%d parts of %d after %d", good.Count(), o.File, n)
		}
	}
}

func (v *vault) collect(t *rapid.T) {
	if _, err := v.Collect(func(a storage.Address, f storage.File) bool {
		return slices.ContainsFunc((&mirror{contents: v.contents}).rows(), func(o storage.Stored) bool { return o.Address == a && o.File == f })
	}); err != nil {
		t.Fatal(err)
	}
	for i := range v.disks {
		for _, n := range v.names(i) {
			if strings.HasSuffix(n, ".part") {
				t.Fatalf("%s is left", n)
			}
		}
	}
}

// TestShardsAgreeWithModel harms shards in each way, in any order with uploads, reads, repairs and losses of power: nothing wrong is read, what has
// enough whole shards can be read, and a repair restores all.
func TestShardsAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &vault{copies: newCopies(rapid.IntRange(5, 6).Draw(t, "disks"), threeTwo), contents: map[storage.Stored][]byte{}}
		t.Repeat(map[string]func(*rapid.T){"upload": v.upload, "rot": v.rot, "read": v.read, "repair": v.repair, "lose": v.lose, "collect": v.collect, "move": v.move, "add a disk": v.addDisk})
	})
}
