package admission

import (
	"time"

	"macronode/core/gateway/drr"
	"macronode/core/types"
)

// A part is further bytes of a request's bodies that may not go yet.
//
//	         ┌─ its caller's quotas have none ─► paused ─ its time ─┐
//	asked for ┴──────────────────────────────────────────────────────┴► lined ── its turn ──► gone
//	                                                                      └── too long ─────► refused
type part struct {
	state partState
	bytes uint64
	until types.Instant // its time comes; or, lined, it has waited for too long
}

type partState uint8

const (
	nothing partState = iota
	paused
	lined
)

// An Over is what has become of somebody whose time is over.
type Over uint8

const (
	Waited Over = iota // in a queue, for as long as he may: he is gone
	Paused             // no longer: what was paused of his may go on
	Lined              // what is lined of his for too long, or without a permit: it is dropped
)

func lineLimits(l *Limits) drr.Limits {
	line := drr.Limits{Places: l.Places, Queue: l.Places, Flow: l.Places, Quantum: l.Quantum}
	for c, w := range l.Weights {
		line.Class[c], line.Weights[c] = l.Places, max(1, w) // whoever is in is served to the end
	}
	return line
}

// Holds reports that a ticket is of a request that is in, Works that it has a permit, and
// waits for nothing.
func (a *Admit) Holds(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state != free
}

func (a *Admit) Works(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state == out && r.part.state == nothing
}

// Lost reports that the permit of a request that is in was taken back.
func (a *Admit) Lost(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state == lost
}

// Patience is how long a request may be kept waiting for a part of its bodies.
func (a *Admit) Patience(t types.Ticket) time.Duration { return a.rows[t.Slot()].patience }

// Pause keeps a part back until its time.
func (a *Admit) Pause(t types.Ticket, bytes uint64, until types.Instant) {
	a.rows[t.Slot()].part = part{paused, bytes, until}
	a.due(t.Slot())
}

// Line has a part wait for its turn among all that are lined, of whatever facet.
func (a *Admit) Line(t types.Ticket, bytes uint64, until types.Instant) {
	place := t.Slot()
	r := &a.rows[place]
	r.part = part{lined, bytes, until}
	err := a.line.Offer(r.flow, place, min(bytes, a.limits.Quantum))
	types.Assert(err == nil, "admission: a line that is full")
	a.due(place)
}

// Lined is how many parts wait for their turn; Paused is how many bytes are paused of a
// request.
func (a *Admit) Lined() int                   { return a.line.Len() }
func (a *Admit) Paused(t types.Ticket) uint64 { return a.rows[t.Slot()].part.bytes }

// First reports that a part is next, where somebody waits for a permit too: they take turns.
func (a *Admit) First() bool { return !a.passed }

// NextPart lets the part go whose turn it is.
func (a *Admit) NextPart() (t types.Ticket, bytes uint64) {
	place, ok := a.line.Next()
	types.Assert(ok, "admission: nobody is in the line")
	r := &a.rows[place]
	bytes = r.part.bytes
	r.part = part{}
	a.passed = true
	a.due(place)
	return r.ticket, bytes
}

// Pass charges a request for further bytes: its flow, where it waits for anything, waits a
// turn longer.
func (a *Admit) Pass(t types.Ticket, bytes uint64) {
	r := &a.rows[t.Slot()]
	r.cost += bytes
	a.queues[r.facet].Correct(r.flow, -int64(min(bytes, a.limits.Quantum)))
}

// drop forgets the part of a request.
func (a *Admit) drop(place uint32) {
	r := &a.rows[place]
	if r.part.state == lined {
		a.line.Drop(place)
	}
	r.part = part{}
}

// due puts a row where it belongs among those that are due.
func (a *Admit) due(place uint32) {
	r := &a.rows[place]
	r.until = r.end.Add(a.limits.Grace)
	if r.part.state != nothing {
		r.until = min(r.until, r.part.until)
	}
	a.moved(place)
}
