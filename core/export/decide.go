package export

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/share"
	"macronode/core/types"
)

// Decide records a command that agrees with the state of its lane.
func (p *Plane) Decide(_ types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	switch in := c.(type) {
	case *Begin:
		p.decideBegin(in, f, reply)
		return
	case *Forget:
		p.decideForget(in, f, reply)
		return
	case *Open:
		p.decideOpen(in, f, reply)
		return
	}
	kind, ch, ok := changeOf(c)
	if !ok {
		reply.Problem = event.BadRequest
		return
	}
	t := p.find(c.Head().Tenant, &ch)
	in, settles := c.(*Settle)
	reply.Problem = p.problem(kind, &t, &ch)
	if kind == kindQuarantined && !t.quarantined && (reply.Problem == event.None || reply.Problem == event.ExportCapacity) {
		reply.Problem, reply.Shortage = p.checkRows(c.Head().Tenant)
	}
	switch {
	case reply.Problem != event.None:
	case settles && in.From != t.lane.cursor+1:
		reply.Problem = event.LaneMoved
	case kind == kindRedriven && t.row.due: // nothing changes
	default:
		reply.Position = p.add(f, c.Head().Tenant, kind, ch.append(p.payload[:0]))
	}
}

// decideOpen makes a lane, unless it exists.
func (p *Plane) decideOpen(in *Open, f plane.Frame, reply *event.Reply) {
	if _, exists := p.lanes.Find(in.Lane.LaneID); exists {
		return
	}
	if reply.Problem, reply.Shortage = p.checkLanes(in.Tenant); reply.Problem != event.None {
		return
	}
	reply.Position = p.add(f, in.Tenant, kindOpened, appendOpened(p.payload[:0], in.Lane.Sink, in.Lane.Stream, in.After))
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

// A target is the lane and the position that a change names, as they are before it.
type target struct {
	known       bool // the lane
	place       uint32
	lane        lane
	quarantined bool // the position
	rowPlace    uint32
	row         row
}

func (p *Plane) find(of types.Tenant, c *change) (t target) {
	id := types.LaneID{Tenant: of, ID: c.lane}
	if t.place, t.known = p.lanes.Find(id); t.known {
		_, t.lane = p.lanes.Row(t.place)
	}
	if t.rowPlace, t.quarantined = p.rows.Find(rowKey{id, c.position}); t.quarantined {
		_, t.row = p.rows.Row(t.rowPlace)
	}
	return t
}

// problem returns why a change contradicts the state of its lane, or has no room.
func (p *Plane) problem(kind uint8, t *target, c *change) event.Problem {
	if !t.known {
		return event.NotFound
	}
	moved := false
	switch kind {
	case kindSettled, kindSkipped:
		moved = c.position <= t.lane.cursor
	case kindRewound:
		moved = c.position >= t.lane.cursor
	case kindQuarantined:
		moved = !t.quarantined && c.position != t.lane.cursor+1
		if !moved && !t.quarantined && p.rows.Room() == 0 {
			return event.ExportCapacity
		}
	case kindResolved, kindRedriven, kindDiscarded:
		if !t.quarantined {
			return event.NotFound
		}
	}
	if moved {
		return event.LaneMoved
	}
	return event.None
}

// checkLanes and checkRows return the limit that another lane or quarantined position of a tenant would exceed.
func (p *Plane) checkLanes(t types.Tenant) (event.Problem, event.Shortage) {
	return checkRoom(event.ExportTenantLanes, event.ExportLanes, p.limits.TenantLanes, int(p.counts(t).lanes), p.lanes.Room())
}

func (p *Plane) checkRows(t types.Tenant) (event.Problem, event.Shortage) {
	return checkRoom(event.ExportTenantQuarantine, event.ExportQuarantine, p.limits.TenantRows, int(p.counts(t).rows), p.rows.Room())
}

// checkRoom returns the limit that another row would exceed: that of the table, or that of a tenant that has some rows.
func checkRoom(ofTenant, ofAll event.Limit, limit, has, room int) (event.Problem, event.Shortage) {
	switch {
	case room == 0:
		return event.ExportCapacity, event.Shortage{Limit: ofAll, Needed: 1}
	case share.Left(limit, has, room) <= 0:
		return event.ExportCapacity, event.Shortage{Limit: ofTenant, Needed: 1, Shared: limit == 0}
	}
	return event.None, event.Shortage{}
}

func (p *Plane) counts(t types.Tenant) (n tenant) {
	if at, known := p.tenants.Find(t); known {
		_, n = p.tenants.Row(at)
	}
	return n
}
