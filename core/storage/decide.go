package storage

import (
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// Decide records what becomes of c. Every problem leaves no record: a retry may succeed.
func (p *Plane) Decide(_ types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	in, r := c.Head(), f.Record()
	*r = record.Record{Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash}
	var m movement
	m, reply.Problem = p.draft(in.Tenant, c)
	if reply.Problem == event.None {
		reply.Problem, reply.Shortage = p.complete(in.Tenant, &m)
	}
	if reply.Problem != event.None {
		return
	}
	r.Kind, r.Payload = record.PlaneKind(types.PlaneStorage, m.kind), m.append(p.payload[:0])
	reply.Position = f.Add()
}

// draft returns the movement that c asks for, without the usage behind it.
func (p *Plane) draft(t types.Tenant, c command.Command) (movement, event.Problem) {
	switch c := c.(type) {
	case *Put:
		if len(c.Name.Text) > 0 {
			return p.putNamed(t, c)
		}
		return p.put(t, c)
	case *Delete:
		return p.delete(t, c)
	case *CreateBucket:
		return p.createBucket(t, c)
	case *DeleteBucket:
		return p.deleteBucket(t, c)
	case *BeginUpload:
		if !p.HasBucket(t, c.Bucket.ID) {
			return movement{}, event.NotFound
		}
		return movement{kind: kindUploadBegun, bucket: c.Bucket.Text, name: c.Name.Text, meta: c.Meta}, event.None
	case *PutPart:
		return p.putPart(t, c)
	case *AbortUpload:
		if _, ok := p.Upload(t, c.Bucket.ID, c.Name.ID, c.Upload); !ok {
			return movement{}, event.NotFound
		}
		return movement{kind: kindAborted, bucket: c.Bucket.Text, name: c.Name.Text, upload: c.Upload}, event.None
	}
	return movement{}, event.BadRequest
}

// put stores an object under its address.
func (p *Plane) put(t types.Tenant, c *Put) (m movement, no event.Problem) {
	m = movement{kind: kindStored, address: c.Address, size: c.Size, bucket: c.Bucket.Text}
	if p.Holds(t, c.Bucket.ID, c.Address) {
		m.kind = kindKept
	}
	return m, p.setContent(&m, c.File, c.Replace)
}

// setContent decides which file has the content of m.
func (p *Plane) setContent(m *movement, f File, replace bool) event.Problem {
	o, known := p.Find(m.address)
	m.file = f
	switch {
	case !known && f == 0:
		return event.NotFound
	case known && f == 0:
		m.size = o.Size
	case known && o.Size != m.size: // two contents with one digest, or a fault of the adapter
		return event.Internal
	}
	if known && (!replace || f == 0) {
		m.file = o.File
	}
	return event.None
}

// putNamed stores an object under a name, or completes an upload.
func (p *Plane) putNamed(t types.Tenant, c *Put) (m movement, no event.Problem) {
	m = movement{kind: kindNamed, address: c.Address, size: c.Size, bucket: c.Bucket.Text, name: c.Name.Text, etag: c.ETag, meta: c.Meta}
	old, held := p.Entry(t, c.Bucket.ID, c.Name.ID)
	switch {
	case !p.HasBucket(t, c.Bucket.ID):
		return m, event.NotFound
	case c.Match.Absent && held, c.Match.At.LSN > 0 && (!held || old.At != c.Match.At):
		return m, event.PreconditionFailed
	}
	if (c.Upload != UploadID{}) {
		u, ok := p.Upload(t, c.Bucket.ID, c.Name.ID, c.Upload)
		switch {
		case !ok:
			return m, event.NotFound
		case u.Revision != c.Revision:
			return m, event.InProgress
		}
		m.kind, m.upload = kindCompleted, c.Upload
	}
	return m, p.setContent(&m, c.File, c.Replace)
}

// delete removes an entry.
func (p *Plane) delete(t types.Tenant, c *Delete) (m movement, no event.Problem) {
	m = movement{kind: kindDeleted, address: c.Address, bucket: c.Bucket.Text}
	k := place{owner{t, c.Bucket.ID}, c.Name.ID}
	if len(c.Name.Text) > 0 {
		m.kind, m.name = kindRemoved, c.Name.Text
	} else {
		k.name = addressName(c.Address)
	}
	e, held := get(&p.entries, k)
	if !held {
		return m, event.NotFound
	}
	o, _ := p.Find(e.Address)
	m.address, m.size, m.file = e.Address, o.Size, o.File
	return m, event.None
}

func (p *Plane) createBucket(t types.Tenant, c *CreateBucket) (m movement, no event.Problem) {
	if o, _ := get(&p.owners, owner{t, c.Bucket.ID}); o.made {
		return m, event.PreconditionFailed
	}
	return movement{kind: kindBucketCreated, bucket: c.Bucket.Text}, event.None
}

func (p *Plane) deleteBucket(t types.Tenant, c *DeleteBucket) (m movement, no event.Problem) {
	switch o, known := get(&p.owners, owner{t, c.Bucket.ID}); {
	case !known:
		return m, event.NotFound
	case o.Objects > 0 || o.uploads > 0:
		return m, event.PreconditionFailed
	}
	return movement{kind: kindBucketDeleted, bucket: c.Bucket.Text}, event.None
}

func (p *Plane) putPart(t types.Tenant, c *PutPart) (m movement, no event.Problem) {
	m = movement{kind: kindPartPut, address: c.Address, size: c.Size, bucket: c.Bucket.Text, name: c.Name.Text,
		upload: c.Upload, number: c.Number, etag: c.ETag}
	u, ok := p.Upload(t, c.Bucket.ID, c.Name.ID, c.Upload)
	switch {
	case !ok:
		return m, event.NotFound
	case c.Append && (u.Bytes != c.Offset || u.high >= c.Number):
		return m, event.UploadMoved
	}
	return m, p.setContent(&m, c.File, c.Replace)
}

// complete fills in the usage after m, if the quotas, the limits of the tenant and the tables have room for it.
func (p *Plane) complete(t types.Tenant, m *movement) (event.Problem, event.Shortage) {
	d, ok := p.effect(t, m)
	if !ok {
		return event.Internal, event.Shortage{}
	}
	total, used := d.apply(p.Usage(t, types.NameHash{})), d.apply(p.Usage(t, d.place.bucket))
	if d.grows() && !(total.within(p.limits.tenantQuota()) && used.within(p.limits.BucketQuota)) {
		return event.QuotaExceeded, p.QuotaShortage(t, d.place.bucket, d.growth())
	}
	ofAll := p.claims(m, &d)
	ofTenant := p.claimsOfTenant(m, &d, &ofAll)
	for _, claims := range [...][]claim{ofTenant[:], ofAll[:]} {
		if s := shortage(claims); s.Limit != event.NoLimit {
			return event.CapacityExceeded, s
		}
	}
	m.tenantUsage, m.bucketUsage = total, used
	return event.None, event.Shortage{}
}
