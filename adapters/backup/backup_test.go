package backup_test

import (
	"errors"
	"testing"

	"macronode/adapters/backup"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// writer is a journal that grows by heartbeat frames.
type writer struct {
	*testing.T
	disk *world.Disk
	jour *journalfile.Journal
	last types.LSN
}

func newWriter(t *testing.T, id types.JournalID) *writer {
	w := &writer{T: t, disk: world.NewDisk()}
	w.disk.Fuse = -1
	w.open(id)
	return w
}

func (w *writer) open(id types.JournalID) {
	w.Helper()
	j, found, err := journalfile.Recover(w.disk, id, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.jour, w.last = j, found.Last
	w.jour.Roll = 700
}

func (w *writer) grow(frames int) {
	w.Helper()
	for range frames {
		w.last++
		body := record.Begin(nil, w.last, types.Time(w.last)*1000)
		body, _ = record.Add(body, 0, &record.Record{Kind: record.Started, Journal: w.jour.ID(), CutBytes: uint64(w.last)})
		if _, err := w.jour.Write(body, []event.Frame{{LSN: w.last, Len: uint32(len(body))}}); err != nil {
			w.Fatal(err)
		}
		if _, err := w.jour.Sync(); err != nil {
			w.Fatal(err)
		}
	}
}

func read(t *testing.T, fsys fs.FS) (all []record.Sealed) {
	t.Helper()
	if _, err := (journalfile.Reading{Each: func(some []record.Sealed) error {
		all = append(all, some...)
		return nil
	}}).Scan(fsys); err != nil {
		t.Fatal(err)
	}
	return all
}

// same fails unless a journal has the frames of another up to one: bodies, roots, and journal
// IDs.
func same(t *testing.T, got, want []record.Sealed, upto types.LSN) {
	t.Helper()
	if len(got) < int(upto) || len(want) < int(upto) {
		t.Fatalf("%d and %d frames, want %v", len(got), len(want), upto)
	}
	for i := range upto {
		g, w := got[i], want[i]
		if g.Journal != w.Journal || g.LSN != w.LSN || g.Root != w.Root || g.Prev != w.Prev || string(g.Body) != string(w.Body) {
			t.Fatalf("frame %v of journal %x is %+v, want %+v", w.LSN, w.Journal, g, w)
		}
	}
}

func room() *world.Disk {
	d := world.NewDisk()
	d.Fuse = -1
	return d
}

// TestCopyHasFramesUpToCut: a copy has all frames up to its cut and no more; the next copy adds
// the new ones. It runs beside the writer.
func TestCopyHasFramesUpToCut(t *testing.T) {
	w, to := newWriter(t, 7), room()
	for _, c := range []struct {
		grow int
		upto types.LSN
		from types.LSN
	}{{9, 5, 0}, {0, 5, 5}, {20, 29, 5}, {1, 30, 29}, {0, 30, 30}, {0, 0, 30}} {
		w.grow(c.grow)
		d, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: c.upto}, nil)
		want := max(c.upto, c.from)
		if err != nil || d.LSN != want || d.From != c.from || d.Frames != uint64(want-c.from) || d.Journal != 7 {
			t.Fatalf("to %v: %+v, %v", c.upto, d, err)
		}
		all := read(t, to)
		if len(all) != int(want) || all[want-1].Root != d.Root || d.At != types.Time(want)*1000 {
			t.Fatalf("%d frames, %+v", len(all), d)
		}
		same(t, all, read(t, w.disk), want)
	}
}

// TestCopyRejectsOtherJournals: a copy is not extended from another journal or a fork, and a copy
// ahead of its journal is an error.
func TestCopyRejectsOtherJournals(t *testing.T) {
	w, to := newWriter(t, 7), room()
	w.grow(10)
	if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 10}, nil); err != nil {
		t.Fatal(err)
	}
	had := read(t, to)
	other := newWriter(t, 8)
	other.grow(20)
	shorter := newWriter(t, 7)
	shorter.grow(4)
	for what, c := range map[string]struct {
		from *world.Disk
		upto types.LSN
		want error
	}{
		"another journal":          {other.disk, 20, backup.ErrFork},
		"one that has lost frames": {shorter.disk, 0, backup.ErrFork},
		"one that has just enough": {other.disk, 10, backup.ErrFork},
		"one that was shorter":     {w.disk, 9, backup.ErrFork},
		"more than there is":       {w.disk, 11, nil},
		"no journal":               {room(), 0, backup.ErrNone},
	} {
		_, err := backup.Copy(t.Context(), c.from, to, backup.Bounds{Upto: c.upto}, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if now := read(t, to); len(now) != len(had) {
			t.Errorf("%s: %d frames, had %d", what, len(now), len(had))
		}
	}
}

// TestRestoreContinuesUnderNewID: a restored journal has the frames of the copy under their IDs,
// a restore record, and continues under its new ID. It can be copied and restored again.
func TestRestoreContinuesUnderNewID(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w, to, again := newWriter(t, 7), room(), room()
		w.grow(12)
		if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 12}, nil); err != nil {
			t.Fatal(err)
		}
		next := &writer{T: t, disk: room()}
		d, err := backup.Restore(t.Context(), to, next.disk, backup.As{Journal: 9, At: 99_000, KeepKeys: keep}, nil)
		if err != nil || d.LSN != 12 || d.Journal != 7 {
			t.Fatalf("%+v, %v", d, err)
		}
		next.open(1)
		if next.last != 13 || next.jour.ID() != 9 {
			t.Fatalf("%v of %x", next.last, next.jour.ID())
		}
		next.grow(8)
		all := read(t, next.disk)
		same(t, all, read(t, w.disk), 12)
		var r record.Record
		h, err := record.Read(all[12].Body, 0, &r)
		if err != nil || h.At != 99_000 || all[12].Journal != 9 || r.Kind != record.Restored || r.Journal != 9 || r.Upto != 12 || r.Root != d.Root {
			t.Fatalf("%+v, %v", r, err)
		}
		if disowns := h.Count == 2; disowns == keep {
			t.Errorf("keep %v: %d records", keep, h.Count)
		}
		for _, s := range all {
			if got, err := next.jour.Read(s.LSN); err != nil || got.Journal != s.Journal || got.Root != s.Root {
				t.Errorf("%v of %x: %x, %v", s.LSN, s.Journal, got.Journal, err)
			}
		}
		if _, err := backup.Copy(t.Context(), next.disk, to, backup.Bounds{Upto: 21}, nil); !errors.Is(err, backup.ErrHeir) || len(read(t, to)) != 12 {
			t.Fatalf("over the copy of the one before: %v, and it has %d frames", err, len(read(t, to)))
		}
		for _, into := range []*world.Disk{again, to} { // a new one, and the one it was restored from
			if _, err := backup.Copy(t.Context(), next.disk, into, backup.Bounds{Upto: 21, Heir: into == to}, nil); err != nil {
				t.Fatal(err)
			}
			same(t, read(t, into), all, 21)
		}
		for _, upto := range []types.LSN{0, 12, 15, 21, 22} { // the original journal continues; this is no longer its copy
			w.grow(int(max(upto, w.last) - w.last))
			if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: upto}, nil); !errors.Is(err, backup.ErrFork) || len(read(t, to)) != 21 {
				t.Fatalf("the one before, to %v: %v", upto, err)
			}
		}
		if _, err := backup.Restore(t.Context(), again, next.disk, backup.As{Journal: 10}, nil); !errors.Is(err, backup.ErrTaken) {
			t.Errorf("over a journal: %v", err)
		}
	}
}

// TestOnlyRestoreRecordChangesID: the ID of a journal changes only with a restore record.
func TestOnlyRestoreRecordChangesID(t *testing.T) {
	w := newWriter(t, 7)
	w.grow(3)
	w.jour.Restore(9)
	w.grow(1) // without a restore record
	if _, err := journalfile.Scan(w.disk, nil, nil); !errors.Is(err, journalfile.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// TestRottenCopyIsDamaged: anything invalid before the end of a copy is damage, not a torn tail.
func TestRottenCopyIsDamaged(t *testing.T) {
	w := newWriter(t, 7)
	w.grow(12)
	want, reported := read(t, w.disk), 0
	for seed := range uint64(200) {
		to, back := room(), room()
		if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 12}, nil); err != nil {
			t.Fatal(err)
		}
		to.Rot(&world.Seeded{Dice: types.NewRand(seed)})
		if _, err := backup.Restore(t.Context(), to, back, backup.As{Journal: 9}, nil); err != nil {
			reported++
			continue
		}
		same(t, read(t, back), want, 12)
	}
	if reported < 50 {
		t.Errorf("damage was reported %d times", reported)
	}
}

// TestCopyContinuesAcrossRestoreRecord: a copy that ends near the restore record is continued.
func TestCopyContinuesAcrossRestoreRecord(t *testing.T) {
	w, first, next := newWriter(t, 7), room(), &writer{T: t, disk: room()}
	w.grow(3)
	if _, err := backup.Copy(t.Context(), w.disk, first, backup.Bounds{Upto: 3}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), first, next.disk, backup.As{Journal: 9}, nil); err != nil {
		t.Fatal(err)
	}
	next.open(1)
	next.grow(2)
	want := read(t, next.disk)
	for fuse := 0; ; fuse++ {
		to := room()
		to.Fuse = fuse
		_, err := backup.Copy(t.Context(), next.disk, to, backup.Bounds{Upto: 6}, nil)
		whole := !to.Dead()
		to.Crash(&world.Seeded{Dice: types.NewRand(uint64(fuse))})
		to.Fuse = -1
		if whole {
			if err != nil || fuse < 10 {
				t.Fatalf("after %d moves: %v", fuse, err)
			}
			break
		}
		if _, err := backup.Copy(t.Context(), next.disk, to, backup.Bounds{Upto: 6}, nil); err != nil {
			t.Fatalf("after %d moves: %v", fuse, err)
		}
		same(t, read(t, to), want, 6)
	}
}

// TestCrashLeavesCopy: a crash at any operation leaves a valid copy, which the next one
// completes.
func TestCrashLeavesCopy(t *testing.T) {
	w := newWriter(t, 7)
	w.grow(12)
	want := read(t, w.disk)
	crashes := 0
	for fuse := 0; ; fuse++ {
		dice, to := types.NewRand(uint64(fuse)), room()
		if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 5}, nil); err != nil {
			t.Fatal(err)
		}
		to.Fuse = fuse
		_, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 12}, nil)
		whole := !to.Dead()
		to.Crash(&world.Seeded{Dice: dice})
		to.Fuse = -1
		if whole {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		crashes++
		if d, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{Upto: 12}, nil); err != nil || d.LSN != 12 || d.From < 5 {
			t.Fatalf("after %d moves: %+v, %v", fuse, d, err)
		}
		same(t, read(t, to), want, 12)
	}
	if crashes < 10 {
		t.Errorf("%d crashes", crashes)
	}
}

// TestJournalWithoutFrames: a journal that ended before its first frame was written is no journal to copy, and is not damaged.
func TestJournalWithoutFrames(t *testing.T) {
	w, to := newWriter(t, 7), room()
	if _, err := backup.Copy(t.Context(), w.disk, to, backup.Bounds{}, nil); !errors.Is(err, backup.ErrNone) {
		t.Errorf("a copy: %v", err)
	}
	if _, err := backup.Restore(t.Context(), w.disk, to, backup.As{Journal: 8}, nil); !errors.Is(err, backup.ErrNone) {
		t.Errorf("a restore: %v", err)
	}
}
