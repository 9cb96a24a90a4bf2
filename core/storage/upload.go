package storage

import (
	"macronode/core/record"
	"macronode/core/types"
)

// putPartRow adds a part to its upload, or replaces it.
func (p *Plane) putPartRow(at types.Time, m *movement, d *effect) {
	p.retain(m)
	if d.hadPart {
		p.release(d.part.Address)
	}
	p.setPart(d.place.tenant, partKey{m.upload, m.number}, Part{Address: m.address, Size: m.size, MD5: m.etag.MD5, At: at}, true)
	u := d.upload
	u.Bytes += m.size - d.part.Size
	u.Revision++
	u.high = max(u.high, m.number)
	set(&p.uploads, m.upload, u, true)
}

// removeParts removes parts of an upload that has ended, and the upload with its last part.
func (p *Plane) removeParts(m *movement, u Upload) {
	for n := m.number; n < m.upto; n++ {
		k := partKey{m.upload, n}
		if part, ok := get(&p.parts, k); ok {
			p.release(part.Address)
			p.setPart(u.place.tenant, k, Part{}, false)
		}
	}
	u.next = m.upto
	p.setUpload(u.place.tenant, m.upload, u, u.next <= u.high)
}

const (
	uploadsPerScan   = 16 // rows that one call of Expire looks at
	numbersPerRecord = 64 // of parts that one record removes
)

// HasTimers reports whether there is an upload: it may be too old, or have parts to remove.
func (p *Plane) HasTimers() bool { return p.uploads.Len() > 0 }

// Expire fills r with the removal of some parts of an upload that has ended, or with the end of an upload
// that is older than Limits.UploadTTL. It looks at a few uploads and goes on there at the next call.
func (p *Plane) Expire(at types.Time, r *record.Record) bool {
	for range min(uploadsPerScan, p.uploads.Capacity()) {
		if int(p.cursor) >= p.uploads.Capacity() {
			p.cursor = 0
		}
		if id, u, taken := p.uploads.At(p.cursor); taken && p.expireUpload(at, id, &u, r) {
			return true
		}
		p.cursor++
	}
	return false
}

func (p *Plane) expireUpload(at types.Time, id UploadID, u *Upload, r *record.Record) bool {
	m := movement{kind: kindAborted, upload: id}
	if u.ended {
		m.kind, m.number, m.upto = kindPartsRemoved, u.next, min(u.next+numbersPerRecord, u.high+1)
	} else if ttl := types.Time(p.limits.UploadTTL.Milliseconds()); ttl == 0 || at < u.Begun+ttl {
		return false
	}
	d, ok := p.effect(u.place.tenant, &m)
	types.Assert(ok, "storage: an upload that cannot end")
	m.tenantUsage, m.bucketUsage = d.apply(p.Usage(u.place.tenant, types.NameHash{})), d.apply(p.Usage(u.place.tenant, u.place.bucket))
	r.Kind, r.Tenant, r.Payload = record.PlaneKind(types.PlaneStorage, m.kind), u.place.tenant, m.append(p.payload[:0])
	return true
}
