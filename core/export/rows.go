package export

import "macronode/core/types"

// A lane is the state of a lane.
type lane struct {
	cursor uint64 // settled, quarantined or skipped up to here
	rows   uint32 // quarantined positions
	due    uint32 // of these, marked for a redelivery
	first  uint32 // a place in rows plus one, the newest row; 0: none
}

// HashInto mixes l into h, without the order of its rows.
func (l lane) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(l.cursor).Mix(uint64(l.rows)).Mix(uint64(l.due))
}

// names are the texts of a lane.
type names struct {
	sink, stream uint8 // lengths
	text         [MaxSink + MaxStream]byte
}

func newNames(sink, stream []byte) (n names) {
	n.sink, n.stream = uint8(len(sink)), uint8(len(stream))
	copy(n.text[copy(n.text[:], sink):], stream)
	return n
}

func (n *names) Sink() []byte { return n.text[:n.sink:n.sink] }
func (n *names) Stream() []byte {
	end := n.sink + n.stream
	return n.text[n.sink:end:end]
}

// A rowKey identifies a quarantined position.
type rowKey struct {
	lane     types.LaneID
	position uint64
}

// HashInto mixes k into h.
func (k rowKey) HashInto(h types.Hash64) types.Hash64 { return k.lane.HashInto(h).Mix(k.position) }

// A row says why a position is quarantined.
type row struct {
	at     types.Time // of the last attempt
	status uint16
	reason types.ExportReason
	due    bool // marked for a redelivery
}

// HashInto mixes r into h.
func (r row) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(r.at)).Mix(uint64(r.status)).Mix(uint64(r.reason)).MixBool(r.due)
}

// A link has the neighbours of a row in the list of its lane: places plus one; 0: none.
type link struct{ prev, next uint32 }

// A tenant counts what it has.
type tenant struct{ lanes, rows uint32 }

// HashInto mixes t into h.
func (t tenant) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(t.lanes)).Mix(uint64(t.rows))
}

// count adds to the numbers of a tenant. It is forgotten when it has no lane.
func (p *Plane) count(of types.Tenant, lanes, rows int) {
	at, known := p.tenants.Find(of)
	if !known {
		at = p.tenants.Put(of, tenant{})
	}
	_, t := p.tenants.Row(at)
	t = tenant{uint32(int(t.lanes) + lanes), uint32(int(t.rows) + rows)}
	if t.lanes == 0 {
		p.tenants.Drop(at)
		return
	}
	p.tenants.Set(at, t)
}

// addLane adds a lane. There is room.
func (p *Plane) addLane(l *Lane, cursor uint64) {
	p.names[p.lanes.Put(l.LaneID, lane{cursor: cursor})] = newNames(l.Sink, l.Stream)
	p.count(l.Tenant, 1, 0)
}

// dropLane removes the lane at a place with its rows.
func (p *Plane) dropLane(place uint32) {
	p.dropRowsAfter(place, 0)
	id, _ := p.lanes.Row(place)
	p.lanes.Drop(place)
	p.names[place] = names{}
	p.count(id.Tenant, -1, 0)
}

// addRow adds a row to the lane at a place. There is room.
func (p *Plane) addRow(place uint32, position uint64, r row) {
	id, l := p.lanes.Row(place)
	at := p.rows.Put(rowKey{id, position}, r)
	p.links[at] = link{next: l.first}
	if l.first > 0 {
		p.links[l.first-1].prev = at + 1
	}
	l.first = at + 1
	l.rows++
	l.due += one(r.due)
	p.lanes.Set(place, l)
	p.count(id.Tenant, 0, 1)
}

// setRow replaces a row of the lane at a place.
func (p *Plane) setRow(place, at uint32, r row) {
	_, was := p.rows.Row(at)
	p.rows.Set(at, r)
	_, l := p.lanes.Row(place)
	l.due += one(r.due) - one(was.due)
	p.lanes.Set(place, l)
}

// dropRow removes a row of the lane at a place.
func (p *Plane) dropRow(place, at uint32) {
	_, was := p.rows.Row(at)
	id, l := p.lanes.Row(place)
	of := p.links[at]
	if of.prev > 0 {
		p.links[of.prev-1].next = of.next
	} else {
		l.first = of.next
	}
	if of.next > 0 {
		p.links[of.next-1].prev = of.prev
	}
	p.links[at] = link{}
	l.rows--
	l.due -= one(was.due)
	p.rows.Drop(at)
	p.lanes.Set(place, l)
	p.count(id.Tenant, 0, -1)
}

// dropRowsAfter removes the rows after a position of the lane at a place.
func (p *Plane) dropRowsAfter(place uint32, position uint64) {
	_, l := p.lanes.Row(place)
	for next := l.first; next > 0; {
		at := next - 1
		next = p.links[at].next
		if k, _ := p.rows.Row(at); k.position > position {
			p.dropRow(place, at)
		}
	}
}

func one(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
