package ledger

import (
	"bytes"
	"fmt"

	"macronode/core/table"
	"macronode/core/words"
)

// holds are the active ones, in three orders of the same places:
//
//	rows   by id
//	links  of one account: a ring, from the hold that ends first to the last
//	heap   of all: the one that ends first is at the top
//
// Those that end at one time follow one another by id, so that what comes first never
// depends on how the places came about.
type holds struct {
	rows  table.Pool[words.TxID, hold]
	links []link // by place
	heap  []end

	marked bool
	log    []change // since the Mark, the latest last
}

type (
	link struct {
		before, after uint32 // places of the same account
		top           uint32 // where in the heap
	}
	end struct {
		until words.Time
		place uint32
	}
	// change is a hold that came or went, with all that brings it back to its place.
	change struct {
		came  bool
		place uint32
		link  link
		id    words.TxID
		row   hold
	}
)

func newHolds(limit, items int, seed words.Hash64) holds {
	words.Assert(limit < 1<<31-1, "ledger: more holds than their places have bits")
	return holds{rows: table.NewPool[words.TxID, hold](limit, seed), links: make([]link, limit),
		heap: make([]end, 0, limit), log: make([]change, 0, items)}
}

func holdsBytes(limit, items int) int64 {
	return table.PoolBytes[words.TxID, hold](limit) + table.Flat[link](limit) + table.Flat[end](limit) +
		table.Flat[change](items)
}

// put adds a hold to the ring of its account, and says where that begins now.
func (h *holds) put(id words.TxID, v hold, first uint32) (head uint32) {
	place := h.rows.Put(id, v)
	h.note(change{came: true, place: place})
	h.push(end{v.until, place})
	if first == 0 {
		h.link(place, place, place)
		return place + 1
	}
	head = first
	after := first - 1 // whom it comes before; most come last
	if h.less(place, after) {
		head = place + 1
	} else {
		for before := h.links[after].before; h.less(place, before); before = h.links[after].before {
			after = before
		}
	}
	h.link(place, h.links[after].before, after)
	return head
}

// drop takes a hold out of the ring of its account, and says where that begins now.
func (h *holds) drop(place, first uint32) (head uint32) {
	id, v := h.rows.Row(place)
	at := h.links[place]
	h.note(change{place: place, link: at, id: id, row: v})
	h.remove(place)
	switch {
	case at.after == place:
		return 0
	case first == place+1:
		return at.after + 1
	}
	return first
}

// remove is the part of drop that its undoing shares.
func (h *holds) remove(place uint32) {
	at := h.links[place]
	h.links[at.before].after, h.links[at.after].before = at.after, at.before
	h.pull(at.top)
	h.rows.Drop(place)
}

func (h *holds) link(place, before, after uint32) {
	h.links[place].before, h.links[place].after = before, after
	h.links[before].after, h.links[after].before = place, place
}

// less is the order of both the rings and the heap.
func (h *holds) less(a, b uint32) bool {
	idA, rowA := h.rows.Row(a)
	idB, rowB := h.rows.Row(b)
	if rowA.until != rowB.until {
		return rowA.until < rowB.until
	}
	return bytes.Compare(idA[:], idB[:]) < 0
}

// sooner is less of two places in the heap, which has the times at hand.
func (h *holds) sooner(a, b uint32) bool {
	if h.heap[a].until != h.heap[b].until {
		return h.heap[a].until < h.heap[b].until
	}
	return h.less(h.heap[a].place, h.heap[b].place)
}

func (h *holds) push(e end) {
	h.heap = append(h.heap, e)
	at := uint32(len(h.heap) - 1)
	h.links[e.place].top = at
	h.rise(at)
}

// pull takes out what stands at a place of the heap.
func (h *holds) pull(at uint32) {
	last := uint32(len(h.heap) - 1)
	h.swap(at, last)
	h.heap = h.heap[:last]
	if at < last {
		h.rise(at)
		h.sink(at)
	}
}

func (h *holds) rise(at uint32) {
	for at > 0 && h.sooner(at, (at-1)/2) {
		h.swap(at, (at-1)/2)
		at = (at - 1) / 2
	}
}

func (h *holds) sink(at uint32) {
	for n := uint32(len(h.heap)); 2*at+1 < n; {
		child := 2*at + 1
		if child+1 < n && h.sooner(child+1, child) {
			child++
		}
		if !h.sooner(child, at) {
			return
		}
		h.swap(at, child)
		at = child
	}
}

func (h *holds) swap(a, b uint32) {
	h.heap[a], h.heap[b] = h.heap[b], h.heap[a]
	h.links[h.heap[a].place].top, h.links[h.heap[b].place].top = a, b
}

func (h *holds) note(c change) {
	if !h.marked {
		return
	}
	words.Assert(len(h.log) < cap(h.log), "ledger: more holds changed than may be taken back")
	h.log = append(h.log, c)
}

func (h *holds) mark() { h.marked = true }

func (h *holds) keep() { h.marked, h.log = false, h.log[:0] }

// undo takes the changes back from the latest on: so each finds its place and its
// neighbours as it left them. Where the rings begin, the accounts say.
func (h *holds) undo() {
	for i := len(h.log) - 1; i >= 0; i-- {
		c := &h.log[i]
		if c.came {
			h.remove(c.place)
			continue
		}
		place := h.rows.Put(c.id, c.row)
		words.Assert(place == c.place, "ledger: a hold came back to another place")
		h.push(end{c.row.until, place})
		h.link(place, c.link.before, c.link.after)
	}
	h.keep()
}

// next is the hold that ends after one, of an account whose first is first; 0: none. All
// three are places + 1.
func (h *holds) next(at, first uint32) uint32 {
	if at = h.links[at-1].after + 1; at == first {
		return 0
	}
	return at
}

func (h *holds) copyTo(dst *holds) {
	words.Assert(!h.marked && !dst.marked, "ledger: copied while marked")
	if len(dst.links) != len(h.links) {
		*dst = newHolds(len(h.links), cap(h.log), 0)
	}
	h.rows.CopyTo(&dst.rows)
	copy(dst.links, h.links[:h.rows.Places()])
	dst.heap = append(dst.heap[:0], h.heap...)
}

// check holds the heap and the links together; whose rings they are, the ledger checks.
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
		case !ok || place != e.place || at.top != uint32(i) || v.until != e.until:
			return fmt.Errorf("M8: %v in the heap is not %x", e, id)
		case i > 0 && h.sooner(uint32(i), uint32(i-1)/2):
			return fmt.Errorf("M8: %v is below a later one", e)
		case h.links[at.before].after != e.place || h.links[at.after].before != e.place:
			return fmt.Errorf("M7: %x is not between its neighbours", id)
		}
	}
	return nil
}
