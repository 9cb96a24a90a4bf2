package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ours  types.JournalID = 0x0123456789abcdef
	first                 = "00000001.seg"
)

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frames returns n frames from lsn on. Equal lsn and salt give equal frames.
func frames(lsn types.LSN, n int, salt uint64) (arena []byte, batch []event.Frame) {
	for range n {
		off := uint32(len(arena))
		arena = record.Begin(arena, lsn, types.Time(1_700_000_000_000+lsn))
		arena, _ = record.Add(arena, off, &record.Record{Kind: record.Started, Journal: ours, CutBytes: salt, TailFrames: uint32(lsn)})
		batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off})
		lsn++
	}
	return arena, batch
}

// add writes and syncs one batch.
func add(t testing.TB, j *journalfile.Journal, n int) []record.Sealed {
	t.Helper()
	return addSalted(t, j, n, 0)
}

func addSalted(t tb, j *journalfile.Journal, n int, salt uint64) []record.Sealed {
	t.Helper()
	arena, batch := frames(j.Durable()+1, n, salt)
	sealed, err := j.Write(arena, batch)
	must(t, err)
	upto, err := j.Sync()
	must(t, err)
	if upto != j.Durable() || upto != batch[n-1].LSN {
		t.Fatalf("durable up to %v, want %v", upto, batch[n-1].LSN)
	}
	return sealed
}

// kept collects the recovered frames.
type kept struct{ frames []record.Sealed }

func (k *kept) each(all []record.Sealed) error {
	k.frames = append(k.frames, all...)
	return nil
}

func recovered(t testing.TB, d fs.FS) (*journalfile.Journal, journalfile.Found, []record.Sealed) {
	t.Helper()
	var k kept
	j, found, err := journalfile.Recover(d, ours, k.each)
	must(t, err)
	whole(t, k.frames)
	return j, found, k.frames
}

// whole checks that frames are numbered from 1 and chained.
func whole(t testing.TB, all []record.Sealed) {
	t.Helper()
	var prev types.Root
	for i, s := range all {
		head, _, err := record.Open(s.Body)
		root, _ := digest.Chain(nil, prev, s.Body)
		if err != nil || head.LSN != types.LSN(i+1) || s.LSN != head.LSN || s.Prev != prev || s.Root != root {
			t.Fatalf("frame %d of %d: %+v, %v", i+1, len(all), s, err)
		}
		prev = root
	}
}

func same(a, b record.Sealed) bool {
	return a.Journal == b.Journal && a.LSN == b.LSN && a.Prev == b.Prev && a.Root == b.Root && bytes.Equal(a.Body, b.Body)
}

func read(t tb, d fs.FS, name string) []byte {
	t.Helper()
	all, err := fs.ReadAll(d, name)
	must(t, err)
	return all
}

// disk returns a disk with some files, synced.
func disk(t tb, files map[string][]byte) *world.Disk {
	t.Helper()
	d := world.NewDisk()
	for name, text := range files {
		f, err := d.Create(name)
		must(t, err)
		_, err = f.WriteAt(text, 0)
		must(t, errors.Join(err, f.Sync(), f.Close()))
	}
	must(t, d.SyncDir())
	return d
}

// files returns the content of a disk.
func files(t testing.TB, d fs.FS) string {
	t.Helper()
	names, err := d.List()
	must(t, err)
	var reported []string
	for _, name := range names {
		reported = append(reported, fmt.Sprintf("%s %x", name, read(t, d, name)))
	}
	return strings.Join(reported, "\n")
}

func names(t tb, d fs.FS) []string {
	t.Helper()
	all, err := d.List()
	must(t, err)
	return all
}

// open opens or creates a journal.
func open(t testing.TB, d fs.FS, roll int64) *journalfile.Journal {
	t.Helper()
	j, _, _ := recovered(t, d)
	j.Roll = roll
	return j
}

// TestSyncedFramesAreRecovered: synced frames are recovered with the same bytes and roots, and
// the next writer gets the next epoch.
func TestSyncedFramesAreRecovered(t *testing.T) {
	d := world.NewDisk()
	var wrote []record.Sealed
	for life := range 4 {
		j, found, back := recovered(t, d)
		if !slices.EqualFunc(back, wrote, same) || found.Last != types.LSN(len(wrote)) {
			t.Fatalf("run %d: %d frames back, want %d; found %+v", life, len(back), len(wrote), found)
		}
		if j.ID() != ours || j.Epoch() != types.Epoch(life+1) || j.Durable() != found.Last {
			t.Fatalf("run %d: id %x, epoch %d, durable %v", life, j.ID(), j.Epoch(), j.Durable())
		}
		for n := range life + 1 {
			wrote = append(wrote, add(t, j, n+1)...)
		}
		must(t, j.Close())
	}
	if d.Handles() != 0 {
		t.Fatalf("%d files are still open", d.Handles())
	}
}

// TestExistingJournalKeepsID: a fresh ID is used only for a new journal.
func TestExistingJournalKeepsID(t *testing.T) {
	d := world.NewDisk()
	add(t, open(t, d, types.MaxSegment), 1)
	j, found, err := journalfile.Recover(d, ours+1, nil)
	if err != nil || j.ID() != ours || found.Journal != ours {
		t.Fatalf("%x, %+v, %v", j.ID(), found, err)
	}
}

// TestSealedFramesBelongToCaller: later writes do not change the result of Write.
func TestSealedFramesBelongToCaller(t *testing.T) {
	j := open(t, world.NewDisk(), types.MaxSegment)
	arena, batch := frames(1, 3, 0)
	sealed, err := j.Write(arena, batch)
	must(t, err)
	before := bytes.Clone(sealed[1].Body)
	clear(arena)
	_, err = j.Sync()
	must(t, err)
	add(t, j, 5)
	if !bytes.Equal(sealed[1].Body, before) || cap(sealed[1].Body) != len(before) {
		t.Fatal("a sealed body was changed, or can grow over the next")
	}
	whole(t, sealed)
}

// TestRollStartsNextSegment: each segment begins where the previous one ends, and recovery reads
// across segments.
func TestRollStartsNextSegment(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, 1000)
	for range 50 {
		add(t, j, 3)
	}
	must(t, j.Close())
	if n := len(names(t, d)); n < 10 {
		t.Fatalf("%d segments", n)
	}
	_, found, back := recovered(t, d)
	if len(back) != 150 || found.CutBytes != 0 || found.TailFrames != 3 || found.Known != 147 {
		t.Fatalf("%d frames back, found %+v", len(back), found)
	}
	if got := names(t, d); got[0] != first || got[9] != "00000010.seg" || found.Segments != len(got)-1 {
		t.Fatalf("%q, found %+v", got, found)
	}
}

// TestMisusePanics shows that misuse panics.
func TestMisusePanics(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  func(*journalfile.Journal)
	}{
		// A segment's start proves all earlier frames durable, so none may be in flight when it
		// begins.
		{"two batches at a time", func(j *journalfile.Journal) {
			for lsn := range types.LSN(2) {
				arena, batch := frames(lsn+1, 1, 0)
				_, err := j.Write(arena, batch)
				must(t, err)
			}
		}},
		{"a frame left out", func(j *journalfile.Journal) {
			arena, batch := frames(1, 3, 0)
			_, _ = j.Write(arena, []event.Frame{batch[0], batch[2]})
		}},
		{"no frames", func(j *journalfile.Journal) { _, _ = j.Write(nil, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if broken, ok := recover().(types.InvariantError); !ok {
					t.Fatalf("it was done: %v", broken)
				}
			}()
			c.ask(open(t, world.NewDisk(), types.MaxSegment))
		})
	}
}

// TestFaultsStopTheJournal: each failure is classified, and stops writing.
func TestFaultsStopTheJournal(t *testing.T) {
	for _, c := range []struct {
		name  string
		roll  int64
		fault event.Fault
		arm   func(*world.Disk)
		also  error
	}{
		{"write", 1 << 20, event.WriteFailed, func(d *world.Disk) { d.FailWrite = true }, world.ErrWrite},
		{"sync", 1 << 20, event.SyncFailed, func(d *world.Disk) { d.FailSync = true }, world.ErrSync},
		{"no space", 1 << 20, event.NoSpace, func(d *world.Disk) { d.Size, d.Full = 0, true }, world.ErrFull},
		{"write at a roll", 1, event.WriteFailed, func(d *world.Disk) { d.FailWrite = true }, world.ErrWrite},
		{"sync at a roll", 1, event.SyncFailed, func(d *world.Disk) { d.FailSync = true }, world.ErrSync},
		{"directory at a roll", 1, event.SyncFailed, func(d *world.Disk) { d.FailDir = true }, world.ErrSync},
		{"no space at a roll", 1, event.NoSpace, func(d *world.Disk) { d.Full = true }, world.ErrFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := world.NewDisk()
			j := open(t, d, 1)
			add(t, j, 2)
			j.Roll = c.roll
			c.arm(d)
			arena, batch := frames(3, 9, 0)
			_, err := j.Write(arena, batch)
			if err == nil {
				_, err = j.Sync()
			}
			if !errors.Is(err, c.also) || journalfile.FaultOf(err) != c.fault {
				t.Fatalf("%v: %v, want %v", err, journalfile.FaultOf(err), c.fault)
			}
			d.FailWrite, d.FailSync, d.FailDir, d.Full, d.Size = false, false, false, false, 1<<30
			if _, err := j.Write(arena, batch); journalfile.FaultOf(err) != c.fault {
				t.Fatalf("written after a failure: %v", err)
			}
			if upto, err := j.Sync(); err == nil || upto != 2 || j.Durable() != 2 {
				t.Fatalf("synced up to %v after a failure: %v", upto, err)
			}
			must(t, j.Close())
			if d.Handles() != 0 {
				t.Fatalf("%d files are still open", d.Handles())
			}
			if _, found, _ := recovered(t, d); found.Last < 2 {
				t.Fatalf("found %+v", found)
			}
		})
	}
}

// TestFailedPreallocationIsIgnored: a full disk during preallocation is not an error.
func TestFailedPreallocationIsIgnored(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	d.Size = 500
	add(t, j, 3)
	if size := int64(len(read(t, d, first))); size != 500 {
		t.Fatalf("%d bytes", size)
	}
	if _, found, back := recovered(t, disk(t, map[string][]byte{first: read(t, d, first)})); len(back) != 3 || found.CutBytes != 0 {
		t.Fatalf("%d frames back, found %+v", len(back), found)
	}
}

// TestRecoveryKeepsForeignFiles: recovery removes unnamed segments, and no other files.
func TestRecoveryKeepsForeignFiles(t *testing.T) {
	d := disk(t, map[string][]byte{"LOCK": []byte("us"), "00000001.seg.tmp": []byte("torn"), "notes": nil})
	open(t, d, types.MaxSegment)
	if got := names(t, d); !slices.Equal(got, []string{first, "LOCK", "notes"}) {
		t.Fatalf("%q", got)
	}
	for _, name := range []string{"1.seg", "-0000001.seg", "journal.seg", "000000001.seg", "00000000.seg"} {
		odd := disk(t, map[string][]byte{name: read(t, d, first), first: read(t, d, first)})
		_, _, err := journalfile.Recover(odd, ours, nil)
		if !errors.Is(err, journalfile.ErrFormat) || !strings.Contains(err.Error(), name+" is not the name of a segment") || !strings.Contains(err.Error(), "move that file") {
			t.Errorf("%s was passed over: %v", name, err)
		}
	}
}

// TestClosedJournalReturnsErrors: a closed journal rejects writes and reads.
func TestClosedJournalReturnsErrors(t *testing.T) {
	j := open(t, world.NewDisk(), types.MaxSegment)
	add(t, j, 1)
	must(t, j.Close())
	arena, batch := frames(2, 1, 0)
	_, writing := j.Write(arena, batch)
	_, syncing := j.Sync()
	_, reading := j.Read(1)
	if writing == nil || syncing == nil || reading == nil || errors.Is(reading, os.ErrNotExist) {
		t.Fatalf("write %v, sync %v, read %v", writing, syncing, reading)
	}
	must(t, j.Close())
}

// TestIntactReportsOtherPrograms: the open segment is removed, renamed, cut or replaced while the
// journal is written. A journal that begins another segment, or is closed, is intact.
func TestIntactReportsOtherPrograms(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(path string) error
		want error
	}{
		"removed": {os.Remove, os.ErrNotExist},
		"renamed": {func(path string) error { return os.Rename(path, path+".old") }, os.ErrNotExist},
		"cut":     {func(path string) error { return os.Truncate(path, 100) }, journalfile.ErrCut},
		"replaced by a longer file": {func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, 1<<16), 0o600))
		}, journalfile.ErrReplaced},
		"kept": {func(string) error { return nil }, nil},
	} {
		dir := t.TempDir()
		j := open(t, fs.Dir(dir), 1<<20)
		add(t, j, 3)
		if err := j.Intact(); err != nil {
			t.Fatalf("%s: not intact before: %v", what, err)
		}
		must(t, c.do(filepath.Join(dir, first)))
		if err := j.Intact(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if j.Roll = 1; what == "cut" { // TestCutIsNotAcknowledged
			must(t, j.Close())
			continue
		}
		add(t, j, 1) // begins another segment
		if err := j.Intact(); err != nil {
			t.Errorf("%s: not intact in the next segment: %v", what, err)
		}
		must(t, j.Close())
		if err := j.Intact(); err != nil {
			t.Errorf("%s: not intact when closed: %v", what, err)
		}
	}
}

// TestCutIsNotAcknowledged: if the open segment is cut, the sync that follows fails, and nothing is written after it. That holds if the
// next batch makes the file as long as it was. The next start reports the lost frames as damage if a batch was written behind them.
func TestCutIsNotAcknowledged(t *testing.T) {
	const written = 20
	for _, c := range []struct {
		name      string
		frames    int  // of the next batch
		afterNext bool // the cut follows the write of the next batch
		roll      int64
	}{
		{"the next batch fits into the preallocated space", 9, false, 1 << 20},
		{"the next batch ends behind the preallocated space", 200, false, 1 << 20},
		{"a segment ends with the next batch", 200, false, 6000},
		{"the next batch begins another segment", 9, false, 100},
		{"between a write and its sync", 9, true, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, fs.Dir(dir), 1<<20)
			for range written {
				add(t, j, 1)
			}
			j.Roll = c.roll
			path := filepath.Join(dir, first)
			cut := func() {
				text, err := os.ReadFile(path)
				must(t, err)
				must(t, os.Truncate(path, int64(len(bytes.TrimRight(text, "\x00"))/2)))
			}
			if !c.afterNext {
				cut()
			}
			arena, batch := frames(written+1, c.frames, 0)
			if _, err := j.Write(arena, batch); err != nil && !errors.Is(err, journalfile.ErrCut) {
				t.Fatal(err)
			}
			if c.afterNext {
				cut()
			}
			upto, err := j.Sync()
			if !errors.Is(err, journalfile.ErrCut) || journalfile.FaultOf(err) != event.FilesLost || upto != written || j.Durable() != written {
				t.Fatalf("durable up to %v, %v: %v", upto, j.Durable(), err)
			}
			if _, err := j.Write(arena, batch); !errors.Is(err, journalfile.ErrCut) {
				t.Errorf("written after the cut: %v", err)
			}
			must(t, j.Close())
			if _, _, err := journalfile.Recover(fs.Dir(dir), ours, nil); !c.afterNext && !errors.Is(err, journalfile.ErrDamaged) {
				t.Errorf("the next start: %v", err)
			}
		})
	}
}

// TestIntactIgnoresReadErrors: a disk that cannot read the open segment has not lost it, so the node goes on writing.
func TestIntactIgnoresReadErrors(t *testing.T) {
	d := disk(t, nil)
	j := open(t, d, 1<<20)
	add(t, j, 3)
	d.FailRead = true
	if err := j.Intact(); err != nil {
		t.Errorf("a read error is reported as a lost segment: %v", err)
	}
	if d.FailRead {
		t.Fatal("nothing was read")
	}
	add(t, j, 1)
	if err := j.Intact(); err != nil {
		t.Error(err)
	}
	must(t, j.Close())
}
