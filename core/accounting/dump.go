package accounting

import (
	"encoding/binary"

	"macronode/core/plane"
	"macronode/core/types"
)

// The rows of a snapshot. Their format is permanent; all integers are little-endian. The streams come first.
const (
	dumpStream = 1 // tenant 4 · digest of the dimension 16 · seq 8 · head 32
	dumpRow    = 2 // tenant 4 · flags 1 · from 8 · to 8 · due 8 · dimension 1+n · labels 1+n · value 8 · events 8
	dumpLine   = 3 // tenant 4 · price 16 · month 8 · units 16 · paid 16 · cost 16; without the cost in older snapshots
)

const dumpStreamSize = 4 + 16 + 8 + digestSize

// Dump passes the rows to row.
func (p *Plane) Dump(row func(kind uint8, b []byte)) {
	var room [dumpStreamSize + usagePrefix + MaxDimension + MaxLabels]byte
	for at := range p.streams.Capacity() {
		if k, s, taken := p.streams.At(uint32(at)); taken {
			b := append(binary.LittleEndian.AppendUint32(room[:0], uint32(k.tenant)), k.dimension[:]...)
			row(dumpStream, append(binary.LittleEndian.AppendUint64(b, s.Seq), s.Head[:]...))
		}
	}
	for at := range p.rows.Capacity() {
		if k, c, taken := p.rows.At(uint32(at)); taken {
			text := &p.texts[at]
			u := usage{window: k.window, due: k.due, late: k.late, prepaid: k.prepaid, dimension: text.Dimension(), labels: text.Labels()}
			b := u.appendPrefix(binary.LittleEndian.AppendUint32(room[:0], uint32(k.tenant)))
			row(dumpRow, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, c.Value), c.Events))
		}
	}
	for at := range p.lines.Capacity() {
		if k, l, taken := p.lines.At(uint32(at)); taken {
			row(dumpLine, appendLine(appendLineKey(binary.LittleEndian.AppendUint32(room[:0], uint32(k.Tenant)), &k), &l))
		}
	}
}

// Load adds a row of Dump.
func (p *Plane) Load(kind uint8, b []byte) error {
	switch {
	case kind == dumpStream && len(b) == dumpStreamSize:
		return p.loadStream(streamKey{types.Tenant(binary.LittleEndian.Uint32(b)), types.NameHash(b[4:20])},
			Stream{binary.LittleEndian.Uint64(b[20:]), Digest(b[28:])})
	case kind == dumpLine && (len(b) == 4+lineEntrySize || len(b) == 4+paidEntrySize):
		return p.loadLine(parseLineKey(types.Tenant(binary.LittleEndian.Uint32(b)), b[4:]), parseLine(b[4+lineKeySize:], len(b)-4))
	case kind == dumpRow && len(b) > 4+16:
		end := len(b) - 16
		return p.loadRow(types.Tenant(binary.LittleEndian.Uint32(b)), b[4:end],
			Count{binary.LittleEndian.Uint64(b[end:]), binary.LittleEndian.Uint64(b[end+8:])})
	}
	return plane.ErrRow
}

func (p *Plane) loadStream(k streamKey, s Stream) error {
	_, exists := p.streams.Find(k)
	_, known := p.tenants.Find(k.tenant)
	switch {
	case exists, (s.Seq == 0) != (s.Head == Digest{}):
		return plane.ErrRow
	case p.streams.Room() == 0, !known && p.tenants.Room() == 0:
		return plane.ErrRoom
	}
	p.addStream(k)
	at, _ := p.streams.Find(k)
	p.streams.Set(at, s)
	return nil
}

func (p *Plane) loadLine(k LineKey, l Line) error {
	switch _, exists := p.lines.Find(k); {
	case exists, !isMonth(k.Month):
		return plane.ErrRow
	case p.lines.Room() == 0:
		return plane.ErrRoom
	}
	p.setLine(k, l)
	return nil
}

func (p *Plane) loadRow(t types.Tenant, b []byte, c Count) error {
	u, ok := parsePrefix(b)
	if !ok || len(u.entries) > 0 || !validSeries(u.dimension, u.labels) {
		return plane.ErrRow
	}
	s := identifySeries(u.dimension, u.labels)
	_, exists := p.rows.Find(u.key(t, &s))
	_, stream := p.streams.Find(streamKey{t, s.stream})
	switch {
	case exists, !stream:
		return plane.ErrRow
	case p.rows.Room() == 0:
		return plane.ErrRoom
	}
	p.rows.Set(p.addRow(u.key(t, &s), newSeriesText(u.dimension, u.labels)), c)
	return nil
}
