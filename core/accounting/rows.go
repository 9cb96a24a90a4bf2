package accounting

import (
	"bytes"

	"macronode/core/types"
)

// A Window is [From, To) of UTC time.
type Window struct{ From, To types.Time }

// A rowKey identifies the usage of a series in a window until it is sealed.
type rowKey struct {
	tenant  types.Tenant
	window  Window
	due     types.Time     // when the row is sealed
	late    bool           // the row is part of a correction
	prepaid bool           // it was paid when it was recorded
	series  types.NameHash // of the dimension and the labels
}

// HashInto mixes k into h.
func (k rowKey) HashInto(h types.Hash64) types.Hash64 {
	h = k.tenant.HashInto(h).Mix(uint64(k.window.From)).Mix(uint64(k.window.To)).Mix(uint64(k.due)).MixBool(k.late)
	if k.prepaid { // without it, as before there were prepaid rows
		h = h.Mix(1)
	}
	return k.series.HashInto(h)
}

// A Count is an amount of usage.
type Count struct {
	Value  uint64 // in units of the dimension
	Events uint64 // that it is the sum of
}

// HashInto mixes c into h.
func (c Count) HashInto(h types.Hash64) types.Hash64 { return h.Mix(c.Value).Mix(c.Events) }

// A seriesText is the text of a series.
type seriesText struct {
	dimension, labels uint8 // lengths
	text              [MaxDimension + MaxLabels]byte
}

func newSeriesText(dimension, labels []byte) (s seriesText) {
	s.dimension, s.labels = uint8(len(dimension)), uint8(len(labels))
	copy(s.text[copy(s.text[:], dimension):], labels)
	return s
}

func (s *seriesText) Dimension() []byte { return s.text[:s.dimension:s.dimension] }
func (s *seriesText) Labels() []byte {
	end := s.dimension + s.labels
	return s.text[s.dimension:end:end]
}

// A streamKey identifies a stream: a dimension of a tenant.
type streamKey struct {
	tenant    types.Tenant
	dimension types.NameHash
}

// HashInto mixes k into h.
func (k streamKey) HashInto(h types.Hash64) types.Hash64 {
	return k.dimension.HashInto(k.tenant.HashInto(h))
}

// A Stream is the state of a chain of slices.
type Stream struct {
	Seq  uint64 // of the last slice; 0: none
	Head Digest // of the last slice
}

// HashInto mixes s into h.
func (s Stream) HashInto(h types.Hash64) types.Hash64 {
	return s.Head.HashInto(h.Mix(s.Seq))
}

// A tenant counts what it has, and begins the list of its rows.
type tenant struct {
	rows    uint32
	streams uint32
	first   uint32 // a place in rows plus one; 0: none
}

// HashInto mixes t into h, without the order of its rows.
func (t tenant) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(t.rows)).Mix(uint64(t.streams))
}

// A link has the neighbours of a row in the list of its tenant: places plus one; 0: none.
type link struct{ prev, next uint32 }

// before reports whether the row at place a is sealed before that at b: by time, then by stream, then by
// window and labels. Rows of one slice are adjacent in this order.
func (p *Plane) before(a, b uint32) bool {
	if order := p.compareSlices(a, b); order != 0 {
		return order < 0
	}
	return bytes.Compare(p.texts[a].Labels(), p.texts[b].Labels()) < 0
}

// compareSlices is 0 if the rows at two places belong to the same slice.
func (p *Plane) compareSlices(a, b uint32) int {
	ka, kb := p.rows.Key(a), p.rows.Key(b)
	switch {
	case ka.due != kb.due:
		return sign(ka.due < kb.due)
	case ka.tenant != kb.tenant:
		return sign(ka.tenant < kb.tenant)
	}
	if order := bytes.Compare(p.texts[a].Dimension(), p.texts[b].Dimension()); order != 0 {
		return order
	}
	switch {
	case ka.late != kb.late:
		return sign(kb.late)
	case ka.prepaid != kb.prepaid:
		return sign(kb.prepaid)
	case ka.window.From != kb.window.From:
		return sign(ka.window.From < kb.window.From)
	case ka.window.To != kb.window.To:
		return sign(ka.window.To < kb.window.To)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// addRow adds the row k with no usage, and returns its place. There is room.
func (p *Plane) addRow(k rowKey, text seriesText) (place uint32) {
	place = p.rows.Put(k, Count{})
	p.texts[place] = text
	at, known := p.tenants.Find(k.tenant)
	if !known {
		at = p.tenants.Put(k.tenant, tenant{})
	}
	_, t := p.tenants.Row(at)
	p.links[place] = link{next: t.first}
	if t.first > 0 {
		p.links[t.first-1].prev = place + 1
	}
	t.first = place + 1
	t.rows++
	p.tenants.Set(at, t)
	p.due.Push(place, p.before)
	return place
}

// dropRow removes the row at a place.
func (p *Plane) dropRow(place uint32) {
	k, _ := p.rows.Row(place)
	p.due.Remove(place, p.before)
	at, _ := p.tenants.Find(k.tenant)
	_, t := p.tenants.Row(at)
	l := p.links[place]
	if l.prev > 0 {
		p.links[l.prev-1].next = l.next
	} else {
		t.first = l.next
	}
	if l.next > 0 {
		p.links[l.next-1].prev = l.prev
	}
	p.links[place] = link{}
	t.rows--
	p.tenants.Set(at, t)
	p.rows.Drop(place)
}

// addStream makes the stream with a key. There is room.
func (p *Plane) addStream(k streamKey) {
	p.streams.Put(k, Stream{})
	at, known := p.tenants.Find(k.tenant)
	if !known {
		at = p.tenants.Put(k.tenant, tenant{})
	}
	_, t := p.tenants.Row(at)
	t.streams++
	p.tenants.Set(at, t)
}
