package admission

import (
	"strings"
	"testing"
	"time"

	"macronode/ci/hashcoverage"
	"macronode/core/event"
	"macronode/core/types"
)

// full returns an admission with requests in all states: in progress, revoked, waiting.
func full() Admit {
	l := Limits{Places: 5, Quantum: 100, Weights: [types.NumClasses]uint64{10, 5, 1}, Least: 1, Wait: time.Second, Routes: []event.RouteLimits{{Requests: 4}}}
	for f := range l.Facets {
		l.Facets[f] = Facet{Permits: 2, Queue: 4, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 4}
	}
	a := New(l, 1)
	for slot := range uint32(4) {
		a.Arrive(0, &event.Admit{Ticket: types.NewTicket(slot, 1), Class: types.ClassAuthed, Tenant: types.Tenant(1 + slot/2), Key: 1,
			TimeLeft: time.Duration(5+slot*20) * time.Second, DeclaredBytes: -1})
		if slot < 2 {
			a.Next(0)
		}
	}
	for late := true; late; { // both that wait have to go
		_, late = a.Overdue(types.Instant(2*time.Second), false)
	}
	for slot := uint32(2); slot < 4; slot++ {
		a.Arrive(types.Instant(4500*time.Millisecond), &event.Admit{Ticket: types.NewTicket(slot, 2), Class: types.ClassAuthed, Tenant: 3, Key: 1, TimeLeft: time.Minute, DeclaredBytes: -1})
	}
	a.Overdue(types.Instant(5*time.Second), false) // one that is at work
	return a
}

func TestHashForgetsNothing(t *testing.T) {
	a := full()
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	hashcoverage.Every(t, &a, func() types.Hash64 { return a.HashInto(0) },
		"queues: core/gateway/drr has its own test", "line: the same",
		"routes.byFlow.index: core/table has its own test", "routes.byFlow.seed: the same", "routes.byFlow.free: the same", "routes.byFlow.rows: its sum is in the hash",
		"dues: an order that follows from rows",
		"rows[].due: where it stands there",
		"rows[].ticket: of a free row, of no meaning; Check and stories see the others",
		"rows[].state: the same", "rows[].facet: the same", "rows[].route: the same", "rows[].flow: the same", "rows[].key: the same", "rows[].keyEnded: the same", "rows[].cost: the same",
		"rows[].part.state: the same", "rows[].part.bytes: the same", "rows[].part.until: the same", "rows[].patience: the same",
		"rows[].since: the same", "rows[].end: the same", "rows[].until: the same",
	)
	r := &a.rows[2]
	hashcoverage.Every(t, r, func() types.Hash64 { return a.HashInto(0) }, "due: where it stands among those that are due")
}

// TestCheckFinds: Check finds each broken invariant.
func TestCheckFinds(t *testing.T) {
	for want, spoil := range map[string]func(*Admit){
		"A1: ":    func(a *Admit) { a.rows[1].state = lost },
		"A2: ":    func(a *Admit) { a.rows[2].state = out },
		"A3: ":    func(a *Admit) { a.rows[2].until = 1 << 60 },
		"A4: ":    func(a *Admit) { a.routes.all[0]-- },
		"A4: 3 f": func(a *Admit) { a.routes.byFlow.Drop(0) },
		"A4: {":   func(a *Admit) { a.routes.byFlow.Set(0, 7) },
		"A5: ":    func(a *Admit) { a.rows[0].part, a.rows[1].part = part{state: lined}, part{state: lined} },
	} {
		a := full()
		a.rows[4] = row{state: lost}
		a.routes.add(a.limits.Routes, 0, types.Flow{})
		spoil(&a)
		if err := a.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
