package export

import (
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
	if kind == kindOpened {
		l, ok := parseLane(r.Tenant, r.Payload)
		_, exists := p.lanes.Find(l.LaneID)
		return ok && !exists && p.lanes.Room() > 0
	}
	c, ok := parseChange(kind, r.Payload)
	t := p.find(r.Tenant, &c)
	return ok && p.problem(kind, &t, &c) == event.None
}

// Apply changes the state by a record.
func (p *Plane) Apply(at types.Time, _ types.TxID, r *record.Record) {
	types.Assert(!p.noting, "export: a change in a savepoint")
	kind, _ := kindOf(r)
	if kind == kindOpened {
		l, _ := parseLane(r.Tenant, r.Payload)
		p.addLane(&l, 0)
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
