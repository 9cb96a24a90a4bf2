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
		TenantBuckets: s.TenantBuckets,
		TenantUploads: s.Parts.TenantUploads,
		TenantParts:   s.Parts.TenantParts,
		TenantQuota:   storage.Usage{Bytes: uint64(s.TenantBytes), Objects: uint64(s.TenantObjects)},
		BucketQuota:   storage.Usage{Bytes: uint64(s.BucketBytes), Objects: uint64(s.BucketObjects)}}
}

// usageLimits returns the limits of the accounting plane.
func usageLimits(c *config.Config) accounting.Limits {
	u := &c.Usage
	return accounting.Limits{Rows: u.Rows, TenantRow: u.TenantRows, Streams: u.Streams, TenantDim: u.TenantDims, Tenants: c.Wallet.Limits.Tenants, Lines: u.Lines,
		Window: u.Window, Grace: u.Grace}
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
		switch {
		case p.Dir == "":
			is.Port, is.Far = bucket.New(p.Bucket), true
		case len(list) > 1: // another one may have what a disk that hangs does not return
			is.Port = provider.NewTimed(provider.Dir{FS: p.Dir}, provider.Answer)
		default:
			is.Port = provider.NewOnly(provider.Dir{FS: p.Dir}, provider.Answer)
		}
		all = append(all, is)
	}
	return all
}

// timedCalls returns the calls with a time limit to all directories at once.
func timedCalls(c *config.Config) (n int64) {
	all := c.ObjectProviders()
	for _, p := range all {
		if p.Endpoint == "" {
			n += provider.MaxCalls
		}
	}
	if n > 0 && len(all) == 1 {
		n += provider.MaxOnlyReads
	}
	return n
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

// stripes returns how many stripes of objects with shards are in memory at most: those of uploads, of reads that restore groups, and those that
// repairs and the scrub read and write.
func stripes(c *config.Config) int64 {
	if !c.ObjectCoding().IsSet() {
		return 0
	}
	return int64(c.Storage.Uploads) + int64(c.Permits.Storage) + 2*int64(c.Storage.Repair.Workers) + 1
}

func objectCopies(c *config.Config) objectstore.Copies {
	return objectstore.Copies{Count: c.ObjectCopies(), Required: c.Storage.Required, Coding: c.ObjectCoding()}
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
