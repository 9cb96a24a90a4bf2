package ledger

import (
	"bytes"
	"fmt"

	"macronode/core/table"
	"macronode/core/types"
)

// holds has the active holds, in three orders of the same places:
//
//	rows   by ID
//	links  of one account: a ring, from the first expiry to the last
//	heap   of all accounts: the first expiry is at the top
//
// Holds with the same expiry are ordered by ID, so that the order does not depend on the places.
type holds struct {
	rows  table.Pool[types.TxID, hold]
	links []link // by place
	heap  []expiry

	inSavepoint bool
	undoLog     []holdChange // since the savepoint, the latest last
}

type (
	link struct {
		before, after uint32 // places of the same account
		heapIndex     uint32 // index in the heap
	}
	expiry struct {
		at    types.Time
		place uint32
	}
	// holdChange is an added or removed hold, with what undo needs to restore it.
	holdChange struct {
		added bool
		place uint32
		link  link
		id    types.TxID
		row   hold
	}
)

func newHolds(limit, items int, seed types.Hash64) holds {
	types.Assert(limit < 1<<31-1, "ledger: more holds than their places have bits")
	return holds{rows: table.NewPool[types.TxID, hold](limit, seed), links: make([]link, limit),
		heap: make([]expiry, 0, limit), undoLog: make([]holdChange, 0, items)}
}

func holdsBytes(limit, items int) int64 {
	return table.PoolBytes[types.TxID, hold](limit) + table.SliceBytes[link](limit) + table.SliceBytes[expiry](limit) +
		table.SliceBytes[holdChange](items)
}

// add adds a hold to the ring of its account and returns the first of the ring.
func (h *holds) add(id types.TxID, v hold, first uint32) (head uint32) {
	place := h.rows.Put(id, v)
	h.recordChange(holdChange{added: true, place: place})
	h.pushToHeap(expiry{v.expiresAt, place})
	if first == 0 {
		h.link(place, place, place)
		return place + 1
	}
	head = first
	after := first - 1 // the hold that it precedes; most are last
	if h.before(place, after) {
		head = place + 1
	} else {
		for before := h.links[after].before; h.before(place, before); before = h.links[after].before {
			after = before
		}
	}
	h.link(place, h.links[after].before, after)
	return head
}

// remove removes a hold from the ring of its account and returns the first of the ring.
func (h *holds) remove(place, first uint32) (head uint32) {
	id, v := h.rows.Row(place)
	at := h.links[place]
	h.recordChange(holdChange{place: place, link: at, id: id, row: v})
	h.unlink(place)
	switch {
	case at.after == place:
		return 0
	case first == place+1:
		return at.after + 1
	}
	return first
}

// unlink is the part of remove that undo shares.
func (h *holds) unlink(place uint32) {
	at := h.links[place]
	h.links[at.before].after, h.links[at.after].before = at.after, at.before
	h.removeFromHeap(at.heapIndex)
	h.rows.Drop(place)
}

func (h *holds) link(place, before, after uint32) {
	h.links[place].before, h.links[place].after = before, after
	h.links[before].after, h.links[after].before = place, place
}

// before is the order of both the rings and the heap.
func (h *holds) before(a, b uint32) bool {
	idA, rowA := h.rows.Row(a)
	idB, rowB := h.rows.Row(b)
	if rowA.expiresAt != rowB.expiresAt {
		return rowA.expiresAt < rowB.expiresAt
	}
	return bytes.Compare(idA[:], idB[:]) < 0
}

// expiresBefore compares two places in the heap, which stores the expiry.
func (h *holds) expiresBefore(a, b uint32) bool {
	if h.heap[a].at != h.heap[b].at {
		return h.heap[a].at < h.heap[b].at
	}
	return h.before(h.heap[a].place, h.heap[b].place)
}

func (h *holds) pushToHeap(e expiry) {
	h.heap = append(h.heap, e)
	at := uint32(len(h.heap) - 1)
	h.links[e.place].heapIndex = at
	h.siftUp(at)
}

// removeFromHeap removes the entry at an index of the heap.
func (h *holds) removeFromHeap(at uint32) {
	last := uint32(len(h.heap) - 1)
	h.swapInHeap(at, last)
	h.heap = h.heap[:last]
	if at < last {
		h.siftUp(at)
		h.siftDown(at)
	}
}

func (h *holds) siftUp(at uint32) {
	for at > 0 && h.expiresBefore(at, (at-1)/2) {
		h.swapInHeap(at, (at-1)/2)
		at = (at - 1) / 2
	}
}

func (h *holds) siftDown(at uint32) {
	for n := uint32(len(h.heap)); 2*at+1 < n; {
		child := 2*at + 1
		if child+1 < n && h.expiresBefore(child+1, child) {
			child++
		}
		if !h.expiresBefore(child, at) {
			return
		}
		h.swapInHeap(at, child)
		at = child
	}
}

func (h *holds) swapInHeap(a, b uint32) {
	h.heap[a], h.heap[b] = h.heap[b], h.heap[a]
	h.links[h.heap[a].place].heapIndex, h.links[h.heap[b].place].heapIndex = a, b
}

func (h *holds) recordChange(c holdChange) {
	if !h.inSavepoint {
		return
	}
	types.Assert(len(h.undoLog) < cap(h.undoLog), "ledger: more holds changed than may be taken back")
	h.undoLog = append(h.undoLog, c)
}

func (h *holds) savepoint() { h.inSavepoint = true }

func (h *holds) commit() { h.inSavepoint, h.undoLog = false, h.undoLog[:0] }

// undo reverts the changes from the latest on, so that each finds its place and its neighbours as they were.
// The accounts restore the beginnings of the rings.
func (h *holds) undo() {
	for i := len(h.undoLog) - 1; i >= 0; i-- {
		c := &h.undoLog[i]
		if c.added {
			h.unlink(c.place)
			continue
		}
		place := h.rows.Put(c.id, c.row)
		types.Assert(place == c.place, "ledger: a hold came back to another place")
		h.pushToHeap(expiry{c.row.expiresAt, place})
		h.link(place, c.link.before, c.link.after)
	}
	h.commit()
}

// next returns the hold that expires after another one of an account whose first is given; 0: none. All three
// are places plus 1.
func (h *holds) next(at, first uint32) uint32 {
	if at = h.links[at-1].after + 1; at == first {
		return 0
	}
	return at
}

func (h *holds) copyTo(dst *holds) {
	types.Assert(!h.inSavepoint && !dst.inSavepoint, "ledger: copied while marked")
	if len(dst.links) != len(h.links) {
		*dst = newHolds(len(h.links), cap(h.undoLog), 0)
	}
	h.rows.CopyTo(&dst.rows)
	copy(dst.links, h.links[:h.rows.Capacity()])
	dst.heap = append(dst.heap[:0], h.heap...)
}

// check compares the heap and the links. The ledger checks which account has which ring.
func (h *holds) check() error {
	if err := h.rows.Check(); err != nil {
		return fmt.Errorf("holds: %w", err)
	}
	if len(h.heap) != h.rows.Len() {
		return fmt.Errorf("M8: %d of %d holds are in the heap", len(h.heap), h.rows.Len())
	}
	for i, e := range h.heap {
		id, v := h.rows.Row(e.place)
		place, ok := h.rows.Find(id)
		at := h.links[e.place]
		switch {
		case !ok || place != e.place || at.heapIndex != uint32(i) || v.expiresAt != e.at:
			return fmt.Errorf("M8: %v in the heap is not %x", e, id)
		case i > 0 && h.expiresBefore(uint32(i), uint32(i-1)/2):
			return fmt.Errorf("M8: %v is below a later one", e)
		case h.links[at.before].after != e.place || h.links[at.after].before != e.place:
			return fmt.Errorf("M7: %x is not between its neighbours", id)
		}
	}
	return nil
}
