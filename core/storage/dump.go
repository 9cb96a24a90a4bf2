package storage

import (
	"encoding/binary"
	"errors"

	"macronode/core/plane"
	"macronode/core/types"
)

// The rows of a snapshot. Their format is permanent. An object comes before its holdings.
const (
	rowObject  = 1 // address 32 · size 8 · file 8
	rowHolding = 2 // tenant 4 · bucket 16 · address 32
)

// Dump passes each object and each holding to row. Usage is their sum.
func (p *Plane) Dump(row func(kind uint8, b []byte)) {
	for s := range p.objects.Capacity() {
		a, o, taken := p.objects.At(uint32(s))
		if taken {
			b := binary.LittleEndian.AppendUint64(append([]byte(nil), a[:]...), o.Size)
			row(rowObject, binary.LittleEndian.AppendUint64(b, uint64(o.File)))
		}
	}
	for s := range p.holdings.Capacity() {
		k, _, taken := p.holdings.At(uint32(s))
		if taken {
			b := append(binary.LittleEndian.AppendUint32(nil, uint32(k.tenant)), k.bucket[:]...)
			row(rowHolding, append(b, k.address[:]...))
		}
	}
}

// Load adds a row of Dump. An object has no holding until the row of one comes; Check finds an object
// without.
func (p *Plane) Load(kind uint8, b []byte) error {
	switch {
	case kind == rowObject && len(b) == 32+8+8:
		return p.loadObject(Address(b[:32]), Object{Size: binary.LittleEndian.Uint64(b[32:]), File: File(binary.LittleEndian.Uint64(b[40:]))})
	case kind == rowHolding && len(b) == 4+16+32:
		return p.loadHolding(holding{owner{types.Tenant(binary.LittleEndian.Uint32(b)), types.NameHash(b[4:20])}, Address(b[20:])})
	}
	return plane.ErrRow
}

func (p *Plane) loadObject(a Address, o Object) error {
	_, known := p.objects.Find(a)
	switch {
	case known, o.Size > MaxObject, o.File == 0:
		return plane.ErrRow
	case p.objects.Room() == 0:
		return plane.ErrRoom
	}
	p.objects.Put(a, o)
	p.physical = p.physical.add(o.Size)
	return nil
}

func (p *Plane) loadHolding(k holding) error {
	_, known := p.Find(k.address)
	_, twice := p.holdings.Find(k)
	switch {
	case !known, twice, k.tenant == 0, k.bucket == types.NameHash{}:
		return plane.ErrRow
	case !p.hasRoom(p.Usage(k.tenant, types.NameHash{}), p.Usage(k.tenant, k.bucket), true):
		return plane.ErrRoom
	}
	p.hold(k, Object{})
	return nil
}

// What Check may find.
var (
	ErrHoldings = errors.New("storage: S1: an object whose count of holdings is wrong")
	ErrUsage    = errors.New("storage: S2: a usage that is not the sum of what is held")
	ErrTotals   = errors.New("storage: S3: totals that are not the sum of all tenants or objects")
)

// Check returns the invariants that do not hold.
func (p *Plane) Check() error {
	refs, used := map[Address]uint32{}, map[owner]Usage{}
	var logical, physical Usage
	errs := []error{p.objects.Check(), p.holdings.Check(), p.usage.Check()}
	for s := range p.holdings.Capacity() {
		k, _, taken := p.holdings.At(uint32(s))
		if !taken {
			continue
		}
		o, _ := p.Find(k.address)
		refs[k.address]++
		logical = logical.add(o.Size)
		for _, w := range [...]owner{k.owner, {tenant: k.tenant}} {
			used[w] = used[w].add(o.Size)
		}
	}
	for s := range p.objects.Capacity() {
		if a, o, taken := p.objects.At(uint32(s)); taken {
			physical = physical.add(o.Size)
			if o.refs != refs[a] || o.refs == 0 {
				errs = append(errs, ErrHoldings)
			}
			delete(refs, a)
		}
	}
	if len(refs) > 0 {
		errs = append(errs, ErrHoldings)
	}
	if len(used) != p.usage.Len() {
		errs = append(errs, ErrUsage)
	}
	for s := range p.usage.Capacity() {
		if w, u, taken := p.usage.At(uint32(s)); taken && used[w] != u {
			errs = append(errs, ErrUsage)
		}
	}
	if p.logical != logical || p.physical != physical {
		errs = append(errs, ErrTotals)
	}
	return errors.Join(errs...)
}
