package storage

import "macronode/core/types"

// A change is what one record changed: the rows before it.
type change struct {
	place  place
	entry  Entry
	held   bool
	bucket owned
	tenant owned

	objects [2]object // of the record, and of the entry or part before it

	upload   UploadID
	row      Upload
	uploaded bool
	part     partKey
	before   Part
	hadPart  bool

	logical  Usage
	physical Usage
}

// object is a row of objects that there was, or was not.
type object struct {
	address Address
	row     Object
	known   bool
}

// Savepoint starts noting changes.
func (p *Plane) Savepoint() { p.noting, p.undo = true, p.undo[:0] }

// Commit keeps all changes since the savepoint.
func (p *Plane) Commit() { p.noting, p.undo = false, p.undo[:0] }

// note keeps the rows that m changes.
func (p *Plane) note(m *movement, d *effect, at types.Position) {
	types.Assert(len(p.undo) < maxUndo, "storage: more records than one savepoint takes")
	types.Assert(m.kind != kindPartsRemoved, "storage: parts are removed behind a savepoint")
	c := change{place: d.place, entry: d.old, held: d.held, upload: m.upload, logical: p.logical, physical: p.physical}
	c.bucket, _ = get(&p.owners, d.place.owner)
	c.tenant, _ = get(&p.owners, owner{tenant: d.place.tenant})
	replaced := d.old.Address
	if m.kind == kindPartPut {
		c.part, c.before, c.hadPart = partKey{m.upload, m.number}, d.part, d.hadPart
		replaced = d.part.Address
	}
	for i, a := range [...]Address{m.address, replaced} {
		c.objects[i].address = a
		c.objects[i].row, c.objects[i].known = p.Find(a)
	}
	if m.kind == kindUploadBegun {
		c.upload = UploadID(at)
	}
	c.row, c.uploaded = get(&p.uploads, c.upload)
	p.undo = append(p.undo, c)
}

// Undo reverts all changes since the savepoint.
func (p *Plane) Undo() {
	for i := len(p.undo) - 1; i >= 0; i-- {
		c := &p.undo[i]
		set(&p.entries, c.place, c.entry, c.held)
		p.setPart(c.place.tenant, c.part, c.before, c.hadPart)
		p.setUpload(c.place.tenant, c.upload, c.row, c.uploaded)
		for _, o := range c.objects {
			set(&p.objects, o.address, o.row, o.known)
		}
		p.setOwner(c.place.owner, c.bucket, c.bucket != owned{})
		tenant := owner{tenant: c.place.tenant}
		set(&p.owners, tenant, c.tenant, c.tenant != owned{})
		p.logical, p.physical = c.logical, c.physical
	}
	p.Commit()
}
