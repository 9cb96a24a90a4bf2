// Package admission tracks requests: which wait for a permit, which have one, and which have kept one
// for too long.
//
//	          ┌──── timeout, or the client disconnected ───────────┐
//	Arrive ─► queued ──Next──► out ──Settle──────────────────────► free
//	                            └── kept too long, gave way, or its key ended ─► lost ─Settle─► free
//
// There is one row for each slot of the dispatcher, so that a later event of a request finds its row, and
// an event for an earlier use of the slot changes nothing.
package admission

import (
	"errors"
	"math"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/drr"
	"macronode/core/types"
)

// Why a request of a route is rejected. Other rejections are those of core/gateway/drr.
var (
	ErrRoute     = errors.New("admission: route has as many at work as it may")
	ErrRouteFlow = errors.New("admission: flow has its share of the route")
)

// Limits are the limits of admission.
type Limits struct {
	Places  int // slots of all facets: queued and at work
	Facets  [types.NumFacets]Facet
	Quantum uint64
	Weights [types.NumClasses]uint64
	Least   uint64        // minimum cost of a request, in bytes
	Wait    time.Duration // maximum time in a queue
	GiveWay time.Duration // age at which a request without a key gives way to one of a peer without a permit; 0: never
	Grace   time.Duration // time after the deadline of a request before its permit is revoked
	Routes  []event.RouteLimits
}

// Facet has the limits of one facet.
type Facet = event.FacetLimits

type state uint8

const (
	free state = iota
	queued
	out
	lost // at work, but its permit was revoked
)

// row is one slot of the dispatcher.
type row struct {
	ticket   types.Ticket
	state    state
	facet    types.Facet
	route    uint16
	flow     types.Flow
	key      types.KeyID // API key; 0: none
	keyEnded bool
	cost     uint64
	since    types.Instant // arrival; with a permit, when it got that
	end      types.Instant // deadline of the caller, or end of the permit
	patience time.Duration
	until    types.Instant // when it is due
	part     part          // a part of its bodies that waits
	due      int32         // index in dues; undefined if free or lost
}

// Admit grants and revokes permits.
//
// Invariants:
//
//	A1  the permits of a facet are its rows that are out; F6 of its queue bounds them by the limit and the
//	    shares of classes and flows
//	A2  a row is in the queue of its facet if and only if it is queued
//	A3  rows that are queued or out are in dues, the earliest first
//	A4  the counts of a route with a limit, of all and of each flow, are the numbers of its rows that are queued or at work, including
//	    lost ones
//	A5  a part is in the line if and only if its row is lined; only a row with a permit has one
type Admit struct {
	plain

	rows   []row
	queues [types.NumFacets]drr.Queue
	line   drr.Queue // parts of bodies of all facets
	routes routes
	dues   []uint32 // heap of rows
}

// plain are the fields that CopyTo copies by assignment: they own no memory.
type plain struct {
	limits Limits
	passed bool // a part was granted last
	turn   types.Facet
	taken  uint64 // permits that were kept for too long
}

// New returns an Admit without requests.
func New(l Limits, seed types.Hash64) Admit {
	l.Routes = slices.Clone(l.Routes)
	a := Admit{plain: plain{limits: l}, rows: make([]row, l.Places), routes: newRoutes(&l, seed), dues: make([]uint32, 0, l.Places)}
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

// shares returns the permits of a facet that a class and a flow may have. A flow that may have all of them
// has no share: it keeps its turn while no permit is free.
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

// Would returns why a request would be rejected. It changes nothing.
func (a *Admit) Would(in *event.Admit) error {
	if err := a.routes.would(a.limits.Routes, in.Route, in.Flow()); err != nil {
		return err
	}
	if err := a.queues[in.Facet].Would(in.Flow()); err != nil {
		return err
	}
	if !a.leavesRoom(in) || !a.leavesPlaces(in) {
		return drr.ErrFlow
	}
	return nil
}

// cost returns what a request is charged on arrival: its declared body and the estimated response, at most a
// quantum. Settle corrects it by the actual bytes.
func (a *Admit) cost(in *event.Admit) uint64 {
	declared := a.limits.Quantum // of a body without a declared length
	if in.DeclaredBytes >= 0 {
		declared = uint64(in.DeclaredBytes)
	}
	return min(max(declared, a.limits.Least)+uint64(in.ResponseEstimate), a.limits.Quantum)
}

// Arrive queues a request that Would accepts.
func (a *Admit) Arrive(now types.Instant, in *event.Admit) {
	place := in.Ticket.Slot()
	r := &a.rows[place]
	types.Assert(r.state == free, "admission: a slot that is in use")
	*r = row{ticket: in.Ticket, state: queued, facet: in.Facet, route: in.Route, flow: in.Flow(), key: in.Key, cost: a.cost(in),
		since: now, patience: in.TimeLeft, end: now.Add(max(in.TimeLeft, in.PermitFor)), until: now.Add(min(a.limits.Wait, in.TimeLeft/4))}
	err := a.queues[in.Facet].Offer(r.flow, place, r.cost)
	types.Assert(err == nil, "admission: queued what would be refused")
	a.routes.add(a.limits.Routes, r.route, r.flow)
	a.enlist(place)
}

// Ripe reports whether a queued request may get a permit.
func (a *Admit) Ripe() bool {
	for f := range a.queues {
		if a.queues[f].Ready() {
			return true
		}
	}
	return false
}

// Next grants a permit to the next request, if Ripe. The facets take turns.
func (a *Admit) Next(now types.Instant) (t types.Ticket, waited time.Duration) {
	types.Assert(a.Ripe(), "admission: no request may go")
	for !a.queues[a.turn].Ready() {
		a.turn = (a.turn + 1) % types.NumFacets
	}
	f := a.turn
	a.turn = (a.turn + 1) % types.NumFacets
	place, _ := a.queues[f].Next()
	return a.rows[place].ticket, a.grant(now, place)
}

// grant gives a permit, which its queue counts already, to a row.
func (a *Admit) grant(now types.Instant, place uint32) (waited time.Duration) {
	r := &a.rows[place]
	waited = time.Duration(now - r.since)
	r.state, r.since = out, now
	a.passed = false
	a.due(place)
	return waited
}

// Settle ends a request and frees its permit or its place in a queue; its flow is charged by the actual
// bytes. For a ticket that is not in use, ended is false and nothing changes. worked reports whether the
// request had a permit.
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
	a.routes.remove(a.limits.Routes, r.route, r.flow)
}

// An Expired is a request whose time is over, for what.
type Expired struct {
	Ticket types.Ticket
	What   Over
	Waited time.Duration // in the queue
	Bytes  uint64        // of the part of its bodies that goes on or is dropped; with TookOver, of the dropped part of Loser, or 0
	Loser  types.Ticket  // with TookOver: the request whose permit Ticket has now
}

// Overdue ends the wait of one request that has waited for too long, for a permit or with a part of its
// bodies; false if there is none. If paced is not set, a request whose wait is over may take the permit of another one. Overdue also
// revokes permits that were kept for too long; those requests are still to be settled.
func (a *Admit) Overdue(now types.Instant, paced bool) (e Expired, ok bool) {
	for len(a.dues) > 0 {
		place := a.dues[0]
		r := &a.rows[place]
		if r.until > now {
			break
		}
		if r.state == queued {
			if a.waitsOn(now, place) {
				continue
			}
			if from, takes := a.takesOver(now, place); takes && !paced {
				return a.takeOver(now, place, from), true
			}
			a.unlist(place)
			a.queues[r.facet].Drop(place)
			a.leave(r)
			return Expired{Ticket: r.ticket, What: Waited, Waited: time.Duration(now - r.since)}, true
		}
		was := r.part
		a.drop(place)
		if kept := r.end.Add(a.limits.Grace); kept <= now {
			a.revoke(place)
			a.taken++
			if was.state == paused {
				was.state = lined // it is not granted
			}
		} else {
			a.due(place)
		}
		if was.state != nothing {
			return Expired{Ticket: r.ticket, What: Over(was.state), Bytes: was.bytes}, true
		}
	}
	return e, false
}

// revoke takes the permit of a row whose part was dropped.
func (a *Admit) revoke(place uint32) {
	r := &a.rows[place]
	a.unlist(place)
	r.state = lost
	a.queues[r.facet].Return(r.flow)
}

// Due returns when Overdue has something to do.
func (a *Admit) Due() (due types.Instant, any bool) {
	if len(a.dues) == 0 {
		return 0, false
	}
	return a.rows[a.dues[0]].until, true
}

// Evict removes a request from the queues; false if none is queued.
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

// Waiting returns the number of queued requests.
func (a *Admit) Waiting() (n int) {
	for f := range a.queues {
		n += a.queues[f].Len()
	}
	return n
}

// Working returns the number of requests at work, including those with a revoked permit.
func (a *Admit) Working() (n int) {
	for i := range a.rows {
		if s := a.rows[i].state; s == out || s == lost {
			n++
		}
	}
	return n
}

// Ahead returns how many requests of the facet are served before a new one. Alone reports whether its flow has
// no queued request.
func (a *Admit) Ahead(in *event.Admit) int  { return a.queues[in.Facet].Ahead(in.Flow()) }
func (a *Admit) Alone(in *event.Admit) bool { return a.queues[in.Facet].Waits(in.Flow()) == 0 }

// Out returns the permits of a facet that are in use, Queued the queued requests of a class, Saved the deficit
// of a class, and Taken the number of permits that were revoked because they were kept for too long.
func (a *Admit) Out(f types.Facet) int                     { return a.queues[f].InUse() }
func (a *Admit) Saved(f types.Facet, c types.Class) uint64 { return a.queues[f].Saved(c) }
func (a *Admit) Queued(f types.Facet, c types.Class) int   { return a.queues[f].Of(c) }
func (a *Admit) Taken() uint64                             { return a.taken }
