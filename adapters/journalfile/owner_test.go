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

// TestDamagedStartKeepsJournal: the frames of a segment whose start is damaged are read as of the journal that wrote them, beside
// restores too, or as damaged. With all other starts whole, none is damaged unless the segment before is missing.
func TestDamagedStartKeepsJournal(t *testing.T) {
	whole := world.NewDisk()
	j := open(t, whole, 300)
	sealed := []record.Sealed{write(t, j, &record.Record{Kind: record.Started, Journal: ours})}
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
