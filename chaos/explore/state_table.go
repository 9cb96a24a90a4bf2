package explore

import "macronode/core/types"

// seen has the visited states, by 63 bits of their hashes. The last bit marks a state on the
// current path: meeting it again is a cycle.
type seen struct {
	slots []uint64
	count int
	room  int
}

type meeting uint8

const (
	fresh meeting = iota
	opened
	closed
)

// newSeen makes a table for a number of states, with a third more slots for fast look-ups.
func newSeen(room int) seen {
	n := 1024
	for n < room/3*4 {
		n *= 2
	}
	return seen{slots: make([]uint64, n), room: room}
}

// full reports whether a state did not fit.
func (s *seen) full() bool { return s.count > s.room }

// open adds a new state and marks it as on the path.
func (s *seen) open(h types.Hash64) (slot int, was meeting) {
	key := uint64(h) | 1 // never 0, which is a free slot
	mask := len(s.slots) - 1
	for slot = int(key>>20) & mask; s.slots[slot] != 0; slot = (slot + 1) & mask {
		if s.slots[slot]|1 == key {
			if s.slots[slot] == key {
				return slot, opened
			}
			return slot, closed
		}
	}
	if s.count++; s.count <= s.room {
		s.slots[slot] = key
	}
	return slot, fresh
}

// close unmarks a state.
func (s *seen) close(slot int) { s.slots[slot] &^= 1 }
