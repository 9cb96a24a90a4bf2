package drr

import (
	"strings"
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// full returns a queue with two waiting flows of one class, and one of another class that has begun its turn.
func full(t *testing.T) Queue {
	l := Limits{Places: 5, Queue: 5, Class: [types.NumClasses]int{5, 5, 5}, Flow: 5, Quantum: 100, Weights: [types.NumClasses]uint64{2, 1, 1},
		Shares: Shares{Class: [types.NumClasses]int{5, 4, 3}, Flow: 2}}
	q := New(l, 1)
	for i, f := range []types.Flow{{Class: types.ClassAuthed, ID: 1}, {Class: types.ClassAuthed, ID: 2}, {Class: types.ClassInternal, ID: 1}, {Class: types.ClassInternal, ID: 1}, {Class: types.ClassAnon, ID: 9}} {
		if err := q.Offer(f, uint32(i), 60); err != nil {
			t.Fatal(err)
		}
	}
	if place, ok := q.Next(); place != 2 || !ok {
		t.Fatalf("%d, %v", place, ok)
	}
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestHashForgetsNothing(t *testing.T) {
	q := full(t)
	const links = ": the order is hashed, as it is walked"
	hashcoverage.Every(t, &q, func() types.Hash64 { return q.HashInto(0) },
		"known: core/table has its own test",
		"items[].flow"+links, "items[].prev"+links, "items[].next"+links,
		"flows[].head"+links, "flows[].tail"+links, "flows[].prev"+links, "flows[].next"+links, "flows[].queued"+links,
		"classes[].ready.first"+links, "classes[].ready.flows"+links, "classes[].parked.first"+links, "classes[].parked.flows"+links, "classes[].queued"+links,
		"classes[].out: the sum of those of its flows, which are hashed",
		"items[].cost: of what is not queued, of no meaning", "flows[].deficit: of a flow without items, the same", "flows[].parked: the same",
		"flows[].out: of what is not known, of no meaning")
	hashcoverage.Every(t, &q.items[0].cost, func() types.Hash64 { return q.HashInto(0) })
	hashcoverage.Every(t, &q.flows[0].parked, func() types.Hash64 { return q.HashInto(0) })
	hashcoverage.Every(t, &q.flows[0].out, func() types.Hash64 { return q.HashInto(0) })
	hashcoverage.Every(t, &q.flows[0].deficit, func() types.Hash64 { return q.HashInto(0) })
}

// TestCheckFinds: Check finds each broken invariant.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(*Queue)
	}{
		{"F1: ", func(q *Queue) { q.items[2].flow = 0 }},
		{"F1: ", func(q *Queue) { q.items[1].flow = 0 }},
		{"F1, F2: ", func(q *Queue) { q.queued-- }},
		{"F1, F2: ", func(q *Queue) { q.most.queue = 3 }},
		{"F1, F2: ", func(q *Queue) { q.classes[types.ClassAuthed].queued++ }},
		{"F1, F2: ", func(q *Queue) { q.flows[q.items[1].flow].queued++ }}, // the second of its ring
		{"F3: ", func(q *Queue) { q.Drop(4); q.classes[types.ClassAnon].visited = true }},
		{"F3: ", func(q *Queue) { q.Drop(4); q.classes[types.ClassAnon].begun = true }},
		{"F4: ", func(q *Queue) { q.flows[q.items[1].flow].deficit = 301 }},
		{"F1, F2: ", func(q *Queue) { q.most.class[types.ClassAuthed] = 1 }},
		{"F1, F2: ", func(q *Queue) { q.most.flow = 0 }},
		{"F3: ", func(q *Queue) { q.Drop(4); q.classes[types.ClassAnon].deficit = 1 }},
		{"F4: ", func(q *Queue) { q.classes[types.ClassInternal].deficit = 1000 }},
		{"F4: ", func(q *Queue) { q.flows[q.classes[types.ClassAnon].ready.first].deficit = -101 }},
		{"F6: ", func(q *Queue) { q.flows[q.items[1].flow].parked = true }},
		{"F6: ", func(q *Queue) { q.flows[q.items[1].flow].out = 2 }},
		{"F6: ", func(q *Queue) { q.flows[q.items[1].flow].out = 9 }},
		{"F6: ", func(q *Queue) { q.classes[types.ClassInternal].out = 0 }},
		{"F6: ", func(q *Queue) { q.most.inUse.Class[types.ClassInternal] = 0 }},
		{"F6: ", func(q *Queue) { q.known.Put(types.Flow{ID: 77}, nothing{}) }},
		{"F5: ", func(q *Queue) { q.limits.Weights[types.ClassAnon] = 0 }},
	} {
		q := full(t)
		c.spoil(&q)
		if err := q.Check(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
