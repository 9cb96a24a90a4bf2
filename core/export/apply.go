package export

import (
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Fits reports whether r is valid, has room, and agrees with the state.
func (p *Plane) Fits(r *record.Record) bool {
	kind, ok := kindOf(r)
	if !ok {
		return false
	}
	switch kind {
	case kindOpened:
		l, _, ok := parseOpened(r.Tenant, r.Payload)
		_, exists := p.lanes.Find(l.LaneID)
		return ok && !exists && p.lanes.Room() > 0
	case kindBegun:
		sink, _, ok := parseBegun(r.Tenant, r.Payload)
		_, known := p.sinks.Find(digest.Name(sink))
		return ok && !known && p.sinks.Room() > 0
	case kindForgotten:
		sink, rest, ok := cutText(r.Payload)
		_, known := p.sinks.Find(digest.Name(sink))
		return ok && known && len(rest) == 0 && r.Tenant == types.DefaultTenant
	}
	c, ok := parseChange(kind, r.Payload)
	t := p.find(r.Tenant, &c)
	return ok && p.problem(kind, &t, &c) == event.None
}

// Apply changes the state by a record.
func (p *Plane) Apply(at types.Time, id types.TxID, r *record.Record) {
	types.Assert(!p.noting, "export: a change in a savepoint")
	kind, _ := kindOf(r)
	switch kind {
	case kindOpened:
		l, after, _ := parseOpened(r.Tenant, r.Payload)
		p.addLane(&l, after)
		return
	case kindBegun:
		sink, now, _ := parseBegun(r.Tenant, r.Payload)
		after := types.LSN(0)
		if now {
			after = id.Position().LSN
		}
		p.sinks.Put(digest.Name(sink), newSink(sink, after))
		return
	case kindForgotten:
		sink, _, _ := cutText(r.Payload)
		place, _ := p.sinks.Find(digest.Name(sink))
		p.sinks.Drop(place)
		return
	}
	c, _ := parseChange(kind, r.Payload)
	t := p.find(r.Tenant, &c)
	types.Assert(t.known, "export: a change of a lane that does not exist")
	switch kind {
	case kindSettled, kindSkipped:
		p.move(t.place, c.position)
	case kindRewound:
		p.dropRowsAfter(t.place, c.position)
		p.move(t.place, c.position)
	case kindQuarantined:
		why := row{at: at, status: c.status, reason: c.reason}
		if t.quarantined {
			p.setRow(t.place, t.rowPlace, why)
			return
		}
		p.move(t.place, c.position)
		p.addRow(t.place, c.position, why)
	case kindRedriven:
		t.row.due = true
		p.setRow(t.place, t.rowPlace, t.row)
	case kindResolved, kindDiscarded:
		p.dropRow(t.place, t.rowPlace)
	case kindRemoved:
		p.dropLane(t.place)
	}
}

// move sets the cursor of the lane at a place.
func (p *Plane) move(place uint32, to uint64) {
	_, l := p.lanes.Row(place)
	l.cursor = to
	p.lanes.Set(place, l)
}
