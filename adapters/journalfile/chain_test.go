package journalfile_test

import (
	"errors"
	"fmt"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// written returns the segments of a journal and its frames, of one frame each in each of several batches. Its writers have epochs from one on.
func written(t *testing.T, from types.Epoch, salt uint64) (segments map[string][]byte, sealed []record.Sealed) {
	t.Helper()
	d := world.NewDisk()
	for life := range types.Epoch(4) {
		j, _, err := journalfile.Reading{Epoch: func(types.Epoch) (types.Epoch, error) { return from + life, nil }}.Recover(d, ours)
		must(t, err)
		for range 5 {
			sealed = append(sealed, addSalted(t, j, 2, salt)...)
		}
		must(t, j.Close())
	}
	segments = map[string][]byte{}
	for _, name := range names(t, d) {
		segments[name] = read(t, d, name)
	}
	return segments, sealed
}

// TestPartOfAnotherSegment: bytes of a segment of another writer in the place of those of a segment, from anywhere and of any length, give no
// frame, although they have whole frames with the right numbers. A start behind them goes on, and reads the frames that are left.
func TestPartOfAnotherSegment(t *testing.T) {
	segments, sealed := written(t, 1, 1)
	others, _ := written(t, 100, 9)
	const name = "00000002.seg"
	was, other := segments[name], others[name]
	used := min(len(was), 80+5*(2*200+44))
	shown := 0
	for begin := 0; begin < used; begin += 7 {
		for _, length := range []int{40, 180, 500, len(was)} {
			end := min(begin+length, len(was), len(other))
			m := changed(segments, name, append(append(append([]byte{}, was[:begin]...), other[begin:end]...), was[end:]...))
			d := disk(t, m)
			own, _, err := journalfile.Own(d, []types.Epoch{1, 2, 3, 4})
			must(t, err)
			what := fmt.Sprintf("%d bytes at %d", length, begin)
			_, lost, err := inspectedAs(own)
			must(t, err)
			j, _, err := journalfile.Reading{From: after(sealed[30])}.Recover(own, ours)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for lsn := types.LSN(1); lsn <= types.LSN(len(sealed)); lsn++ {
				s, err := j.Read(lsn)
				switch {
				case err == nil && !same(s, sealed[lsn-1]):
					t.Fatalf("%s: frame %v is another's", what, lsn)
				case err == nil && lsn > 10 && lsn <= 20:
					shown++
				case err != nil && !errors.Is(err, journalfile.ErrDamaged) && !errors.Is(err, journalfile.ErrGone):
					t.Fatalf("%s: reading %v: %v", what, lsn, err)
				}
				if err != nil && !lost[lsn] {
					t.Fatalf("%s: reading %v: %v, which the inspection does not report", what, lsn, err)
				}
			}
			must(t, j.Close())
		}
	}
	if shown == 0 {
		t.Error("no frame of the segment was read")
	}
}
