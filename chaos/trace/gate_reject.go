package trace

import (
	"cmp"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/types"
)

// withoutQuotaState returns a rejection without the state of the quotas.
func withoutQuotaState(v event.Decision) event.Decision {
	v.Problem = event.Busy
	switch {
	case v.Reason == event.RejectNotServing:
		v.Problem = event.Unavailable
	case v.Reason == event.RejectQuotaExceeded, v.Reason == event.RejectPacingTimeout:
		v.Problem = event.RateLimited
	case v.Reason == event.RejectKeyEnded:
		v.Problem = event.Unauthorized
	}
	return v
}

// rejectReason is Refuses without quotas.
func (d *gate) rejectReason(before *View, in *event.Admit) event.RejectReason {
	f, flow, q := &d.limits.Facets[in.Facet], flowOf(in), &d.queues[in.Facet]
	waits := func(of func(*gateRequest) bool) int {
		return d.count(func(g *gateRequest) bool { return g.at == "queued" && g.facet == in.Facet && of(g) })
	}
	switch {
	case !before.Reads:
		return event.RejectNotServing
	case d.keyEnded(in.Key):
		d.note("a request comes, and its key has just ended")
		return event.RejectKeyEnded
	}
	if why := d.rejectsRoute(in); why != event.Admitted {
		return why
	}
	switch {
	case q.Weight[in.Class] == 0:
		return event.RejectClassDisabled
	case waits(func(*gateRequest) bool { return true }) >= f.Queue:
		return event.RejectQueueFull
	case waits(func(g *gateRequest) bool { return g.flow.Class == in.Class }) >= f.PerClass[in.Class]:
		return event.RejectClassLimit
	case waits(func(g *gateRequest) bool { return g.flow == flow }) >= f.PerFlow:
		return event.RejectFlowLimit
	case in.Class == types.ClassAnon && waits(func(g *gateRequest) bool { return g.flow == flow }) > f.PerClass[in.Class]-waits(func(g *gateRequest) bool { return g.flow.Class == in.Class }):
		d.note("a peer without a key would have more in the queue than places are left")
		return event.RejectFlowLimit
	case in.Facet == types.Streams && in.Class != types.ClassInternal && !d.leavesPermits(f, flow):
		d.note("a tenant or peer would hold more streams than are left for others")
		return event.RejectFlowLimit
	}
	return event.Admitted
}

// rejectsRoute is rejectReason for the limits of a route.
func (d *gate) rejectsRoute(in *event.Admit) event.RejectReason {
	most := d.limits.Routes
	if int(in.Route) >= len(most) || most[in.Route].Requests == 0 {
		return event.Admitted
	}
	of, flow, all, own, lost := most[in.Route], flowOf(in), 0, 0, false
	for i := range d.requests {
		g := &d.requests[i]
		if g.route != int(in.Route) {
			continue
		}
		all++
		lost = lost || g.at == "lost"
		if g.flow == flow {
			own++
		}
	}
	if of.PerFlow == 0 {
		of.PerFlow = max(1, of.Requests-all) // it leaves room
	}
	switch {
	case all >= of.Requests:
		if lost {
			d.note("a route is full of requests with reclaimed permits")
		}
		return event.RejectRouteLimit
	case own >= of.PerFlow && in.Class != types.ClassInternal:
		return event.RejectRouteFlow
	}
	return event.Admitted
}

// leavesPermits reports whether a flow holds no stream, or fewer than are left for its class.
func (d *gate) leavesPermits(of *admission.Facet, flow types.Flow) bool {
	held := 0
	var uses [types.NumClasses]int
	for i := range d.requests {
		g := &d.requests[i]
		if g.facet != types.Streams || g.at == "lost" {
			continue
		}
		if g.flow == flow {
			held++
		}
		if g.at == "queued" && g.flow.Class != flow.Class {
			continue // it may never get a permit
		}
		for c := range g.flow.Class + 1 {
			uses[c]++
		}
	}
	left := of.Permits - uses[0]
	for c, most := range of.ClassPermits[:flow.Class+1] {
		if most > 0 {
			left = min(left, most-uses[c])
		}
	}
	return held == 0 || held < left
}

// checkPacing returns whether the pace of the instance rejects a request: it must if the wait is too
// long with an empty queue, and must not if it is short enough behind all queued ones.
func (d *gate) checkPacing(now types.Instant, in *event.Admit, got event.RejectReason) (event.RejectReason, error) {
	queued := d.queued(in.Facet)
	own := d.count(func(g *gateRequest) bool { return g.at == "queued" && g.facet == in.Facet && g.flow == flowOf(in) })
	least := slices.MinFunc(d.limits.Weights[:], func(a, b uint64) int { return cmp.Compare(a-1, b-1) }) // 0 counts as the largest
	most := max(d.pace, min(d.limits.Wait, d.pace*time.Duration(d.limits.Weights[in.Class]/least)))
	if own == 0 {
		most = d.limits.Wait
	}
	switch is := got == event.RejectPacingTimeout; {
	case is && d.quotaState.paced(now, queued, inRequests) <= most:
		return got, broken("RefusedRightly", "%v is refused for the pace, with %d queued", in.Ticket, queued)
	case !is && d.quotaState.paced(now, 0, inRequests) > most:
		return got, broken("Paced", "%v would wait for %v, and may for %v", in.Ticket, d.quotaState.paced(now, 0, inRequests), most)
	case is:
		return event.RejectPacingTimeout, nil
	}
	return event.Admitted, nil
}
