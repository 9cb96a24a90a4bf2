// Package drr is a fair queue: deficit round robin over classes, then over the flows of a class, then
// first come first served.
//
//	Offer ──► the end of its flow ──► its flow's turn ──► its class's turn ──Next──► gone
//	                    └─────────────────Drop────────────────────────────────────► gone
//
// A class gets weight × quantum at its turn, a flow one quantum; both spend the cost of their items. They
// keep what is left while they have items queued.
//
// Items that were taken may be in use: of each flow and class at most its share. A flow at its share is
// parked: it is skipped until one of its items is returned.
package drr

import (
	"errors"

	"macronode/core/table"
	"macronode/core/types"
)

// Why an item is not queued: one error for each limit.
var (
	ErrWeight = errors.New("drr: no weight")                // the class is not served, even if the queue is empty
	ErrFull   = errors.New("drr: full")                     // the caller may retry later
	ErrClass  = errors.New("drr: class has its share")      // until items of the class are served
	ErrFlow   = errors.New("drr: flow has its share of it") // until items of the flow are served
)

// Limits are the sizes of the queue and its shares.
type Limits struct {
	Places  int                      // items are numbered below it; Renew does not change it
	Queue   int                      // items queued at once
	Class   [types.NumClasses]int    // of one class
	Flow    int                      // of one flow
	Quantum uint64                   // cost that a flow may spend in a turn, and the maximum cost of an item
	Weights [types.NumClasses]uint64 // quanta of a class in a turn; 0: it is not served
	Shares  Shares
}

// none ends a list of items or flows.
const none = ^uint32(0)

// item is one item. It is queued if it has a flow.
type item struct {
	flow       uint32 // none: not queued
	prev, next uint32 // in its flow
	cost       uint64
}

// flow has the queued items of a caller, in order. It is in a ring of its class while it has any.
type flow struct {
	head, tail uint32
	queued     uint32
	out        uint32 // items in use
	parked     bool   // it is at its share, in the ring parked
	prev, next uint32 // in the ring
	deficit    int64  // what it may still spend
}

// class has a ring of flows that take turns; the first flow has the turn. Flows at their share are in a ring of
// their own, in the order in which they were parked.
type class struct {
	ready, parked ring
	queued        uint32
	out           uint32 // items in use
	deficit       uint64
	visited       bool // it has its turn and got its quanta
	begun         bool // its first flow has its turn and got its quantum
}

// nothing is the value of a table that is used as a set.
type nothing struct{}

func (nothing) HashInto(h types.Hash64) types.Hash64 { return h }

// Queue has items until their turn.
//
// Invariants:
//
//	F1  an item is queued once and in one flow, a flow with items is in a ring of its class once, and the
//	    counts are exact
//	F2  the limits of the queue, of a class and of a flow hold, except for items that were queued when a
//	    limit was lowered
//	F3  a flow or class without queued items has no deficit and no debt
//	F4  a class saves at most weight × quantum and one item, a flow a quantum and what it got back; a debt is
//	    at most a quantum
//	F5  a class without weight has nothing queued
//	F6  the items in use are within the shares, except for those in use when a share was lowered; a flow is
//	    parked if and only if it has items queued and its share in use; a flow is known while it has
//	    anything queued or in use
type Queue struct {
	limits  Limits
	most    bounds // those of limits, or what was queued when they were lowered
	items   []item
	flows   []flow
	known   table.Pool[types.Flow, nothing] // of flows with items: its places are those of flows
	classes [types.NumClasses]class
	turn    types.Class
	queued  int
}

// New returns an empty queue. The seed is that of the table of flows.
func New(l Limits, seed types.Hash64) Queue {
	l.check()
	q := Queue{limits: l, most: l.bounds(), items: make([]item, l.Places), flows: make([]flow, l.Places),
		known: table.NewPool[types.Flow, nothing](l.Places, seed)}
	for i := range q.items {
		q.items[i].flow = none
	}
	for i := range q.classes {
		q.classes[i].ready, q.classes[i].parked = ring{first: none}, ring{first: none}
	}
	return q
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.SliceBytes[item](l.Places) + table.SliceBytes[flow](l.Places) + table.PoolBytes[types.Flow, nothing](l.Places)
}

// Len returns the number of queued items, Of that of a class, Saved the deficit of a class.
func (q *Queue) Len() int                   { return q.queued }
func (q *Queue) Of(c types.Class) int       { return int(q.classes[c].queued) }
func (q *Queue) Saved(c types.Class) uint64 { return q.classes[c].deficit }

// Ahead returns how many items are served before a new item of a flow, if each costs a quantum: those
// of its flow, what the other flows of its class are given meanwhile, and what the other classes are
// given by their turns, from the turn at hand on. Fewer are served if they leave; more only if the flow
// or its class is at its share, or if items cost less.
func (q *Queue) Ahead(f types.Flow) int {
	c, own := &q.classes[f.Class], uint64(q.Waits(f))
	if q.limits.Weights[f.Class] == 0 {
		return q.queued
	}
	flows := uint64(c.ready.flows + c.parked.flows)
	if own > 0 {
		flows--
	}
	ahead := min(uint64(c.queued), own+(own+1)*flows)
	rounds := uint64(0) // of all classes, before the turn in which the item is served
	if left := q.left(f.Class); ahead >= left {
		rounds = 1 + (ahead-left)/q.limits.Weights[f.Class]
	}
	before := (f.Class + types.NumClasses - q.turn) % types.NumClasses // classes whose turn comes first
	for n := range types.NumClasses {
		other := (q.turn + n) % types.NumClasses
		if other == f.Class {
			continue
		}
		given := rounds * q.limits.Weights[other]
		if n < before {
			given += q.left(other)
		}
		ahead += min(uint64(q.classes[other].queued), given)
	}
	return int(ahead)
}

// left returns how many items of a quantum a class may serve in its turn at hand, or in its next one.
func (q *Queue) left(of types.Class) uint64 {
	c := &q.classes[of]
	left := c.deficit / q.limits.Quantum
	if of != q.turn || !c.visited {
		left += q.limits.Weights[of]
	}
	return left
}

// Waits returns the number of queued items of a flow.
func (q *Queue) Waits(f types.Flow) int {
	if at, waits := q.known.Find(f); waits {
		return int(q.flows[at].queued)
	}
	return 0
}

// Would returns why Offer would reject an item of f. It changes nothing.
func (q *Queue) Would(f types.Flow) error {
	at, waits := q.known.Find(f)
	return q.would(f.Class, at, waits)
}

func (q *Queue) would(of types.Class, at uint32, waits bool) error {
	switch {
	case q.limits.Weights[of] == 0:
		return ErrWeight
	case q.queued >= q.limits.Queue:
		return ErrFull
	case int(q.classes[of].queued) >= q.limits.Class[of]:
		return ErrClass
	case waits && int(q.flows[at].queued) >= q.limits.Flow, q.limits.Flow == 0:
		return ErrFlow
	}
	return nil
}

// Offer queues an item that is not queued at the end of its flow. Its cost is from 1 to a quantum.
func (q *Queue) Offer(f types.Flow, place uint32, cost uint64) error {
	types.Assert(q.items[place].flow == none, "drr: queued twice")
	types.Assert(cost > 0 && cost <= q.limits.Quantum, "drr: a cost beyond a quantum, or none")
	at, waits := q.known.Find(f)
	if err := q.would(f.Class, at, waits); err != nil {
		return err
	}
	c := &q.classes[f.Class]
	if !waits {
		at = q.known.Put(f, nothing{})
		q.flows[at] = flow{head: none, tail: none}
	}
	w := &q.flows[at]
	if w.queued == 0 {
		w.parked = q.full(w)
		q.enter(c.ring(w.parked), at)
	}
	q.items[place] = item{flow: at, prev: w.tail, next: none, cost: cost}
	if w.tail == none {
		w.head = place
	} else {
		q.items[w.tail].next = place
	}
	w.tail = place
	w.queued++
	c.queued++
	q.queued++
	return nil
}

// Next takes the next item from the queue; false if none may go. It visits each class and each flow with a
// debt at most twice. If there are shares, the item is in use until Return.
func (q *Queue) Next() (place uint32, ok bool) {
	for q.Ready() {
		c := &q.classes[q.turn]
		if !q.ready(q.turn) {
			c.deficit = 0 // a class that cannot be served saves nothing
			q.pass()
			continue
		}
		if !c.visited {
			c.visited = true
			c.deficit += q.limits.Weights[q.turn] * q.limits.Quantum
		}
		at := q.front(c)
		f := &q.flows[at]
		place = f.head
		cost := q.items[place].cost
		if c.deficit < cost {
			q.pass()
			continue
		}
		c.deficit -= cost
		f.deficit -= int64(cost)
		q.use(c, at)
		q.Drop(place)
		return place, true
	}
	return 0, false
}

// front returns the first flow of c that can pay for its first item. The turn of flows before it is over.
func (q *Queue) front(c *class) (at uint32) {
	for {
		at = c.ready.first
		f := &q.flows[at]
		if !c.begun {
			c.begun = true
			f.deficit += int64(q.limits.Quantum)
		}
		if int64(q.items[f.head].cost) <= f.deficit {
			return at
		}
		c.begun = false
		c.ready.first = f.next
	}
}

// pass passes the turn to the next class.
func (q *Queue) pass() {
	q.classes[q.turn].visited = false
	q.turn = (q.turn + 1) % types.NumClasses
}

// Drop removes an item from the queue.
func (q *Queue) Drop(place uint32) {
	i := &q.items[place]
	types.Assert(i.flow != none, "drr: drops what is not queued")
	at := i.flow
	f := &q.flows[at]
	name, _ := q.known.Row(at)
	c := &q.classes[name.Class]
	if i.prev == none {
		f.head = i.next
	} else {
		q.items[i.prev].next = i.next
	}
	if i.next == none {
		f.tail = i.prev
	} else {
		q.items[i.next].prev = i.prev
	}
	*i = item{flow: none}
	f.queued--
	c.queued--
	q.queued--
	if f.queued == 0 {
		q.unring(c, at)
		f.deficit = 0
		q.forget(at)
	}
	if c.queued == 0 {
		c.deficit, c.visited = 0, false
		if name.Class == q.turn { // otherwise a class that comes back at once would keep the turn for ever
			q.pass()
		}
	}
}

// Queued reports whether an item is queued.
func (q *Queue) Queued(place uint32) bool { return q.items[place].flow != none }

// Correct refunds or charges a flow by up to a quantum, if it has items queued.
func (q *Queue) Correct(f types.Flow, by int64) {
	at, known := q.known.Find(f)
	if !known || q.flows[at].queued == 0 {
		return
	}
	most := int64(q.limits.Quantum)
	w := &q.flows[at]
	if by > 0 {
		w.deficit = max(w.deficit, min(w.deficit+min(by, most), 2*most))
	} else {
		w.deficit = min(w.deficit, max(w.deficit+max(by, -most), -most))
	}
}
