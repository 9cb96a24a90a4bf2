package storage

import (
	"encoding/binary"

	"macronode/core/plane"
	"macronode/core/table"
	"macronode/core/types"
)

// The rows of a snapshot. Their format is permanent; all integers are little-endian. An object comes
// before its entries and parts, an upload before its parts. Usage is the sum of them.
const (
	rowObject  = 1 // address 32 · size 8 · file 8
	rowHolding = 2 // tenant 4 · bucket 16 · address 32: an entry under an address, not written any more
	rowEntry   = 3 // tenant 4 · bucket 16 · name 16 · address 32 · LSN 8 · index 2
	rowBucket  = 4 // tenant 4 · bucket 16: it was created
	rowUpload  = 5 // LSN 8 · index 2 · tenant 4 · bucket 16 · name 16 · revision 4 · high 2 · next 2 · ended 1 · begun 8
	rowPart    = 6 // LSN 8 · index 2 · number 2 · address 32 · size 8 · MD5 16 · at 8
)

// Dump passes the rows to row.
func (p *Plane) Dump(row func(kind uint8, b []byte)) {
	each(&p.objects, func(a Address, o Object) {
		b := binary.LittleEndian.AppendUint64(append([]byte(nil), a[:]...), o.Size)
		row(rowObject, binary.LittleEndian.AppendUint64(b, uint64(o.File)))
	})
	each(&p.entries, func(k place, e Entry) {
		b := append(appendPlace(nil, k), e.Address[:]...)
		row(rowEntry, appendPosition(b, e.At))
	})
	each(&p.owners, func(w owner, o owned) {
		if o.made {
			row(rowBucket, appendOwner(nil, w))
		}
	})
	each(&p.uploads, func(id UploadID, u Upload) {
		b := appendPlace(appendPosition(nil, types.Position(id)), u.place)
		b = binary.LittleEndian.AppendUint32(b, u.Revision)
		b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, u.high), u.next)
		ended := byte(0)
		if u.ended {
			ended = 1
		}
		row(rowUpload, binary.LittleEndian.AppendUint64(append(b, ended), uint64(u.Begun)))
	})
	each(&p.parts, func(k partKey, t Part) {
		b := binary.LittleEndian.AppendUint16(appendPosition(nil, types.Position(k.upload)), k.number)
		b = binary.LittleEndian.AppendUint64(append(b, t.Address[:]...), t.Size)
		row(rowPart, binary.LittleEndian.AppendUint64(append(b, t.MD5[:]...), uint64(t.At)))
	})
}

// each passes the rows of a table to do.
func each[K, V table.Hashable](p *table.Pool[K, V], do func(K, V)) {
	for s := range p.Capacity() {
		if k, v, taken := p.At(uint32(s)); taken {
			do(k, v)
		}
	}
}

func appendPosition(b []byte, p types.Position) []byte {
	return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint64(b, uint64(p.LSN)), p.Index)
}

func appendOwner(b []byte, w owner) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(w.tenant)), w.bucket[:]...)
}

func appendPlace(b []byte, k place) []byte { return append(appendOwner(b, k.owner), k.name[:]...) }

const (
	ownerLen    = 4 + 16
	placeLen    = ownerLen + 16
	positionLen = 8 + 2
)

func readPosition(b []byte) types.Position {
	return types.Position{LSN: types.LSN(binary.LittleEndian.Uint64(b)), Index: binary.LittleEndian.Uint16(b[8:])}
}

func readOwner(b []byte) owner {
	return owner{types.Tenant(binary.LittleEndian.Uint32(b)), types.NameHash(b[4:ownerLen])}
}

func readPlace(b []byte) place { return place{readOwner(b), types.NameHash(b[ownerLen:placeLen])} }

// Load adds a row of Dump. An object has no reference until the row of one comes; Check finds an object
// without.
func (p *Plane) Load(kind uint8, b []byte) error {
	switch {
	case kind == rowObject && len(b) == 32+8+8:
		return p.loadObject(Address(b[:32]), Object{Size: binary.LittleEndian.Uint64(b[32:]), File: File(binary.LittleEndian.Uint64(b[40:]))})
	case kind == rowHolding && len(b) == ownerLen+32:
		a := Address(b[ownerLen:])
		return p.loadEntry(place{readOwner(b), addressName(a)}, Entry{Address: a})
	case kind == rowEntry && len(b) == placeLen+32+positionLen:
		return p.loadEntry(readPlace(b), Entry{Address(b[placeLen:]), readPosition(b[placeLen+32:])})
	case kind == rowBucket && len(b) == ownerLen:
		return p.loadBucket(readOwner(b))
	case kind == rowUpload && len(b) == positionLen+placeLen+4+2+2+1+8:
		return p.loadUpload(UploadID(readPosition(b)), b[positionLen:])
	case kind == rowPart && len(b) == positionLen+2+32+8+16+8:
		return p.loadPart(partKey{UploadID(readPosition(b)), binary.LittleEndian.Uint16(b[positionLen:])}, b[positionLen+2:])
	}
	return plane.ErrRow
}

func (p *Plane) loadObject(a Address, o Object) error {
	_, known := p.Find(a)
	switch {
	case known, o.Size > MaxObject, o.File == 0:
		return plane.ErrRow
	case p.objects.Room() == 0:
		return plane.ErrRoom
	}
	p.objects.Put(a, o)
	p.physical = p.physical.plus(Usage{o.Size, 1})
	return nil
}

func (p *Plane) loadEntry(k place, e Entry) error {
	o, known := p.Find(e.Address)
	_, twice := p.entries.Find(k)
	switch {
	case !known, twice, k.tenant == 0, k.bucket == types.NameHash{}:
		return plane.ErrRow
	case p.entries.Room() == 0 || !p.hasBucketRoom(k.owner):
		return plane.ErrRoom
	}
	p.entries.Put(k, e)
	p.reference(e.Address, o)
	p.loadUsage(k.owner, func(w *owned) { w.Usage = w.plus(Usage{o.Size, 1}) })
	p.logical = p.logical.plus(Usage{o.Size, 1})
	return nil
}

func (p *Plane) loadBucket(w owner) error {
	o, _ := get(&p.owners, w)
	switch {
	case o.made, w.tenant == 0, w.bucket == types.NameHash{}:
		return plane.ErrRow
	case !p.hasBucketRoom(w):
		return plane.ErrRoom
	}
	o.made = true
	p.setOwner(w, o, true)
	return nil
}

func (p *Plane) loadUpload(id UploadID, b []byte) error {
	u := Upload{place: readPlace(b), Revision: binary.LittleEndian.Uint32(b[placeLen:]), high: binary.LittleEndian.Uint16(b[placeLen+4:]),
		next: binary.LittleEndian.Uint16(b[placeLen+6:]), ended: b[placeLen+8] == 1, Begun: types.Time(binary.LittleEndian.Uint64(b[placeLen+9:]))}
	_, twice := p.uploads.Find(id)
	switch {
	case twice, id.LSN == 0, u.place.tenant == 0, u.high > MaxPart, u.next > u.high, u.ended != (u.next > 0):
		return plane.ErrRow
	case p.uploads.Room() == 0 || !u.ended && !p.hasBucketRoom(u.place.owner):
		return plane.ErrRoom
	}
	p.setUpload(u.place.tenant, id, u, true)
	if !u.ended {
		p.loadUsage(u.place.owner, func(w *owned) { w.uploads++ })
	}
	return nil
}

func (p *Plane) loadPart(k partKey, b []byte) error {
	t := Part{Address: Address(b[:32]), Size: binary.LittleEndian.Uint64(b[32:]), MD5: [16]byte(b[40:56]), At: types.Time(binary.LittleEndian.Uint64(b[56:]))}
	u, known := get(&p.uploads, k.upload)
	o, stored := p.Find(t.Address)
	_, twice := p.parts.Find(k)
	switch {
	case !known, !stored, twice, k.number < max(u.next, 1), k.number > u.high, o.Size != t.Size:
		return plane.ErrRow
	case p.parts.Room() == 0:
		return plane.ErrRoom
	}
	p.setPart(u.place.tenant, k, t, true)
	p.reference(t.Address, o)
	if !u.ended {
		u.Bytes += t.Size
		set(&p.uploads, k.upload, u, true)
		p.loadUsage(u.place.owner, func(w *owned) { w.Bytes += t.Size })
		p.logical.Bytes += t.Size
	}
	return nil
}

// reference counts a reference to an object.
func (p *Plane) reference(a Address, o Object) {
	o.refs++
	set(&p.objects, a, o, true)
}

// loadUsage changes the rows of a bucket and its tenant.
func (p *Plane) loadUsage(w owner, change func(*owned)) {
	for _, w := range [...]owner{w, {tenant: w.tenant}} {
		o, _ := get(&p.owners, w)
		change(&o)
		p.setOwner(w, o, true)
	}
}

// hasBucketRoom reports whether there is a row for a bucket.
func (p *Plane) hasBucketRoom(w owner) bool {
	return p.HasBucket(w.tenant, w.bucket) || p.buckets < p.limits.Buckets
}
