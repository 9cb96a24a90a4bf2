package index

import (
	"fmt"
	"testing"

	"macronode/core/record"
	"macronode/core/types"
)

// TestRingReportsWhereFrameIs: in the ring, in the journal, or not yet offered.
func TestRingReportsWhereFrameIs(t *testing.T) {
	r, reported := newRing(3, 100), ""
	offer := func(all ...types.LSN) {
		for _, lsn := range all {
			r.offer([]record.Sealed{{LSN: lsn, Body: make([]byte, 10)}})
		}
	}
	take := func(lsn types.LSN) {
		s, ok, behind := r.take(lsn)
		reported += fmt.Sprintf("%v: %v %v %v, ", lsn, s.LSN, ok, behind)
	}
	take(1)        // not offered
	offer(1, 2, 4) // 3 was lost
	take(1)        // in the ring
	take(2)        // in the ring
	take(3)        // in the journal
	take(4)        // in the journal: after a gap
	offer(5, 6, 7, 8)
	take(5)
	take(7) // 6 is skipped
	take(8) // there was no room
	take(9)
	const want = "@1: @0 false false, @1: @1 true false, @2: @2 true false, @3: @0 false true, @4: @0 false true, " +
		"@5: @5 true false, @7: @7 true false, @8: @0 false true, @9: @0 false false, "
	if reported != want {
		t.Errorf("it says %s, want %s", reported, want)
	}
}
