package table

import "macronode/core/types"

// slot refers to a row with a tag. at is the row's place + 1; 0 marks a free slot.
type slot struct{ at, tag uint32 }

// index is an open-addressing hash table from a key's tag to the places where its row may be. It
// is at most half full.
type index struct{ slots []slot }

func newIndex(limit int) index { return index{slots: make([]slot, slotsFor(limit))} }

func slotsFor(limit int) int {
	n := 8
	for n < limit*2 {
		n *= 2
	}
	return n
}

// first returns the slot where the search for a tag begins, next the slot after s.
func (x *index) first(tag uint32) int { return int(tag) & (len(x.slots) - 1) }
func (x *index) next(s int) int       { return (s + 1) & (len(x.slots) - 1) }

// free empties s and moves back the rows that had been displaced past it.
func (x *index) free(s int) {
	mask := len(x.slots) - 1
	for n := x.next(s); x.slots[n].at != 0; n = x.next(n) {
		home := int(x.slots[n].tag) & mask
		if (n-home)&mask >= (n-s)&mask {
			x.slots[s], s = x.slots[n], n
		}
	}
	x.slots[s] = slot{}
}

func (x *index) copyTo(dst *index) { dst.slots = append(dst.slots[:0], x.slots...) }

// A Hashable can be compared and mixed into a hash, and contains no pointer.
type Hashable interface {
	comparable
	HashInto(h types.Hash64) types.Hash64
}
