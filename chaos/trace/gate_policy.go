package trace

import (
	"math"
	"slices"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/types"
)

// facetLimits returns the limits of a facet.
func (d *gate) facetLimits(f int, of admission.Facet, weights [types.NumClasses]uint64, quantum uint64) {
	var weight [types.NumClasses]int64
	for k, w := range weights {
		weight[k] = int64(w)
	}
	q := &d.queues[f]
	q.Most, q.Class, q.Flow = of.Queue, of.PerClass, of.PerFlow
	if q.FlowShare = of.FlowPermits; q.FlowShare == 0 || q.FlowShare >= of.Permits {
		q.FlowShare = math.MaxInt
	}
	for c, most := range of.ClassPermits {
		if q.ClassShare[c] = min(most, of.Permits); most == 0 {
			q.ClassShare[c] = of.Permits
		}
	}
	q.Change(weight, int64(quantum))
	d.most[f] = max(d.usedPermits(types.Facet(f)), of.Permits)
}

// partLimits returns the limits of the queue of parts: an admitted request is served to the end.
func (d *gate) partLimits(weights [types.NumClasses]uint64, quantum uint64) {
	var weight [types.NumClasses]int64
	for k, w := range weights {
		weight[k], d.line.Class[k] = max(1, int64(w)), d.limits.Places
	}
	d.line.Most, d.line.Flow = d.limits.Places, d.limits.Places
	d.line.Change(weight, int64(quantum))
}

// applyPolicy applies a policy: running requests continue, and waiting requests of unserved classes
// are rejected.
func (d *gate) applyPolicy(now types.Instant, g *event.Policy) {
	d.limits.Quantum, d.limits.Weights, d.limits.Wait, d.limits.GiveWay, d.limits.Routes, d.pace = g.Quantum, g.Weights, g.MaxWait, g.GiveWayAfter, slices.Clone(g.Routes), g.MaxPacingDelay
	for f, of := range g.Facets {
		if d.queued(types.Facet(f)) > of.Queue {
			d.note("more wait than a change has room for")
		}
		d.limits.Facets[f] = admission.Facet(of)
		d.facetLimits(f, d.limits.Facets[f], g.Weights, g.Quantum)
	}
	for i := range d.requests {
		x := &d.requests[i]
		if x.at == "queued" && x.cost > int64(g.Quantum) {
			d.note("waits, and costs more than the new quantum")
			x.cost = int64(g.Quantum)
		}
		if x.paused > 0 {
			d.note("a change while a part of a body waits")
		}
		if x.lined > 0 {
			d.note("a change while a part of a body waits for its turn")
		}
	}
	d.partLimits(g.Weights, g.Quantum)
	others := d.quotaState.renews(now, g)
	for i := range d.requests {
		d.requests[i].later |= others
		d.requests[i].old, d.requests[i].oldPaced = d.requests[i].part, d.requests[i].paced
	}
	for f := range d.queues {
		for slot, any := d.queues[f].Unserved(); any; slot, any = d.queues[f].Unserved() {
			d.expectRejection(slot, event.RejectClassDisabled, now)
		}
	}
	d.grantPermits(now)
}
