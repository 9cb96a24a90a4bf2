package journalfile_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// watched records which files are opened.
type watched struct {
	*world.Disk
	opened []string
}

func (w *watched) Open(name string) (fs.File, error) {
	w.opened = append(w.opened, name)
	return w.Disk.Open(name)
}

// after returns the position after a frame.
func after(s record.Sealed) journalfile.From {
	return journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}
}

func disked(t testing.TB) (d *world.Disk, sealed []record.Sealed) {
	t.Helper()
	segments, sealed := several(t)
	return disk(t, segments), sealed
}

// TestRecoveryFromAnyFrame: a recovery from any frame finds the later frames that a full recovery
// finds, opens no earlier segment, and can read all frames.
func TestRecoveryFromAnyFrame(t *testing.T) {
	whole, sealed := disked(t)
	_, want, _ := recovered(t, whole.Copy())
	for _, s := range sealed {
		d := &watched{Disk: whole.Copy()}
		var k kept
		j, found, err := journalfile.Reading{From: after(s), Each: k.each}.Recover(d, 0)
		must(t, err)
		if !slices.EqualFunc(k.frames, sealed[s.LSN:], same) {
			t.Fatalf("behind %v: %d frames of %d", s.LSN, len(k.frames), len(sealed))
		}
		if found.Last != want.Last || found.Root != want.Root || found.Known != want.Known || found.Epoch != want.Epoch ||
			found.Journal != ours || found.CutBytes != want.CutBytes || found.TailFrames != want.TailFrames || found.Segments != want.Segments {
			t.Fatalf("behind %v: found %+v, want %+v", s.LSN, found, want)
		}
		for _, name := range d.opened {
			if name < holder(t, whole, s.LSN+1) && name < holder(t, whole, s.LSN) {
				t.Fatalf("behind %v: %s was opened", s.LSN, name)
			}
		}
		if all := add(t, j, 2); all[0].LSN != want.Last+1 {
			t.Fatalf("behind %v: wrote %v", s.LSN, all[0].LSN)
		}
		for _, s := range sealed {
			if got, err := j.Read(s.LSN); err != nil || !same(got, s) {
				t.Fatalf("reading %v: %v", s.LSN, err)
			}
		}
		must(t, j.Close())
		if d.Handles() != 0 {
			t.Fatalf("%d files are still open", d.Handles())
		}
		d.Crash(world.Dull{})
		if _, found, back := recovered(t, d); len(back) != len(sealed)+2 || found.Last != want.Last+2 {
			t.Fatalf("behind %v, and then all: %d frames", s.LSN, len(back))
		}
	}
}

// holder returns the segment that has a frame.
func holder(t *testing.T, d *world.Disk, lsn types.LSN) (name string) {
	t.Helper()
	all := names(t, d)
	gone, err := journalfile.Behind(d, lsn-1)
	must(t, err)
	return all[len(gone)]
}

// TestBehindListsOldSegments: Behind returns segments before a frame, never the last segment.
func TestBehindListsOldSegments(t *testing.T) {
	d, sealed := disked(t)
	all, before := names(t, d), 0
	for _, s := range sealed {
		gone, err := journalfile.Behind(d, s.LSN)
		must(t, err)
		if !slices.Equal(gone, all[:len(gone)]) || len(gone) < before || len(gone) == len(all) {
			t.Fatalf("behind %v: %q", s.LSN, gone)
		}
		before = len(gone)
		if _, found, _ := scanned(t, d, gone, after(s)); found.Last != sealed[len(sealed)-1].LSN {
			t.Fatalf("without %q: %+v", gone, found)
		}
	}
	if before < len(all)-2 {
		t.Fatalf("only %d of %d segments", before, len(all))
	}
}

// scanned reads from a position, without some segments.
func scanned(t *testing.T, d *world.Disk, without []string, from journalfile.From) (*world.Disk, journalfile.Found, []record.Sealed) {
	t.Helper()
	d = d.Copy()
	for _, name := range without {
		must(t, d.Remove(name))
	}
	var k kept
	found, err := journalfile.Reading{From: from, Each: k.each}.Scan(still{d})
	must(t, err)
	return d, found, k.frames
}

// TestMismatchedStartReturnsErrApart: if the journal does not continue from a position, it
// returns an error and changes nothing.
func TestMismatchedStartReturnsErrApart(t *testing.T) {
	whole, sealed := disked(t)
	for _, s := range sealed {
		other, foreign := after(s), after(s)
		other.Root[7]++
		foreign.Journal++
		for why, from := range map[string]journalfile.From{
			"another root": other, "another journal": foreign,
			"after the end": {LSN: 1000, Root: s.Root, Journal: ours},
		} {
			d := whole.Copy()
			before := files(t, d)
			_, _, err := journalfile.Reading{From: from}.Recover(d, ours)
			if !errors.Is(err, journalfile.ErrApart) || errors.Is(err, journalfile.ErrDamaged) || files(t, d) != before {
				t.Fatalf("%s, behind %v: %v", why, s.LSN, err)
			}
		}
	}
	if _, _, err := (journalfile.Reading{From: after(sealed[0])}).Recover(world.NewDisk(), ours); !errors.Is(err, journalfile.ErrApart) {
		t.Fatalf("an empty directory: %v", err)
	}
}

// TestMissingKnownFramesAreDamage: if frames that are known to be durable from elsewhere are
// missing, that is damage, for whole segments too.
func TestMissingKnownFramesAreDamage(t *testing.T) {
	whole, sealed := disked(t)
	all := names(t, whole)
	last := sealed[len(sealed)-1].LSN
	nothing := world.NewDisk()
	j, found, err := journalfile.Reading{Known: 7}.Recover(nothing, ours)
	if !errors.Is(err, journalfile.ErrDamaged) || !found.Damaged || len(names(t, nothing)) != 0 {
		t.Fatalf("no segment at all: %v, %+v", err, found)
	}
	if _, err := j.Read(3); !errors.Is(err, journalfile.ErrDamaged) {
		t.Fatalf("reading a missing frame: %v", err)
	}
	if id, err := journalfile.ID(nothing); id != 0 || err != nil {
		t.Fatal(id, err)
	}
	if id, err := journalfile.ID(whole); id != ours || err != nil {
		t.Fatal(id, err)
	}
	for n := range len(all) - 1 {
		d := whole.Copy()
		for _, name := range all[n+1:] {
			must(t, d.Remove(name))
		}
		must(t, d.SyncDir())
		blind, err := journalfile.Scan(d, nil, nil)
		must(t, err)
		j, _, err := journalfile.Reading{Known: last}.Recover(d, ours)
		damage := (*journalfile.Damage)(nil)
		if blind.Last == last {
			must(t, err)
			continue
		}
		if !errors.As(err, &damage) || damage.From != blind.Last+1 || damage.To != last || damage.Segment != all[n] {
			t.Fatalf("without %q: %v", all[n+1:], err)
		}
		if _, err := j.Read(last); !errors.Is(err, journalfile.ErrDamaged) {
			t.Fatalf("reading a missing frame: %v", err)
		}
		found, err := journalfile.Reading{Known: last}.Inspect(d, func(d *journalfile.Damage) error {
			damage = d
			return nil
		})
		if err != nil || damage.To != last || found.Last != last {
			t.Fatalf("inspected without %q: %v, %v", all[n+1:], damage, err)
		}
	}
}

// TestUnsureOfItsEnd: where it is unknown whether durable frames are missing at the end, an intact journal is
// read as far as it goes and nothing on the disk is changed.
func TestUnsureOfItsEnd(t *testing.T) {
	whole, sealed := disked(t)
	before := names(t, whole)
	unsure := errors.New("unsure")
	j, found, err := journalfile.Reading{Unsure: unsure}.Recover(whole, ours)
	if !errors.Is(err, journalfile.ErrDamaged) || !errors.Is(err, unsure) || !found.Damaged || found.Last != sealed[len(sealed)-1].LSN {
		t.Fatalf("%v, %+v", err, found)
	}
	if !slices.Equal(names(t, whole), before) {
		t.Errorf("segments %q, before %q", names(t, whole), before)
	}
	if s, err := j.Read(found.Last); err != nil || s.LSN != found.Last {
		t.Errorf("the last frame: %v", err)
	}
	if _, err := j.Write(nil, []event.Frame{{LSN: found.Last + 1}}); !errors.Is(err, journalfile.ErrDamaged) {
		t.Errorf("a write: %v", err)
	}
}

// TestReadingEndsAtUpto: a reading ends at Upto, whatever is written meanwhile.
func TestReadingEndsAtUpto(t *testing.T) {
	d, sealed := disked(t)
	for from := range sealed {
		for upto := from; upto < len(sealed); upto++ {
			var k kept
			r := journalfile.Reading{Upto: sealed[upto].LSN, Each: k.each}
			if from > 0 {
				r.From = after(sealed[from-1])
			}
			found, err := r.Scan(still{d})
			must(t, err)
			if !slices.EqualFunc(k.frames, sealed[from:upto+1], same) || found.Last != sealed[upto].LSN {
				t.Fatalf("from %d to %d: %d frames, %+v", from, upto, len(k.frames), found)
			}
		}
	}
	if _, err := (journalfile.Reading{Upto: 1000}).Scan(d); !errors.Is(err, journalfile.ErrDamaged) {
		t.Fatalf("up to a missing frame: %v", err)
	}
}

// TestGrownCountsBytesOfNextStart: Grown counts the bytes that were read and those written since.
func TestGrownCountsBytesOfNextStart(t *testing.T) {
	d, sealed := disked(t)
	j, _, _ := recovered(t, d.Copy())
	all := j.Grown()
	j, _, err := journalfile.Reading{From: after(sealed[len(sealed)-1])}.Recover(d, ours)
	must(t, err)
	if all < 100*int64(len(sealed)) || j.Grown() != 0 {
		t.Fatalf("%d bytes in all, Grown is %d", all, j.Grown())
	}
	add(t, j, 1)
	if j.Grown() != batchSize+forged {
		t.Fatalf("%d bytes for a frame", j.Grown())
	}
}

// TestReadingBeginsInDamagedBatch: a damaged frame of a batch does not hide a later one of it: a start after that one goes on. Not so without its root.
func TestReadingBeginsInDamagedBatch(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	sealed := add(t, j, 2)
	sealed = append(sealed, add(t, j, 9)...)
	sealed = append(sealed, add(t, j, 2)...)
	must(t, j.Close())
	text := read(t, d, first)
	text[bytes.Index(text, sealed[4].Body)+20] ^= 1
	d = disk(t, map[string][]byte{first: text})
	for _, s := range sealed {
		var k kept
		found, err := journalfile.Reading{From: after(s), Each: k.each}.Scan(d)
		switch {
		case s.LSN < 5:
			if !errors.Is(err, journalfile.ErrDamaged) {
				t.Errorf("behind %v: %v", s.LSN, err)
			}
		case s.LSN == 5:
			if !errors.Is(err, journalfile.ErrApart) {
				t.Errorf("behind %v: %v", s.LSN, err)
			}
		case err != nil || found.Last != 13 || !slices.EqualFunc(k.frames, sealed[s.LSN:], same):
			t.Errorf("behind %v: %d frames, %+v, %v", s.LSN, len(k.frames), found, err)
		}
		wrong := after(s)
		wrong.Root[0]++
		if _, err := (journalfile.Reading{From: wrong}).Scan(d); !errors.Is(err, journalfile.ErrApart) {
			t.Errorf("behind %v, with another root: %v", s.LSN, err)
		}
	}
}
