package table

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeapAgreesWithSorting: the heap has what was added and not removed, in order, and finding the first ones
// changes nothing.
func TestHeapAgreesWithSorting(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const limit = 40
		var rank [limit]int
		before := func(a, b uint32) bool { return rank[a] < rank[b] || rank[a] == rank[b] && a < b }
		h := NewHeap(limit)
		var held []uint32
		for range rapid.IntRange(0, 120).Draw(r, "operations") {
			place := uint32(rapid.IntRange(0, limit-1).Draw(r, "place"))
			if i := slices.Index(held, place); i >= 0 {
				h.Remove(place, before)
				held = slices.Delete(held, i, i+1)
			} else {
				rank[place] = rapid.IntRange(0, 20).Draw(r, "rank")
				h.Push(place, before)
				held = append(held, place)
			}
			slices.SortFunc(held, func(a, b uint32) int {
				if before(a, b) {
					return -1
				}
				return 1
			})
			most := rapid.IntRange(0, limit).Draw(r, "most")
			var got []uint32
			h.Smallest(make([]uint32, 0, limit+1), before, func(place uint32) bool {
				if len(got) == most {
					return false
				}
				got = append(got, place)
				return true
			})
			if want := held[:min(most, len(held))]; !slices.Equal(got, want) {
				r.Fatalf("the first are %v, want %v", got, want)
			}
			if err := h.Check(before); err != nil {
				r.Fatal(err)
			}
		}
	})
}
