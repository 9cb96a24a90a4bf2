package index

import (
	"fmt"
	"testing"

	"macronode/core/record"
	"macronode/core/types"
)

// TestRingTells: what a ring says of a frame: it is here, or elsewhere, or not yet.
func TestRingTells(t *testing.T) {
	r, said := newRing(3, 100), ""
	offer := func(all ...types.LSN) {
		for _, lsn := range all {
			r.offer([]record.Sealed{{LSN: lsn, Body: make([]byte, 10)}})
		}
	}
	take := func(lsn types.LSN) {
		s, ok, behind := r.take(lsn)
		said += fmt.Sprintf("%v: %v %v %v, ", lsn, s.LSN, ok, behind)
	}
	take(1)        // not yet
	offer(1, 2, 4) // 3 was lost on its way
	take(1)        // here
	take(2)        // here
	take(3)        // elsewhere
	take(4)        // elsewhere: it came behind a gap
	offer(5, 6, 7, 8)
	take(5)
	take(7) // 6 is not asked for any more
	take(8) // there was no room
	take(9)
	const want = "@1: @0 false false, @1: @1 true false, @2: @2 true false, @3: @0 false true, @4: @0 false true, " +
		"@5: @5 true false, @7: @7 true false, @8: @0 false true, @9: @0 false false, "
	if said != want {
		t.Errorf("it says %s, want %s", said, want)
	}
}
