package admission

import (
	"time"

	"macronode/core/gateway/drr"
	"macronode/core/types"
)

// A part is further bytes of a request's bodies that wait to be granted.
//
//	         ┌─ its caller's quotas have none ─► paused ─ its time ─┐
//	asked for ┴──────────────────────────────────────────────────────┴► lined ── its turn ──► gone
//	                                                                      └── too long ─────► refused
type part struct {
	state partState
	bytes uint64
	until types.Instant // when it may go, or if it is lined, when it has waited for too long
}

type partState uint8

const (
	nothing partState = iota
	paused
	lined
)

// An Over is the result of Overdue.
type Over uint8

const (
	Waited   Over = iota // the queued request has waited for too long and is removed
	Paused               // the paused part may go on
	Lined                // the lined part has waited for too long or lost its permit: it is dropped
	TookOver             // the queued request has the permit of Loser, which lasted; a part of it that waited is dropped
)

func lineLimits(l *Limits) drr.Limits {
	line := drr.Limits{Places: l.Places, Queue: l.Places, Flow: l.Places, Quantum: l.Quantum}
	for c, w := range l.Weights {
		line.Class[c], line.Weights[c] = l.Places, max(1, w) // admitted requests are served to the end
	}
	return line
}

// Holds reports whether a ticket is in use, Works whether its request has a permit and waits for nothing.
func (a *Admit) Holds(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state != free
}

func (a *Admit) Works(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state == out && r.part.state == nothing
}

// Admitted reports whether the request of a ticket was admitted and is not finished. Its permit may be revoked.
func (a *Admit) Admitted(t types.Ticket) bool {
	return int(t.Slot()) < len(a.rows) && a.Holds(t) && a.rows[t.Slot()].state != queued
}

// Lost reports whether the permit of a request was revoked.
func (a *Admit) Lost(t types.Ticket) bool {
	r := &a.rows[t.Slot()]
	return r.ticket == t && r.state == lost
}

// Patience returns how long a request may wait for a part of its bodies.
func (a *Admit) Patience(t types.Ticket) time.Duration { return a.rows[t.Slot()].patience }

// Pause holds a part back until a time.
func (a *Admit) Pause(t types.Ticket, bytes uint64, until types.Instant) {
	a.rows[t.Slot()].part = part{paused, bytes, until}
	a.due(t.Slot())
}

// Line queues a part for its turn among the parts of all facets.
func (a *Admit) Line(t types.Ticket, bytes uint64, until types.Instant) {
	place := t.Slot()
	r := &a.rows[place]
	r.part = part{lined, bytes, until}
	err := a.line.Offer(r.flow, place, min(bytes, a.limits.Quantum))
	types.Assert(err == nil, "admission: a line that is full")
	a.due(place)
}

// Lined returns the number of queued parts, Paused the paused bytes of a request.
func (a *Admit) Lined() int                   { return a.line.Len() }
func (a *Admit) Paused(t types.Ticket) uint64 { return a.rows[t.Slot()].part.bytes }

// First reports whether a part is next, if requests wait for a permit too: they take turns.
func (a *Admit) First() bool { return !a.passed }

// NextPart takes the next part.
func (a *Admit) NextPart() (t types.Ticket, bytes uint64) {
	place, ok := a.line.Next()
	types.Assert(ok, "admission: no part is in the line")
	r := &a.rows[place]
	bytes = r.part.bytes
	r.part = part{}
	a.passed = true
	a.due(place)
	return r.ticket, bytes
}

// Pass charges the flow of a request for further bytes, which delays its queued requests.
func (a *Admit) Pass(t types.Ticket, bytes uint64) {
	r := &a.rows[t.Slot()]
	r.cost += bytes
	a.queues[r.facet].Correct(r.flow, -int64(min(bytes, a.limits.Quantum)))
}

// drop removes the part of a request.
func (a *Admit) drop(place uint32) {
	r := &a.rows[place]
	if r.part.state == lined {
		a.line.Drop(place)
	}
	r.part = part{}
}

// due moves a row to its place in dues.
func (a *Admit) due(place uint32) {
	r := &a.rows[place]
	r.until = r.end.Add(a.limits.Grace)
	if r.part.state != nothing {
		r.until = min(r.until, r.part.until)
	}
	a.moved(place)
}
