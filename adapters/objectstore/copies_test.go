package objectstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
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

// brokenDir is a directory whose device fails while err is set.
type brokenDir struct {
	fs.FS
	err error
}

func (b *brokenDir) Create(name string) (fs.File, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.FS.Create(name)
}

func (b *brokenDir) Open(name string) (fs.File, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.FS.Open(name)
}

func (b *brokenDir) List() ([]string, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.FS.List()
}

// copies is a store of several disks.
type copies struct {
	*objectstore.Store
	disks   []*world.Disk
	devices []*brokenDir
	defects []storage.Stored
}

func newCopies(disks int, c objectstore.Copies) *copies {
	w := &copies{}
	for range disks {
		w.disks = append(w.disks, world.NewDisk())
		w.devices = append(w.devices, &brokenDir{FS: w.disks[len(w.disks)-1]})
	}
	w.start(c)
	return w
}

// start makes a store of what the disks have.
func (w *copies) start(c objectstore.Copies) {
	var list []objectstore.Provider
	for i, d := range w.devices {
		name := fmt.Sprintf("disk%d", i)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: d}})
	}
	w.Store = objectstore.NewCopies(list, c, limits)
	w.OnDefect(func(o storage.Stored) { w.defects = append(w.defects, o) })
}

// store uploads b.
func (w *copies) store(t interface {
	Helper()
	Fatal(...any)
}, b []byte) storage.Stored {
	t.Helper()
	u, a, err := put(w.Store, b, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	u.Done()
	return storage.Stored{Address: a, Object: storage.Object{Size: uint64(len(b)), File: u.File()}}
}

// damage flips a byte of the only file of an object on a disk.
func (w *copies) damage(t *testing.T, disk, at int) {
	t.Helper()
	names, _ := w.disks[disk].List()
	if len(names) != 1 {
		t.Fatalf("disk %d has %q", disk, names)
	}
	flip(t, w.disks[disk], names[0], at)
}

// remove removes the files of a disk.
func (w *copies) remove(disk int) {
	names, _ := w.disks[disk].List()
	for _, n := range names {
		_ = w.disks[disk].Remove(n)
	}
}

var two = objectstore.Copies{Count: 2, Required: 1}

// TestUploadWritesAllCopies: each copy can be read without the other ones.
func TestUploadWritesAllCopies(t *testing.T) {
	for n := range 5 {
		w, b := newCopies(3, two), content(n)
		o, good := w.store(t, b), 0
		for i := range w.disks {
			if err := w.VerifyCopy(o, i, nil); err == nil {
				good++
			} else if !errors.Is(err, objectstore.ErrGone) {
				t.Errorf("content %d, disk %d: %v", n, i, err)
			}
		}
		if good != 2 || len(w.defects) > 0 {
			t.Errorf("content %d: %d copies, defects %v", n, good, w.defects)
		}
	}
}

// TestReadFallsOver damages different groups of both copies: the read goes from one to the other and back, and its client
// gets the whole object, in parts that follow each other.
func TestReadFallsOver(t *testing.T) {
	w, b := newCopies(2, two), content(4)
	o := w.store(t, b)
	w.damage(t, 0, digest.Group+5)
	w.damage(t, 1, 7)
	w.damage(t, 1, 3*digest.Group+5)
	got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if len(w.defects) == 0 || w.defects[0] != o {
		t.Errorf("defects %v", w.defects)
	}
	for i := range w.disks {
		if err := w.VerifyCopy(o, i, nil); !errors.Is(err, objectstore.ErrDamaged) {
			t.Errorf("copy %d: %v", i, err)
		}
	}
}

// TestReadEndsWithLastCopy damages one group of both copies: what is before it is sent, then the read fails.
func TestReadEndsWithLastCopy(t *testing.T) {
	w, b := newCopies(2, two), content(4)
	o := w.store(t, b)
	w.damage(t, 0, digest.Group+5)
	w.damage(t, 1, digest.Group+900)
	got, err := read(w.Store, o.Address, o.Object, 0, o.Size)
	if !errors.Is(err, objectstore.ErrDamaged) || !bytes.Equal(got, b[:digest.Group]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// TestFailingDeviceIsReplaced: while a device fails, reads and uploads use the others and its health says why; after a
// probe it is used again.
func TestFailingDeviceIsReplaced(t *testing.T) {
	w, b := newCopies(2, two), content(4)
	before := w.store(t, b)
	w.devices[0].err = syscall.EIO
	for range 2 {
		if got, err := read(w.Store, before.Address, before.Object, 0, before.Size); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	w.MarkFailed(0, syscall.EIO)
	if h := w.Health(); h[0].Failed != syscall.EIO.Error() || h[0].Errors == 0 || h[1].Failed != "" {
		t.Errorf("health %+v", h)
	}
	w.defects = nil
	during := w.store(t, content(1))
	if len(w.defects) != 1 || w.defects[0] != during {
		t.Errorf("defects %v", w.defects)
	}
	if _, err := w.Probe(0); !errors.Is(err, syscall.EIO) || w.Health()[0].Failed == "" {
		t.Errorf("probe of a failing device: %v", err)
	}
	w.devices[0].err = nil
	if _, err := w.Probe(0); err != nil || w.Health()[0].Failed != "" {
		t.Errorf("probe: %v", err)
	}
	if err := w.RepairCopy(during, 0, nil); err != nil {
		t.Errorf("repair: %v", err)
	}
	if err := w.VerifyCopy(during, 0, nil); err != nil {
		t.Errorf("repaired copy: %v", err)
	}
	if names, _ := w.disks[0].List(); len(names) != 2 {
		t.Errorf("files %q", names)
	}
}

// TestUploadSurvivesFailures lets one of two copies fail in each way: the upload succeeds, the object is reported, and a repair
// writes the copy. If both must be durable, the upload fails.
func TestUploadSurvivesFailures(t *testing.T) {
	for what, harm := range map[string]func(*world.Disk){
		"write": func(d *world.Disk) { d.FailWrite = true }, "sync": func(d *world.Disk) { d.FailSync = true },
		"directory": func(d *world.Disk) { d.FailDir = true }, "full": func(d *world.Disk) { d.Leave(digest.Group + 100) },
	} {
		w := newCopies(2, two)
		harm(w.disks[1])
		b := content(4)
		o := w.store(t, b)
		if len(w.defects) != 1 || w.defects[0] != o {
			t.Errorf("%s: defects %v", what, w.defects)
		}
		if err := w.VerifyCopy(o, 0, nil); err != nil {
			t.Errorf("%s: the other copy: %v", what, err)
		}
		if names, _ := w.disks[1].List(); len(names) != 0 {
			t.Errorf("%s: files %q are left", what, names)
		}
		if failed := w.Health()[1].Failed != ""; failed != (what != "full") {
			t.Errorf("%s: health %+v", what, w.Health())
		}
		w.disks[1].Leave(math.MaxInt64)
		if err := w.RepairCopy(o, 1, nil); err != nil {
			t.Errorf("%s: repair: %v", what, err)
		}
		if err := w.VerifyCopy(o, 1, nil); err != nil {
			t.Errorf("%s: after the repair: %v", what, err)
		}

		w = newCopies(2, objectstore.Copies{Count: 2, Required: 2})
		harm(w.disks[1])
		u, _, err := put(w.Store, b, 50_000)
		if err == nil {
			t.Errorf("%s: an upload with one of two required copies succeeds", what)
		}
		u.Done()
		if _, err := w.Collect(func(storage.Address, storage.File) bool { return false }); err != nil {
			t.Error(err)
		}
		for i, d := range w.disks {
			if names, _ := d.List(); len(names) > 0 {
				t.Errorf("%s: disk %d has %q", what, i, names)
			}
		}
	}
}

// TestUploadNeedsOneCopy: with no device left it fails, and without space in all it says so.
func TestUploadNeedsOneCopy(t *testing.T) {
	w := newCopies(2, two)
	w.devices[0].err, w.devices[1].err = syscall.EIO, syscall.EROFS
	u, _, err := put(w.Store, content(2), 1000)
	if !errors.Is(err, syscall.EIO) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("no device: %v", err)
	}
	u.Done()
	w = newCopies(2, two)
	for _, d := range w.disks {
		d.Leave(0)
	}
	u, _, err = put(w.Store, content(2), 1000)
	if !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("no space: %v", err)
	}
	u.Done()
}

// TestUploadChoosesHealthyProvider: a third provider takes the copy that a failed one cannot.
func TestUploadChoosesHealthyProvider(t *testing.T) {
	for failed := range 3 {
		w := newCopies(3, two)
		w.MarkFailed(failed, syscall.EIO)
		o := w.store(t, content(2))
		for i := range w.disks {
			if err := w.VerifyCopy(o, i, nil); (err == nil) != (i != failed) {
				t.Errorf("failed %d, copy %d: %v", failed, i, err)
			}
		}
		if len(w.defects) > 0 {
			t.Errorf("defects %v", w.defects)
		}
	}
}

// TestRepairIsPaced: each read is asked for first, and an error of the budget ends the repair without a file.
func TestRepairIsPaced(t *testing.T) {
	w, b := newCopies(2, two), content(4)
	o := w.store(t, b)
	names, _ := w.disks[1].List()
	_ = w.disks[1].Remove(names[0])
	asked, enough := 0, errors.New("enough")
	if err := w.RepairCopy(o, 1, func(n int) error { asked += n; return nil }); err != nil || asked < 2*len(b) {
		t.Errorf("%d bytes asked for, %v", asked, err)
	}
	_ = w.disks[1].Remove(names[0])
	if err := w.RepairCopy(o, 1, func(int) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	if left, _ := w.disks[1].List(); len(left) > 0 {
		t.Errorf("files %q", left)
	}
	if len(w.defects) > 0 {
		t.Errorf("defects %v", w.defects)
	}
}

// TestRepairKeepsGoodCopies: without a good copy nothing is written, and the damaged one stays.
func TestRepairKeepsGoodCopies(t *testing.T) {
	w, b := newCopies(2, two), content(4)
	o := w.store(t, b)
	w.damage(t, 0, 5)
	w.damage(t, 1, 5)
	var source *objectstore.SourceError
	if err := w.RepairCopy(o, 1, nil); !errors.As(err, &source) || !errors.Is(err, objectstore.ErrDamaged) {
		t.Errorf("%v", err)
	}
	for i, d := range w.disks {
		if names, _ := d.List(); len(names) != 1 || strings.Contains(names[0], "part") {
			t.Errorf("disk %d has %q", i, names)
		}
	}
}

// TestRestore: what is missing or damaged is written again, also if no copy is good as a whole. An object without as much is lost.
func TestRestore(t *testing.T) {
	free := func(int) error { return nil }
	for what, harm := range map[string]func(*copies){
		"nothing":            func(*copies) {},
		"a copy":             func(w *copies) { w.damage(t, 0, 5) },
		"a file":             func(w *copies) { w.remove(1) },
		"both, another part": func(w *copies) { w.damage(t, 0, 5); w.damage(t, 1, 3*digest.Group) },
	} {
		w := newCopies(2, two)
		o := w.store(t, content(4))
		harm(w)
		r, err := w.Restore(o, true, free)
		if err != nil || r.Lost || r.Lacks {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		for i := range w.disks {
			if err := w.VerifyCopy(o, i, nil); err != nil {
				t.Errorf("%s: copy %d: %v", what, i, err)
			}
		}
	}
	w, enough := newCopies(2, two), errors.New("enough")
	o := w.store(t, content(4))
	w.damage(t, 0, 5)
	if r, err := w.Restore(o, true, func(int) error { return enough }); !errors.Is(err, enough) || len(r.Written) > 0 {
		t.Errorf("without a budget: %+v, %v", r, err)
	}
	w.damage(t, 1, 5)
	if r, err := w.Restore(o, true, free); err != nil || !r.Lost || r.Lacks || r.Good.Count() != 0 {
		t.Errorf("both copies damaged: %+v, %v", r, err)
	}
	w.remove(0)
	w.remove(1)
	if r, err := w.Restore(o, true, free); err != nil || !r.Lost || len(r.Written) > 0 {
		t.Errorf("no copy: %+v, %v", r, err)
	}
	o = w.store(t, content(2))
	w.MarkFailed(1, syscall.EIO)
	if r, err := w.Restore(o, true, free); err != nil || r.Lost || !r.Lacks {
		t.Errorf("a failed provider: %+v, %v", r, err)
	}
}

// TestRepairReplacesParts: a crash leaves parts of a copy behind, which do not block its repair.
func TestRepairReplacesParts(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, content(4))
	names, _ := w.disks[1].List()
	_ = w.disks[1].Remove(names[0])
	f, err := w.disks[1].Create(fmt.Sprintf("%016x.part", uint64(o.File)))
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := w.RepairCopy(o, 1, nil); err != nil {
		t.Errorf("repair: %v", err)
	}
	if err := w.VerifyCopy(o, 1, nil); err != nil {
		t.Errorf("copy: %v", err)
	}
}

// TestDamagedCopiesRepairEachOther: copies that are damaged in different places are repaired, as they are read.
func TestDamagedCopiesRepairEachOther(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, content(4))
	w.damage(t, 0, 5)
	w.damage(t, 1, 5+2*digest.Group)
	for i := range w.disks {
		if err := w.VerifyCopy(o, i, nil); !errors.Is(err, objectstore.ErrDamaged) {
			t.Fatalf("copy %d before: %v", i, err)
		}
	}
	for i := range w.disks {
		if err := w.RepairCopy(o, i, nil); err != nil {
			t.Errorf("repair of copy %d: %v", i, err)
		}
		if err := w.VerifyCopy(o, i, nil); err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
	}
}

// TestCollectorSparesRepair collects while a copy is written again.
func TestCollectorSparesRepair(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, content(4))
	names, _ := w.disks[1].List()
	_ = w.disks[1].Remove(names[0])
	live := func(_ storage.Address, f storage.File) bool { return f == o.File }
	if err := w.RepairCopy(o, 1, func(int) error { _, err := w.Collect(live); return err }); err != nil {
		t.Errorf("repair: %v", err)
	}
	if err := w.VerifyCopy(o, 1, nil); err != nil {
		t.Errorf("copy: %v", err)
	}
}

// TestStartWithoutOneProvider: a directory that cannot be listed makes its provider failed; if none can be listed, the start fails.
func TestStartWithoutOneProvider(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, content(1))
	w.devices[0].err = syscall.EIO
	w.start(two)
	if err := w.Recover(); err != nil || w.Health()[0].Failed == "" {
		t.Errorf("%v, %+v", err, w.Health())
	}
	if u, err := w.Begin(1); err != nil || u.File() != o.File+1 {
		t.Errorf("the next upload is not %d: %v", o.File+1, err)
	}
	w.devices[1].err = syscall.EIO
	if err := w.Recover(); !errors.Is(err, syscall.EIO) {
		t.Errorf("without a directory: %v", err)
	}
}

// mirror is a store with copies, and which of them are whole.
type mirror struct {
	*copies
	contents map[storage.Stored][]byte
	whole    map[storage.Stored]placement.Set
	seed     uint64
}

func (m *mirror) rows() []storage.Stored {
	return slices.SortedFunc(maps.Keys(m.contents), func(a, b storage.Stored) int { return int(a.File) - int(b.File) })
}

// observe notes which copies of an object are whole, on disks that do not fail.
func (m *mirror) observe(o storage.Stored) {
	m.whole[o] = 0
	for i := range m.disks {
		if m.VerifyCopy(o, i, nil) == nil {
			m.whole[o] = m.whole[o].With(i)
		}
	}
}

// upload stores an object on disks of which some fail once.
func (m *mirror) upload(t *rapid.T) {
	if len(m.contents) == 6 {
		t.Skip("there are six objects already: another action is drawn")
	}
	for _, d := range m.disks {
		d.FailWrite, d.FailSync, d.FailDir = m.rarely(t, "write"), m.rarely(t, "sync"), m.rarely(t, "directory")
	}
	b := content(rapid.IntRange(0, 4).Draw(t, "content"))
	u, a, err := put(m.Store, b, 40_000)
	size := u.Size()
	m.defects = nil
	u.Done()
	for _, d := range m.disks {
		d.FailWrite, d.FailSync, d.FailDir = false, false, false
	}
	if err != nil {
		return
	}
	o := storage.Stored{Address: a, Object: storage.Object{Size: size, File: u.File()}}
	m.contents[o] = b
	m.observe(o)
	if n := m.whole[o].Len(); n < 2 != slices.Contains(m.defects, o) || n == 0 {
		t.Fatalf("%v has %d copies, defects %v", o.File, n, m.defects)
	}
}

func (m *mirror) rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }

// rot changes a byte of a file, or cuts or removes it.
func (m *mirror) rot(t *rapid.T) {
	m.seed++
	d, how := rapid.SampledFrom(m.disks).Draw(t, "disk"), rapid.IntRange(0, 2).Draw(t, "how")
	names, _ := d.List()
	if len(names) == 0 {
		t.Skip("the disk has no file to damage: another action is drawn")
	}
	name := names[int(m.seed)%len(names)]
	switch how {
	case 0:
		name, _ = d.Rot(world.NewSeeded(m.seed))
	case 1:
		name, _ = d.Cut(world.NewSeeded(m.seed))
	case 2:
		_ = d.Remove(name)
		_ = d.SyncDir()
	}
	for _, o := range m.rows() {
		if strings.Contains(name, fmt.Sprintf("%016x", uint64(o.File))) {
			m.observe(o)
		}
	}
}

// read reads a part of an object while reads of one disk may fail. It returns the part, or its beginning and an error; the error
// only if no copy is whole.
func (m *mirror) read(t *rapid.T) {
	if len(m.contents) == 0 {
		t.Skip("no object")
	}
	o := rapid.SampledFrom(m.rows()).Draw(t, "object")
	off := rapid.Uint64Range(0, o.Size).Draw(t, "off")
	length := rapid.Uint64Range(0, o.Size-off).Draw(t, "length")
	m.disks[0].FailRead = m.rarely(t, "read")
	got, err := read(m.Store, o.Address, o.Object, off, length)
	spared := m.disks[0].FailRead
	m.disks[0].FailRead = false
	want := m.contents[o][off : off+length]
	if !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) {
		t.Fatalf("%d bytes of %d from %d: wrong", len(got), length, off)
	}
	if err != nil && (m.whole[o].Len() > 1 || m.whole[o].Len() == 1 && spared) {
		t.Fatalf("%d bytes of %d from %d: %v, copies %b", len(got), length, off, err, m.whole[o])
	}
}

// repair repairs an object, as the node does: every copy that is not whole, until there are two.
func (m *mirror) repair(t *rapid.T) {
	if len(m.contents) == 0 {
		t.Skip("no object")
	}
	o := rapid.SampledFrom(m.rows()).Draw(t, "object")
	for i := range m.disks {
		_, _ = m.Probe(i)
	}
	before, readable := m.whole[o], m.Verify(o) == nil // copies that are damaged in different places are read together
	missing := m.Table().Choose(uint64(o.File), 2-min(2, before.Len()), m.Table().All()&^before, before)
	for n := range missing.Len() {
		if err := m.RepairCopy(o, missing.At(n), nil); (err == nil) != readable {
			t.Fatalf("repair of %b, readable %v: %v", before, readable, err)
		}
	}
	m.observe(o)
	if readable && m.whole[o].Len() < 2 || m.whole[o]&before != before {
		t.Fatalf("copies %b after %b", m.whole[o], before)
	}
}

// lose loses power on all disks at once: what was acknowledged stays.
func (m *mirror) lose(t *rapid.T) {
	m.seed++
	for i, d := range m.disks {
		d.Crash(world.NewSeeded(m.seed<<8 + uint64(i)))
	}
	m.start(two)
	if err := m.Recover(); err != nil {
		t.Fatal(err)
	}
	for o := range m.contents {
		m.Reserve(o.File)
		before := m.whole[o]
		if m.observe(o); m.whole[o]&before != before { // a removed file may be back
			t.Fatalf("copies %b of %d after %b", m.whole[o], o.File, before)
		}
	}
}

func (m *mirror) collect(t *rapid.T) {
	if _, err := m.Collect(func(a storage.Address, f storage.File) bool {
		return slices.ContainsFunc(m.rows(), func(o storage.Stored) bool { return o.Address == a && o.File == f })
	}); err != nil {
		t.Fatal(err)
	}
}

// check reads every copy of an object that was whole.
func (m *mirror) check(t *rapid.T) {
	if len(m.contents) == 0 {
		t.Skip("no object")
	}
	o := rapid.SampledFrom(m.rows()).Draw(t, "object")
	for i := range m.disks {
		if m.whole[o].Has(i) && m.VerifyCopy(o, i, nil) != nil {
			t.Fatalf("copy %d of %d is not whole any more", i, o.File)
		}
	}
}

// TestCopiesAgreeWithModel harms copies in each way, in any order with uploads, reads, repairs and losses of power: nothing wrong is
// read, what has a whole copy can be read, and a repair restores all copies.
func TestCopiesAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &mirror{copies: newCopies(rapid.IntRange(2, 3).Draw(t, "disks"), two), contents: map[storage.Stored][]byte{}, whole: map[storage.Stored]placement.Set{}}
		t.Repeat(map[string]func(*rapid.T){"check": m.check, "upload": m.upload, "rot": m.rot, "read": m.read, "repair": m.repair, "lose": m.lose, "collect": m.collect})
	})
}

// TestSettledLeavesOutUploads: a file that an upload was writing may be missing in a list that is made then, also if the upload ends before
// the list is compared with the rows. The file of an upload with an unknown outcome is complete.
func TestSettledLeavesOutUploads(t *testing.T) {
	s := open(t, world.NewDisk())
	u, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	during := s.Settled()
	if u.Done(); during(u.File()) || !s.Settled()(u.File()) {
		t.Error("an upload is settled before it ends, or not afterwards")
	}
	unknown, _, err := put(s, content(1), digest.Group)
	if err != nil {
		t.Fatal(err)
	}
	if unknown.Keep(); !s.Settled()(unknown.File()) || during(unknown.File()) {
		t.Error("an upload with an unknown outcome is never settled, or a later upload is")
	}
}

// TestRestoreKnowsWhatIsHopeless: an object is given up only if every provider has answered and too little is left. A read of one that
// cannot be opened reports it.
func TestRestoreKnowsWhatIsHopeless(t *testing.T) {
	both := func(w *copies) { w.damage(t, 0, 5); w.damage(t, 1, 5) }
	apart := func(w *copies) { w.damage(t, 0, 5); w.damage(t, 1, 3*digest.Group) }
	for what, c := range map[string]struct {
		harm               func(*copies)
		hopeless, readable bool
	}{
		"nothing":                     {func(*copies) {}, false, true},
		"a copy":                      {func(w *copies) { w.damage(t, 0, 5) }, false, true},
		"both copies":                 {both, true, false},
		"both files":                  {func(w *copies) { w.remove(0); w.remove(1) }, true, false},
		"a file, and the other copy":  {func(w *copies) { w.remove(0); w.damage(t, 1, 5) }, true, false},
		"both, another part":          {apart, false, true},
		"both, another part, no room": {func(w *copies) { apart(w); w.disks[0].Full, w.disks[1].Full = true, true }, false, false},
		"both copies, no room":        {func(w *copies) { both(w); w.disks[0].Full, w.disks[1].Full = true, true }, true, false},
		"both copies, room for one":   {func(w *copies) { both(w); w.disks[0].Full = true }, true, false},
		"both, a provider has failed": {func(w *copies) { both(w); w.MarkFailed(1, syscall.EIO) }, false, false},
		"a copy, and the other cannot be opened": {func(w *copies) {
			w.damage(t, 0, 5)
			w.devices[1].err = syscall.EACCES
		}, false, false},
	} {
		w := newCopies(2, two)
		o := w.store(t, content(4))
		c.harm(w)
		r, err := w.Restore(o, true, func(int) error { return nil })
		if err != nil || r.IsHopeless() != c.hopeless || r.Readable != c.readable {
			t.Errorf("%s: hopeless %v, readable %v, %+v, %v", what, r.IsHopeless(), r.Readable, r, err)
		}
		w.defects = nil
		x, err := w.Get(o.Address, o.Object)
		if err == nil {
			x.Close()
		}
		if errors.Is(err, objectstore.ErrGone) && !slices.Contains(w.defects, o) {
			t.Errorf("%s: a read that ends with %v reports %v", what, err, w.defects)
		}
	}
	w := newCopies(2, two)
	o := w.store(t, content(4))
	w.damage(t, 0, 5)
	if r, err := w.Restore(o, false, func(int) error { return nil }); err != nil || r.Readable {
		t.Errorf("by their names: %+v, %v", r, err)
	}
	w.remove(0)
	w.devices[1].err = syscall.EACCES
	if r, err := w.Restore(o, false, func(int) error { return nil }); err != nil || !r.Waits() {
		t.Errorf("by their names, and the only one cannot be opened: %+v, %v", r, err)
	}
	waits := 0
	for after := range 40 { // each copy is damaged elsewhere, and from some read on the node has too many open files
		w := newCopies(2, two)
		o := w.store(t, content(4))
		apart(w)
		reads := 0
		r, err := w.Restore(o, true, func(int) error {
			if reads++; reads > after {
				w.devices[0].err, w.devices[1].err = syscall.EMFILE, syscall.EMFILE
			}
			return nil
		})
		if err == nil && r.IsHopeless() {
			t.Errorf("too many open files after %d reads: %+v", after, r)
		}
		if err == nil && r.Waits() && len(r.Written) > 0 {
			waits++
		}
	}
	if waits == 0 {
		t.Error("no repair of damaged copies has met too many open files")
	}
}

// heldDir is a directory in which some files cannot be removed, and that may not be listed.
type heldDir struct {
	fs.FS
	held   map[string]error // by name
	tried  int              // removals of held files
	listed error
}

func (h *heldDir) Remove(name string) error {
	if err := h.held[name]; err != nil {
		h.tried++
		return err
	}
	return h.FS.Remove(name)
}

func (h *heldDir) List() ([]string, error) {
	if h.listed != nil {
		return nil, h.listed
	}
	return h.FS.List()
}

// TestUnremovableFileFailsNoProvider: if a file cannot be removed, the collection removes the others and tries again later. The provider does
// not fail, unless its device does. A process with too many open files does not make it failed either.
func TestUnremovableFileFailsNoProvider(t *testing.T) {
	none := func(storage.Address, storage.File) bool { return false }
	for _, c := range []struct {
		err                error
		failed             bool
		removed, unremoved int
	}{
		{syscall.EPERM, false, 4, 2},
		{syscall.EMFILE, false, 4, 2},
		{syscall.EBUSY, false, 4, 2},
		{syscall.EIO, true, 0, 2},
		{provider.ErrUnavailable, true, 0, 2},
		{provider.ErrBusy, false, 0, 2},
		{errors.Join(provider.ErrUnavailable, os.ErrPermission), false, 4, 2}, // of a bucket
	} {
		w := newCopies(2, two)
		var held []*heldDir
		for _, d := range w.devices {
			h := &heldDir{FS: d.FS, held: map[string]error{}}
			d.FS, held = h, append(held, h)
		}
		for n := range 3 {
			w.store(t, content(n+1))
		}
		for _, h := range held {
			names, _ := h.List()
			h.held[names[0]] = c.err
		}
		for again := 1; again <= 2; again++ {
			got, err := w.Collect(none)
			if !errors.Is(err, c.err) || got.Files != c.removed || got.Unremoved != c.unremoved {
				t.Errorf("%v: %+v, %v", c.err, got, err)
			}
			for i, h := range w.Health() {
				if (h.Failed != "") != c.failed || held[i].tried != again {
					t.Errorf("%v: %+v, tried %d times", c.err, h, held[i].tried)
				}
			}
			c.removed = 0
		}
		for _, h := range held {
			clear(h.held)
		}
		if got, err := w.Collect(none); err != nil || got.Files < 2 || got.Unremoved != 0 {
			t.Errorf("%v, later: %+v, %v", c.err, got, err)
		}
	}
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EIO} {
		w := newCopies(2, two)
		for _, d := range w.devices {
			d.FS = &heldDir{FS: d.FS, listed: err}
		}
		if _, got := w.Collect(none); !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
		for _, h := range w.Health() {
			if (h.Failed != "") != (errors.Is(err, syscall.EIO)) {
				t.Errorf("%v: %+v", err, h)
			}
		}
	}
}

// TestForbiddenRemovalsAreFew: if a bucket forbids removals, a collection tries few of its files and counts all. The next ones try the others, so
// that each file which may be removed is removed at last.
func TestForbiddenRemovalsAreFew(t *testing.T) {
	none := func(storage.Address, storage.File) bool { return false }
	w := newCopies(1, objectstore.Copies{Count: 1, Required: 1})
	h := &heldDir{FS: w.devices[0].FS, held: map[string]error{}}
	w.devices[0].FS = h
	const files = 30
	for n := range files {
		w.store(t, fmt.Append(nil, n))
	}
	names, _ := h.List()
	for _, n := range names {
		h.held[n] = errors.Join(provider.ErrUnavailable, os.ErrPermission)
	}
	const few = 8
	for range 3 {
		h.tried = 0
		got, err := w.Collect(none)
		if err == nil || err.Error() != "remove files without an object: provider disk0 forbids it: permission denied" || got.Unremoved != files || got.Files != 0 || h.tried != few || w.Health()[0].Failed != "" {
			t.Errorf("%+v, %v, %d removals, %+v", got, err, h.tried, w.Health()[0])
		}
	}
	clear(h.held)
	for _, n := range names[:few+1] {
		h.held[n] = errors.Join(provider.ErrUnavailable, os.ErrPermission)
	}
	removed := 0
	for range 2 {
		got, _ := w.Collect(none)
		removed += got.Files
	}
	if removed != files-few-1 {
		t.Errorf("%d files were removed", removed)
	}
}

// TestRemovalOfPartFailsNoProvider: a copy that cannot be removed, and a draft in the way of a repair, do not make their provider failed.
func TestRemovalOfPartFailsNoProvider(t *testing.T) {
	w := newCopies(2, two)
	o := w.store(t, content(4))
	names, _ := w.disks[0].List()
	draft := fmt.Sprintf("%016x.part", uint64(o.File))
	w.devices[0].FS = &heldDir{FS: w.devices[0].FS, held: map[string]error{names[0]: syscall.EPERM, draft: syscall.EPERM}}
	if err := w.RemovePart(o, objectstore.Part{Provider: 0}); !errors.Is(err, syscall.EPERM) {
		t.Errorf("remove: %v", err)
	}
	if err := w.RepairCopy(o, 0, nil); !errors.Is(err, syscall.EPERM) {
		t.Errorf("repair: %v", err)
	}
	if h := w.Health()[0]; h.Failed != "" {
		t.Errorf("health %+v", h)
	}
}
