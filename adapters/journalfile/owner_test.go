package journalfile_test

import (
	"errors"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// write writes and syncs one frame that has one record.
func write(t *testing.T, j *journalfile.Journal, r *record.Record) record.Sealed {
	t.Helper()
	lsn := j.Durable() + 1
	body := record.Begin(nil, lsn, types.Time(1_700_000_000_000+lsn))
	body, _ = record.Add(body, 0, r)
	sealed, err := j.Write(body, []event.Frame{{LSN: lsn, Len: uint32(len(body))}})
	must(t, err)
	_, err = j.Sync()
	must(t, err)
	return sealed[0]
}

// restoredTwice returns a journal of three IDs: its own, and those of two restores. Each has several segments.
func restoredTwice(t *testing.T) (d *world.Disk, sealed []record.Sealed) {
	t.Helper()
	d = world.NewDisk()
	j := open(t, d, 300)
	sealed = []record.Sealed{write(t, j, &record.Record{Kind: record.Started, Journal: ours})}
	for restored := range types.JournalID(3) {
		if restored > 0 {
			last := sealed[len(sealed)-1]
			j.Restore(ours + restored)
			sealed = append(sealed, write(t, j, &record.Record{Kind: record.Restored, Journal: ours + restored, Upto: last.LSN, Root: last.Root}))
		}
		for range 6 {
			sealed = append(sealed, write(t, j, &record.Record{Kind: record.KeysForgotten}))
		}
	}
	must(t, j.Close())
	return d, sealed
}

// TestDamagedStartKeepsJournal: the frames of a segment whose start is damaged are read as of the journal that wrote them, beside
// restores too, or as damaged. With all other starts whole, none is damaged unless the segment before is missing.
func TestDamagedStartKeepsJournal(t *testing.T) {
	whole, sealed := restoredTwice(t)
	all := names(t, whole)
	last := sealed[len(sealed)-1]
	for n, name := range all[:len(all)-1] {
		for _, gone := range []int{0, n} { // the segments before the damaged one may be in an archive that is not mounted
			for _, spoiled := range [][]int64{{9}, {9, 200}} { // the start, and the first frame
				d := whole.Copy()
				for _, of := range all[:gone] {
					must(t, d.Remove(of))
				}
				text := slices.Clone(read(t, d, name))
				for _, at := range spoiled {
					text[at] ^= 4
				}
				d = disk(t, spoilt(t, d, name, text))
				j, _, err := journalfile.Reading{From: after(last)}.Recover(d, 0)
				must(t, err)
				lost := 0
				for _, s := range sealed {
					got, err := j.Read(s.LSN)
					switch {
					case errors.Is(err, journalfile.ErrDamaged), errors.Is(err, journalfile.ErrGone):
						lost++
					case err != nil || !same(got, s):
						t.Errorf("%s damaged at %v, %d segments gone: frame %v of journal %x is read as of %x: %v", name, spoiled, gone, s.LSN, s.Journal, got.Journal, err)
					}
				}
				if gone == 0 && len(spoiled) == 1 && lost > 0 {
					t.Errorf("%s damaged at its start: %d frames cannot be read", name, lost)
				}
				must(t, j.Close())
			}
		}
	}
}

// TestReadErrorIsNotAnotherJournal: if the disk fails at any operation of a reading across restores, the reading returns its error.
// It reports neither damage nor that the journal does not continue from a frame.
func TestReadErrorIsNotAnotherJournal(t *testing.T) {
	whole, sealed := restoredTwice(t)
	ways := map[string]func(*world.Disk, types.LSN) error{
		"scan": func(d *world.Disk, at types.LSN) error {
			_, err := journalfile.Reading{From: after(sealed[at])}.Scan(d)
			return err
		},
		"recover": func(d *world.Disk, at types.LSN) error {
			j, _, err := journalfile.Reading{From: after(sealed[at])}.Recover(d, 0)
			if err == nil {
				must(t, j.Close())
			}
			return err
		},
		"inspect": func(d *world.Disk, at types.LSN) error {
			_, err := journalfile.Reading{Upto: sealed[at].LSN}.Inspect(d, func(is *journalfile.Damage) error {
				t.Errorf("an inspection reports damage: %v", is)
				return nil
			})
			return err
		},
	}
	for name, way := range ways {
		for at := range types.LSN(len(sealed)) {
			failed := 0
			for fuse := 1; ; fuse++ {
				d := whole.Copy()
				d.Fuse = fuse
				err := way(d, at)
				if err == nil {
					break
				}
				if failed++; !errors.Is(err, world.ErrDead) || errors.Is(err, journalfile.ErrDamaged) || errors.Is(err, journalfile.ErrApart) {
					t.Fatalf("%s at frame %v, power for %d operations: %v", name, sealed[at].LSN, fuse, err)
				}
			}
			if failed == 0 {
				t.Fatalf("%s at frame %v did not fail", name, sealed[at].LSN)
			}
		}
	}
}

// TestReadErrorIsNoOwner: if one read fails while the journal of a segment with a damaged start is searched for, no frame of it is read
// as of another journal.
func TestReadErrorIsNoOwner(t *testing.T) {
	whole, sealed := restoredTwice(t)
	all := names(t, whole)
	failed := 0
	for n, name := range all[:len(all)-1] {
		d := whole.Copy()
		for _, of := range all[:n] {
			must(t, d.Remove(of))
		}
		text := slices.Clone(read(t, d, name))
		text[9] ^= 4
		d = disk(t, spoilt(t, d, name, text))
		for _, s := range sealed {
			for fails := 1; ; fails++ { // the operation at which the disk fails
				begun := 0
				at := d.Copy()
				j, _, err := journalfile.Reading{From: after(sealed[len(sealed)-1])}.Recover(at, 0)
				must(t, err)
				at.OnOperation = func(string, string) {
					begun++
					at.FailRead = begun == fails
				}
				got, err := j.Read(s.LSN)
				if err == nil && !same(got, s) {
					t.Fatalf("%s damaged, operation %d fails: frame %v of journal %x is read as of %x", name, fails, s.LSN, s.Journal, got.Journal)
				}
				if begun < fails {
					break
				}
				if errors.Is(err, world.ErrRead) {
					failed++
				}
			}
		}
	}
	if failed == 0 {
		t.Fatal("no read failed")
	}
}
