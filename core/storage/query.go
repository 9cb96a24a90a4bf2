package storage

import (
	"macronode/core/event"
	"macronode/core/types"
)

// Find returns an object.
func (p *Plane) Find(a Address) (Object, bool) { return get(&p.objects, a) }

// Stored is an object with its address.
type Stored struct {
	Address Address
	Object
}

// Objects returns up to limit objects, from a row on, and the row after the last one. Done reports that
// there are no more. An object that is put meanwhile may be missing.
func (p *Plane) Objects(from uint32, limit int) (list []Stored, next uint32, done bool) {
	for ; int(from) < p.objects.Capacity() && len(list) < limit; from++ {
		if a, o, taken := p.objects.At(from); taken {
			list = append(list, Stored{a, o})
		}
	}
	return list, from, int(from) >= p.objects.Capacity()
}

// Entry returns the object with a name in a bucket.
func (p *Plane) Entry(t types.Tenant, bucket, name types.NameHash) (Entry, bool) {
	return get(&p.entries, place{owner{t, bucket}, name})
}

// Holds reports whether a bucket holds an object under its address.
func (p *Plane) Holds(t types.Tenant, bucket types.NameHash, a Address) bool {
	_, ok := p.Entry(t, bucket, addressName(a))
	return ok
}

// Keeps reports whether c leaves the bucket as it is: the name refers to the same object already.
func (p *Plane) Keeps(c *Put) bool {
	name := c.Name.ID
	if len(c.Name.Text) == 0 {
		name = addressName(c.Address)
	}
	e, held := p.Entry(c.Tenant, c.Bucket.ID, name)
	return held && e.Address == c.Address
}

// HasBucket reports whether a bucket exists: it was created, or it holds an object.
func (p *Plane) HasBucket(t types.Tenant, bucket types.NameHash) bool {
	_, ok := p.owners.Find(owner{t, bucket})
	return ok
}

// Upload returns an upload in progress.
func (p *Plane) Upload(t types.Tenant, bucket, name types.NameHash, id UploadID) (Upload, bool) {
	u, ok := get(&p.uploads, id)
	if !ok || u.ended || u.place != (place{owner{t, bucket}, name}) {
		return Upload{}, false
	}
	return u, true
}

// NextPart returns the number behind the highest part of u.
func (u Upload) NextPart() uint16 { return u.high + 1 }

// A NumberedPart is a part with its number.
type NumberedPart struct {
	Number uint16
	Part
}

// Parts returns up to limit parts of an upload whose numbers are higher than after, in their order.
func (p *Plane) Parts(id UploadID, after uint16, limit int) (list []NumberedPart) {
	u, _ := get(&p.uploads, id)
	for n := after; n < u.high && len(list) < limit; {
		n++
		if part, ok := get(&p.parts, partKey{id, n}); ok {
			list = append(list, NumberedPart{n, part})
		}
	}
	return list
}

// Left returns how many bytes the quotas leave to a bucket; 0 if they leave no object. Rows that the tenant leaves to others are no quota.
func (p *Plane) Left(t types.Tenant, bucket types.NameHash) uint64 {
	left := uint64(MaxObject)
	for _, w := range [...]struct{ used, quota Usage }{{p.Usage(t, types.NameHash{}), p.limits.tenantQuota()}, {p.Usage(t, bucket), p.limits.BucketQuota}} {
		if w.used.Objects >= w.quota.Objects {
			return 0
		}
		left = min(left, w.quota.Bytes-min(w.used.Bytes, w.quota.Bytes))
	}
	return left
}

// QuotaShortage returns the first quota that leaves less to a bucket than is needed; none if each leaves enough.
func (p *Plane) QuotaShortage(t types.Tenant, bucket types.NameHash, needed Usage) event.Shortage {
	ofTenant, ofBucket := p.Usage(t, types.NameHash{}), p.Usage(t, bucket)
	tenant := p.limits.tenantQuota()
	for _, q := range [...]struct {
		limit               event.Limit
		needed, used, quota uint64
	}{
		{event.QuotaTenantBytes, needed.Bytes, ofTenant.Bytes, tenant.Bytes},
		{event.QuotaTenantObjects, needed.Objects, ofTenant.Objects, tenant.Objects},
		{event.QuotaBucketBytes, needed.Bytes, ofBucket.Bytes, p.limits.BucketQuota.Bytes},
		{event.QuotaBucketObjects, needed.Objects, ofBucket.Objects, p.limits.BucketQuota.Objects},
	} {
		if left := q.quota - min(q.used, q.quota); q.needed > left {
			return event.Shortage{Limit: q.limit, Needed: q.needed, Left: left}
		}
	}
	return event.Shortage{}
}

// Usage returns what a bucket holds; that of the tenant if bucket is zero.
func (p *Plane) Usage(t types.Tenant, bucket types.NameHash) Usage {
	o, _ := get(&p.owners, owner{t, bucket})
	return o.Usage
}

// Totals returns what all tenants hold, and what is stored for it.
func (p *Plane) Totals() (logical, physical Usage) { return p.logical, p.physical }

// Uploads returns how many uploads have a row, and Parts of them.
func (p *Plane) Uploads() (uploads, parts int) { return p.uploads.Len(), p.parts.Len() }
