package admission

import (
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Renew replaces the limits; the number of slots stays. Requests at work and queued requests stay: with fewer
// permits or a smaller queue, new requests wait until there is room. Queued requests keep their timeout. It
// allocates if the number of routes changes.
func (a *Admit) Renew(l Limits) {
	types.Assert(l.Places == len(a.rows), "admission: other places")
	l.Routes = slices.Clone(l.Routes)
	for len(l.Routes) < len(a.routes.all) { // as many as are counted
		l.Routes = append(l.Routes, event.RouteLimits{})
	}
	a.limits = l
	for f := range a.queues {
		a.queues[f].Renew(queueLimits(&l, types.Facet(f)))
	}
	a.line.Renew(lineLimits(&l))
	a.routes.reset(len(l.Routes))
	for i := range a.rows {
		r := &a.rows[i]
		if r.state == queued {
			r.cost = min(r.cost, l.Quantum)
		}
		if r.state != free {
			a.routes.add(l.Routes, r.route, r.flow)
		}
	}
}

// Unserved removes a queued request of a class without weight; false if there is none.
func (a *Admit) Unserved(now types.Instant) (t types.Ticket, waited time.Duration, any bool) {
	for f := range a.queues {
		if place, any := a.queues[f].Unserved(); any {
			r := &a.rows[place]
			a.unlist(place)
			a.leave(r)
			return r.ticket, time.Duration(now - r.since), true
		}
	}
	return 0, 0, false
}

// HashInto mixes l into h.
func (l *Limits) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(l.Places)).Mix(l.Quantum).Mix(l.Least).Mix(uint64(l.Wait)).Mix(uint64(l.GiveWay)).Mix(uint64(l.Grace))
	for _, w := range l.Weights {
		h = h.Mix(w)
	}
	for f := range l.Facets {
		of := &l.Facets[f]
		h = h.Mix(uint64(of.Permits)).Mix(uint64(of.Queue)).Mix(uint64(of.PerFlow)).Mix(uint64(of.FlowPermits))
		for c, n := range of.PerClass {
			h = h.Mix(uint64(n)).Mix(uint64(of.ClassPermits[c]))
		}
	}
	for _, n := range l.Routes {
		h = h.Mix(uint64(n.Requests)).Mix(uint64(n.PerFlow))
	}
	return h
}
