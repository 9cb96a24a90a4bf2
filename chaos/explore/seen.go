package explore

import "macronode/core/types"

// seen is the states that were met, by 63 bits of their hashes. The last bit says that
// a state is on the way to the one at hand: to meet it again is to go round.
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

// newSeen takes room for so many states, and a third more to find them fast.
func newSeen(room int) seen {
	n := 1024
	for n < room/3*4 {
		n *= 2
	}
	return seen{slots: make([]uint64, n), room: room}
}

// full reports that a state was met that there was no room for.
func (s *seen) full() bool { return s.count > s.room }

// open notes a state, which is on the way from now on, if it is a fresh one.
func (s *seen) open(h types.Hash64) (slot int, was meeting) {
	key := uint64(h) | 1 // so none is 0, which is a free slot
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

// close notes that a state is no longer on the way.
func (s *seen) close(slot int) { s.slots[slot] &^= 1 }
