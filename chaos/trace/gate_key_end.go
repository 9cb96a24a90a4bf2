package trace

import (
	"cmp"
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// keyEnded reports whether a key was revoked by a record, durable or not, or has expired.
func (d *gate) keyEnded(key types.KeyID) bool {
	k := d.keys[key]
	return k != nil && !k.isValid(d.at)
}

// endKeys ends all requests whose key has ended, in the order of their slots: queued ones are rejected, the others lose their permit.
func (d *gate) endKeys(now types.Instant) {
	var over []types.Ticket
	for i := range d.requests {
		if g := &d.requests[i]; !g.keyEnded && d.keyEnded(g.in.Key) {
			over = append(over, g.ticket)
		}
	}
	slices.SortFunc(over, func(a, b types.Ticket) int { return cmp.Compare(a.Slot(), b.Slot()) })
	for _, t := range over {
		d.endKey(now, &d.requests[d.find(t)])
	}
	if len(over) > 0 {
		d.grantPermits(now)
	}
}

func (d *gate) endKey(now types.Instant, g *gateRequest) {
	if g.at == "queued" {
		d.note("a request waits for a permit, and its key ends")
		d.queues[g.facet].Drop(g.ticket.Slot())
		d.expectRejection(g.ticket.Slot(), event.RejectKeyEnded, now)
		return
	}
	part, lined, had := g.paused+g.lined, g.lined > 0, g.at == "out"
	g.at, g.keyEnded, g.paused, g.lined = "lost", true, 0, 0
	ended := withoutQuotaState(event.Decision{Ticket: g.ticket, Reason: event.RejectKeyEnded})
	d.expected = append(d.expected, ended)
	if !had {
		d.note("a request whose permit was taken back stays, and its key ends")
		return
	}
	d.note("a request has a permit, and its key ends")
	d.queues[g.facet].Return(g.flow)
	if lined {
		d.line.Drop(g.ticket.Slot())
	}
	if part > 0 {
		d.note("a part of a body waits, and its key ends")
		d.quotaState.returns(now, g, part, false)
		d.expected = append(d.expected, ended)
	}
}
