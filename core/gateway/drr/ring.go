package drr

// ring is flows in a circle, from the first.
type ring struct {
	first uint32 // none: it is empty
	flows uint32
}

// ring is where flows of c stand that are at their share, or that are not.
func (c *class) ring(parked bool) *ring {
	if parked {
		return &c.parked
	}
	return &c.ready
}

// enter puts a flow at the end of a ring, leave takes it out.
func (q *Queue) enter(r *ring, at uint32) {
	f := &q.flows[at]
	if r.flows++; r.first == none {
		r.first, f.prev, f.next = at, at, at
		return
	}
	first := &q.flows[r.first]
	f.prev, f.next = first.prev, r.first
	q.flows[first.prev].next = at
	first.prev = at
}

func (q *Queue) leave(r *ring, at uint32) {
	f := &q.flows[at]
	if r.first == at {
		r.first = f.next
	}
	if r.flows--; r.flows == 0 {
		r.first = none
		return
	}
	q.flows[f.prev].next = f.next
	q.flows[f.next].prev = f.prev
}

// unring takes a flow out of the ring of c in which it stands. Where it was its turn, it is
// that of the next.
func (q *Queue) unring(c *class, at uint32) {
	f := &q.flows[at]
	if !f.parked && c.ready.first == at {
		c.begun = false
	}
	q.leave(c.ring(f.parked), at)
	f.parked = false
}
