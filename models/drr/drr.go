// Package drr is the reference model of core/gateway/drr: two levels of deficit round robin over
// plain slices.
package drr

import (
	"slices"

	"macronode/core/types"
)

// Queue has the waiting flows of each class in the order of their turns.
type Queue struct {
	Most    int // queued at once: in all, of a class, of a flow
	Class   [types.NumClasses]int
	Flow    int
	Quantum int64
	Weight  [types.NumClasses]int64

	ClassShare [types.NumClasses]int // in use at once: of a class and lower ones, and of a flow
	FlowShare  int                   // 0: unlimited

	rings [types.NumClasses][]*flow // flows below their share
	full  [types.NumClasses][]*flow // flows at their share, in the order in which they reached it
	out   []types.Flow              // flow of each item in use
	saved [types.NumClasses]int64
	given [types.NumClasses]bool // the class has its quanta for this turn
	began [types.NumClasses]bool // the first flow has its quantum for this turn
	at    int
}

type flow struct {
	name  types.Flow
	saved int64
	items []item
}

type item struct {
	place uint32
	cost  int64
}

// Len returns how many items of a class are queued.
func (q *Queue) Len(c types.Class) (n int) {
	for _, f := range q.waiting(c) {
		n += len(f.items)
	}
	return n
}

// waiting returns every flow of a class with queued items.
func (q *Queue) waiting(c types.Class) []*flow {
	return slices.Concat(q.rings[c], q.full[c])
}

// Uses counts the items in use of a class and of lower ones.
func (q *Queue) Uses(c types.Class) (n int) {
	for _, f := range q.out {
		if f.Class >= c {
			n++
		}
	}
	return n
}

// inUse counts the items of a flow that are in use.
func (q *Queue) inUse(f *flow) (n int) {
	for _, of := range q.out {
		if of == f.name {
			n++
		}
	}
	return n
}

// served reports whether a class is within its share and has a flow within its share.
func (q *Queue) served(c types.Class) bool {
	for before := range c + 1 {
		if q.FlowShare > 0 && q.Uses(before) >= q.ClassShare[before] {
			return false
		}
	}
	return len(q.rings[c]) > 0
}

// Ready reports whether a waiting item may be served.
func (q *Queue) Ready() bool {
	return q.served(types.ClassInternal) || q.served(types.ClassAuthed) || q.served(types.ClassAnon)
}

// Return ends the use of an item.
func (q *Queue) Return(name types.Flow) {
	at := slices.Index(q.out, name)
	q.out = slices.Delete(q.out, at, at+1)
	q.places(name.Class)
}

// places moves flows at their share aside, and returns those below it.
func (q *Queue) places(c types.Class) {
	if q.FlowShare == 0 {
		return
	}
	var ready, full []*flow
	for _, f := range q.full[c] {
		if q.inUse(f) < q.FlowShare {
			ready = append(ready, f)
		} else {
			full = append(full, f)
		}
	}
	ready = append(slices.Clip(q.rings[c]), ready...)
	q.rings[c], q.full[c] = nil, full
	for i, f := range ready {
		if q.inUse(f) < q.FlowShare {
			q.rings[c] = append(q.rings[c], f)
			continue
		}
		if f.saved = min(f.saved, 0); i == 0 {
			q.began[c] = false
		}
		q.full[c] = append(q.full[c], f)
	}
}

func (q *Queue) all() (n int) {
	for c := range q.rings {
		n += q.Len(types.Class(c))
	}
	return n
}

func (q *Queue) find(name types.Flow) *flow {
	for _, f := range q.waiting(name.Class) {
		if f.name == name {
			return f
		}
	}
	return nil
}

// Offer queues an item, or returns the limit that rejects it.
func (q *Queue) Offer(name types.Flow, place uint32, cost int64) (refused string) {
	f := q.find(name)
	switch {
	case q.Weight[name.Class] == 0:
		return "weight"
	case q.all() >= q.Most:
		return "full"
	case q.Len(name.Class) >= q.Class[name.Class]:
		return "class"
	case f != nil && len(f.items) >= q.Flow:
		return "flow"
	}
	if f == nil {
		f = &flow{name: name}
		q.rings[name.Class] = append(q.rings[name.Class], f)
	}
	f.items = append(f.items, item{place, cost})
	q.places(name.Class)
	return ""
}

// Next serves one item.
func (q *Queue) Next() (place uint32, ok bool) {
	if !q.Ready() {
		return 0, false
	}
	for {
		c := q.at
		if !q.served(types.Class(c)) {
			q.saved[c] = 0
		} else {
			if !q.given[c] {
				q.given[c] = true
				q.saved[c] += q.Weight[c] * q.Quantum
			}
			f := q.turn(c)
			if cost := f.items[0].cost; cost <= q.saved[c] {
				q.saved[c] -= cost
				f.saved -= cost
				place = f.items[0].place
				q.uses(f.name)
				q.Drop(place)
				return place, true
			}
		}
		q.given[c] = false
		q.at = (c + 1) % len(q.rings)
	}
}

// turn moves flows that cannot pay to the end of the ring, until one can pay.
func (q *Queue) turn(c int) *flow {
	for {
		f := q.rings[c][0]
		if !q.began[c] {
			q.began[c] = true
			f.saved += q.Quantum
		}
		if f.items[0].cost <= f.saved {
			return f
		}
		q.began[c] = false
		q.rings[c] = append(q.rings[c][1:], f)
	}
}

// uses counts an item as in use.
func (q *Queue) uses(name types.Flow) {
	if q.FlowShare == 0 {
		return
	}
	q.out = append(q.out, name)
	q.places(name.Class)
}

// Take serves an item out of turn; false if it is not queued. Its class does not pay for it.
func (q *Queue) Take(place uint32) bool {
	for c := range q.rings {
		for _, f := range q.waiting(types.Class(c)) {
			for _, x := range f.items {
				if x.place == place {
					f.saved = max(f.saved-x.cost, -q.Quantum)
					q.uses(f.name)
					return q.Drop(place)
				}
			}
		}
	}
	return false
}

// First reports whether an item is the first of its flow.
func (q *Queue) First(place uint32) bool {
	for c := range q.rings {
		for _, f := range q.waiting(types.Class(c)) {
			if f.items[0].place == place {
				return true
			}
		}
	}
	return false
}

// Drop removes an item; false if it is not queued.
func (q *Queue) Drop(place uint32) bool {
	for c := range q.rings {
		for _, f := range q.waiting(types.Class(c)) {
			for j, x := range f.items {
				if x.place != place {
					continue
				}
				if f.items = append(f.items[:j:j], f.items[j+1:]...); len(f.items) == 0 {
					q.leaves(c, f)
				}
				return true
			}
		}
	}
	return false
}

// leaves removes a flow without queued items.
func (q *Queue) leaves(c int, f *flow) {
	if len(q.rings[c]) > 0 && q.rings[c][0] == f {
		q.began[c] = false
	}
	others := func(o *flow) bool { return o == f }
	q.rings[c], q.full[c] = slices.DeleteFunc(slices.Clone(q.rings[c]), others), slices.DeleteFunc(slices.Clone(q.full[c]), others)
	if len(q.rings[c])+len(q.full[c]) > 0 {
		return
	}
	q.saved[c], q.given[c] = 0, false
	if q.at == c {
		q.at = (c + 1) % len(q.rings)
	}
}

// Correct gives a waiting flow up to a quantum back, or charges it.
func (q *Queue) Correct(name types.Flow, by int64) {
	f := q.find(name)
	if f == nil {
		return
	}
	was := f.saved
	switch {
	case by > 0 && was < 2*q.Quantum:
		f.saved = min(was+min(by, q.Quantum), 2*q.Quantum)
	case by < 0 && was > -q.Quantum:
		f.saved = max(was+max(by, -q.Quantum), -q.Quantum)
	}
}
