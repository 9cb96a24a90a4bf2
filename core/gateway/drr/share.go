package drr

import (
	"math"

	"macronode/core/types"
)

// Shares limit how many items that Next has returned may be in use at once, until Return. A class may use its
// share together with the lower classes, so that something is left for higher ones. For example, if internal,
// authed and anon have 10, 9 and 5, anonymous requests use at most 5, and authenticated and anonymous ones
// together at most 9.
type Shares struct {
	Class [types.NumClasses]int
	Flow  int // 0: items in use are not counted, and the queue has no shares
}

// Ready reports whether an item is queued that may be served.
func (q *Queue) Ready() bool {
	for c := range types.NumClasses {
		if q.ready(c) {
			return true
		}
	}
	return false
}

// ready reports whether an item of a class is queued that may be served.
func (q *Queue) ready(c types.Class) bool {
	return q.classes[c].ready.flows > 0 && q.room(c)
}

// room reports whether the shares allow a class one more.
func (q *Queue) room(c types.Class) bool {
	if q.limits.Shares.Flow == 0 {
		return true
	}
	out := uint32(0)
	for of := types.NumClasses; of > 0; of-- {
		out += q.classes[of-1].out
		if of-1 <= c && int(out) >= q.limits.Shares.Class[of-1] {
			return false
		}
	}
	return true
}

// full reports whether a flow has reached its share.
func (q *Queue) full(f *flow) bool {
	return q.limits.Shares.Flow > 0 && int(f.out) >= q.limits.Shares.Flow
}

// use counts the first item of a flow as in use.
func (q *Queue) use(c *class, at uint32) {
	if q.limits.Shares.Flow == 0 {
		return
	}
	c.out++
	q.flows[at].out++
	q.park(c, at)
}

// park moves a flow to the ring where it belongs. A parked flow loses its positive deficit and keeps its debt.
func (q *Queue) park(c *class, at uint32) {
	f := &q.flows[at]
	full := q.full(f)
	if f.queued == 0 || f.parked == full {
		return
	}
	q.unring(c, at)
	if f.parked = full; full {
		f.deficit = min(f.deficit, 0)
	}
	q.enter(c.ring(full), at)
}

// Return ends the use of an item of a flow.
func (q *Queue) Return(f types.Flow) {
	at, known := q.known.Find(f)
	types.Assert(known && q.flows[at].out > 0, "drr: returned what is not in use")
	c := &q.classes[f.Class]
	c.out--
	q.flows[at].out--
	q.park(c, at)
	q.forget(at)
}

// forget drops a flow with nothing queued and nothing in use.
func (q *Queue) forget(at uint32) {
	if f := &q.flows[at]; f.queued == 0 && f.out == 0 {
		q.known.Drop(at)
	}
}

// Uses returns how many items of a flow are in use.
func (q *Queue) Uses(f types.Flow) int {
	at, known := q.known.Find(f)
	if !known {
		return 0
	}
	return int(q.flows[at].out)
}

// First reports whether a queued item is the first of its flow.
func (q *Queue) First(place uint32) bool { return q.items[place].prev == none }

// Take takes an item from the queue out of turn. If there are shares, they must allow it, and it is in use until Return. Its flow
// pays for it, its class does not.
func (q *Queue) Take(place uint32) {
	at := q.items[place].flow
	types.Assert(at != none, "drr: takes what is not queued")
	name, _ := q.known.Row(at)
	f := &q.flows[at]
	types.Assert(q.room(name.Class) && !q.full(f), "drr: takes more than a share")
	f.deficit = max(f.deficit-int64(q.items[place].cost), -int64(q.limits.Quantum))
	q.use(&q.classes[name.Class], at)
	q.Drop(place)
}

// InUse returns how many items are in use.
func (q *Queue) InUse() (n int) {
	for c := range q.classes {
		n += int(q.classes[c].out)
	}
	return n
}

// Holds returns how many items of a flow are queued or in use.
func (q *Queue) Holds(f types.Flow) int {
	at, known := q.known.Find(f)
	if !known {
		return 0
	}
	return int(q.flows[at].queued + q.flows[at].out)
}

// Free returns how many items of a class the shares allow, beside those that are queued or in use; below 0 if more are queued.
// The queue must have shares.
func (q *Queue) Free(c types.Class) int { return q.Left(c) - int(q.classes[c].queued) }

// Left returns how many items of a class the shares allow, beside those in use; below 0 if a share was lowered. The queue must have
// shares.
func (q *Queue) Left(c types.Class) int {
	left, out := math.MaxInt, 0
	for of := types.NumClasses; of > 0; of-- {
		if out += int(q.classes[of-1].out); of-1 <= c {
			left = min(left, q.limits.Shares.Class[of-1]-out)
		}
	}
	return left
}

// Evict removes an item that will not be served, the first of the first class that has any; false if there is
// none.
func (q *Queue) Evict() (place uint32, any bool) {
	for c := range types.NumClasses {
		if q.classes[c].queued > 0 {
			return q.evict(c), true
		}
	}
	return 0, false
}

// evict removes an item of c, which has one.
func (q *Queue) evict(of types.Class) (place uint32) {
	c := &q.classes[of]
	place = q.flows[c.ring(c.ready.flows == 0).first].head
	q.Drop(place)
	return place
}
