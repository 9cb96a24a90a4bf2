package event

import (
	"fmt"

	"macronode/core/types"
)

// A Shortage is the limit of rows or bytes that a request would exceed. Its zero value is no shortage.
type Shortage struct {
	Limit  Limit
	Needed uint64 // by the request
	Left   uint64 // below the limit
	Shared bool   // the limit is not set: the tenant leaves room for others
}

// HashInto mixes s into h.
func (s Shortage) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(s.Limit)).Mix(s.Needed).Mix(s.Left)
	if s.Shared {
		h = h.Mix(1)
	}
	return h
}

// A Shortfall is what an account lacks to pay. Its zero value lacks nothing.
type Shortfall struct {
	Asset  uint16       // of the terms of the command, from 1
	Amount types.Amount // minor units
}

// HashInto mixes s into h.
func (s Shortfall) HashInto(h types.Hash64) types.Hash64 {
	return s.Amount.HashInto(h.Mix(uint64(s.Asset)))
}

// A Limit is a limit on rows of the state, or on the bytes of objects.
type Limit uint8

const (
	NoLimit Limit = iota
	UsageTenantRows
	UsageRows
	UsageTenantDimensions
	UsageStreams
	UsageTenants
	UsageLines
	StorageTenantBuckets
	StorageBuckets
	StorageTenantUploads
	StorageUploads
	StorageTenantParts
	StorageParts
	StorageTenantObjects
	StorageObjects
	StorageHoldings
	ExportTenantLanes
	ExportLanes
	ExportTenantQuarantine
	ExportQuarantine
	QuotaTenantBytes
	QuotaTenantObjects
	QuotaBucketBytes
	QuotaBucketObjects
	numLimits
)

// limitText is what a response says of a limit.
type limitText struct {
	key      string // of the configuration
	rows     string // that it limits
	recovery string // of the rows, if they end without a request
	effect   string // of the request
}

const (
	noEvent = "No event of the request was recorded."
	noWrite = "The request changed nothing."
	noLane  = "The stream waits in the journal."
	noRow   = "The lane waits with its item."
)

func (l Limit) text() limitText {
	return [numLimits]limitText{
		UsageTenantRows:        {"accounting.max_rows_per_tenant", "rows of usage of the tenant", ", until windows are sealed", noEvent},
		UsageRows:              {"accounting.rows", "rows of usage of all tenants", ", until windows are sealed", noEvent},
		UsageTenantDimensions:  {"accounting.max_dimensions_per_tenant", "dimensions of the tenant", "", noEvent},
		UsageStreams:           {"accounting.streams", "dimensions of all tenants", "", noEvent},
		UsageTenants:           {"wallet.limits.tenants", "tenants with usage", "", noEvent},
		UsageLines:             {"accounting.max_prepaid_lines", "prices and months of prepaid usage of all tenants", ", until a month is 36 days over", noEvent},
		StorageTenantBuckets:   {"storage.tenant_buckets", "buckets of the tenant", "", noWrite},
		StorageBuckets:         {"storage.buckets", "buckets of all tenants", "", noWrite},
		StorageTenantUploads:   {"storage.multipart.tenant_uploads", "uploads in parts of the tenant", ", until uploads are completed or aborted", noWrite},
		StorageUploads:         {"storage.multipart.uploads", "uploads in parts of all tenants", ", until uploads are completed or aborted", noWrite},
		StorageTenantParts:     {"storage.multipart.tenant_parts", "parts of uploads of the tenant", ", until uploads are completed or aborted", noWrite},
		StorageParts:           {"storage.multipart.parts", "parts of uploads of all tenants", ", until uploads are completed or aborted", noWrite},
		StorageTenantObjects:   {"storage.tenant_objects", "objects and parts of the tenant", "", noWrite},
		StorageObjects:         {"storage.objects", "distinct objects and parts of all tenants", "", noWrite},
		StorageHoldings:        {"storage.holdings", "names of objects in all buckets", "", noWrite},
		ExportTenantLanes:      {"exports.max_lanes_per_tenant", "lanes of the tenant", "", noLane},
		ExportLanes:            {"exports.lanes", "lanes of all tenants", "", noLane},
		ExportTenantQuarantine: {"exports.max_quarantine_per_tenant", "quarantined items of the tenant", ", until items are delivered again or given up", noRow},
		ExportQuarantine:       {"exports.quarantine", "quarantined items of all tenants", ", until items are delivered again or given up", noRow},
		QuotaTenantBytes:       {"storage.tenant_bytes", "bytes of the objects and parts of the tenant", "", noWrite},
		QuotaTenantObjects:     {"storage.tenant_objects", "objects of the tenant in all its buckets", "", noWrite},
		QuotaBucketBytes:       {"storage.bucket_bytes", "bytes of the objects and parts of the bucket", "", noWrite},
		QuotaBucketObjects:     {"storage.bucket_objects", "objects of the bucket", "", noWrite},
	}[l]
}

// Key returns the configuration key of l.
func (l Limit) Key() string { return l.text().key }

// Detail describes s, for the response. It is empty if s is no shortage.
func (s Shortage) Detail() string {
	if s.Limit == NoLimit {
		return ""
	}
	t := s.Limit.text()
	what := t.key + " limits the " + t.rows
	if s.Shared {
		what = "Without " + t.key + ", the " + t.rows + " leave room for those of others"
	}
	return fmt.Sprintf("%s: needed %d, left %d%s. %s", what, s.Needed, s.Left, t.recovery, t.effect)
}
