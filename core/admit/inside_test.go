package admit

import (
	"strings"
	"testing"
	"time"

	"macronode/ci/flip"
	"macronode/core/event"
	"macronode/core/words"
)

// full has guests in all states: at work, lost, waiting.
func full() Admit {
	l := Limits{Places: 5, Quantum: 100, Weights: [words.Classes]uint64{10, 5, 1}, Least: 1, Wait: time.Second, Routes: []int{4}}
	for f := range l.Facets {
		l.Facets[f] = Facet{Permits: 2, Queue: 4, Class: [words.Classes]int{4, 4, 4}, Flow: 4}
	}
	a := New(l, 1)
	for slot := range uint32(4) {
		a.Arrive(0, &event.Arrive{Ticket: words.NewTicket(slot, 1), Class: words.Authed, Tenant: words.Tenant(1 + slot/2), Key: 1,
			Patience: time.Duration(5+slot*20) * time.Second, Bytes: -1})
		if slot < 2 {
			a.Next(0)
		}
	}
	for late := true; late; { // both that wait have to go
		_, _, _, _, late = a.Overdue(words.Instant(2 * time.Second))
	}
	for slot := uint32(2); slot < 4; slot++ {
		a.Arrive(words.Instant(4500*time.Millisecond), &event.Arrive{Ticket: words.NewTicket(slot, 2), Class: words.Authed, Tenant: 3, Key: 1, Patience: time.Minute, Bytes: -1})
	}
	a.Overdue(words.Instant(5 * time.Second)) // one that is at work
	return a
}

func TestHashForgetsNothing(t *testing.T) {
	a := full()
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	flip.Every(t, &a, func() words.Hash64 { return a.Mix(0) },
		"queues: core/fair has its own test", "line: the same",
		"dues: an order that follows from rows",
		"rows[].due: where it stands there",
		"rows[].ticket: of a free row, of no meaning; Check and stories see the others",
		"rows[].state: the same", "rows[].facet: the same", "rows[].route: the same", "rows[].flow: the same", "rows[].cost: the same",
		"rows[].part.state: the same", "rows[].part.bytes: the same", "rows[].part.until: the same", "rows[].patience: the same",
		"rows[].since: the same", "rows[].end: the same", "rows[].until: the same",
	)
	r := &a.rows[2]
	flip.Every(t, r, func() words.Hash64 { return a.Mix(0) }, "due: where it stands among those that are due")
}

// TestCheckFinds: what Check names is found.
func TestCheckFinds(t *testing.T) {
	for want, spoil := range map[string]func(*Admit){
		"A1: ": func(a *Admit) { a.rows[1].state = lost },
		"A2: ": func(a *Admit) { a.rows[2].state = out },
		"A3: ": func(a *Admit) { a.rows[2].until = 1 << 60 },
		"A4: ": func(a *Admit) { a.routes[0]-- },
		"A5: ": func(a *Admit) { a.rows[0].part, a.rows[1].part = part{state: lined}, part{state: lined} },
	} {
		a := full()
		a.rows[4] = row{state: lost}
		a.routes[0]++
		spoil(&a)
		if err := a.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
