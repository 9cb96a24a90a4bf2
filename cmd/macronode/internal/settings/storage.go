package settings

import (
	"time"

	"macronode/adapters/audit"
	"macronode/adapters/bucket"
	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/accounting"
	"macronode/core/flow"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
)

// storageLimits returns the limits of the storage plane.
func storageLimits(c *config.Config) storage.Limits {
	s := &c.Storage
	return storage.Limits{Objects: s.Objects, Holdings: s.Holdings, Buckets: s.Buckets,
		Uploads: s.Parts.Uploads, Parts: s.Parts.Parts, UploadTTL: s.Parts.TTL,
		TenantBuckets: shareOfTenant(s.TenantBuckets, s.Buckets, 16),
		TenantUploads: shareOfTenant(s.Parts.TenantUploads, s.Parts.Uploads, 16),
		TenantParts:   shareOfTenant(s.Parts.TenantParts, s.Parts.Parts, 1024), // those of the largest object have 5 MiB each
		TenantQuota:   storage.Usage{Bytes: uint64(s.TenantBytes), Objects: uint64(s.TenantObjects)},
		BucketQuota:   storage.Usage{Bytes: uint64(s.BucketBytes), Objects: uint64(s.BucketObjects)}}
}

// shareOfTenant returns the limit of one tenant. If none is set, it is a quarter of that of all, but not below the
// smallest.
func shareOfTenant(set, all, smallest int) int {
	if set > 0 {
		return set
	}
	return max(all/4, smallest)
}

// usageLimits returns the limits of the accounting plane.
func usageLimits(c *config.Config) accounting.Limits {
	u := &c.Usage
	return accounting.Limits{Rows: u.Rows, TenantRow: u.TenantRows, Streams: u.Streams, TenantDim: u.TenantDims, Tenants: c.Wallet.Limits.Tenants, Lines: u.Lines,
		Window: u.Window, Grace: u.Grace}
}

// meterInterval returns the time between two records of metered requests; 0 if requests are not metered.
func meterInterval(c *config.Config) time.Duration {
	if !c.Usage.Metered {
		return 0
	}
	return c.Usage.Flush
}

// price returns the price of a write of an object.
func price(c *config.Config) flow.Price {
	p := &c.Storage.Price
	return flow.Price{PerMiB: uint64(p.PerMiB), Asset: p.Asset, Payer: p.Payer, Beneficiary: p.Beneficiary, HoldTTL: p.HoldTTL}
}

// objectFileLimits returns the limits on the files of objects. Uploads keep twice the reserve of the journal free,
// so that they never stop it.
func objectFileLimits(c *config.Config) objectstore.Limits {
	return objectstore.Limits{Uploads: c.Storage.Uploads, Reserve: 2 * uint64(c.Journal.Reserve), Object: storage.MaxObject}
}

// NewObjectStore returns the store of the objects of a node. It reads and makes nothing.
func NewObjectStore(c *config.Config) *objectstore.Store {
	return objectstore.NewCopies(OpenProviders(objectProviders(c)), objectCopies(c), objectFileLimits(c))
}

// A Provider is a directory or a bucket that keeps copies of objects.
type Provider struct {
	placement.Provider
	Dir    fs.Dir // empty: the provider is Bucket
	Own    bool   // Dir is in the data directory
	Bucket bucket.Config
}

func objectProviders(c *config.Config) (all []Provider) {
	for _, p := range c.ObjectProviders() {
		is := Provider{Provider: placement.Provider{Name: p.Name, Domain: p.Domain, Weight: uint32(p.Weight)}, Dir: fs.Dir(p.Path), Own: len(c.Storage.Providers) == 0}
		if p.Endpoint != "" {
			is.Bucket = bucket.Config{Endpoint: p.Endpoint, Region: p.Region, Bucket: p.Bucket, Prefix: p.Prefix, CredentialsFile: p.Secret, CAFile: p.CA, Spool: fs.Dir(c.SpoolDir(&p))}
		}
		all = append(all, is)
	}
	return all
}

// OpenProviders returns the ports of providers. It reads and makes nothing.
func OpenProviders(list []Provider) (all []objectstore.Provider) {
	for _, p := range list {
		is := objectstore.Provider{Provider: p.Provider, Own: p.Own}
		if p.Dir == "" {
			is.Port, is.Far = bucket.New(p.Bucket), true
		} else {
			is.Port = provider.Dir{FS: p.Dir}
		}
		all = append(all, is)
	}
	return all
}

// bucketRequests returns the requests to all buckets at once.
func bucketRequests(c *config.Config) (n int64) {
	for _, p := range c.Storage.Providers {
		if p.Endpoint != "" {
			n += bucket.MaxRequests
		}
	}
	return n
}

func objectCopies(c *config.Config) objectstore.Copies {
	return objectstore.Copies{Count: c.ObjectCopies(), Required: c.Storage.Required}
}

// Repair are the settings of repairs and scrubs.
type Repair struct {
	Limits    repair.Limits
	Inventory time.Duration // between two searches for missing copies
	Scrub     time.Duration // between two scrubs
}

func repairSettings(c *config.Config) Repair {
	r := &c.Storage.Repair
	return Repair{Limits: repair.Limits{Queue: repair.DefaultQueue, Workers: r.Workers, Rate: uint64(r.Rate), Burst: uint64(r.Burst)},
		Inventory: r.Interval, Scrub: c.Storage.Scrub.Interval}
}

func auditLimits(c *config.Config) audit.Limits {
	limits := audit.DefaultLimits()
	limits.Size, limits.Keep = int64(c.Audit.Size), c.Audit.Keep
	return limits
}
