package drr

import "macronode/core/types"

// Renew replaces the limits; the number of slots stays. Queued items stay, also beyond a lower limit; nothing is
// queued there until there is room. Turns continue with the new weights and quantum, and deficits are capped to
// them. In a class that is not served any more no item may wait: Unserved returns those.
func (q *Queue) Renew(l Limits) {
	l.check()
	types.Assert(l.Places == q.limits.Places && (l.Shares.Flow == 0) == (q.limits.Shares.Flow == 0), "drr: other places, or shares where there were none")
	q.limits, q.most = l, l.bounds()
	q.most.queue = max(q.most.queue, q.queued)
	quantum := int64(l.Quantum)
	for i := range q.items {
		if it := &q.items[i]; it.flow != none {
			it.cost = min(it.cost, l.Quantum)
		}
	}
	for of := range q.classes {
		c := &q.classes[of]
		q.most.class[of] = max(q.most.class[of], int(c.queued))
		turns := uint64(1) // the rest of a turn
		if c.visited {
			turns += l.Weights[of]
		}
		c.deficit = min(c.deficit, turns*l.Quantum)
		for _, parked := range [...]bool{false, true} {
			r := c.ring(parked)
			at := r.first
			for n := range r.flows {
				f, most := &q.flows[at], 2*quantum
				if n == 0 && !parked && c.begun {
					most += quantum
				}
				q.most.flow = max(q.most.flow, int(f.queued))
				f.deficit = max(-quantum, min(f.deficit, most))
				at = f.next
			}
		}
		q.repark(c)
	}
	q.most.shares(q)
}

// repark parks the flows of c that have reached their share, and unparks those that have not.
func (q *Queue) repark(c *class) {
	for _, parked := range [...]bool{true, false} {
		r := c.ring(parked)
		at := r.first
		for range r.flows {
			next := q.flows[at].next
			q.park(c, at)
			at = next
		}
	}
}

// shares raises the limits to what is in use.
func (b *bounds) shares(q *Queue) {
	if q.limits.Shares.Flow == 0 {
		return
	}
	for at := range q.known.Capacity() {
		b.inUse.Flow = max(b.inUse.Flow, int(q.flows[at].out))
	}
	out := 0
	for of := types.NumClasses; of > 0; of-- {
		out += int(q.classes[of-1].out)
		b.inUse.Class[of-1] = max(b.inUse.Class[of-1], out)
	}
}

// Unserved removes and returns an item of a class without weight; false if there is none.
func (q *Queue) Unserved() (place uint32, any bool) {
	for of := range q.classes {
		if c := &q.classes[of]; c.queued > 0 && q.limits.Weights[of] == 0 {
			return q.evict(types.Class(of)), true
		}
	}
	return 0, false
}

// bounds are the limits of queued items.
type bounds struct {
	queue int
	class [types.NumClasses]int
	flow  int
	inUse Shares
}

func (l *Limits) bounds() bounds { return bounds{l.Queue, l.Class, l.Flow, l.Shares} }

func (l *Limits) check() {
	types.Assert((l.Quantum > 0 || l.Queue == 0) && l.Quantum < 1<<40, "drr: no quantum, or too large a one")
	types.Assert(l.Queue <= l.Places, "drr: a queue longer than its places")
}

// HashInto mixes l into h.
func (l *Limits) HashInto(h types.Hash64) types.Hash64 {
	b := l.bounds()
	h = b.HashInto(h).Mix(uint64(l.Places)).Mix(l.Quantum)
	for _, w := range l.Weights {
		h = h.Mix(w)
	}
	return h
}

// HashInto mixes b into h.
func (b *bounds) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(b.queue)).Mix(uint64(b.flow)).Mix(uint64(b.inUse.Flow))
	for c, n := range b.class {
		h = h.Mix(uint64(n)).Mix(uint64(b.inUse.Class[c]))
	}
	return h
}
