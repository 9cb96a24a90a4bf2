package storage

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// An effect is what a movement does to the rows, as far as the state before it says.
type effect struct {
	place    place
	old      Entry // that is replaced or removed
	held     bool
	plus     Usage // of the owner
	minus    Usage
	keeps    bool // the entry stays as it is
	entry    bool // there is an entry afterwards
	upload   Upload
	part     Part // that is replaced
	hadPart  bool
	wantsNew bool // the address needs a row of its own if it has none
}

func (d *effect) apply(u Usage) Usage { return u.plus(d.plus).minus(d.minus) }

// grows reports whether the usage becomes larger.
func (d *effect) grows() bool {
	return d.plus.Bytes > d.minus.Bytes || d.plus.Objects > d.minus.Objects
}

// growth returns by how much the usage becomes larger.
func (d *effect) growth() Usage {
	return Usage{d.plus.Bytes - min(d.minus.Bytes, d.plus.Bytes), d.plus.Objects - min(d.minus.Objects, d.plus.Objects)}
}

// effect returns what m does. It is false if m does not continue the state.
func (p *Plane) effect(t types.Tenant, m *movement) (d effect, ok bool) {
	if d.place, d.upload, ok = p.placeOf(t, m); !ok {
		return d, false
	}
	d.old, d.held = get(&p.entries, d.place)
	was := Usage{}
	if d.held {
		old, _ := p.Find(d.old.Address)
		was = Usage{old.Size, 1}
	}
	o, known := p.Find(m.address)
	one, sized := Usage{m.size, 1}, m.file != 0 && (!known || o.Size == m.size)
	bucket, exists := get(&p.owners, d.place.owner)
	switch m.kind {
	case kindStored:
		d.plus, d.entry, d.wantsNew = one, true, true
		return d, sized && !d.held
	case kindKept:
		d.keeps, d.entry = true, true
		return d, sized && d.held && d.old.Address == m.address
	case kindDeleted, kindRemoved:
		d.minus = was
		return d, d.held && d.old.Address == m.address && o.Size == m.size && o.File == m.file
	case kindNamed:
		d.plus, d.minus, d.entry, d.wantsNew = one, was, true, true
		return d, sized && exists
	case kindCompleted:
		d.plus, d.minus, d.entry, d.wantsNew = one, was.plus(Usage{Bytes: d.upload.Bytes}), true, true
		return d, sized
	case kindBucketCreated:
		return d, !bucket.made
	case kindBucketDeleted:
		return d, exists && bucket.Objects == 0 && bucket.uploads == 0
	case kindUploadBegun:
		return d, exists
	case kindPartPut:
		d.part, d.hadPart = get(&p.parts, partKey{m.upload, m.number})
		d.plus, d.minus, d.wantsNew = Usage{Bytes: m.size}, Usage{Bytes: d.part.Size}, true
		return d, sized
	case kindAborted:
		d.minus = Usage{Bytes: d.upload.Bytes}
		return d, true
	default: // kindPartsRemoved
		return d, m.number == d.upload.next && m.upto <= d.upload.high+1
	}
}

// placeOf returns the place that m is about, and its upload. It is false if m does not belong to the upload.
func (p *Plane) placeOf(t types.Tenant, m *movement) (k place, u Upload, ok bool) {
	if (m.upload == UploadID{}) {
		return m.place(t), u, true
	}
	u, ok = get(&p.uploads, m.upload)
	if !ok || u.ended != (m.kind == kindPartsRemoved) || u.place.tenant != t {
		return k, u, false
	}
	if len(m.name) == 0 { // the node itself
		return u.place, u, true
	}
	return u.place, u, m.place(t) == u.place
}

// hasRoom reports whether the tables have rows for d.
func (p *Plane) hasRoom(m *movement, d *effect) bool {
	claims := p.claims(m, d)
	return shortage(claims[:]) == event.Shortage{}
}

// Fits reports whether r continues the state. It does not look at the quotas: they may have been lowered
// since.
func (p *Plane) Fits(r *record.Record) bool {
	m, ok := parse(r)
	if !ok {
		return false
	}
	d, ok := p.effect(r.Tenant, &m)
	if !ok || !p.hasRoom(&m, &d) {
		return false
	}
	total, used := p.Usage(r.Tenant, types.NameHash{}), p.Usage(r.Tenant, d.place.bucket)
	return m.tenantUsage == d.apply(total) && m.bucketUsage == d.apply(used) &&
		m.tenantUsage.Bytes >= d.plus.Bytes && used.plus(d.plus).Bytes >= d.minus.Bytes
}

// Apply changes the state by a record.
func (p *Plane) Apply(at types.Time, id types.TxID, r *record.Record) {
	m, ok := parse(r)
	types.Assert(ok, "storage: applies a record that cannot be read")
	d, ok := p.effect(r.Tenant, &m)
	types.Assert(ok, "storage: applies a record that does not fit")
	if p.noting {
		p.note(&m, &d, id.Position())
	}
	p.charge(&m, &d)
	switch m.kind {
	case kindPartPut:
		p.putPartRow(at, &m, &d)
	case kindUploadBegun:
		p.setUpload(r.Tenant, UploadID(id.Position()), Upload{place: d.place, Begun: at}, true)
	case kindCompleted, kindAborted:
		d.upload.ended, d.upload.next = true, 1
		d.upload.Bytes = 0
		p.setUpload(r.Tenant, m.upload, d.upload, d.upload.high > 0)
	case kindPartsRemoved:
		p.removeParts(&m, d.upload)
	}
	p.setEntry(&m, &d, id.Position())
}

// setEntry makes the entry what it is afterwards.
func (p *Plane) setEntry(m *movement, d *effect, at types.Position) {
	switch {
	case d.keeps:
		p.setFile(m.address, m.file)
	case d.entry:
		p.retain(m)
		if d.held {
			p.release(d.old.Address)
		}
		set(&p.entries, d.place, Entry{m.address, at}, true)
	case d.held && (m.kind == kindDeleted || m.kind == kindRemoved):
		p.release(d.old.Address)
		set(&p.entries, d.place, Entry{}, false)
	}
}

// charge changes the usage of the bucket and its tenant.
func (p *Plane) charge(m *movement, d *effect) {
	p.logical = d.apply(p.logical)
	for _, w := range [...]owner{d.place.owner, {tenant: d.place.tenant}} {
		o, _ := get(&p.owners, w)
		o.Usage = d.apply(o.Usage)
		bucket := w.bucket != types.NameHash{}
		switch m.kind {
		case kindBucketCreated:
			o.made = o.made || bucket
		case kindBucketDeleted:
			o.made = false
		case kindUploadBegun:
			o.uploads++
		case kindCompleted, kindAborted:
			o.uploads--
		}
		p.setOwner(w, o, o != owned{})
	}
}

// retain adds a reference to the object of m.
func (p *Plane) retain(m *movement) {
	o, known := p.Find(m.address)
	if !known {
		o.Size = m.size
		p.physical = p.physical.plus(Usage{m.size, 1})
	}
	o.File = m.file
	o.refs++
	set(&p.objects, m.address, o, true)
}

// release removes a reference to an object, and the object with its last one.
func (p *Plane) release(a Address) {
	o, known := p.Find(a)
	types.Assert(known && o.refs > 0, "storage: releases an object that does not exist")
	if o.refs--; o.refs == 0 {
		p.physical = p.physical.minus(Usage{o.Size, 1})
	}
	set(&p.objects, a, o, o.refs > 0)
}

// setFile replaces the file of an object.
func (p *Plane) setFile(a Address, f File) {
	o, known := p.Find(a)
	types.Assert(known, "storage: a file without its object")
	if o.File != f {
		o.File = f
		set(&p.objects, a, o, true)
	}
}
