package storage

import (
	"errors"

	"macronode/core/types"
)

// What Check may find.
var (
	ErrReferences = errors.New("storage: S1: the count of references of an object is wrong")
	ErrUsage      = errors.New("storage: S2: a usage that is not the sum of what is held")
	ErrTotals     = errors.New("storage: S3: totals that are not the sum of all tenants or objects")
	ErrUpload     = errors.New("storage: S4: the bytes or the highest number of an upload are not those of its parts")
	ErrCounts     = errors.New("storage: S6: counts that are not those of the rows")
	ErrParts      = errors.New("storage: S5: a part without an upload, or one that was removed")
)

// sums is what the entries and parts add up to.
type sums struct {
	refs    map[Address]uint32
	owners  map[owner]owned
	uploads map[UploadID]Upload
	logical Usage
}

func (s *sums) count(w owner, change func(*owned)) {
	for _, w := range [...]owner{w, {tenant: w.tenant}} {
		o := s.owners[w]
		change(&o)
		s.owners[w] = o
	}
}

// Check returns the invariants that do not hold.
func (p *Plane) Check() error {
	errs := []error{p.objects.Check(), p.entries.Check(), p.owners.Check(), p.uploads.Check(), p.parts.Check(), p.tenants.Check(), p.checkCounts()}
	s := sums{map[Address]uint32{}, map[owner]owned{}, map[UploadID]Upload{}, Usage{}}
	each(&p.entries, func(k place, e Entry) {
		o, _ := p.Find(e.Address)
		s.refs[e.Address]++
		s.logical = s.logical.plus(Usage{o.Size, 1})
		s.count(k.owner, func(w *owned) { w.Usage = w.plus(Usage{o.Size, 1}) })
	})
	errs = append(errs, p.checkUploads(&s))
	each(&p.owners, func(w owner, o owned) {
		if o.made {
			sum := s.owners[w]
			sum.made = w.bucket != types.NameHash{}
			s.owners[w] = sum
		}
	})
	physical := Usage{}
	each(&p.objects, func(a Address, o Object) {
		physical = physical.plus(Usage{o.Size, 1})
		if o.refs != s.refs[a] || o.refs == 0 {
			errs = append(errs, ErrReferences)
		}
		delete(s.refs, a)
	})
	if len(s.refs) > 0 {
		errs = append(errs, ErrReferences)
	}
	if len(s.owners) != p.owners.Len() {
		errs = append(errs, ErrUsage)
	}
	each(&p.owners, func(w owner, o owned) {
		if s.owners[w] != o {
			errs = append(errs, ErrUsage)
		}
	})
	if p.logical != s.logical || p.physical != physical {
		errs = append(errs, ErrTotals)
	}
	return errors.Join(errs...)
}

// checkUploads adds the parts to s.
func (p *Plane) checkUploads(s *sums) error {
	var errs []error
	each(&p.parts, func(k partKey, t Part) {
		u, known := get(&p.uploads, k.upload)
		if !known || k.number > u.high || k.number < u.next || t.Size > MaxObject {
			errs = append(errs, ErrParts)
		}
		s.refs[t.Address]++
		if known && !u.ended {
			sum := s.uploads[k.upload]
			sum.Bytes += t.Size
			s.uploads[k.upload] = sum
			s.logical.Bytes += t.Size
			s.count(u.place.owner, func(w *owned) { w.Bytes += t.Size })
		}
	})
	each(&p.uploads, func(id UploadID, u Upload) {
		if u.Bytes != s.uploads[id].Bytes || u.ended && (u.next == 0 || u.next > u.high) {
			errs = append(errs, ErrUpload)
		}
		if !u.ended {
			s.count(u.place.owner, func(w *owned) { w.uploads++ })
		}
	})
	return errors.Join(errs...)
}

// checkCounts compares the counts with the rows.
func (p *Plane) checkCounts() error {
	want, buckets := map[types.Tenant]counts{}, 0
	add := func(t types.Tenant, n counts) {
		c := want[t]
		want[t] = counts{c.buckets + n.buckets, c.uploads + n.uploads, c.parts + n.parts}
	}
	each(&p.owners, func(w owner, _ owned) {
		if w.bucket != (types.NameHash{}) {
			buckets++
			add(w.tenant, counts{buckets: 1})
		}
	})
	each(&p.uploads, func(_ UploadID, u Upload) { add(u.place.tenant, counts{uploads: 1}) })
	each(&p.parts, func(k partKey, _ Part) {
		u, _ := get(&p.uploads, k.upload)
		add(u.place.tenant, counts{parts: 1})
	})
	wrong := buckets != p.buckets || len(want) != p.tenants.Len()
	each(&p.tenants, func(t types.Tenant, c counts) { wrong = wrong || c != want[t] })
	if wrong {
		return ErrCounts
	}
	return nil
}
