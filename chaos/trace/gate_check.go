package trace

import (
	"macronode/core/event"
	"macronode/core/types"
)

// checkDecisions checks the decisions: each expected one, once, in order.
func (d *gate) checkDecisions(all []event.Decision) error {
	for i, v := range all {
		if i == len(d.expected) {
			return broken("OneVerdict", "%v got %v, but no decision was expected", v.Ticket, v.Reason)
		}
		want := d.expected[i]
		switch v.Ahead = 0; {
		case v.Ticket != want.Ticket:
			return broken("InTurn", "%v got %v, but it is the turn of %v", v.Ticket, v.Reason, want.Ticket)
		case v.Reason != want.Reason && v.Reason != event.Admitted:
			return broken("RefusedRightly", "%v is refused for %v, and has a right to %v", v.Ticket, v.Reason, want.Reason)
		case v.Reason != want.Reason:
			return broken("Refused", "%v is admitted, but %v was expected", v.Ticket, want.Reason)
		case v.Waited != want.Waited || v.Problem != want.Problem:
			return broken("OneVerdict", "got %+v, want %+v", v, want)
		case v != want:
			return broken("QuotaExact", "got %+v, want %+v", v, want)
		}
	}
	if n := len(all); n < len(d.expected) {
		return broken("NoneLost", "%v should get %v, but got no decision", d.expected[n].Ticket, d.expected[n].Reason)
	}
	return nil
}

// checkCounts compares the counts of the node with those here.
func (d *gate) checkCounts(after *View) error {
	var queued [types.NumFacets][types.NumClasses]uint32
	for i := range d.requests {
		if g := &d.requests[i]; g.at == "queued" {
			queued[g.facet][g.flow.Class]++
		}
	}
	for f := range types.NumFacets {
		out := d.usedPermits(f)
		d.most[f] = max(d.limits.Facets[f].Permits, min(d.most[f], out))
		if after.Permits[f] != uint32(out) || out > d.most[f] {
			return broken("PermitsExact", "%d permits of %v are out, counted %d, at most %d", out, f, after.Permits[f], d.most[f])
		}
	}
	if lined := d.count(func(g *gateRequest) bool { return g.lined > 0 }); int(after.PacedParts) != lined {
		return broken("QueueBounded", "%d parts of bodies wait for their turn, counted %d", lined, after.PacedParts)
	}
	if after.Queued != queued {
		return broken("QueueBounded", "queued are %v, counted %v", queued, after.Queued)
	}
	if after.PermitsRevoked != d.taken {
		return broken("PermitsReturn", "%d permits were taken back, counted %d", d.taken, after.PermitsRevoked)
	}
	return nil
}
