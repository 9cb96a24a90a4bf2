package accounting

import (
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

// maxSliceRows is more than the rows of any slice, and bounds the work of one record.
const maxSliceRows = (maxSlice-sliceFixed-1-2-digestSize)/rowFixed + 2

// HasTimers reports whether there is a row or a line.
func (p *Plane) HasTimers() bool { return p.due.Len() > 0 || p.closing.Len() > 0 }

// Expire fills r with the next slice that is due, or the end of the next line.
func (p *Plane) Expire(at types.Time, r *record.Record) bool {
	first, any := p.due.First()
	if !any {
		return p.expireLine(at, r)
	}
	k, _ := p.rows.Row(first)
	if k.due > at {
		return p.expireLine(at, r)
	}
	stream, known := p.streams.Find(streamKey{k.tenant, digest.Name(p.texts[first].Dimension())})
	types.Assert(known, "accounting: a row without a stream")
	_, head := p.streams.Row(stream)
	s := Slice{Tenant: k.tenant, Dimension: p.texts[first].Dimension(), Seq: head.Seq + 1, Kind: sliceKind(k.late, k.prepaid), Window: k.window, Previous: head.Head}
	b, rows := s.header(p.payload[:0], k.due), 0
	p.due.Smallest(p.order[:0], p.before, func(place uint32) bool {
		labels := p.texts[place].Labels()
		if p.compareSlices(first, place) != 0 || len(b)+rowFixed+len(labels)+digestSize > maxSlice {
			return false
		}
		_, c := p.rows.Row(place)
		b = appendRow(b, labels, c)
		rows++
		return true
	})
	*r = record.Record{Kind: record.PlaneKind(types.PlaneAccounting, kindSlice), Tenant: k.tenant, Payload: s.finish(b, rows, p.scratch[:0])}
	return true
}
