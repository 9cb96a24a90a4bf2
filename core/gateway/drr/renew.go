package drr

import "macronode/core/types"

// Renew puts limits in the place of those that are; the places stay as many. Who waits
// stays, also beyond a bound that is less now: nobody is queued there until there is room.
// Turns go on by the new weights and the new quantum: what was saved by larger ones, or is
// to be paid, is no more than they let it be. Of a class that is not served any more
// nobody may wait: Unserved says who does.
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
		turns := uint64(1) // what is left of a turn
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

// repark parks the flows of c that the shares let use no more, and unparks those that may.
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

// shares raises the bounds to what is in use.
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

// Unserved takes one who waits out of a class without weight; false when there is none.
func (q *Queue) Unserved() (place uint32, any bool) {
	for of := range q.classes {
		if c := &q.classes[of]; c.queued > 0 && q.limits.Weights[of] == 0 {
			return q.evict(types.Class(of)), true
		}
	}
	return 0, false
}

// bounds are how much may be queued.
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

// HashInto is h after all of l.
func (l *Limits) HashInto(h types.Hash64) types.Hash64 {
	b := l.bounds()
	h = b.HashInto(h).Mix(uint64(l.Places)).Mix(l.Quantum)
	for _, w := range l.Weights {
		h = h.Mix(w)
	}
	return h
}

// HashInto is h after all of b.
func (b *bounds) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(b.queue)).Mix(uint64(b.flow)).Mix(uint64(b.inUse.Flow))
	for c, n := range b.class {
		h = h.Mix(uint64(n)).Mix(uint64(b.inUse.Class[c]))
	}
	return h
}
