// Package storage is the storage plane: which objects exist, which buckets hold them, and what each
// tenant and bucket uses. The bytes of an object are in files, which an adapter writes before Put and
// removes when no row names them.
//
//	upload ──► file, durable ──► Put ──► object, entry, usage ──► reply
//	                             Delete ──► no entry ──► no object ──► the file is garbage
//	parts:   BeginUpload ──► PutPart … ──► Put with the upload ──► entry; the parts are removed a few at a time
//
// An object is stored once, however many entries name it. Usage counts it in each: quotas limit what a
// tenant stores, not what the node saves by deduplication.
package storage

import (
	"math"
	"time"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/table"
	"macronode/core/types"
)

// Limits of a Plane. The quotas apply to new objects: what is stored already stays when a quota is
// lowered.
type Limits struct {
	Objects  int // distinct objects, those of parts included
	Holdings int // entries: pairs of a bucket and a name
	Buckets  int // of all tenants
	Uploads  int // in parts, until their parts are removed
	Parts    int // of all uploads

	// Of one tenant; 0: see share.Left. Like the quotas, they apply to what is new: lower limits keep what exists.
	TenantBuckets int
	TenantUploads int
	TenantParts   int

	UploadTTL time.Duration // after which an upload that was not completed is aborted; 0: never

	TenantQuota Usage // of one tenant, in all its buckets; without a number of objects, see share.Left
	BucketQuota Usage // of one bucket
}

// tenantQuota returns the quota of a tenant, with any number of objects if none is set.
func (l *Limits) tenantQuota() Usage {
	q := l.TenantQuota
	if q.Objects == 0 {
		q.Objects = math.MaxUint64
	}
	return q
}

// maxUndo is the number of storage records that may follow one savepoint.
const maxUndo = 1

// Plane is the state of the storage plane.
//
// Invariants:
//
//	S1  an object exists if and only if an entry or a part names it, and counts these
//	S2  the usage of a bucket is the sum of its entries and of the bytes of its uploads in progress;
//	    that of a tenant is the sum of its buckets
//	S3  logical is the sum of all tenants, physical the sum of all objects
//	S4  the bytes of an upload in progress are the sum of its parts, and no part is higher than its highest
//	S5  a part has an upload, and no upload that has ended has a part below next
//	S6  rows and tenants count the rows of buckets, uploads and parts
type Plane struct {
	plane.NoRefs

	limits   Limits
	objects  table.Pool[Address, Object]
	entries  table.Pool[place, Entry]
	owners   table.Pool[owner, owned]
	uploads  table.Pool[UploadID, Upload]
	parts    table.Pool[partKey, Part]
	tenants  table.Pool[types.Tenant, counts] // follows from the tables above, so no hash and no snapshot has it
	buckets  int                              // of all tenants
	logical  Usage
	physical Usage
	cursor   uint32 // the row of uploads at which Expire goes on

	noting bool // since a savepoint
	undo   []change

	payload [maxPayload]byte // scratch of Decide
}

var _ plane.Plane = (*Plane)(nil)

// Spec returns the plane for the list of planes of state.Limits.
func Spec(l Limits) plane.Spec {
	return plane.Spec{ID: types.PlaneStorage, Bytes: Bytes(l),
		New: func(seed types.Hash64) plane.Plane { return New(l, seed) }}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.PoolBytes[Address, Object](l.Objects) + table.PoolBytes[place, Entry](l.Holdings) +
		table.PoolBytes[owner, owned](l.owners()) + table.PoolBytes[UploadID, Upload](l.Uploads) +
		table.PoolBytes[partKey, Part](l.Parts) + table.PoolBytes[types.Tenant, counts](l.tenants()) + table.SliceBytes[change](maxUndo)
}

// owners is the number of rows of buckets and their tenants: a tenant without a bucket has none.
func (l *Limits) owners() int { return 2 * l.Buckets }

// tenants is the number of tenants that have a bucket or an upload.
func (l *Limits) tenants() int { return l.Buckets + l.Uploads }

// New returns a plane without objects.
func New(l Limits, seed types.Hash64) *Plane {
	return &Plane{limits: l, objects: table.NewPool[Address, Object](l.Objects, seed), entries: table.NewPool[place, Entry](l.Holdings, seed),
		owners: table.NewPool[owner, owned](l.owners(), seed), uploads: table.NewPool[UploadID, Upload](l.Uploads, seed),
		parts: table.NewPool[partKey, Part](l.Parts, seed), tenants: table.NewPool[types.Tenant, counts](l.tenants(), seed),
		undo: make([]change, 0, maxUndo)}
}

// ID is that of the storage plane.
func (*Plane) ID() types.Plane { return types.PlaneStorage }

// Authorized requires the scope store.
func (*Plane) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeStore)
}

// Cost is the row of the idempotency key, if there is one, and two records: the outcome and the eviction of old
// keys.
func (*Plane) Cost(c command.Command) command.Cost {
	cost := command.Cost{Bytes: types.MaxPlaneRecord + types.MaxRecord}
	if len(c.Head().Key.Text) > 0 {
		cost.Rows = 1
	}
	return cost
}

// Hash identifies the state.
func (p *Plane) Hash() types.Hash64 {
	h := types.Hash64(0)
	for _, sum := range [...]types.Hash64{p.objects.Hash(), p.entries.Hash(), p.owners.Hash(), p.uploads.Hash(), p.parts.Hash()} {
		h = h.Mix(uint64(sum))
	}
	return h
}

// CopyTo overwrites dst, or returns a new copy.
func (p *Plane) CopyTo(dst plane.Plane) plane.Plane {
	d, ok := dst.(*Plane)
	if !ok {
		d = &Plane{undo: make([]change, 0, maxUndo)}
	}
	d.limits, d.buckets, d.logical, d.physical, d.cursor = p.limits, p.buckets, p.logical, p.physical, p.cursor
	p.objects.CopyTo(&d.objects)
	p.entries.CopyTo(&d.entries)
	p.owners.CopyTo(&d.owners)
	p.uploads.CopyTo(&d.uploads)
	p.parts.CopyTo(&d.parts)
	p.tenants.CopyTo(&d.tenants)
	return d
}
