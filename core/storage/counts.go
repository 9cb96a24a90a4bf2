package storage

import (
	"macronode/core/event"
	"macronode/core/share"
	"macronode/core/types"
)

// counts is how many rows a tenant has. A tenant without any has no counts.
type counts struct {
	buckets uint32
	uploads uint32 // also those that have ended, until their parts are removed
	parts   uint32
}

// HashInto mixes c into h.
func (c counts) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(c.buckets)).Mix(uint64(c.uploads)).Mix(uint64(c.parts))
}

// count changes the counts of a tenant.
func (p *Plane) count(t types.Tenant, change func(*counts)) {
	c, _ := get(&p.tenants, t)
	change(&c)
	set(&p.tenants, t, c, c != counts{})
}

// difference returns by how much a count of rows changes: 1, 0 or -1, as a number that is added.
func difference(had, has bool) (n uint32) {
	if has {
		n++
	}
	if had {
		n--
	}
	return n
}

// setOwner replaces the row of a bucket or a tenant. Without has, there is none afterwards.
func (p *Plane) setOwner(w owner, o owned, has bool) {
	_, had := p.owners.Find(w)
	set(&p.owners, w, o, has)
	if n := difference(had, has); n != 0 && w.bucket != (types.NameHash{}) {
		p.buckets += int(int32(n))
		p.count(w.tenant, func(c *counts) { c.buckets += n })
	}
}

// setUpload replaces the row of an upload. Without has, there is none afterwards.
func (p *Plane) setUpload(t types.Tenant, id UploadID, u Upload, has bool) {
	_, had := p.uploads.Find(id)
	set(&p.uploads, id, u, has)
	if n := difference(had, has); n != 0 {
		p.count(t, func(c *counts) { c.uploads += n })
	}
}

// setPart replaces the row of a part. Without has, there is none afterwards.
func (p *Plane) setPart(t types.Tenant, k partKey, part Part, has bool) {
	_, had := p.parts.Find(k)
	set(&p.parts, k, part, has)
	if n := difference(had, has); n != 0 {
		p.count(t, func(c *counts) { c.parts += n })
	}
}

// A claim is a number of rows that a movement adds, and how many are left.
type claim struct {
	limit        event.Limit
	needed, left int
	shared       bool // the limit is not set: see share.Left
}

// The claims of a movement, by table.
const (
	claimBucket = iota
	claimEntry
	claimObject
	claimUpload
	claimPart
	numClaims
)

// claims returns the rows that the tables must have for d. A movement adds at most one row to a table.
func (p *Plane) claims(m *movement, d *effect) [numClaims]claim {
	_, known := p.Find(m.address)
	return [numClaims]claim{
		claimBucket: {event.StorageBuckets, one(p.addsBucket(m, d)), p.limits.Buckets - p.buckets, false},
		claimEntry:  {event.StorageHoldings, one(d.entry && !d.held), p.entries.Room(), false},
		claimObject: {event.StorageObjects, one(d.wantsNew && !known), p.objects.Room(), false},
		claimUpload: {event.StorageUploads, one(m.kind == kindUploadBegun), p.uploads.Room(), false},
		claimPart:   {event.StorageParts, one(m.kind == kindPartPut && !d.hadPart), p.parts.Room(), false},
	}
}

// claimsOfTenant returns the rows that the limits of a tenant must leave for d, or else the tenant for others. A record that was
// written under other limits need not keep them.
func (p *Plane) claimsOfTenant(m *movement, d *effect, ofAll *[numClaims]claim) (all [5]claim) {
	has, _ := get(&p.tenants, d.place.tenant)
	buckets, uploads, parts := int(has.buckets), int(has.uploads), int(has.parts)
	l := &p.limits
	all[0] = sharedClaim(event.StorageTenantBuckets, l.TenantBuckets, buckets, ofAll[claimBucket])
	all[1] = sharedClaim(event.StorageTenantUploads, l.TenantUploads, uploads, ofAll[claimUpload])
	all[2] = sharedClaim(event.StorageTenantParts, l.TenantParts, parts, ofAll[claimPart])
	if l.TenantQuota.Objects > 0 {
		return all
	}
	entries := int(p.Usage(d.place.tenant, types.NameHash{}).Objects)
	all[3] = sharedClaim(event.StorageTenantObjects, 0, entries, ofAll[claimEntry])
	if ofAll[claimObject].needed > 0 && !p.givesBack(m, d) {
		// Each entry and part has at most one object. Which of them have the same one is not counted.
		all[4] = sharedClaim(event.StorageTenantObjects, 0, entries+parts, ofAll[claimObject])
	}
	return all
}

// sharedClaim returns the claim of a tenant that has some rows of a table with the claim ofAll. If the table is full, that is the shortage.
func sharedClaim(l event.Limit, limit, has int, ofAll claim) claim {
	if limit == 0 && ofAll.left < ofAll.needed {
		return claim{}
	}
	return claim{limit: l, needed: ofAll.needed, left: share.Left(limit, has, ofAll.left), shared: limit == 0}
}

// givesBack reports whether d removes the last reference to an object in exchange for the new one: the tenant needs the row of another
// object only for a moment.
func (p *Plane) givesBack(m *movement, d *effect) bool {
	old, replaced := d.old.Address, d.entry && d.held
	if m.kind == kindPartPut {
		old, replaced = d.part.Address, d.hadPart
	}
	o, _ := p.Find(old)
	return replaced && o.refs == 1
}

// addsBucket reports whether the bucket of d has no row, and needs one.
func (p *Plane) addsBucket(m *movement, d *effect) bool {
	return (d.entry || m.kind == kindBucketCreated) && !p.HasBucket(d.place.tenant, d.place.bucket)
}

// one is 1 if a row is added, else 0.
func one(added bool) int {
	if added {
		return 1
	}
	return 0
}

// shortage returns the first claim that exceeds its limit. Its zero value means that there is none.
func shortage(claims []claim) event.Shortage {
	for _, c := range claims {
		if c.needed > 0 && c.needed > c.left {
			return event.Shortage{Limit: c.limit, Needed: uint64(c.needed), Left: uint64(max(c.left, 0)), Shared: c.shared}
		}
	}
	return event.Shortage{}
}
