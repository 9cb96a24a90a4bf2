package readmodel

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/record"
	"macronode/core/types"
)

// TestRecentFramesAreBounded: the kept frames are the last ones without a gap, within the limit
// of frames, and within the limit of bytes plus one frame.
func TestRecentFramesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 5).Draw(t, "keep")
		r, most := newRecent(keep), int64(keep)*types.MaxRecord
		next := types.LSN(1)
		for range rapid.IntRange(0, 40).Draw(t, "frames") {
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				next = types.LSN(rapid.IntRange(1, 50).Draw(t, "from"))
			}
			size := rapid.SampledFrom([]int{0, 1, types.MaxRecord, 3 * types.MaxRecord, types.MaxFrame}).Draw(t, "size")
			r.keep(record.Sealed{LSN: next, Body: make([]byte, size)})
			bytes := int64(0)
			for lsn := r.first; lsn <= r.last; lsn++ {
				if r.at(lsn).LSN != lsn {
					t.Fatalf("frame %v is not there, of %v to %v", lsn, r.first, r.last)
				}
				bytes += int64(len(r.at(lsn).Body))
			}
			held := 0
			for i := range r.ring {
				if r.ring[i].LSN > 0 {
					held++
				}
			}
			if r.last != next || held != r.len() || held > keep || bytes != r.bytes || bytes > most && held > 1 {
				t.Fatalf("%d frames %v to %v after %v, %d bytes of %d, counted %d", held, r.first, r.last, next, bytes, most, r.bytes)
			}
			next++
		}
	})
}

// TestOlderFramesAreCached: each is read once while it is used, and a failed read is repeated.
func TestOlderFramesAreCached(t *testing.T) {
	read, bad := 0, errors.New("a disk that fails")
	older := func(lsn types.LSN) (record.Sealed, error) {
		if read++; read == 1 {
			return record.Sealed{}, bad
		}
		return record.Sealed{LSN: lsn}, nil
	}
	var a aside
	for i, c := range []struct {
		lsn  types.LSN
		want error
		read int
	}{{7, bad, 1}, {7, nil, 2}, {7, nil, 2}, {8, nil, 3}, {7, nil, 3}, {7 + asides, nil, 4}, {7, nil, 5}} {
		s, err := a.get(c.lsn, older)
		if !errors.Is(err, c.want) || err == nil && s.LSN != c.lsn || read != c.read {
			t.Errorf("step %d: frame %v, %v, after %d reads, not %d", i, s.LSN, err, read, c.read)
		}
	}
}
