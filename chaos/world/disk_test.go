package world_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/chaos/world"
)

func TestContract(t *testing.T) {
	fstest.FS(t, func(*testing.T) fs.FS { return world.NewDisk() })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, d *world.Disk, name, text string) fs.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	write(t, f, text, 0)
	return f
}

func write(t *testing.T, f fs.File, text string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(text), off)
	must(t, err)
}

// image returns the readable content of a disk.
func image(t *testing.T, d *world.Disk) string {
	t.Helper()
	names, err := d.List()
	must(t, err)
	var got []string
	for _, n := range names {
		all, err := fs.ReadAll(d, n)
		must(t, err)
		got = append(got, n+"="+strings.ReplaceAll(string(all), "\x00", "."))
	}
	return strings.Join(got, " ")
}

// images returns every content that a crash may leave.
func images(t *testing.T, d *world.Disk) []string {
	t.Helper()
	seen := map[string]bool{}
	for every := (world.Odometer{}); every.Next(); {
		after := d.Copy()
		after.Crash(&every)
		seen[image(t, after)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("a crash may leave\n%q, want\n%q", got, want)
	}
}

// TestCrashTearsUnsyncedWrite: an unsynced write is lost, whole, torn at any byte, or any of its
// sectors; earlier data stays beneath it.
func TestCrashTearsUnsyncedWrite(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "xx")
	must(t, f.Sync())
	must(t, d.SyncDir())
	write(t, f, "abc", 1)
	same(t, images(t, d), []string{"a=xa", "a=xab", "a=xabc", "a=xx"})
	must(t, f.Sync())
	same(t, images(t, d), []string{"a=xabc"})

	d = world.NewDisk()
	f = create(t, d, "a", "")
	must(t, d.SyncDir())
	write(t, f, strings.Repeat("a", 20)+strings.Repeat("b", 20), 44) // the sector ends at 64
	first, second := "a="+strings.Repeat(".", 44)+strings.Repeat("a", 20), "a="+strings.Repeat(".", 64)+strings.Repeat("b", 20)
	got := images(t, d)
	for _, want := range []string{"a=", first, second, first + strings.Repeat("b", 20)} {
		if !slices.Contains(got, want) {
			t.Fatalf("%q is not among %q", want, got)
		}
	}
}

// TestCrashUndoesTruncation: a truncation that was not synced may be lost, alone or with what was written after it.
func TestCrashUndoesTruncation(t *testing.T) {
	d := world.NewDisk()
	must(t, create(t, d, "a", "abc").Sync())
	must(t, d.SyncDir())
	f, err := d.Change("a")
	must(t, err)
	must(t, f.Truncate(5)) // no longer file
	must(t, f.Truncate(1))
	if got := image(t, d); got != "a=a" {
		t.Fatalf("cut, it has %q", got)
	}
	same(t, images(t, d), []string{"a=a", "a=abc"})
	write(t, f, "X", 1)
	same(t, images(t, d), []string{"a=a", "a=aX", "a=aXc", "a=abc"})
	must(t, f.Sync())
	same(t, images(t, d), []string{"a=aX"})
	if r, err := d.Open("a"); err != nil || r.(world.Changeable).Truncate(0) == nil {
		t.Fatalf("a file that was opened to read is cut: %v", err)
	}
	if _, err := d.Change("b"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a missing file: %v", err)
	}
}

// TestCrashLosesLastNamesFirst: names are lost from the last change on.
func TestCrashLosesLastNamesFirst(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a.tmp", "1")
	must(t, f.Sync())
	must(t, d.Rename("a.tmp", "a"))
	g := create(t, d, "b", "2")
	must(t, g.Sync())
	same(t, images(t, d), []string{"", "a.tmp=1", "a=1", "a=1 b=2"})
	must(t, d.SyncDir())
	must(t, d.Remove("a"))
	same(t, images(t, d), []string{"a=1 b=2", "b=2"})
}

// TestCrashSettlesWritesSeparately: an earlier write may be lost and a later one kept. The disk
// copies written data.
func TestCrashSettlesWritesSeparately(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "")
	must(t, d.SyncDir())
	for off, buf := 0, []byte("1"); off < 2; off++ {
		_, err := f.WriteAt(buf, int64(off))
		must(t, err)
		buf[0]++
	}
	same(t, images(t, d), []string{"a=", "a=.2", "a=1", "a=12"})
}

// TestFailedSyncLosesPages: its pages stay readable and are not on disk; a later successful sync
// does not write them.
func TestFailedSyncLosesPages(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "old")
	must(t, f.Sync())
	must(t, d.SyncDir())
	write(t, f, "NEW", 0)
	d.FailSync = true
	if err := f.Sync(); !errors.Is(err, world.ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	must(t, f.Sync())
	if got := image(t, d); got != "a=NEW" {
		t.Fatalf("read %s", got)
	}
	same(t, images(t, d), []string{"a=old"})
}

// TestFullDiskWritesShort: a write on a full disk is short with an error; removed files free
// space.
func TestFullDiskWritesShort(t *testing.T) {
	d := world.NewDisk()
	d.Size = 5
	f := create(t, d, "a", "12")
	if n, err := f.WriteAt([]byte("abcdef"), 1); n != 4 || !errors.Is(err, world.ErrFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if free, err := d.Free(); free != 0 || err != nil || image(t, d) != "a=1abcd" {
		t.Fatalf("%d free, %v, %s", free, err, image(t, d))
	}
	write(t, f, "in it", 0)
	must(t, d.Remove("a"))
	if free, _ := d.Free(); free != 5 {
		t.Fatalf("%d free after all was removed", free)
	}
	d.Full = true
	g := create(t, d, "b", "")
	if n, err := g.WriteAt([]byte("x"), 0); n != 0 || !errors.Is(err, world.ErrFull) {
		t.Fatalf("wrote %d to a full disk, %v", n, err)
	}
}

// TestEachFailureHappensOnce: and a failed write may leave a part.
func TestEachFailureHappensOnce(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "1234")
	d.FailWrite, d.FailRead, d.FailDir = true, true, true
	if n, err := f.WriteAt([]byte("abcd"), 0); n != 2 || !errors.Is(err, world.ErrWrite) {
		t.Fatalf("write: %d, %v", n, err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, world.ErrRead) {
		t.Fatalf("read: %v", err)
	}
	if err := d.SyncDir(); !errors.Is(err, world.ErrSync) {
		t.Fatalf("sync of the directory: %v", err)
	}
	if got := image(t, d); got != "a=ab34" {
		t.Fatalf("left %s", got)
	}
	if got := images(t, d); !slices.Contains(got, "") {
		t.Fatalf("the name is durable after a failed sync: %q", got)
	}
}

// TestEveryOperationIsACrashPoint: after n operations all fail; handles from before the crash are
// dead, and none counts as open.
func TestEveryOperationIsACrashPoint(t *testing.T) {
	life := func(d *world.Disk) (f fs.File, err error) {
		if f, err = d.Create("a"); err != nil {
			return nil, err
		}
		_, err = f.WriteAt([]byte("12"), 0)
		return f, errors.Join(err, f.Sync(), d.Rename("a", "b"), d.SyncDir())
	}
	whole := world.NewDisk()
	_, err := life(whole)
	must(t, err)
	if whole.Ops != 5 {
		t.Fatalf("%d operations, want 5", whole.Ops)
	}
	left := []string{}
	for n := range whole.Ops {
		d := world.NewDisk()
		d.Fuse = n
		f, err := life(d)
		if !errors.Is(err, world.ErrDead) || !d.Dead() {
			t.Fatalf("after %d operations: %v", n, err)
		}
		d.Crash(world.Dull{})
		left = append(left, image(t, d))
		if f == nil {
			continue
		}
		if _, err := f.Size(); !errors.Is(err, world.ErrDead) {
			t.Fatalf("a handle from before the crash: %v", err)
		}
		if must(t, f.Close()); d.Handles() != 0 {
			t.Fatalf("%d files open", d.Handles())
		}
	}
	if want := []string{"", "", "", "", ""}; !slices.Equal(left, want) {
		t.Fatalf("left %q, want %q", left, want)
	}
}

// TestRotFlipsDurableBit: unsynced data is not changed.
func TestRotFlipsDurableBit(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "\x00\x00")
	if name, at := d.Rot(world.NewSeeded(1)); at >= 0 {
		t.Fatalf("rotted byte %d of %s, which is not on the disk", at, name)
	}
	must(t, f.Sync())
	must(t, d.SyncDir())
	write(t, f, "x", 0)
	seen := map[string]bool{}
	for every := (world.Odometer{}); every.Next(); {
		rotten := d.Copy()
		rotten.Rot(&every)
		seen[image(t, rotten)] = true
	}
	if len(seen) != 9 || !seen["a=x."] || !seen["a=x\x01"] || !seen["a=x\x80"] {
		t.Fatalf("rot may show %q", slices.Sorted(maps.Keys(seen)))
	}
}

// TestCutLosesDurableEnd: any number of bytes of the last file, or all of it, for ever.
func TestCutLosesDurableEnd(t *testing.T) {
	d := world.NewDisk()
	if name, at := d.Cut(world.Dull{}); at >= 0 {
		t.Fatalf("%s is cut at %d without a file", name, at)
	}
	for _, name := range []string{"a", "b"} {
		f := create(t, d, name, "12")
		must(t, f.Sync())
	}
	must(t, d.SyncDir())
	seen := map[string]bool{}
	for every := (world.Odometer{}); every.Next(); {
		cut := d.Copy()
		cut.Cut(&every)
		cut.Crash(&every)
		seen[image(t, cut)] = true
	}
	if len(seen) != 3 {
		t.Fatalf("a cut may show %q", slices.Sorted(maps.Keys(seen)))
	}
}

// TestAstrayWriteGoesElsewhere: it succeeds, and is durable at the wrong offset.
func TestAstrayWriteGoesElsewhere(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "123456")
	d.Astray = -2
	write(t, f, "xy", 4)
	write(t, f, "z", 5)
	must(t, f.Sync())
	must(t, d.SyncDir())
	d.Crash(world.Dull{})
	if got := image(t, d); got != "a=12xy5z" {
		t.Fatalf("read %s", got)
	}
}

// TestLeaveLimitsFreeSpace: a number of bytes fits, and a larger write is short.
func TestLeaveLimitsFreeSpace(t *testing.T) {
	d := world.NewDisk()
	f := create(t, d, "a", "123456")
	d.Leave(3)
	if free, err := d.Free(); free != 3 || err != nil {
		t.Fatalf("%d free, %v", free, err)
	}
	if n, err := f.WriteAt([]byte("abcdef"), 6); n != 3 || !errors.Is(err, world.ErrFull) {
		t.Fatalf("wrote %d, %v", n, err)
	}
}

// TestEveryFaultIsReported: each kind of fault is reported once when it happens.
func TestEveryFaultIsReported(t *testing.T) {
	heard := map[string]int{}
	d := world.NewDisk()
	f := create(t, d, "a", "12")
	d.Hurt = func(how, _ string) { heard[how]++ }
	_, _ = f.ReadAt(make([]byte, 1), 0)
	must(t, f.Sync())
	must(t, d.SyncDir())
	if len(heard) > 0 {
		t.Fatalf("a kind disk hurts: %v", heard)
	}
	d.FailRead, d.FailWrite, d.FailSync, d.FailDir = true, true, true, true
	_, _ = f.ReadAt(make([]byte, 1), 0)
	_, _ = f.WriteAt([]byte("34"), 0)
	_, _ = f.Sync(), d.SyncDir()
	d.LoseSync = true
	must(t, f.Sync())
	d.Astray = 1
	write(t, f, "5", 0)
	must(t, f.Sync())
	d.Rot(world.Dull{})
	d.Leave(1)
	_, _ = f.WriteAt([]byte("678"), 2)
	_, _ = f.WriteAt([]byte("9"), 3)
	must(t, d.Rename("a", "b"))
	must(t, d.Rename("b", "a"))
	write(t, f, "x", 0)
	write(t, f, "y", 1)
	d.Crash(&world.Odometer{}) // everything is lost
	create(t, d, "c", "")
	d.Lose("c")
	d.Cut(world.Dull{})
	for _, keep := range []int{2, 3} {
		d := world.NewDisk()
		d.Hurt = func(how, _ string) { heard[how]++ }
		create(t, d, "a", "12")
		must(t, d.SyncDir())
		d.Crash(world.Given(world.Dull{}, "disk/write", keep))
	}
	want := map[string]int{}
	for _, how := range world.Hurts() {
		want[how] = 1
	}
	want[world.WriteLost] = 3 // the torn write, x and y
	if !maps.Equal(heard, want) {
		t.Fatalf("heard %v\nwant  %v", heard, want)
	}
}

// TestSeededIsDeterministic: a seed gives the same choices.
func TestSeededIsDeterministic(t *testing.T) {
	a, b := world.NewSeeded(7), world.NewSeeded(7)
	for n := 1; n < 100; n++ {
		if x, y := a.Choose("site", n), b.Choose("site", n); x != y || x < 0 || x >= n {
			t.Fatalf("%d of %d, then %d", x, n, y)
		}
	}
}

// TestDirectoriesOfOneDisk: directories of one disk have their own names, and share power, space and faults.
func TestDirectoriesOfOneDisk(t *testing.T) {
	d := world.NewDisk()
	other := d.Beside()
	f, g := create(t, d, "f", "of the first"), create(t, other, "f", "of the other")
	if image(t, d) != "f=of the first" || image(t, other) != "f=of the other" {
		t.Fatalf("%s, %s", image(t, d), image(t, other))
	}
	must(t, g.Sync())
	must(t, other.SyncDir())
	if d.Leave(3); d.Size != other.Size {
		t.Fatal("two capacities")
	}
	if free, err := other.Free(); err != nil || free != 3 {
		t.Fatalf("%d bytes free, %v", free, err)
	}
	write(t, g, "abc", 12)
	if n, err := f.WriteAt([]byte("d"), 12); n != 0 || !errors.Is(err, world.ErrFull) {
		t.Fatalf("a byte beyond the capacity: %d, %v", n, err)
	}
	d.FailSync = true
	if err := g.Sync(); !errors.Is(err, world.ErrSync) || d.FailSync {
		t.Fatal(err)
	}
	d.Fuse = 0
	if _, err := other.Open("f"); !errors.Is(err, world.ErrDead) {
		t.Fatal(err)
	}
	d.Crash(world.Dull{})
	if _, err := g.Size(); !errors.Is(err, world.ErrDead) {
		t.Fatal("a file of the time before the crash")
	}
	if image(t, d) != "" || image(t, other) != "f=of the other" {
		t.Fatalf("after the crash %q, %q", image(t, d), image(t, other))
	}
}

// TestFileIsLost: a file that is lost does not come back, whatever was durable.
func TestFileIsLost(t *testing.T) {
	d := world.NewDisk()
	must(t, create(t, d, "kept", "a").Sync())
	must(t, create(t, d, "lost", "b").Sync())
	must(t, d.SyncDir())
	must(t, d.Rename("kept", "renamed"))
	if b, ok := d.Durable("lost"); !ok || string(b) != "b" {
		t.Fatalf("durable %q, %v", b, ok)
	}
	d.Lose("lost")
	if _, ok := d.Durable("lost"); ok {
		t.Fatal("it is durable")
	}
	for _, after := range images(t, d) {
		if after != "kept=a" && after != "renamed=a" {
			t.Errorf("after a crash: %q", after)
		}
	}
	if image(t, d) != "renamed=a" {
		t.Error(image(t, d))
	}
	must(t, d.Remove("renamed"))
	d.LoseAll()
	if got := images(t, d); len(got) != 1 || got[0] != "" {
		t.Errorf("all is lost but %q", got)
	}
}
