package proxy

import (
	"testing"

	"macronode/adapters/inflate"
	"macronode/core/types"
)

// TestInflatersAreShared: callers without a key, and one tenant, leave places for others.
func TestInflatersAreShared(t *testing.T) {
	i := NewInflaters()
	flow := func(c types.Class, id uint64) types.Flow { return types.Flow{Class: c, ID: id} }
	takes := func(class types.Class, id uint64, try, want int) {
		t.Helper()
		got := 0
		for range try {
			if i.take(inflate.Zstd, flow(class, id)) {
				got++
			}
		}
		if got != want {
			t.Errorf("%v %d has %d more places, want %d", class, id, got, want)
		}
	}
	takes(types.ClassAnon, 1, 9, 4)     // a peer has a quarter
	takes(types.ClassAnon, 2, 9, 4)     // all peers have a half
	takes(types.ClassAnon, 3, 9, 0)     //
	takes(types.ClassAuthed, 1, 9, 4)   // a tenant has a quarter
	takes(types.ClassAuthed, 2, 9, 2)   // two are left
	takes(types.ClassInternal, 1, 9, 2) // for internal callers
	if taken, of := i.Depth(); taken != of || of != MaxInflaters {
		t.Errorf("%d of %d are taken", taken, of)
	}
	if !i.take(inflate.Gzip, flow(types.ClassAnon, 9)) {
		t.Error("gzip needs a place")
	}
	i.give(inflate.Gzip, flow(types.ClassAnon, 9))
	for range 4 {
		i.give(inflate.Zstd, flow(types.ClassAnon, 1))
	}
	takes(types.ClassAnon, 3, 9, 4) // the places of the first peer
	if len(i.flows) != 5 {
		t.Errorf("%d flows are counted, want 5: %v", len(i.flows), i.flows)
	}
}
