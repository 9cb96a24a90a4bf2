package archive_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const block = 256 << 10

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func over(t testing.TB, live, kept fs.FS) *archive.Archive {
	t.Helper()
	a, err := archive.New(live, kept)
	must(t, err)
	return a
}

func put(t testing.TB, d fs.FS, name string, text []byte) {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	_, err = f.WriteAt(text, 0)
	must(t, errors.Join(err, f.Sync(), f.Close(), d.SyncDir()))
}

func read(t testing.TB, d fs.FS, name string) []byte {
	t.Helper()
	text, err := fs.ReadAll(d, name)
	must(t, err)
	return text
}

func names(t testing.TB, d fs.FS) string {
	t.Helper()
	all, err := d.List()
	must(t, err)
	return strings.Join(all, " ")
}

func quiet(archive.Moved) {}

// text returns bytes that compress like those of a journal.
func text(n int) []byte {
	dice, b := types.NewRand(uint64(n)), make([]byte, 0, n+40)
	for len(b) < n {
		if b = append(b, byte(dice.Uint64n(256)), byte(dice.Uint64n(8))); len(b) > 100 {
			at := dice.Uint64n(uint64(min(len(b), 60_000) - 40))
			b = append(b, b[at:at+40]...)
		}
	}
	return b[:n]
}

// TestContract: with nothing moved, an archive behaves like any directory.
func TestContract(t *testing.T) {
	fstest.FS(t, func(t *testing.T) fs.FS { return over(t, world.NewDisk(), world.NewDisk()) })
	fstest.FS(t, func(t *testing.T) fs.FS { return over(t, fs.Dir(t.TempDir()), fs.Dir(t.TempDir())) })
}

// TestMovedFileReadsTheSame: a moved file is read as before, at any offset and through open
// handles, and keeps its name.
func TestMovedFileReadsTheSame(t *testing.T) {
	for _, size := range []int{0, 1, 100, 300, 70_000, block - 1, block, block + 1, 3*block + 12345} {
		live, kept := world.NewDisk(), world.NewDisk()
		a, want := over(t, live, kept), text(size)
		put(t, live, "a.seg", want)
		put(t, live, "b.seg", []byte("b"))
		open, err := a.Open("a.seg")
		must(t, err)
		var reported []archive.Moved
		must(t, a.Move([]string{"a.seg"}, nil, func(m archive.Moved) { reported = append(reported, m) }))
		if names(t, live) != "b.seg" || names(t, kept) != "a.seg.zst" || names(t, a) != "a.seg b.seg" {
			t.Fatalf("live %s, kept %s, all %s", names(t, live), names(t, kept), names(t, a))
		}
		packed := read(t, kept, "a.seg.zst")
		if len(reported) != 1 || reported[0] != (archive.Moved{Name: "a.seg", Bytes: int64(size), Kept: int64(len(packed))}) || size > 1000 && len(packed) > size*3/4 {
			t.Fatalf("%+v, %d bytes of %d", reported, len(packed), size)
		}
		if !bytes.Equal(read(t, a, "a.seg"), want) || string(read(t, a, "b.seg")) != "b" {
			t.Fatal("read as another")
		}
		part := make([]byte, size)
		if _, err := open.ReadAt(part, 0); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(part, want) {
			t.Fatalf("a handle opened before the move: %v", err)
		}
		must(t, open.Close())
		f, err := a.Open("a.seg")
		must(t, err)
		dice := types.NewRand(1)
		for range 200 {
			off, n := int64(dice.Uint64n(uint64(size+10))), int(dice.Uint64n(uint64(size+10)))
			got := make([]byte, n)
			read, err := f.ReadAt(got, off)
			left := want[min(off, int64(size)):]
			if short := len(left) < n; short != errors.Is(err, io.EOF) || !short && err != nil || !bytes.Equal(got[:read], left[:min(n, len(left))]) {
				t.Fatalf("%d bytes at %d of %d: %d, %v", n, off, size, read, err)
			}
		}
		_, negative := f.ReadAt(part, -1)
		_, written := f.WriteAt([]byte("x"), 0)
		if negative == nil || written == nil || f.Sync() == nil {
			t.Fatalf("%v, %v", negative, written)
		}
		must(t, f.Close())
		_, closed := f.ReadAt(part, 0)
		_, sized := f.Size()
		if closed == nil || sized == nil || f.Close() == nil {
			t.Fatalf("after it was closed: %v, %v", closed, sized)
		}
		if live.Handles()+kept.Handles() != 0 {
			t.Fatal("files are still open")
		}
	}
}

// TestZstdToolReadsKeptFile: zstd's own tool restores the file.
func TestZstdToolReadsKeptFile(t *testing.T) {
	zstd, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("no zstd command")
	}
	dir, want := t.TempDir(), text(2*block+77)
	a := over(t, fs.Dir(t.TempDir()), fs.Dir(dir))
	put(t, a, "a.seg", want)
	must(t, a.Move([]string{"a.seg"}, nil, quiet))
	got, err := exec.Command(zstd, "-dc", filepath.Join(dir, "a.seg.zst")).Output()
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// TestCrashKeepsFile: after a crash of either disk at any operation, the file is live, moved, or
// both, and the move can be repeated.
func TestCrashKeepsFile(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, some hundred disks in memory: without -short")
	}
	want := text(3000)
	begin := func() (live, kept *world.Disk) {
		live, kept = world.NewDisk(), world.NewDisk()
		for _, name := range []string{"a.seg", "b.seg", "c.seg"} {
			put(t, live, name, want)
		}
		return live, kept
	}
	live, kept := begin()
	was := [2]int{live.Ops, kept.Ops}
	must(t, over(t, live, kept).Move([]string{"a.seg", "b.seg"}, nil, quiet))
	ops := [2]int{live.Ops - was[0], kept.Ops - was[1]}
	saw := map[string]int{}
	for which := range 2 {
		for fuse := range ops[which] + 1 {
			for seed := range uint64(6) {
				live, kept := begin()
				disks := [2]*world.Disk{live, kept}
				if fuse < ops[which] {
					disks[which].Fuse = fuse
				}
				err := over(t, live, kept).Move([]string{"a.seg", "b.seg"}, nil, quiet)
				if (err == nil) != (fuse == ops[which]) {
					t.Fatalf("disk %d after %d operations: %v", which, fuse, err)
				}
				c := world.NewSeeded(seed)
				live.Crash(c)
				kept.Crash(c)
				a := over(t, live, kept)
				if names(t, a) != "a.seg b.seg c.seg" {
					t.Fatalf("disk %d after %d operations: live %s, kept %s", which, fuse, names(t, live), names(t, kept))
				}
				saw[names(t, live)+", "+names(t, kept)]++
				for _, name := range []string{"a.seg", "b.seg", "c.seg"} {
					if !bytes.Equal(read(t, a, name), want) {
						t.Fatalf("disk %d after %d operations: %s is another", which, fuse, name)
					}
				}
				left := slices.DeleteFunc([]string{"a.seg", "b.seg"}, func(name string) bool { return !strings.Contains(names(t, live), name) })
				must(t, a.Move(left, nil, quiet))
				if names(t, live) != "c.seg" || names(t, kept) != "a.seg.zst b.seg.zst" || !bytes.Equal(read(t, a, "a.seg"), want) {
					t.Fatalf("repeated: live %s, kept %s", names(t, live), names(t, kept))
				}
			}
		}
	}
	for _, want := range []string{"a.seg b.seg c.seg, ", "a.seg b.seg c.seg, a.seg.zst", "b.seg c.seg, a.seg.zst", "c.seg, a.seg.zst b.seg.zst"} {
		if saw[want] == 0 {
			t.Errorf("never seen: %s; but %v", want, saw)
		}
	}
}

// TestFailedMoveKeepsLiveFile: a failure is returned and the live file stays.
func TestFailedMoveKeepsLiveFile(t *testing.T) {
	for what, arm := range map[string]func(live, kept *world.Disk){
		"write":                  func(_, kept *world.Disk) { kept.FailWrite = true },
		"sync":                   func(_, kept *world.Disk) { kept.FailSync = true },
		"full":                   func(_, kept *world.Disk) { kept.Size = 300 },
		"directory of the kept":  func(_, kept *world.Disk) { kept.FailDir = true },
		"read":                   func(live, _ *world.Disk) { live.FailRead = true },
		"read back":              func(_, kept *world.Disk) { kept.FailRead = true },
		"something in its place": func(_, kept *world.Disk) { kept.FailRead = true; put(t, kept, "a.seg.zst", nil) },
	} {
		live, kept := world.NewDisk(), world.NewDisk()
		put(t, live, "a.seg", text(20_000))
		arm(live, kept)
		err := over(t, live, kept).Move([]string{"a.seg", "b.seg"}, nil, quiet)
		if err == nil || !strings.Contains(err.Error(), "move a.seg") || names(t, live) != "a.seg" || live.Handles()+kept.Handles() != 0 {
			t.Errorf("%s: %v; live %s", what, err, names(t, live))
		}
	}
	stop := errors.New("enough")
	live, kept := world.NewDisk(), world.NewDisk()
	put(t, live, "a.seg", text(20_000))
	if err := over(t, live, kept).Move([]string{"a.seg"}, func() error { return stop }, quiet); !errors.Is(err, stop) || names(t, live) != "a.seg" {
		t.Errorf("%v; live %s", err, names(t, live))
	}
	if err := over(t, live, kept).Move([]string{"x.seg"}, nil, quiet); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestKeptFileGoesOn: a kept file is that of a live one that has lost what was not synced: its end is missing, or zeros. It is not if the live one
// has something else, or nothing, or more.
func TestKeptFileGoesOn(t *testing.T) {
	whole := text(3 << 20)
	for what, c := range map[string]struct {
		live []byte
		is   bool
	}{
		"cut":               {whole[:2<<20+7], true},
		"zeros at its end":  {append(bytes.Clone(whole[:1<<20+7]), make([]byte, 2<<20-7)...), true},
		"zeros in a middle": {append(append(bytes.Clone(whole[:1<<20]), make([]byte, 1<<20)...), whole[2<<20:]...), false},
		"another byte":      {append(bytes.Clone(whole[:100]), 'x'+whole[100]), false},
		"more":              {append(bytes.Clone(whole), 'x'), false},
		"nothing":           {nil, false},
		"zeros alone":       {make([]byte, 1<<20), false},
	} {
		live, kept := world.NewDisk(), world.NewDisk()
		put(t, live, "00000001.seg", whole)
		must(t, over(t, live, kept).Move([]string{"00000001.seg"}, nil, quiet))
		put(t, live, "00000001.seg", c.live)
		a := over(t, live, kept)
		err := a.Move([]string{"00000001.seg"}, nil, quiet)
		if c.is != (err == nil) {
			t.Errorf("%s: %v", what, err)
		}
		if isThere := names(t, live) != ""; isThere == c.is {
			t.Errorf("%s: the live file is there: %v", what, isThere)
		}
		if c.is && !bytes.Equal(read(t, a, "00000001.seg"), whole) {
			t.Errorf("%s: the kept file is another", what)
		}
	}
}

// TestCopyIsVerified: a copy that differs, because the disk lost a write or because it existed
// before, is made again, or the live file stays.
func TestCopyIsVerified(t *testing.T) {
	want := text(block + 1000)
	live, kept := world.NewDisk(), world.NewDisk()
	a := over(t, live, kept)
	put(t, live, "a.seg", want)
	must(t, a.Move([]string{"a.seg"}, nil, quiet))
	packed := read(t, kept, "a.seg.zst")
	for _, at := range []int{0, 5, 100, len(packed) / 2, len(packed) - 60, len(packed) - 3} {
		live, kept := world.NewDisk(), world.NewDisk()
		a := over(t, live, kept)
		put(t, live, "a.seg", want)
		spoilt := bytes.Clone(packed)
		spoilt[at] ^= 4
		put(t, kept, "a.seg.zst", spoilt)
		must(t, a.Move([]string{"a.seg"}, nil, quiet))
		if names(t, live) != "" || !bytes.Equal(read(t, a, "a.seg"), want) {
			t.Fatalf("byte %d: live %s", at, names(t, live))
		}
	}
	for n := range 3 {
		live, kept := world.NewDisk(), world.NewDisk()
		a := over(t, live, forgetful{kept, n})
		put(t, live, "a.seg", want)
		if err := a.Move([]string{"a.seg"}, nil, quiet); err == nil || names(t, live) != "a.seg" {
			t.Fatalf("write %d was lost: %v; live %s", n, err, names(t, live))
		}
	}
}

// forgetful is a disk that loses the n-th write to a file.
type forgetful struct {
	*world.Disk
	n int
}

type forgets struct {
	fs.File
	left int
}

func (f forgetful) Create(name string) (fs.File, error) {
	file, err := f.Disk.Create(name)
	return &forgets{file, f.n}, err
}

func (f *forgets) WriteAt(p []byte, off int64) (int, error) {
	if f.left--; f.left == -1 {
		p = make([]byte, len(p))
	}
	return f.File.WriteAt(p, off)
}

// TestDamageIsContained: if any byte of a kept file changes, its other blocks are read correctly
// and the damaged one as zeros. If the table is damaged too, the blocks before the damage are
// read.
func TestDamageIsContained(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, some hundred disks in memory: without -short")
	}
	want := text(3*block + 1000)
	live, kept := world.NewDisk(), world.NewDisk()
	put(t, live, "a.seg", want)
	must(t, over(t, live, kept).Move([]string{"a.seg"}, nil, quiet))
	packed := read(t, kept, "a.seg.zst")
	dice := types.NewRand(3)
	for n := range 300 {
		spoilt, kept := bytes.Clone(packed), world.NewDisk()
		at := int(dice.Uint64n(uint64(len(packed))))
		if n < 49 {
			at = len(packed) - 1 - n // of the table
		}
		spoilt[at] ^= 1 << dice.Uint64n(8)
		put(t, kept, "a.seg.zst", spoilt)
		got := read(t, over(t, live, kept), "a.seg")
		if len(got) != len(want) {
			t.Fatalf("byte %d: %d bytes, want %d", at, len(got), len(want))
		}
		zeros := 0
		for off := 0; off < len(got); off += block {
			part, was := got[off:min(len(got), off+block)], want[off:min(len(got), off+block)]
			if bytes.Equal(part, was) {
				continue
			}
			if zeros++; len(bytes.Trim(part, "\x00")) > 0 {
				t.Fatalf("byte %d: block %d is neither correct nor zeros", at, off/block)
			}
		}
		if zeros > 1 || n < 49 && zeros > 0 {
			t.Fatalf("byte %d: %d blocks are lost", at, zeros)
		}
	}
	for _, end := range []int{0, 1, 10, len(packed) / 3, len(packed) / 2, len(packed) - 1} {
		kept := world.NewDisk()
		put(t, kept, "a.seg.zst", packed[:end])
		if got := read(t, over(t, live, kept), "a.seg"); !bytes.HasPrefix(want, got) || len(got) < end/block*block {
			t.Fatalf("cut at %d: %d bytes", end, len(got))
		}
	}
	kept.FailRead = true
	if _, err := over(t, live, kept).Open("a.seg"); !errors.Is(err, world.ErrRead) {
		t.Fatalf("a disk that does not read: %v", err)
	}
}

// TestFormatIsFrozen: later versions must read a kept file.
func TestFormatIsFrozen(t *testing.T) {
	kept := fs.Dir("testdata")
	want := text(block + 3000)
	if os.Getenv("REWRITE") != "" {
		dir := fs.Dir(t.TempDir())
		put(t, dir, "00000007.seg", want)
		_ = os.Remove("testdata/00000007.seg.zst")
		must(t, over(t, dir, kept).Move([]string{"00000007.seg"}, nil, quiet))
	}
	if got := read(t, over(t, world.NewDisk(), kept), "00000007.seg"); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, another than %d", len(got), len(want))
	}
}

// written makes a journal of many segments.
func written(t testing.TB, d fs.FS, frames types.LSN, roll int64) (sealed []record.Sealed) {
	t.Helper()
	j, _, err := journalfile.Recover(d, 7, nil)
	must(t, err)
	j.Roll = roll
	for lsn := types.LSN(1); lsn <= frames; {
		var arena []byte
		var batch []event.Frame
		for range 5 {
			off := uint32(len(arena))
			arena = record.Begin(arena, lsn, types.Time(lsn))
			arena, _ = record.Add(arena, off, &record.Record{Kind: record.Started, Journal: 7, TailFrames: uint32(lsn)})
			batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off})
			lsn++
		}
		all, err := j.Write(arena, batch)
		must(t, err)
		sealed = append(sealed, all...)
		_, err = j.Sync()
		must(t, err)
	}
	must(t, j.Close())
	return sealed
}

func same(a, b record.Sealed) bool {
	return a.LSN == b.LSN && a.Root == b.Root && a.Prev == b.Prev && a.Journal == b.Journal && bytes.Equal(a.Body, b.Body)
}

// TestJournalWithMovedSegments: a journal whose old segments were moved is scanned, recovered,
// read and written as before. Damage in a moved segment is reported as damage of the segment.
func TestJournalWithMovedSegments(t *testing.T) {
	live, kept := world.NewDisk(), world.NewDisk()
	sealed := written(t, live, 200, 1500)
	a := over(t, live, kept)
	behind, err := journalfile.Behind(live, 120)
	must(t, err)
	must(t, a.Move(behind, nil, quiet))
	if all := strings.Fields(names(t, kept)); len(all) < 5 || len(all) != len(behind) {
		t.Fatalf("%q were moved", all)
	}
	for _, from := range []int{0, 1, 60, 150} {
		var back []record.Sealed
		r := journalfile.Reading{Each: func(all []record.Sealed) error { back = append(back, all...); return nil }}
		if from > 0 {
			s := sealed[from-1]
			r.From = journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}
		}
		j, found, err := r.Recover(a, 7)
		if err != nil || !slices.EqualFunc(back, sealed[from:], same) || found.Last != 200 {
			t.Fatalf("from %d: %d frames, %+v, %v", from, len(back), found, err)
		}
		for _, want := range sealed {
			if s, err := j.Read(want.LSN); err != nil || !same(s, want) {
				t.Fatalf("reading %v: %v", want.LSN, err)
			}
		}
		must(t, j.Close())
	}
	spoilt := read(t, kept, behind[1]+".zst")
	spoilt[len(spoilt)/2] ^= 1
	must(t, kept.Remove(behind[1]+".zst"))
	put(t, kept, behind[1]+".zst", spoilt)
	var damage *journalfile.Damage
	if _, err := journalfile.Scan(over(t, live, kept), nil, nil); !errors.As(err, &damage) || damage.Segment != behind[1] {
		t.Fatalf("damage in a moved segment: %v", err)
	}
}

// TestReadWhileMoving: readers get every frame while segments are moved.
func TestReadWhileMoving(t *testing.T) {
	live, kept := fs.Dir(t.TempDir()), fs.Dir(t.TempDir())
	sealed := written(t, live, 400, 1500)
	a := over(t, live, kept)
	s := sealed[389]
	j, _, err := journalfile.Reading{From: journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}}.Recover(a, 7)
	must(t, err)
	var readers sync.WaitGroup
	moved := make(chan struct{})
	for n := range uint64(3) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for dice := types.NewRand(n); ; {
				want := sealed[dice.Uint64n(uint64(len(sealed)))]
				if s, err := j.Read(want.LSN); err != nil || !same(s, want) {
					t.Errorf("reading %v: %v", want.LSN, err)
					return
				}
				select {
				case <-moved:
					return
				default:
				}
			}
		}()
	}
	behind, err := journalfile.Behind(live, 380)
	must(t, err)
	must(t, a.Move(behind, nil, quiet))
	close(moved)
	readers.Wait()
	must(t, j.Close())
}
