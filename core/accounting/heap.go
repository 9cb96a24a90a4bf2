package accounting

// A dueHeap is a binary heap of the places of rows, with the row that is sealed first on top.
type dueHeap struct {
	places []uint32
	slot   []uint32 // by place: its index in places
}

func newDueHeap(limit int) dueHeap {
	return dueHeap{places: make([]uint32, 0, limit), slot: make([]uint32, limit)}
}

func (h *dueHeap) put(i int, place uint32) {
	h.places[i], h.slot[place] = place, uint32(i)
}

func (h *dueHeap) push(place uint32, before func(a, b uint32) bool) {
	h.places = append(h.places, place)
	h.up(len(h.places)-1, place, before)
}

// up puts place at i or above.
func (h *dueHeap) up(i int, place uint32, before func(a, b uint32) bool) {
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

// down puts place at i or below.
func (h *dueHeap) down(i int, place uint32, before func(a, b uint32) bool) {
	for {
		child := 2*i + 1
		if child >= len(h.places) {
			break
		}
		if right := child + 1; right < len(h.places) && before(h.places[right], h.places[child]) {
			child = right
		}
		if !before(h.places[child], place) {
			break
		}
		h.put(i, h.places[child])
		i = child
	}
	h.put(i, place)
}

func (h *dueHeap) remove(place uint32, before func(a, b uint32) bool) {
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

// smallest passes the places in the order of before, until each returns false. The heap does not change.
// It uses scratch, and passes at most cap(scratch)-1 places.
func (h *dueHeap) smallest(scratch []uint32, before func(a, b uint32) bool, each func(place uint32) bool) {
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

// copyTo overwrites dst; places below used were ever taken.
func (h *dueHeap) copyTo(dst *dueHeap, used int) {
	if len(dst.slot) != len(h.slot) {
		*dst = newDueHeap(len(h.slot))
	}
	dst.places = append(dst.places[:0], h.places...)
	copy(dst.slot, h.slot[:used])
}
