package trace

import (
	"macronode/core/event"
	"macronode/core/types"
)

// waitsOn is TakeOver and what comes before it: a peer without a permit waits for that of the oldest request of the peer with the
// most, if those are many.
func (d *gate) waitsOn(now types.Instant, g *gateRequest) bool {
	old := d.oldest(g)
	if old == nil || !d.mayTake(old, g) {
		return false
	}
	switch whole := g.since.Add(d.limits.GiveWay); {
	case whole > now:
		g.until = whole
		d.note("a peer without a permit waits longer, because another one has many")
		return true
	case old.got.Add(d.limits.GiveWay) > now, d.quotaState.paced(now, 0, inAll) > 0:
		return false
	}
	d.note("a request gives way to a peer without a permit")
	part, lined := old.paused+old.lined, old.lined > 0
	old.at, old.paused, old.lined = "lost", 0, 0
	d.queues[old.facet].Return(old.flow)
	if lined {
		d.line.Drop(old.ticket.Slot())
	}
	if part > 0 {
		d.note("a request gives way, and a part of its body waits")
		d.quotaState.returns(now, old, part, false)
		d.expected = append(d.expected, withoutQuotaState(event.Decision{Ticket: old.ticket, Reason: event.RejectPacingTimeout}))
	}
	d.expected = append(d.expected, withoutQuotaState(event.Decision{Ticket: old.ticket, Reason: event.RejectGaveWay}))
	d.queues[g.facet].Take(g.ticket.Slot())
	d.passed = false
	d.grant(now, g)
	return true
}

// holds counts the permits of a facet that a flow has.
func (d *gate) holds(f types.Facet, flow types.Flow) int {
	return d.count(func(g *gateRequest) bool { return g.at == "out" && g.facet == f && g.flow == flow })
}

// oldest returns the request that has had a permit for longest, of the peer without a key that has the most in the facet of g; nil
// if none has many.
func (d *gate) oldest(g *gateRequest) (old *gateRequest) {
	f := &d.limits.Facets[g.facet]
	most := max(2, f.Permits/32)
	if of := f.ClassPermits[types.ClassAnon]; of > 0 {
		most = max(2, of/32)
	}
	for i := range d.requests {
		x := &d.requests[i]
		if x.at != "out" || x.facet != g.facet || x.flow.Class != types.ClassAnon {
			continue
		}
		n := d.holds(x.facet, x.flow)
		if n > most || n == most && (old == nil || x.got < old.got || x.got == old.got && x.ticket.Slot() < old.ticket.Slot()) {
			old, most = x, n
		}
	}
	return old
}

// mayTake reports whether g is the first one of a peer without a permit, has the time to wait, and could have the permit of old
// only because none is left.
func (d *gate) mayTake(old, g *gateRequest) bool {
	if d.limits.GiveWay == 0 || g.flow.Class != types.ClassAnon || g.in.TimeLeft/4 < d.limits.GiveWay || d.holds(g.facet, g.flow) > 0 || !d.queues[g.facet].First(g.ticket.Slot()) {
		return false
	}
	room := func() bool {
		f := &d.limits.Facets[g.facet]
		for c, most := range f.ClassPermits {
			uses := d.count(func(x *gateRequest) bool {
				return x.at == "out" && x.facet == g.facet && x.flow.Class >= types.Class(c)
			})
			if most > 0 && uses >= most || c == 0 && uses >= f.Permits {
				return false
			}
		}
		return true
	}
	if room() {
		return false
	}
	old.at = "lost"
	defer func() { old.at = "out" }()
	return room()
}
