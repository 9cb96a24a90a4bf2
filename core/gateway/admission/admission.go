// Package admission knows who is in the house: who waits for a permit, who has one, and who
// has kept one for too long.
//
//	          ┌──── late, or the client left ──────────────────────┐
//	Arrive ─► queued ──Next──► out ──Settle──────────────────────► free
//	                            └── kept too long ─► lost ─Settle─► free
//
// A row stands for each slot of the shell, so that whatever comes later for a request
// finds its place, and a word about an earlier use of the slot changes nothing.
package admission

import (
	"errors"
	"math"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/drr"
	"macronode/core/types"
)

// ErrRoute is why a request is not queued, beside what core/gateway/drr refuses.
var ErrRoute = errors.New("admission: route has as many at work as it may")

// Limits are who may be in.
type Limits struct {
	Places  int // tickets: queued and at work, of all facets
	Facets  [types.NumFacets]Facet
	Quantum uint64
	Weights [types.NumClasses]uint64
	Least   uint64        // what a request costs at least, in bytes
	Wait    time.Duration // in a queue, at most
	Grace   time.Duration // behind a request's deadline, before its permit is taken back
	Routes  []int         // of each route, how many may wait and be at work; 0: as many as there is room for
}

// Facet is the part of one facet.
type Facet = event.FacetLimits

type state uint8

const (
	free state = iota
	queued
	out
	lost // at work, but its permit was taken back
)

// row is one slot of the shell.
type row struct {
	ticket   types.Ticket
	state    state
	facet    types.Facet
	route    uint16
	flow     types.Flow
	cost     uint64
	since    types.Instant // it came
	end      types.Instant // of its caller's deadline, or of what it may keep
	patience time.Duration
	until    types.Instant // something is to be done about it
	part     part          // of its bodies, that may not go yet
	due      int32         // where it stands among those; meaningless when free or lost
}

// Admit gives permits and takes them back.
//
// Invariants:
//
//	A1  of each facet, permits that are out are the rows that are out; that they are no more
//	    than the limit, and of a class and a flow no more than the shares, is F6 of its queue
//	A2  a row waits in the queue of its facet if and only if it is queued
//	A3  rows that are queued or out stand among those that are due, the earliest first
//	A4  of each route, what is counted is its rows that are queued or at work, lost ones too
//	A5  a part stands in the line if and only if it is lined, and only who has a permit has one
type Admit struct {
	plain

	rows   []row
	queues [types.NumFacets]drr.Queue
	line   drr.Queue // of parts of bodies, of all facets
	routes []uint32
	dues   []uint32 // a heap of places
}

// plain is what of it is copied as it stands: it owns no memory.
type plain struct {
	limits Limits
	passed bool // a part went last, and no request since
	turn   types.Facet
	taken  uint64 // permits that were taken back from those who kept them too long
}

// New is an empty house.
func New(l Limits, seed types.Hash64) Admit {
	a := Admit{plain: plain{limits: l}, rows: make([]row, l.Places), routes: make([]uint32, len(l.Routes)), dues: make([]uint32, 0, l.Places)}
	for f := range a.queues {
		a.queues[f] = drr.New(queueLimits(&l, types.Facet(f)), seed)
	}
	a.line = drr.New(lineLimits(&l), seed)
	return a
}

func queueLimits(l *Limits, f types.Facet) drr.Limits {
	of := &l.Facets[f]
	return drr.Limits{Places: l.Places, Queue: of.Queue, Class: of.PerClass, Flow: of.PerFlow, Quantum: l.Quantum, Weights: l.Weights, Shares: shares(of)}
}

// shares are how many permits of a facet a class and a flow may have. A flow that may have all
// of them has no share of its own: it keeps its turn while there is no permit.
func shares(of *Facet) (s drr.Shares) {
	if s.Flow = of.FlowPermits; s.Flow == 0 || s.Flow >= of.Permits {
		s.Flow = math.MaxInt
	}
	for c, most := range of.ClassPermits {
		if s.Class[c] = min(most, of.Permits); most == 0 {
			s.Class[c] = of.Permits
		}
	}
	return s
}

// Would says why a request would not be queued: nothing is changed.
func (a *Admit) Would(in *event.Admit) error {
	if int(in.Route) < len(a.routes) && a.limits.Routes[in.Route] > 0 && int(a.routes[in.Route]) >= a.limits.Routes[in.Route] {
		return ErrRoute
	}
	return a.queues[in.Facet].Would(in.Flow())
}

// cost is what a request is charged when it comes: of what is declared no more than a
// quantum with all that it is to be told. What it really was is made good when it is settled.
func (a *Admit) cost(in *event.Admit) uint64 {
	declared := a.limits.Quantum // of a body whose length nobody says
	if in.DeclaredBytes >= 0 {
		declared = uint64(in.DeclaredBytes)
	}
	return min(max(declared, a.limits.Least)+uint64(in.ResponseEstimate), a.limits.Quantum)
}

// Arrive queues a request that Would not be refused.
func (a *Admit) Arrive(now types.Instant, in *event.Admit) {
	place := in.Ticket.Slot()
	r := &a.rows[place]
	types.Assert(r.state == free, "admission: a slot that is in use")
	*r = row{ticket: in.Ticket, state: queued, facet: in.Facet, route: in.Route, flow: in.Flow(), cost: a.cost(in),
		since: now, patience: in.TimeLeft, end: now.Add(max(in.TimeLeft, in.PermitFor)), until: now.Add(min(a.limits.Wait, in.TimeLeft/4))}
	err := a.queues[in.Facet].Offer(r.flow, place, r.cost)
	types.Assert(err == nil, "admission: queued what would be refused")
	if int(in.Route) < len(a.routes) {
		a.routes[in.Route]++
	}
	a.enlist(place)
}

// Ripe reports that somebody waits who may have a permit.
func (a *Admit) Ripe() bool {
	for f := range a.queues {
		if a.queues[f].Ready() {
			return true
		}
	}
	return false
}

// Next gives a permit to whose turn it is, which Ripe says there is. The facets take turns.
func (a *Admit) Next(now types.Instant) (t types.Ticket, waited time.Duration) {
	types.Assert(a.Ripe(), "admission: nobody may go")
	for !a.queues[a.turn].Ready() {
		a.turn = (a.turn + 1) % types.NumFacets
	}
	f := a.turn
	a.turn = (a.turn + 1) % types.NumFacets
	place, _ := a.queues[f].Next()
	r := &a.rows[place]
	r.state = out
	a.passed = false
	a.due(place)
	return r.ticket, time.Duration(now - r.since)
}

// Settle ends a request: its permit is free again, or its place in a queue. What it really
// took is made good by its flow. A ticket that is not in, or not any more, changes nothing:
// ended is false. It had worked, unless it waited still.
func (a *Admit) Settle(t types.Ticket, bytes uint64) (ended, worked bool) {
	r := &a.rows[t.Slot()]
	if r.ticket != t || r.state == free {
		return false, false
	}
	worked = r.state != queued
	switch r.state {
	case free, lost:
	case queued:
		a.queues[r.facet].Drop(t.Slot())
		a.unlist(t.Slot())
	case out:
		a.drop(t.Slot())
		a.unlist(t.Slot())
		a.queues[r.facet].Return(r.flow)
		a.queues[r.facet].Correct(r.flow, int64(r.cost)-int64(min(max(bytes, a.limits.Least), 1<<40)))
	}
	a.leave(r)
	return true, worked
}

// leave frees a row.
func (a *Admit) leave(r *row) {
	r.state = free
	if int(r.route) < len(a.routes) {
		a.routes[r.route]--
	}
}

// Overdue ends the waiting of one who has waited for as long as he may, for a permit or with
// a part of his bodies, of so many bytes; false when there is none. Meanwhile it takes back the permits of those
// who have kept them too long: they are still to be settled.
func (a *Admit) Overdue(now types.Instant) (t types.Ticket, what Over, waited time.Duration, bytes uint64, ok bool) {
	for len(a.dues) > 0 {
		place := a.dues[0]
		r := &a.rows[place]
		if r.until > now {
			break
		}
		if r.state == queued {
			a.unlist(place)
			a.queues[r.facet].Drop(place)
			a.leave(r)
			return r.ticket, Waited, time.Duration(now - r.since), 0, true
		}
		was := r.part
		a.drop(place)
		if kept := r.end.Add(a.limits.Grace); kept <= now {
			a.unlist(place)
			r.state = lost
			a.queues[r.facet].Return(r.flow)
			a.taken++
			if was.state == paused {
				was.state = lined // it will not go
			}
		} else {
			a.due(place)
		}
		if was.state != nothing {
			return r.ticket, Over(was.state), 0, was.bytes, true
		}
	}
	return 0, 0, 0, 0, false
}

// Due is when Overdue has something to do.
func (a *Admit) Due() (due types.Instant, any bool) {
	if len(a.dues) == 0 {
		return 0, false
	}
	return a.rows[a.dues[0]].until, true
}

// Evict takes somebody out of the queues; false when nobody waits.
func (a *Admit) Evict() (t types.Ticket, ok bool) {
	for f := range a.queues {
		if place, any := a.queues[f].Evict(); any {
			r := &a.rows[place]
			a.unlist(place)
			a.leave(r)
			return r.ticket, true
		}
	}
	return 0, false
}

// Waiting is how many requests wait for a permit, of all facets.
func (a *Admit) Waiting() (n int) {
	for f := range a.queues {
		n += a.queues[f].Len()
	}
	return n
}

// Working is how many are at work, of all facets, those too whose permits were taken back.
func (a *Admit) Working() (n int) {
	for i := range a.rows {
		if s := a.rows[i].state; s == out || s == lost {
			n++
		}
	}
	return n
}

// Ahead is how many of its facet are served before a request that comes now, Alone reports
// that nobody of its flow waits.
func (a *Admit) Ahead(in *event.Admit) int  { return a.queues[in.Facet].Ahead(in.Flow()) }
func (a *Admit) Alone(in *event.Admit) bool { return a.queues[in.Facet].Waits(in.Flow()) == 0 }

// Out is how many permits of a facet are out, Queued how many of a class wait for one,
// Saved what a class may still spend of its turn, and Taken how many permits were ever
// taken back.
func (a *Admit) Out(f types.Facet) int                     { return a.queues[f].InUse() }
func (a *Admit) Saved(f types.Facet, c types.Class) uint64 { return a.queues[f].Saved(c) }
func (a *Admit) Queued(f types.Facet, c types.Class) int   { return a.queues[f].Of(c) }
func (a *Admit) Taken() uint64                             { return a.taken }
