package export

import "macronode/core/types"

// A LaneState is how far a stream was exported to a sink. Its texts are valid until the plane changes.
type LaneState struct {
	Lane
	Cursor      uint64 // settled, quarantined or skipped up to here
	Quarantined int    // positions
	Due         int    // of these, marked for a redelivery
}

// Find returns the state of a lane.
func (p *Plane) Find(id types.LaneID) (s LaneState, ok bool) {
	place, ok := p.lanes.Find(id)
	if ok {
		s = p.stateAt(place)
	}
	return s, ok
}

func (p *Plane) stateAt(place uint32) LaneState {
	id, l := p.lanes.Row(place)
	n := &p.names[place]
	return LaneState{Lane{id, n.Sink(), n.Stream()}, l.cursor, int(l.rows), int(l.due)}
}

// Lanes passes the lanes of a tenant, in no particular order. Tenant 0: those of all tenants.
func (p *Plane) Lanes(t types.Tenant, each func(LaneState) bool) {
	for at := range p.lanes.Capacity() {
		if id, _, taken := p.lanes.At(uint32(at)); taken && (t == 0 || id.Tenant == t) && !each(p.stateAt(uint32(at))) {
			return
		}
	}
}

// A Quarantined is a position of a lane that could not be exported.
type Quarantined struct {
	Position uint64
	Reason   types.ExportReason
	Status   uint16     // what the sink answered; 0: nothing
	At       types.Time // of the last attempt
	Due      bool       // marked for a redelivery
}

// Rows passes the quarantined positions of a lane, in no particular order.
func (p *Plane) Rows(id types.LaneID, each func(Quarantined) bool) {
	place, known := p.lanes.Find(id)
	if !known {
		return
	}
	_, l := p.lanes.Row(place)
	for next := l.first; next > 0; next = p.links[next-1].next {
		k, r := p.rows.Row(next - 1)
		if !each(Quarantined{k.position, r.reason, r.status, r.at, r.due}) {
			return
		}
	}
}

// Len returns the number of lanes, and of quarantined positions.
func (p *Plane) Len() (lanes, rows int) { return p.lanes.Len(), p.rows.Len() }
