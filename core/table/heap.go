package table

import "fmt"

// A Heap is a binary heap of the places of rows, with the first row on top. Each call gets the same order: before
// reports whether the row at place a comes before that at b. A row may change its order only while it is not in the heap.
//
// Invariant:
//
//	H1  no row comes before its parent, and slot is the inverse of places
type Heap struct {
	places []uint32
	slot   []uint32 // by place: its index in places
}

// NewHeap returns a heap with memory for the places below limit.
func NewHeap(limit int) Heap {
	return Heap{places: make([]uint32, 0, limit), slot: make([]uint32, limit)}
}

// HeapBytes is the memory that NewHeap takes.
func HeapBytes(limit int) int64 { return 2 * SliceBytes[uint32](limit) }

// Len is the number of places.
func (h *Heap) Len() int { return len(h.places) }

// First returns the place on top; false if the heap is empty.
func (h *Heap) First() (place uint32, ok bool) {
	if len(h.places) == 0 {
		return 0, false
	}
	return h.places[0], true
}

func (h *Heap) put(i int, place uint32) {
	h.places[i], h.slot[place] = place, uint32(i)
}

// Push adds a place, which must be absent.
func (h *Heap) Push(place uint32, before func(a, b uint32) bool) {
	h.places = append(h.places, place)
	h.up(len(h.places)-1, place, before)
}

// up puts place at i or above.
func (h *Heap) up(i int, place uint32, before func(a, b uint32) bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !before(place, h.places[parent]) {
			break
		}
		h.put(i, h.places[parent])
		i = parent
	}
	h.put(i, place)
}

// down puts place at i or below. It mostly comes from the end, so it goes to the bottom and then up: that needs half of the comparisons.
func (h *Heap) down(i int, place uint32, before func(a, b uint32) bool) {
	top := i
	for child := 2*i + 1; child < len(h.places); child = 2*i + 1 {
		if right := child + 1; right < len(h.places) && before(h.places[right], h.places[child]) {
			child = right
		}
		h.put(i, h.places[child])
		i = child
	}
	for i > top {
		parent := (i - 1) / 2
		if !before(place, h.places[parent]) {
			break
		}
		h.put(i, h.places[parent])
		i = parent
	}
	h.put(i, place)
}

// Remove removes a place, which must be there.
func (h *Heap) Remove(place uint32, before func(a, b uint32) bool) {
	i := int(h.slot[place])
	end := len(h.places) - 1
	last := h.places[end]
	h.places = h.places[:end]
	if i == end {
		return
	}
	if i > 0 && before(last, h.places[(i-1)/2]) {
		h.up(i, last, before)
	} else {
		h.down(i, last, before)
	}
}

// Smallest passes the places in the order of before, until each returns false. The heap does not change.
// It uses scratch, and passes at most cap(scratch)-1 places.
func (h *Heap) Smallest(scratch []uint32, before func(a, b uint32) bool, each func(place uint32) bool) {
	if len(h.places) == 0 {
		return
	}
	// The next place is always among the children of those that were passed: scratch is a heap of their
	// indices.
	at := func(i int) uint32 { return h.places[scratch[i]] }
	swap := func(i, j int) { scratch[i], scratch[j] = scratch[j], scratch[i] }
	push := func(index int) {
		if index >= len(h.places) {
			return
		}
		scratch = append(scratch, uint32(index))
		for i := len(scratch) - 1; i > 0 && before(at(i), at((i-1)/2)); i = (i - 1) / 2 {
			swap(i, (i-1)/2)
		}
	}
	scratch = append(scratch[:0], 0)
	for len(scratch) > 0 && len(scratch) < cap(scratch) {
		top := int(scratch[0])
		if !each(h.places[top]) {
			return
		}
		end := len(scratch) - 1
		scratch[0] = scratch[end]
		scratch = scratch[:end]
		for i := 0; ; {
			child := 2*i + 1
			if child >= len(scratch) {
				break
			}
			if child+1 < len(scratch) && before(at(child+1), at(child)) {
				child++
			}
			if !before(at(child), at(i)) {
				break
			}
			swap(i, child)
			i = child
		}
		push(2*top + 1)
		push(2*top + 2)
	}
}

// CopyTo overwrites dst; places below used were ever taken.
func (h *Heap) CopyTo(dst *Heap, used int) {
	if len(dst.slot) != len(h.slot) {
		*dst = NewHeap(len(h.slot))
	}
	dst.places = append(dst.places[:0], h.places...)
	copy(dst.slot, h.slot[:used])
}

// Check returns the first invariant that does not hold.
func (h *Heap) Check(before func(a, b uint32) bool) error {
	for i, place := range h.places {
		if h.slot[place] != uint32(i) {
			return fmt.Errorf("table: H1: place %d is at %d, not at %d", place, i, h.slot[place])
		}
		if i > 0 && before(place, h.places[(i-1)/2]) {
			return fmt.Errorf("table: H1: place %d is before its parent", place)
		}
	}
	return nil
}
