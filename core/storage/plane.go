// Package storage is the storage plane: which objects exist, which buckets hold them, and what each
// tenant and bucket uses. The bytes of an object are in files, which an adapter writes before Put and
// removes when no row names them.
//
//	upload ──► file, durable ──► Put ──► object, holding, usage ──► reply
//	                             Delete ──► no holding ──► no object ──► the file is garbage
//
// An object is stored once, however many buckets hold it. Usage counts it in each: quotas limit what
// a tenant stores, not what the node saves by deduplication.
package storage

import (
	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/table"
	"macronode/core/types"
)

// Limits of a Plane. The quotas apply to new objects: what is stored already stays when a quota is
// lowered.
type Limits struct {
	Objects  int // distinct objects
	Holdings int // pairs of a bucket and an object
	Buckets  int // buckets that hold an object, and tenants that have one

	TenantQuota Usage // of one tenant, in all its buckets
	BucketQuota Usage // of one bucket
}

// Usage is what a tenant or a bucket holds.
type Usage struct {
	Bytes   uint64
	Objects uint64
}

// within reports whether u is within a quota.
func (u Usage) within(quota Usage) bool {
	return u.Bytes <= quota.Bytes && u.Objects <= quota.Objects
}

func (u Usage) add(size uint64) Usage    { return Usage{u.Bytes + size, u.Objects + 1} }
func (u Usage) remove(size uint64) Usage { return Usage{u.Bytes - size, u.Objects - 1} }

// HashInto mixes u into h.
func (u Usage) HashInto(h types.Hash64) types.Hash64 { return h.Mix(u.Bytes).Mix(u.Objects) }

// An Object is the row of an object.
type Object struct {
	Size uint64
	File File
	refs uint32 // holdings
}

// HashInto mixes o into h.
func (o Object) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(o.Size).Mix(uint64(o.File)).Mix(uint64(o.refs))
}

// An owner is a bucket, or a tenant: then its bucket is zero.
type owner struct {
	tenant types.Tenant
	bucket types.NameHash
}

func (o owner) HashInto(h types.Hash64) types.Hash64 { return o.bucket.HashInto(o.tenant.HashInto(h)) }

// A holding is an object in a bucket.
type holding struct {
	owner
	address Address
}

func (k holding) HashInto(h types.Hash64) types.Hash64 {
	return k.address.HashInto(k.owner.HashInto(h))
}

// nothing is the value of a table that is used as a set.
type nothing struct{}

// HashInto returns h.
func (nothing) HashInto(h types.Hash64) types.Hash64 { return h }

// maxUndo is the number of storage records that may follow one savepoint.
const maxUndo = 1

// Plane is the state of the storage plane.
//
// Invariants:
//
//	S1  an object exists if and only if a bucket holds it, and counts its holdings
//	S2  the usage of a bucket is the sum of what it holds, that of a tenant the sum of its buckets
//	S3  logical is the sum of all tenants, physical the sum of all objects
type Plane struct {
	limits   Limits
	objects  table.Pool[Address, Object]
	holdings table.Pool[holding, nothing]
	usage    table.Pool[owner, Usage]
	logical  Usage
	physical Usage

	noting bool // since a savepoint
	undo   []change

	payload [maxPayload]byte // scratch of Decide
}

var _ plane.Plane = (*Plane)(nil)

// A change is what one record changed: enough to take it back.
type change struct {
	kind    uint8
	holding holding
	object  Object // of the address, before the record
	existed bool
}

// Spec returns the plane for the list of planes of state.Limits.
func Spec(l Limits) plane.Spec {
	return plane.Spec{ID: types.PlaneStorage, Bytes: Bytes(l),
		New: func(seed types.Hash64) plane.Plane { return New(l, seed) }}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.PoolBytes[Address, Object](l.Objects) + table.PoolBytes[holding, nothing](l.Holdings) +
		table.PoolBytes[owner, Usage](l.Buckets) + table.SliceBytes[change](maxUndo)
}

// New returns a plane without objects.
func New(l Limits, seed types.Hash64) *Plane {
	return &Plane{limits: l, objects: table.NewPool[Address, Object](l.Objects, seed), holdings: table.NewPool[holding, nothing](l.Holdings, seed),
		usage: table.NewPool[owner, Usage](l.Buckets, seed), undo: make([]change, 0, maxUndo)}
}

// ID is that of the storage plane.
func (*Plane) ID() types.Plane { return types.PlaneStorage }

// Find returns an object.
func (p *Plane) Find(a Address) (o Object, ok bool) {
	place, ok := p.objects.Find(a)
	if ok {
		_, o = p.objects.Row(place)
	}
	return o, ok
}

// Stored is an object with its address.
type Stored struct {
	Address Address
	Object
}

// Objects returns up to limit objects, from a place on, and the place after the last one. Done reports that
// there are no more. An object that is put meanwhile may be missing.
func (p *Plane) Objects(from uint32, limit int) (list []Stored, next uint32, done bool) {
	for ; int(from) < p.objects.Capacity() && len(list) < limit; from++ {
		if a, o, taken := p.objects.At(from); taken {
			list = append(list, Stored{a, o})
		}
	}
	return list, from, int(from) >= p.objects.Capacity()
}

// maxScan is how many places Held looks at: it bounds how long a reader holds the lock of the state.
const maxScan = 8192

// Held lists up to limit objects of a bucket from a place on, and the place where the list goes on. An
// object that stays there is listed once; one that is put meanwhile may be missing. A page may be empty
// although the list has not ended.
func (p *Plane) Held(t types.Tenant, bucket types.NameHash, from uint32, limit int) (list []Stored, next uint32, done bool) {
	end := min(int(from)+maxScan, p.holdings.Capacity())
	for ; int(from) < end && len(list) < limit; from++ {
		if k, _, taken := p.holdings.At(from); taken && k.owner == (owner{t, bucket}) {
			o, _ := p.Find(k.address)
			list = append(list, Stored{k.address, o})
		}
	}
	return list, from, int(from) >= p.holdings.Capacity()
}

// Left returns how many bytes the quotas leave to a bucket; 0 if they leave no object.
func (p *Plane) Left(t types.Tenant, bucket types.NameHash) uint64 {
	left := uint64(MaxObject)
	for _, w := range [...]struct{ used, quota Usage }{{p.Usage(t, types.NameHash{}), p.limits.TenantQuota}, {p.Usage(t, bucket), p.limits.BucketQuota}} {
		if w.used.Objects >= w.quota.Objects {
			return 0
		}
		left = min(left, w.quota.Bytes-min(w.used.Bytes, w.quota.Bytes))
	}
	return left
}

// Holds reports whether a bucket holds an object.
func (p *Plane) Holds(t types.Tenant, bucket types.NameHash, a Address) bool {
	_, ok := p.holdings.Find(holding{owner{t, bucket}, a})
	return ok
}

// Usage returns what a bucket holds; that of the tenant if bucket is zero.
func (p *Plane) Usage(t types.Tenant, bucket types.NameHash) Usage {
	place, ok := p.usage.Find(owner{t, bucket})
	if !ok {
		return Usage{}
	}
	_, u := p.usage.Row(place)
	return u
}

// Totals returns what all tenants hold, and what is stored for it.
func (p *Plane) Totals() (logical, physical Usage) { return p.logical, p.physical }

// Admits returns why an object of a size cannot be put into a bucket that does not hold it: None,
// QuotaExceeded or CapacityExceeded.
func (p *Plane) Admits(t types.Tenant, bucket types.NameHash, a Address, size uint64) event.Problem {
	total, used := p.Usage(t, types.NameHash{}), p.Usage(t, bucket)
	_, known := p.objects.Find(a)
	switch {
	case !total.add(size).within(p.limits.TenantQuota), !used.add(size).within(p.limits.BucketQuota):
		return event.QuotaExceeded
	case !p.hasRoom(total, used, known):
		return event.CapacityExceeded
	}
	return event.None
}

// Authorized requires the scope store.
func (*Plane) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeStore)
}

// Cost is the row of the idempotency key, if there is one, and two records: the outcome and the eviction of old
// keys.
func (*Plane) Cost(c command.Command) command.Cost {
	cost := command.Cost{Bytes: 2 * types.MaxRecord}
	if len(c.Head().Key.Text) > 0 {
		cost.Rows = 1
	}
	return cost
}

// Decide records what becomes of c. Exceeded quotas and a full table leave no record: a retry may succeed.
func (p *Plane) Decide(_ types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	in, r := c.Head(), f.Record()
	*r = record.Record{Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash}
	var m movement
	switch c := c.(type) {
	case *Put:
		m = movement{address: c.Address, size: c.Size, file: c.File, bucket: c.Bucket.Text}
		m.kind, reply.Problem = p.put(in.Tenant, c, &m)
	case *Delete:
		m = movement{kind: kindDeleted, address: c.Address, bucket: c.Bucket.Text}
		reply.Problem = p.delete(in.Tenant, c, &m)
	default:
		reply.Problem = event.BadRequest
	}
	if reply.Problem != event.None {
		return
	}
	r.Kind, r.Payload = record.PlaneKind(types.PlaneStorage, m.kind), m.append(p.payload[:0])
	reply.Position = f.Add()
}

// put completes m with what a Put does.
func (p *Plane) put(t types.Tenant, c *Put, m *movement) (kind uint8, no event.Problem) {
	m.tenantUsage, m.bucketUsage = p.Usage(t, types.NameHash{}), p.Usage(t, c.Bucket.ID)
	o, known := p.Find(c.Address)
	if known && !c.Replace {
		m.file = o.File
	}
	if known && o.Size != c.Size { // two contents with one digest, or a fault of the adapter
		return 0, event.Internal
	}
	if p.Holds(t, c.Bucket.ID, c.Address) {
		return kindKept, event.None
	}
	if no := p.Admits(t, c.Bucket.ID, c.Address, c.Size); no != event.None {
		return 0, no
	}
	m.tenantUsage, m.bucketUsage = m.tenantUsage.add(c.Size), m.bucketUsage.add(c.Size)
	return kindStored, event.None
}

// delete completes m with what a Delete does.
func (p *Plane) delete(t types.Tenant, c *Delete, m *movement) event.Problem {
	if !p.Holds(t, c.Bucket.ID, c.Address) {
		return event.NotFound
	}
	o, _ := p.Find(c.Address)
	m.size, m.file = o.Size, o.File
	m.tenantUsage, m.bucketUsage = p.Usage(t, types.NameHash{}).remove(o.Size), p.Usage(t, c.Bucket.ID).remove(o.Size)
	return event.None
}

// HasTimers is false: nothing here depends on time.
func (*Plane) HasTimers() bool                        { return false }
func (*Plane) Expire(types.Time, *record.Record) bool { return false }

// Fits reports whether r continues the state. It does not look at the quotas: they may have been lowered
// since.
func (p *Plane) Fits(r *record.Record) bool {
	m, ok := parse(r)
	if !ok {
		return false
	}
	bucket := m.owner(r.Tenant)
	o, known := p.Find(m.address)
	held := p.Holds(r.Tenant, bucket.bucket, m.address)
	total, used := p.Usage(r.Tenant, types.NameHash{}), p.Usage(r.Tenant, bucket.bucket)
	if known && o.Size != m.size || m.file == 0 {
		return false
	}
	switch m.kind {
	case kindStored:
		return !held && p.hasRoom(total, used, known) && m.tenantUsage == total.add(m.size) && m.bucketUsage == used.add(m.size) &&
			m.tenantUsage.Bytes >= m.size
	case kindKept:
		return held && m.tenantUsage == total && m.bucketUsage == used
	default:
		return held && m.file == o.File && m.tenantUsage == total.remove(m.size) && m.bucketUsage == used.remove(m.size)
	}
}

// hasRoom reports whether there are rows for another holding.
func (p *Plane) hasRoom(total, used Usage, known bool) bool {
	rows := 0
	if total.Objects == 0 {
		rows++
	}
	if used.Objects == 0 {
		rows++
	}
	return p.usage.Room() >= rows && p.holdings.Room() > 0 && (known || p.objects.Room() > 0)
}

// Apply changes the state by a record.
func (p *Plane) Apply(_ types.Time, _ types.TxID, r *record.Record) {
	m, ok := parse(r)
	types.Assert(ok, "storage: applies a record that does not fit")
	c := change{kind: m.kind, holding: holding{m.owner(r.Tenant), m.address}}
	c.object, c.existed = p.Find(m.address)
	if p.noting {
		types.Assert(len(p.undo) < maxUndo, "storage: more records than one savepoint takes")
		p.undo = append(p.undo, c)
	}
	switch m.kind {
	case kindStored:
		p.hold(c.holding, Object{Size: m.size, File: m.file})
		p.setFile(m.address, m.file)
	case kindKept:
		p.setFile(m.address, m.file)
	default:
		p.drop(c.holding)
	}
}

// setFile replaces the file of an object.
func (p *Plane) setFile(a Address, f File) {
	place, ok := p.objects.Find(a)
	types.Assert(ok, "storage: a file without its object")
	if _, o := p.objects.Row(place); o.File != f {
		o.File = f
		p.objects.Drop(place)
		p.objects.Put(a, o)
	}
}

// hold adds a holding, and the object if no bucket holds it yet.
func (p *Plane) hold(k holding, o Object) {
	if place, known := p.objects.Find(k.address); known {
		_, o = p.objects.Row(place)
		p.objects.Drop(place)
	} else {
		p.physical = p.physical.add(o.Size)
	}
	o.refs++
	p.objects.Put(k.address, o)
	p.holdings.Put(k, nothing{})
	p.logical = p.logical.add(o.Size)
	for _, w := range [...]owner{k.owner, {tenant: k.tenant}} {
		u := p.Usage(w.tenant, w.bucket)
		p.setUsage(w, u.add(o.Size))
	}
}

// drop removes a holding, and the object with its last one.
func (p *Plane) drop(k holding) {
	place, ok := p.objects.Find(k.address)
	types.Assert(ok, "storage: a holding without its object")
	_, o := p.objects.Row(place)
	p.objects.Drop(place)
	if o.refs--; o.refs > 0 {
		p.objects.Put(k.address, o)
	} else {
		p.physical = p.physical.remove(o.Size)
	}
	place, ok = p.holdings.Find(k)
	types.Assert(ok, "storage: drops a holding that is not there")
	p.holdings.Drop(place)
	p.logical = p.logical.remove(o.Size)
	for _, w := range [...]owner{k.owner, {tenant: k.tenant}} {
		p.setUsage(w, p.Usage(w.tenant, w.bucket).remove(o.Size))
	}
}

// setUsage replaces the usage of an owner. An owner of nothing has no row.
func (p *Plane) setUsage(w owner, u Usage) {
	if place, known := p.usage.Find(w); known {
		p.usage.Drop(place)
	}
	if u.Objects > 0 {
		p.usage.Put(w, u)
	}
}

// Savepoint starts noting changes.
func (p *Plane) Savepoint() { p.noting, p.undo = true, p.undo[:0] }

// Undo reverts all changes since the savepoint.
func (p *Plane) Undo() {
	for i := len(p.undo) - 1; i >= 0; i-- {
		c := &p.undo[i]
		switch c.kind {
		case kindStored:
			p.drop(c.holding)
		case kindDeleted:
			p.hold(c.holding, Object{Size: c.object.Size, File: c.object.File})
		}
		if c.existed {
			p.setFile(c.holding.address, c.object.File)
		}
	}
	p.Commit()
}

// Commit keeps all changes since the savepoint.
func (p *Plane) Commit() { p.noting, p.undo = false, p.undo[:0] }

// Hash identifies the state.
func (p *Plane) Hash() types.Hash64 {
	return types.Hash64(0).Mix(uint64(p.objects.Hash())).Mix(uint64(p.holdings.Hash())).Mix(uint64(p.usage.Hash()))
}

// CopyTo overwrites dst, or returns a new copy.
func (p *Plane) CopyTo(dst plane.Plane) plane.Plane {
	d, ok := dst.(*Plane)
	if !ok {
		d = &Plane{undo: make([]change, 0, maxUndo)}
	}
	d.limits, d.logical, d.physical = p.limits, p.logical, p.physical
	p.objects.CopyTo(&d.objects)
	p.holdings.CopyTo(&d.holdings)
	p.usage.CopyTo(&d.usage)
	return d
}
