package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

var limits = objectstore.Limits{Uploads: 4, Object: 1 << 20}

func open(t interface {
	Helper()
	Fatal(...any)
}, d fs.FS) *objectstore.Store {
	t.Helper()
	s := objectstore.New(d, limits)
	if err := s.Recover(); err != nil {
		t.Fatal(err)
	}
	return s
}

// content is the n-th of a few objects: none, less than a group, groups.
func content(n int) []byte {
	size := [...]int{0, 5, digest.Group, digest.Group + 1, 3*digest.Group + 77}[n]
	b, r := make([]byte, size), rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func address(b []byte) storage.Address { return storage.Address(digest.Sum(b)) }

// uploaders counts the tenants that have uploaded: each upload of a test is of another one, so none has to leave room.
var uploaders atomic.Uint32

// put uploads b in writes of some size and stores it, for a tenant without other uploads.
func put(s *objectstore.Store, b []byte, part int) (u *objectstore.Upload, a storage.Address, err error) {
	if u, err = s.Begin(types.Tenant(uploaders.Add(1))); err != nil {
		return nil, a, err
	}
	for p := range slices.Chunk(b, part) {
		if _, err = u.Write(p); err != nil {
			return u, a, err
		}
	}
	if a, err = u.Sum(); err == nil {
		err = u.Store(a)
	}
	return u, a, err
}

// read returns a range of an object.
func read(s *objectstore.Store, a storage.Address, o storage.Object, off, length uint64) (got []byte, err error) {
	x, err := s.Get(a, o)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	err = x.WriteRange(off, length, func(p []byte) error {
		if len(p) > digest.Group {
			return fmt.Errorf("a part of %d bytes", len(p))
		}
		got = append(got, p...)
		return nil
	})
	return got, err
}

// writers returns two stores of a directory, the second of which writes nodes into files of their own.
func writers(t interface {
	Helper()
	Fatal(...any)
}, d fs.FS) [2]*objectstore.Store {
	t.Helper()
	all := [2]*objectstore.Store{open(t, d), open(t, d)}
	all[1].Reserve(1 << 40)
	all[1].SeparateNodes()
	return all
}

// TestRanges stores objects of all shapes in a real directory and reads ranges of them.
func TestRanges(t *testing.T) {
	d := fs.Dir(t.TempDir())
	s, from := open(t, d), writers(t, d)
	rapid.Check(t, func(t *rapid.T) {
		b := content(rapid.IntRange(0, 4).Draw(t, "content"))
		u, a, err := put(rapid.SampledFrom(from[:]).Draw(t, "writer"), b, rapid.SampledFrom([]int{1 << 10, 7777, digest.Group, 1 << 20}).Draw(t, "part"))
		if err != nil || a != address(b) || u.Size() != uint64(len(b)) {
			t.Fatalf("%v, %v, size %d", a, err, u.Size())
		}
		u.Done()
		off := rapid.Uint64Range(0, uint64(len(b))).Draw(t, "off")
		length := rapid.Uint64Range(0, uint64(len(b))-off).Draw(t, "length")
		got, err := read(s, a, storage.Object{Size: uint64(len(b)), File: u.File()}, off, length)
		if err != nil || !bytes.Equal(got, b[off:off+length]) {
			t.Fatalf("%d bytes from %d: %d bytes, %v", length, off, len(got), err)
		}
	})
}

// A damage changes the files of an object, whose content is in the first one and whose nodes are at nodesAt in the last one.
type damage func(d *world.Disk, names []string, nodesAt int)

// flip changes a byte of a file.
func flip(t *testing.T, d *world.Disk, name string, at int) {
	t.Helper()
	change(t, d, name, func(b []byte) []byte { b[at] ^= 1; return b })
}

// TestDamageIsNeverSent changes, cuts and removes files: what is sent is always the beginning of the object, and it ends
// with an error unless it is whole.
func TestDamageIsNeverSent(t *testing.T) {
	b := content(4)
	for what, harm := range map[string]damage{
		"a byte of the data":  func(d *world.Disk, n []string, _ int) { flip(t, d, n[0], 70000) },
		"a byte of the nodes": func(d *world.Disk, n []string, at int) { flip(t, d, n[len(n)-1], at+100) },
		"the root":            func(d *world.Disk, n []string, at int) { flip(t, d, n[len(n)-1], at+3*digest.NodeLen-1) },
		"data that is cut": func(d *world.Disk, n []string, _ int) {
			change(t, d, n[0], func(b []byte) []byte { return b[:len(b)-1] })
		},
		"data that is longer": func(d *world.Disk, n []string, _ int) {
			change(t, d, n[0], func(b []byte) []byte { return append(b, 0) })
		},
		"nodes that are cut": func(d *world.Disk, n []string, at int) {
			change(t, d, n[len(n)-1], func(b []byte) []byte { return b[:at+64] })
		},
		"data that is lost":   func(d *world.Disk, n []string, _ int) { _ = d.Remove(n[0]) },
		"nodes that are lost": func(d *world.Disk, n []string, _ int) { _ = d.Remove(n[len(n)-1]) },
		"data as another file": func(d *world.Disk, n []string, _ int) {
			change(t, d, n[0], func(b []byte) []byte { clear(b); return b })
		},
	} {
		for files := 1; files <= 2; files++ {
			what := fmt.Sprintf("%s of %d", what, files)
			d := world.NewDisk()
			s, nodesAt := writers(t, d)[files-1], 0
			if files == 1 {
				nodesAt = len(b)
			}
			u, a, err := put(s, b, 4096)
			if err != nil {
				t.Fatal(err)
			}
			u.Done()
			o := storage.Object{Size: uint64(len(b)), File: u.File()}
			if got, err := read(s, a, o, 0, o.Size); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%s, before: %d bytes, %v", what, len(got), err)
			}
			names, _ := d.List()
			if len(names) != files {
				t.Fatalf("files %q", names)
			}
			harm(d, names, nodesAt)
			got, err := read(s, a, o, 0, o.Size)
			if !errors.Is(err, objectstore.ErrDamaged) && !errors.Is(err, objectstore.ErrGone) || !bytes.HasPrefix(b, got) {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			}
			all, err := s.Files()
			left, _ := d.List()
			if lost := !slices.Contains(left, names[0]); err != nil || all.Has(storage.Stored{Address: a, Object: o}) == lost {
				t.Errorf("%s: %q, %v", what, all.Names, err)
			}
		}
	}
}

// change replaces a file.
func change(t *testing.T, d *world.Disk, name string, by func([]byte) []byte) {
	t.Helper()
	b, err := fs.ReadAll(d, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(name); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(by(b), 0); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// TestPowerLoss ends the power at each operation of an upload. What Store has confirmed is there afterwards, and
// nothing else is when it was collected.
func TestPowerLoss(t *testing.T) {
	for n := range 5 {
		losePower(t, content(n), 1)
	}
	losePower(t, content(4), 2)
}

// losePower ends the power at each operation of an upload into one file or two.
func losePower(t *testing.T, b []byte, files int) {
	t.Helper()
	confirmed, lost := 0, 0
	for fuse := range 100 {
		for seed := range uint64(4) {
			d := world.NewDisk()
			s := writers(t, d)[files-1]
			d.Fuse = fuse
			u, a, err := put(s, b, digest.Group)
			if u != nil {
				u.Done()
			}
			dead := d.Dead()
			d.Crash(world.NewSeeded(uint64(fuse)<<8 + seed))
			d.Fuse = -1
			s = open(t, d)
			rows := map[storage.File]bool{}
			if err == nil {
				rows[u.File()] = true
				confirmed++
				got, err := read(s, a, storage.Object{Size: uint64(len(b)), File: u.File()}, 0, uint64(len(b)))
				if err != nil || !bytes.Equal(got, b) {
					t.Fatalf("fuse %d: a confirmed object is lost: %d bytes, %v", fuse, len(got), err)
				}
			} else {
				lost++
			}
			if _, err := s.Collect(func(_ storage.Address, f storage.File) bool { return rows[f] }); err != nil {
				t.Fatal(err)
			}
			if names, _ := d.List(); len(names) != files*len(rows) {
				t.Fatalf("fuse %d: files %q of %d objects", fuse, names, len(rows))
			}
			if !dead {
				if confirmed == 0 || lost == 0 {
					t.Fatalf("%d confirmed, %d lost: too few to tell", confirmed, lost)
				}
				return
			}
		}
	}
}

// system is a store with the rows that name its files.
type system struct {
	*rapid.T
	disk    *world.Disk
	store   *objectstore.Store
	open    []*objectstore.Upload
	stored  map[storage.File]storage.Address // by uploads that have not ended
	rows    map[storage.File]storage.Address
	content map[storage.Address][]byte
	seed    uint64
}

func (s *system) begin(t *rapid.T) {
	b := content(rapid.IntRange(0, 4).Draw(t, "content"))
	if len(s.open) == limits.Uploads {
		if _, err := s.store.Begin(1); !errors.Is(err, objectstore.ErrBusy) {
			t.Fatalf("one upload more: %v", err)
		}
		return
	}
	if rapid.Bool().Draw(t, "separate") {
		s.store.SeparateNodes()
	}
	u, a, err := put(s.store, b, 10000)
	if err != nil {
		t.Fatal(err)
	}
	if _, used := s.rows[u.File()]; used {
		t.Fatalf("the number %d is used again", u.File())
	}
	s.content[a] = b
	s.open = append(s.open, u)
	s.stored[u.File()] = a
}

// end ends an upload, with a row or without.
func (s *system) end(t *rapid.T) {
	if len(s.open) == 0 {
		t.Skip("no upload")
	}
	i := rapid.IntRange(0, len(s.open)-1).Draw(t, "upload")
	u := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	if rapid.Bool().Draw(t, "row") {
		s.rows[u.File()] = s.stored[u.File()]
	}
	delete(s.stored, u.File())
	u.Done()
}

func (s *system) remove(t *rapid.T) {
	if len(s.rows) == 0 {
		t.Skip("no row")
	}
	delete(s.rows, rapid.SampledFrom(slices.Sorted(maps.Keys(s.rows))).Draw(t, "file"))
}

func (s *system) collect(t *rapid.T) {
	if _, err := s.store.Collect(s.live); err != nil {
		t.Fatal(err)
	}
	names, _ := s.disk.List()
	files := map[string]bool{}
	for _, n := range names {
		if strings.HasSuffix(n, ".part") {
			t.Fatalf("%s is left", n)
		}
		files[strings.TrimSuffix(strings.TrimSuffix(n, ".nodes"), ".object")] = true
	}
	if len(files) != len(s.rows)+len(s.stored) {
		t.Fatalf("%d objects have files, want %d and %d of uploads", len(files), len(s.rows), len(s.stored))
	}
}

func (s *system) live(a storage.Address, f storage.File) bool {
	of, ok := s.rows[f]
	return ok && of == a
}

// TestTenantsLeaveUploads: a tenant has half of the uploads at most, the next one a quarter, and the last one goes to a tenant without
// any. An upload counts until it has ended, and one with an unknown outcome longer.
func TestTenantsLeaveUploads(t *testing.T) {
	s := objectstore.New(world.NewDisk(), objectstore.Limits{Uploads: 8, Object: 1 << 20})
	begin := func(tenant types.Tenant, want int) (all []*objectstore.Upload) {
		t.Helper()
		for {
			u, err := s.Begin(tenant)
			if err != nil {
				if !errors.Is(err, objectstore.ErrBusy) || len(all) != want {
					t.Fatalf("tenant %d begins %d uploads, want %d: %v", tenant, len(all), want, err)
				}
				return all
			}
			all = append(all, u)
		}
	}
	first := begin(1, 4)
	begin(2, 2)
	begin(3, 1)
	begin(4, 1)
	begin(5, 0)
	first[0].Keep()
	begin(5, 0)
	first[1].Done()
	begin(1, 0) // it has three, and leaves the last one
	begin(5, 1)
	for _, u := range first[2:] {
		u.Done()
	}
	begin(1, 1) // with the kept one, it has as many as are left
}

// restart loses power, and all uploads.
func (s *system) restart(t *rapid.T) {
	s.seed++
	s.disk.Crash(world.NewSeeded(s.seed))
	s.open, s.stored = nil, map[storage.File]storage.Address{}
	s.store = open(t, s.disk)
	for f := range s.rows {
		s.store.Reserve(f)
	}
}

// check reads every object that has a row.
func (s *system) check(t *rapid.T) {
	for f, a := range s.rows {
		want := s.content[a]
		got, err := read(s.store, a, storage.Object{Size: uint64(len(want)), File: f}, 0, uint64(len(want)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v in file %d: %d bytes, %v", a, f, len(got), err)
		}
	}
}

// TestCollectorAgreesWithModel runs uploads, deletes, collections and power failures in any order: an object
// with a row is always readable, and nothing else is left after a collection.
func TestCollectorAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &system{T: t, disk: world.NewDisk(), stored: map[storage.File]storage.Address{}, rows: map[storage.File]storage.Address{}, content: map[storage.Address][]byte{}}
		s.store = open(t, s.disk)
		t.Repeat(map[string]func(*rapid.T){"": s.check, "begin": s.begin, "end": s.end, "remove": s.remove, "collect": s.collect, "restart": s.restart})
	})
}

// TestCollectorAsksInOrder ends an upload right after the collector saw no row for its file: that is no ground to
// remove it.
func TestCollectorAsksInOrder(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	u, a, err := put(s, content(2), 10000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collect(func(storage.Address, storage.File) bool {
		u.Done()
		return false
	}); err != nil {
		t.Fatal(err)
	}
	b := content(2)
	if got, err := read(s, a, storage.Object{Size: uint64(len(b)), File: u.File()}, 0, uint64(len(b))); err != nil || !bytes.Equal(got, b) {
		t.Errorf("the object of an upload that ended meanwhile: %d bytes, %v", len(got), err)
	}
}

// TestNumbersAreNeverUsedAgain: a row may name a file that is lost.
func TestNumbersAreNeverUsedAgain(t *testing.T) {
	s := open(t, world.NewDisk())
	s.Reserve(41)
	s.Reserve(7)
	if u, err := s.Begin(1); err != nil || u.File() != 42 {
		t.Errorf("the next upload has number %d, %v", u.File(), err)
	}
}

// TestFullAsksForCollection: a collection is wanted when uploads have written a quarter of the space, and when there is none.
func TestFullAsksForCollection(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	wanted := func() bool {
		select {
		case <-s.Full():
			return true
		default:
			return false
		}
	}
	upload := func() error {
		u, _, err := put(s, content(2), 1000)
		u.Done()
		return err
	}
	const least = 4 << 20 // besides limits.Reserve
	d.Leave(int64(limits.Reserve) + least + 9*digest.Group)
	for n, want := range []bool{false, false, true} {
		if err := upload(); err != nil || wanted() != want {
			t.Errorf("upload %d: %v, a collection is wanted: %v", n+1, err, !want)
		}
	}
	if c, err := s.Collect(func(storage.Address, storage.File) bool { return false }); err != nil || c.Files != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := upload(); err != nil || wanted() {
		t.Errorf("after the collection: %v, or another one is wanted", err)
	}
	d.Leave(int64(limits.Reserve) + least)
	if err := upload(); !errors.Is(err, objectstore.ErrNoSpace) || !wanted() {
		t.Errorf("without space: %v, or no collection is wanted", err)
	}
	if h := s.Health()[0]; h.Failed != "" {
		t.Errorf("a full disk is a failed provider: %s", h.Failed)
	}
}

// TestRefusals: what is too long, a disk without space, an upload that is not stored leave nothing.
func TestRefusals(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	u, _, err := put(s, make([]byte, limits.Object+1), digest.Group)
	if !errors.Is(err, objectstore.ErrTooLong) {
		t.Errorf("a byte too long: %v", err)
	}
	u.Done()
	reserved := limits
	reserved.Reserve = 1 << 50
	u, _, err = put(objectstore.New(d, reserved), content(1), 10)
	if !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("without free space: %v", err)
	}
	u.Done()
	u, _ = s.Begin(1)
	if _, err := u.Write(content(4)); err != nil {
		t.Error(err)
	}
	if _, err := u.Sum(); err != nil {
		t.Error(err)
	}
	u.Done()
	for _, fails := range []func(){func() { d.FailWrite = true }, func() { d.FailSync = true }, func() { d.FailDir = true }} {
		fails()
		u, _, err := put(s, content(4), 1000)
		if err == nil {
			t.Error("a disk that failed stored an object")
		}
		u.Done()
		d.FailWrite, d.FailSync, d.FailDir = false, false, false
	}
	if _, err := s.Collect(func(storage.Address, storage.File) bool { return false }); err != nil {
		t.Error(err)
	}
	if names, _ := d.List(); len(names) > 0 || s.Uploads() > 0 || d.Handles() > 0 {
		t.Errorf("left: %q, %d uploads, %d open files", names, s.Uploads(), d.Handles())
	}
}

// TestUnknownOutcome: the file of an upload whose row may come later is kept until the next start.
func TestUnknownOutcome(t *testing.T) {
	d := world.NewDisk()
	s := open(t, d)
	u, _, err := put(s, content(1), 10)
	if err != nil {
		t.Fatal(err)
	}
	u.Keep()
	dead := func(storage.Address, storage.File) bool { return false }
	if c, err := s.Collect(dead); err != nil || c.Files != 0 || s.Uploads() != 1 {
		t.Errorf("collected %v, %v, %d uploads", c, err, s.Uploads())
	}
	if c, err := open(t, d).Collect(dead); err != nil || c.Files != 1 || c.Bytes != 5 {
		t.Errorf("after a start: collected %v, %v", c, err)
	}
}

// TestForeignFiles: the collector removes no file that it does not know.
func TestForeignFiles(t *testing.T) {
	d := world.NewDisk()
	for _, name := range []string{"README", strings.Repeat("a", 64) + "-12", "x.part", strings.Repeat("g", 64) + "-0000000000000001", "-0000000000000001", "000000000000001.part", strings.Repeat("a", 64) + "-0000000000000001.object.nodes", "0000000000000001.object"} {
		f, err := d.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	before, _ := d.List()
	if _, err := open(t, d).Collect(func(storage.Address, storage.File) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if after, _ := d.List(); !slices.Equal(before, after) {
		t.Errorf("left %q of %q", after, before)
	}
}
