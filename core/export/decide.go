package export

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// Decide records a command that agrees with the state of its lane.
func (p *Plane) Decide(_ types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	if in, ok := c.(*Open); ok {
		p.decideOpen(in, f, reply)
		return
	}
	kind, ch, ok := changeOf(c)
	if !ok {
		reply.Problem = event.BadRequest
		return
	}
	t := c.Head().Tenant
	if in, settles := c.(*Settle); settles && !p.isNext(in.Lane, in.From) {
		reply.Problem = event.LaneMoved
		if _, known := p.lanes.Find(in.Lane); !known {
			reply.Problem = event.NotFound
		}
		return
	}
	if reply.Problem = p.problem(kind, t, &ch); reply.Problem != event.None || p.isMade(kind, t, &ch) {
		return
	}
	if kind == kindQuarantined && p.adds(t, &ch) && p.rowsOf(t) >= p.limits.TenantRows {
		reply.Problem = event.ExportCapacity
		return
	}
	reply.Position = p.add(f, t, kind, ch.append(p.payload[:0]))
}

func (p *Plane) decideOpen(in *Open, f plane.Frame, reply *event.Reply) {
	if _, exists := p.lanes.Find(in.Lane.LaneID); exists {
		return
	}
	at, known := p.tenants.Find(in.Tenant)
	if p.lanes.Room() == 0 {
		reply.Problem = event.ExportCapacity
		return
	}
	if known {
		if _, t := p.tenants.Row(at); int(t.lanes) >= p.limits.TenantLanes {
			reply.Problem = event.ExportCapacity
			return
		}
	}
	reply.Position = p.add(f, in.Tenant, kindOpened, appendNames(p.payload[:0], in.Lane.Sink, in.Lane.Stream))
}

// changeOf returns the record of a command.
func changeOf(c command.Command) (kind uint8, ch change, ok bool) {
	of := func(kind uint8, lane types.LaneID, position uint64) (uint8, change, bool) {
		return kind, change{lane: lane.ID, position: position, caller: c.Head().Caller}, true
	}
	switch c := c.(type) {
	case *Settle:
		return of(kindSettled, c.Lane, c.To)
	case *Quarantine:
		kind, ch, ok = of(kindQuarantined, c.Lane, c.Position)
		ch.reason, ch.status = c.Reason, c.Status
		return kind, ch, ok
	case *Resolve:
		return of(kindResolved, c.Lane, c.Position)
	case *Redrive:
		return of(kindRedriven, c.Lane, c.Position)
	case *Discard:
		return of(kindDiscarded, c.Lane, c.Position)
	case *Skip:
		return of(kindSkipped, c.Lane, c.To)
	case *Rewind:
		return of(kindRewound, c.Lane, c.To)
	case *Remove:
		return of(kindRemoved, c.Lane, 0)
	}
	return 0, ch, false
}

// add records a payload.
func (p *Plane) add(f plane.Frame, t types.Tenant, kind uint8, payload []byte) types.Position {
	*f.Record() = record.Record{Kind: record.PlaneKind(types.PlaneExport, kind), Tenant: t, Payload: payload}
	return f.Add()
}

// problem returns why a change contradicts the state of its lane, or has no room.
func (p *Plane) problem(kind uint8, t types.Tenant, c *change) event.Problem {
	place, known := p.lanes.Find(types.LaneID{Tenant: t, ID: c.lane})
	if !known {
		return event.NotFound
	}
	_, l := p.lanes.Row(place)
	_, quarantined := p.rows.Find(rowKey{types.LaneID{Tenant: t, ID: c.lane}, c.position})
	moved := false
	switch kind {
	case kindSettled, kindSkipped:
		moved = c.position <= l.cursor
	case kindRewound:
		moved = c.position >= l.cursor
	case kindQuarantined:
		if moved = !quarantined && c.position != l.cursor+1; !moved && !quarantined && p.rows.Room() == 0 {
			return event.ExportCapacity
		}
	case kindResolved, kindRedriven, kindDiscarded:
		if !quarantined {
			return event.NotFound
		}
	}
	if moved {
		return event.LaneMoved
	}
	return event.None
}

// isNext reports whether a position follows the cursor of a lane.
func (p *Plane) isNext(lane types.LaneID, position uint64) bool {
	place, known := p.lanes.Find(lane)
	if !known {
		return false
	}
	_, l := p.lanes.Row(place)
	return position == l.cursor+1
}

// isMade reports whether a change would change nothing.
func (p *Plane) isMade(kind uint8, t types.Tenant, c *change) bool {
	at, quarantined := p.rows.Find(rowKey{types.LaneID{Tenant: t, ID: c.lane}, c.position})
	if kind != kindRedriven || !quarantined {
		return false
	}
	_, r := p.rows.Row(at)
	return r.due
}

// adds reports whether the quarantine of a position needs a row.
func (p *Plane) adds(t types.Tenant, c *change) bool {
	_, quarantined := p.rows.Find(rowKey{types.LaneID{Tenant: t, ID: c.lane}, c.position})
	return !quarantined
}

// rowsOf returns the number of quarantined positions of a tenant.
func (p *Plane) rowsOf(t types.Tenant) int {
	at, known := p.tenants.Find(t)
	if !known {
		return 0
	}
	_, of := p.tenants.Row(at)
	return int(of.rows)
}
