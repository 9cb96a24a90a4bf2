package drr

import (
	"fmt"

	"macronode/core/types"
)

// each yields all items in the order of the classes, of the rings of a class, and of the flow from first to last.
func (q *Queue) each(yield func(f types.Flow, at, place uint32)) {
	for c := range q.classes {
		q.eachOf(&q.classes[c].ready, yield)
		q.eachOf(&q.classes[c].parked, yield)
	}
}

func (q *Queue) eachOf(r *ring, yield func(f types.Flow, at, place uint32)) {
	at := r.first
	for range r.flows {
		name, _ := q.known.Row(at)
		for place := q.flows[at].head; place != none; place = q.items[place].next {
			yield(name, at, place)
		}
		at = q.flows[at].next
	}
}

// HashInto mixes all of q into h: the queued items in their order, and the deficits.
func (q *Queue) HashInto(h types.Hash64) types.Hash64 {
	h = q.most.HashInto(q.limits.HashInto(h)).Mix(uint64(q.turn)).Mix(uint64(q.queued))
	for i := range q.classes {
		c := &q.classes[i]
		h = h.Mix(c.deficit).MixBool(c.visited).MixBool(c.begun)
	}
	last := none
	q.each(func(f types.Flow, at, place uint32) {
		if at != last {
			h, last = f.HashInto(h).Mix(uint64(q.flows[at].deficit)).MixBool(q.flows[at].parked), at
		}
		h = h.Mix(uint64(place)).Mix(q.items[place].cost)
	})
	var uses types.Hash64 // of all flows, in no order
	for at := range q.known.Capacity() {
		if out := q.flows[at].out; out > 0 {
			name, _ := q.known.Row(uint32(at))
			uses += name.HashInto(types.Hash64(out))
		}
	}
	return h.Mix(uint64(uses))
}

// CopyTo overwrites dst, reusing its memory.
func (q *Queue) CopyTo(dst *Queue) {
	items, flows, known := append(dst.items[:0], q.items...), append(dst.flows[:0], q.flows...), dst.known
	q.known.CopyTo(&known)
	*dst = *q
	dst.items, dst.flows, dst.known = items, flows, known
}

// Check returns the first invariant that does not hold.
func (q *Queue) Check() error {
	if err := q.known.Check(); err != nil {
		return fmt.Errorf("drr: %w", err)
	}
	var fewSeen, few = [128]bool{}, [128]uint32{} // most checked queues are small
	seen, queued := fewSeen[:], few[:]
	if len(q.items) > len(seen) || len(q.flows) > len(queued) {
		seen, queued = make([]bool, len(q.items)), make([]uint32, len(q.flows))
	}
	var classes [types.NumClasses]uint32
	var wrong error
	q.each(func(f types.Flow, at, place uint32) {
		if seen[place] || q.items[place].flow != at {
			wrong = fmt.Errorf("F1: item %d of %v is queued twice, or elsewhere", place, f)
		}
		seen[place] = true
		queued[at]++
		classes[f.Class]++
	})
	if wrong != nil {
		return wrong
	}
	all := 0
	for place := range q.items {
		if q.items[place].flow != none != seen[place] {
			return fmt.Errorf("F1: item %d is queued, and in no flow of a ring", place)
		}
		if seen[place] {
			all++
		}
	}
	if all != q.queued || all > q.most.queue {
		return fmt.Errorf("F1, F2: %d are queued, counted %d, at most %d", all, q.queued, q.most.queue)
	}
	for c := range q.classes {
		if err := q.checkClass(types.Class(c), classes[c], queued); err != nil {
			return err
		}
	}
	return q.checkUse(queued)
}

// checkUse checks F6.
func (q *Queue) checkUse(queued []uint32) error {
	var out [types.NumClasses]uint32
	known := 0
	for at := range q.known.Capacity() {
		f := &q.flows[at]
		if f.out == 0 && queued[at] == 0 {
			continue
		}
		known++
		name, _ := q.known.Row(uint32(at))
		if out[name.Class] += f.out; int(f.out) > q.most.inUse.Flow {
			return fmt.Errorf("F6: a flow of class %v uses %d, at most %d", name.Class, f.out, q.most.inUse.Flow)
		}
		if f.parked != (queued[at] > 0 && q.full(f)) {
			return fmt.Errorf("F6: a flow of class %v uses %d, has %d queued, is parked %v", name.Class, f.out, queued[at], f.parked)
		}
	}
	if known != q.known.Len() {
		return fmt.Errorf("F6: %d flows are known, %d have anything", q.known.Len(), known)
	}
	all := 0
	for of := types.NumClasses; of > 0; of-- {
		n := q.classes[of-1].out
		if all += int(n); n != out[of-1] || all > q.most.inUse.Class[of-1] && all > 0 {
			return fmt.Errorf("F6: class %v uses %d, counted %d, at most %d with those behind it", of-1, out[of-1], n, q.most.inUse.Class[of-1])
		}
	}
	return nil
}

func (q *Queue) checkClass(of types.Class, there uint32, queued []uint32) error {
	c, weight := &q.classes[of], q.limits.Weights[of]
	switch {
	case c.queued != there || int(there) > q.most.class[of]:
		return fmt.Errorf("F1, F2: %d of class %v are queued, counted %d, at most %d", there, of, c.queued, q.most.class[of])
	case there == 0 && (c.deficit != 0 || c.visited || c.begun):
		return fmt.Errorf("F3: class %v has nothing queued, and saved %d, was visited %v, has begun %v", of, c.deficit, c.visited, c.begun)
	case c.deficit > (weight+1)*q.limits.Quantum:
		return fmt.Errorf("F4: class %v has saved %d", of, c.deficit)
	case weight == 0 && there > 0:
		return fmt.Errorf("F5: class %v has no weight and %d queued", of, there)
	}
	if err := q.checkRing(of, &c.ready, false, queued); err != nil {
		return err
	}
	return q.checkRing(of, &c.parked, true, queued)
}

// checkRing checks the flows of one ring of a class.
func (q *Queue) checkRing(of types.Class, r *ring, parked bool, queued []uint32) error {
	quantum, at := int64(q.limits.Quantum), r.first
	for range r.flows {
		f := &q.flows[at]
		switch {
		case f.parked != parked:
			return fmt.Errorf("F6: a flow of class %v stands in the ring of others", of)
		case f.queued != queued[at] || f.queued == 0 || int(f.queued) > q.most.flow:
			return fmt.Errorf("F1, F2: a flow of class %v has %d queued, counted %d, at most %d", of, queued[at], f.queued, q.most.flow)
		case f.deficit > 3*quantum || f.deficit < -quantum:
			return fmt.Errorf("F4: a flow of class %v may spend %d", of, f.deficit)
		}
		at = f.next
	}
	return nil
}
