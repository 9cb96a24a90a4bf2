package journalfile_test

import (
	"errors"
	"slices"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// watched tells which files are opened.
type watched struct {
	*world.Disk
	opened []string
}

func (w *watched) Open(name string) (fs.File, error) {
	w.opened = append(w.opened, name)
	return w.Disk.Open(name)
}

// after is the place behind a frame.
func after(s record.Sealed) journalfile.From {
	return journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}
}

func disked(t testing.TB) (d *world.Disk, sealed []record.Sealed) {
	t.Helper()
	segments, sealed := several(t)
	return disk(t, segments), sealed
}

// TestBeginsAnywhere: behind any frame, a recovery finds what one of all finds, of that
// what comes after, reads no segment that lies before, and reads all frames when asked.
func TestBeginsAnywhere(t *testing.T) {
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

// holder is the segment that has a frame.
func holder(t *testing.T, d *world.Disk, lsn types.LSN) (name string) {
	t.Helper()
	all := names(t, d)
	gone, err := journalfile.Behind(d, lsn-1)
	must(t, err)
	return all[len(gone)]
}

// TestBehind: segments that all come before a frame, never the last one.
func TestBehind(t *testing.T) {
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

// scanned reads on from a place, without some segments.
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

// TestApart: a journal that does not go on from a place says so, and is not changed.
func TestApart(t *testing.T) {
	whole, sealed := disked(t)
	for _, s := range sealed {
		other, foreign := after(s), after(s)
		other.Root[7]++
		foreign.Journal++
		for why, from := range map[string]journalfile.From{
			"another root": other, "another journal": foreign,
			"beyond the end": {LSN: 1000, Root: s.Root, Journal: ours},
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
		t.Fatalf("nothing at all: %v", err)
	}
}

// TestEndsTooSoon: what something beside the journal knows durable and is not there is
// damage, whole segments as well.
func TestEndsTooSoon(t *testing.T) {
	whole, sealed := disked(t)
	all := names(t, whole)
	last := sealed[len(sealed)-1].LSN
	nothing := world.NewDisk()
	j, found, err := journalfile.Reading{Known: 7}.Recover(nothing, ours)
	if !errors.Is(err, journalfile.ErrDamaged) || !found.Damaged || len(names(t, nothing)) != 0 {
		t.Fatalf("no segment at all: %v, %+v", err, found)
	}
	if _, err := j.Read(3); !errors.Is(err, journalfile.ErrDamaged) {
		t.Fatalf("reading what is not there: %v", err)
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
			t.Fatalf("reading what is not there: %v", err)
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

// TestUpto: a reading ends where it is told to, whatever is written meanwhile.
func TestUpto(t *testing.T) {
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
		t.Fatalf("up to what is not there: %v", err)
	}
}

// TestGrown: the bytes that a start reads are those that were read, and those written
// since.
func TestGrown(t *testing.T) {
	d, sealed := disked(t)
	j, _, _ := recovered(t, d.Copy())
	all := j.Grown()
	j, _, err := journalfile.Reading{From: after(sealed[len(sealed)-1])}.Recover(d, ours)
	must(t, err)
	if all < 100*int64(len(sealed)) || j.Grown() != 0 {
		t.Fatalf("%d bytes of all, %d of nothing", all, j.Grown())
	}
	add(t, j, 1)
	if j.Grown() != batchSize+forged {
		t.Fatalf("%d bytes for a frame", j.Grown())
	}
}
