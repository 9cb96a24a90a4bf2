package export

import (
	"encoding/binary"

	"macronode/core/digest"
	"macronode/core/plane"
	"macronode/core/types"
)

// The rows of a snapshot. Their format is permanent; all integers are little-endian. The lanes come first.
const (
	dumpLane = 1 // tenant 4 · cursor 8 · sink 1+n · stream 1+n
	dumpRow  = 2 // tenant 4 · lane 16 · position 8 · at 8 · status 2 · reason 1 · due 1
	dumpSink = 3 // after 8 · sink 1+n
)

const (
	dumpLanePrefix = 4 + 8
	dumpSinkPrefix = 8
	dumpRowSize    = 4 + 16 + 8 + 8 + 2 + 1 + 1
)

// Dump passes the rows to row.
func (p *Plane) Dump(row func(kind uint8, b []byte)) {
	var room [dumpLanePrefix + maxPayload]byte
	for at := range p.lanes.Capacity() {
		if id, l, taken := p.lanes.At(uint32(at)); taken {
			b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(room[:0], uint32(id.Tenant)), l.cursor)
			row(dumpLane, appendNames(b, p.names[at].Sink(), p.names[at].Stream()))
		}
	}
	for at := range p.rows.Capacity() {
		if k, r, taken := p.rows.At(uint32(at)); taken {
			b := append(binary.LittleEndian.AppendUint32(room[:0], uint32(k.lane.Tenant)), k.lane.ID[:]...)
			b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, k.position), uint64(r.at))
			row(dumpRow, append(binary.LittleEndian.AppendUint16(b, r.status), byte(r.reason), byte(one(r.due))))
		}
	}
	p.Sinks(func(name []byte, after types.LSN) bool {
		row(dumpSink, appendText(binary.LittleEndian.AppendUint64(room[:0], uint64(after)), name))
		return true
	})
}

// Load adds a row of Dump.
func (p *Plane) Load(kind uint8, b []byte) error {
	switch {
	case kind == dumpLane && len(b) > dumpLanePrefix:
		return p.loadLane(types.Tenant(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint64(b[4:]), b[dumpLanePrefix:])
	case kind == dumpRow && len(b) == dumpRowSize && b[39] <= 1:
		k := rowKey{types.LaneID{Tenant: types.Tenant(binary.LittleEndian.Uint32(b)), ID: types.NameHash(b[4:])}, binary.LittleEndian.Uint64(b[20:])}
		return p.loadRow(k, row{types.Time(binary.LittleEndian.Uint64(b[28:])), binary.LittleEndian.Uint16(b[36:]), types.ExportReason(b[38]), b[39] == 1})
	case kind == dumpSink && len(b) > dumpSinkPrefix:
		return p.loadSink(types.LSN(binary.LittleEndian.Uint64(b)), b[dumpSinkPrefix:])
	}
	return plane.ErrRow
}

func (p *Plane) loadSink(after types.LSN, b []byte) error {
	name, rest, ok := cutText(b)
	_, known := p.sinks.Find(digest.Name(name))
	switch {
	case !ok, len(rest) > 0, known, after > types.MaxLSN, !isName(name, MaxSink, sinkChars):
		return plane.ErrRow
	case p.sinks.Room() == 0:
		return plane.ErrRoom
	}
	p.sinks.Put(digest.Name(name), newSink(name, after))
	return nil
}

func (p *Plane) loadLane(t types.Tenant, cursor uint64, b []byte) error {
	l, rest, ok := cutLane(t, b)
	_, exists := p.lanes.Find(l.LaneID)
	switch {
	case !ok, len(rest) > 0, exists, cursor > MaxPosition:
		return plane.ErrRow
	case p.lanes.Room() == 0:
		return plane.ErrRoom
	}
	p.addLane(&l, cursor)
	return nil
}

func (p *Plane) loadRow(k rowKey, r row) error {
	place, known := p.lanes.Find(k.lane)
	if !known {
		return plane.ErrRow
	}
	_, l := p.lanes.Row(place)
	_, exists := p.rows.Find(k)
	switch {
	case exists, k.position == 0, k.position > l.cursor, !r.reason.Known(), r.at < 0:
		return plane.ErrRow
	case p.rows.Room() == 0:
		return plane.ErrRoom
	}
	p.addRow(place, k.position, r)
	return nil
}
