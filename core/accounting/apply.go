package accounting

import (
	"bytes"
	"math/bits"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

// Fits reports whether r is valid, has room, and agrees with the state.
func (p *Plane) Fits(r *record.Record) bool {
	kind, ok := kindOf(r)
	switch {
	case !ok:
		return false
	case kind == kindReported:
		_, ok := parseReport(r.Payload)
		return ok
	case kind == kindPaid, kind == kindLines:
		return p.fitsLines(kind, r)
	case kind == kindLineClosed:
		return p.fitsClosed(r)
	case kind == kindUsage, kind == kindMetered:
		u, more, ok := parseCount(kind, r.Payload)
		return ok && p.fitsUsage(r.Tenant, &u, more)
	default:
		return p.fitsSlice(r)
	}
}

func (p *Plane) fitsUsage(t types.Tenant, u *usage, more Count) bool {
	if !validSeries(u.dimension, u.labels) {
		return false
	}
	s := identifySeries(u.dimension, u.labels)
	if place, exists := p.rows.Find(u.key(t, &s)); exists {
		_, c := p.rows.Row(place)
		_, value := bits.Add64(c.Value, more.Value, 0)
		_, events := bits.Add64(c.Events, more.Events, 0)
		return value+events == 0
	}
	_, stream := p.streams.Find(streamKey{t, s.stream})
	_, known := p.tenants.Find(t)
	return p.rows.Room() > 0 && (stream || p.streams.Room() > 0) && (known || p.tenants.Room() > 0)
}

// fitsSlice reports whether a slice is the next of its stream, has the digest of its content, and seals rows that
// exist, beginning with the one that is due first.
func (p *Plane) fitsSlice(r *record.Record) bool {
	due, s, err := parseSlice(r.Tenant, r.Payload)
	if err != nil || sliceDigest(r.Tenant, r.Payload[8:len(r.Payload)-digestSize], nil) != s.Digest {
		return false
	}
	at, known := p.streams.Find(streamKey{r.Tenant, digest.Name(s.Dimension)})
	if !known {
		return false
	}
	if _, stream := p.streams.Row(at); s.Seq != stream.Seq+1 || s.Previous != stream.Head {
		return false
	}
	for i := range s.Rows {
		place, exists := p.rows.Find(sealedKey(&s, due, s.Rows[i].Labels))
		if first, _ := p.due.First(); !exists || i == 0 && first != place {
			return false
		}
		if _, c := p.rows.Row(place); c != s.Rows[i].Count {
			return false
		}
	}
	return true
}

// sealedKey returns the row of a slice with labels.
func sealedKey(s *Slice, due types.Time, labels []byte) rowKey {
	return rowKey{tenant: s.Tenant, window: s.Window, due: due, late: s.Kind.IsLate(), prepaid: s.Kind.IsPrepaid(), series: seriesID(s.Dimension, labels)}
}

// Apply changes the state by a record.
func (p *Plane) Apply(_ types.Time, _ types.TxID, r *record.Record) {
	types.Assert(!p.noting, "accounting: usage in a savepoint")
	switch kind, _ := kindOf(r); kind {
	case kindUsage, kindMetered:
		u, more, _ := parseCount(kind, r.Payload)
		p.applyUsage(r.Tenant, &u, more)
	case kindSlice:
		p.applySlice(r)
	case kindPaid, kindLines:
		p.applyLines(kind, r)
	case kindLineClosed:
		p.applyClosed(r)
	}
}

func (p *Plane) applyUsage(t types.Tenant, u *usage, more Count) {
	s := identifySeries(u.dimension, u.labels)
	k := u.key(t, &s)
	place, exists := p.rows.Find(k)
	if !exists {
		if _, known := p.streams.Find(streamKey{t, s.stream}); !known {
			p.addStream(streamKey{t, s.stream})
		}
		place = p.addRow(k, newSeriesText(u.dimension, u.labels))
	}
	_, c := p.rows.Row(place)
	p.rows.Set(place, Count{c.Value + more.Value, c.Events + more.Events})
}

// applySlice advances the stream and removes the rows of a slice. It parses the rows one by one: a step allocates
// nothing.
func (p *Plane) applySlice(r *record.Record) {
	due, s, rows := sliceRows(r.Tenant, r.Payload)
	at, _ := p.streams.Find(streamKey{r.Tenant, digest.Name(s.Dimension)})
	p.streams.Set(at, Stream{s.Seq, s.Digest})
	for len(rows) > 0 {
		labels, rest, _ := cutText(rows)
		place, exists := p.sealedPlace(&s, due, labels)
		types.Assert(exists, "accounting: a slice seals a row that does not exist")
		p.dropRow(place)
		rows = rest[2*8:]
	}
}

// sealedPlace returns the place of the row of a slice with labels. Slices have the rows in the order in which they are due, so it is the
// first one: that saves the digest of the series.
func (p *Plane) sealedPlace(s *Slice, due types.Time, labels []byte) (place uint32, exists bool) {
	if first, any := p.due.First(); any {
		k, text := p.rows.Key(first), &p.texts[first]
		if k.due == due && k.tenant == s.Tenant && k.window == s.Window && k.late == s.Kind.IsLate() && k.prepaid == s.Kind.IsPrepaid() &&
			bytes.Equal(text.Labels(), labels) && bytes.Equal(text.Dimension(), s.Dimension) {
			return first, true
		}
	}
	return p.rows.Find(sealedKey(s, due, labels))
}
