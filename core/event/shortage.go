package event

import (
	"fmt"

	"macronode/core/types"
)

// A Shortage is the limit of rows that a request would exceed. Its zero value is no shortage.
type Shortage struct {
	Limit  Limit
	Needed uint32 // by the request
	Left   uint32 // below the limit
}

// HashInto mixes s into h.
func (s Shortage) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(s.Limit)).Mix(uint64(s.Needed)).Mix(uint64(s.Left))
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

// A Limit is a limit on rows of the state.
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
	StorageObjects
	StorageHoldings
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
)

func (l Limit) text() limitText {
	return [numLimits]limitText{
		UsageTenantRows:       {"accounting.max_rows_per_tenant", "rows of usage of the tenant", ", until windows are sealed", noEvent},
		UsageRows:             {"accounting.rows", "rows of usage of all tenants", ", until windows are sealed", noEvent},
		UsageTenantDimensions: {"accounting.max_dimensions_per_tenant", "dimensions of the tenant", "", noEvent},
		UsageStreams:          {"accounting.streams", "dimensions of all tenants", "", noEvent},
		UsageTenants:          {"wallet.limits.tenants", "tenants with usage", "", noEvent},
		UsageLines:            {"accounting.max_prepaid_lines", "prices and months of prepaid usage of all tenants", ", until a month is 36 days over", noEvent},
		StorageTenantBuckets:  {"storage.tenant_buckets", "buckets of the tenant", "", noWrite},
		StorageBuckets:        {"storage.buckets", "buckets of all tenants", "", noWrite},
		StorageTenantUploads:  {"storage.multipart.tenant_uploads", "uploads in parts of the tenant", ", until uploads are completed or aborted", noWrite},
		StorageUploads:        {"storage.multipart.uploads", "uploads in parts of all tenants", ", until uploads are completed or aborted", noWrite},
		StorageTenantParts:    {"storage.multipart.tenant_parts", "parts of uploads of the tenant", ", until uploads are completed or aborted", noWrite},
		StorageParts:          {"storage.multipart.parts", "parts of uploads of all tenants", ", until uploads are completed or aborted", noWrite},
		StorageObjects:        {"storage.objects", "distinct objects and parts of all tenants", "", noWrite},
		StorageHoldings:       {"storage.holdings", "names of objects in all buckets", "", noWrite},
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
	return fmt.Sprintf("%s limits the %s: needed %d, left %d%s. %s", t.key, t.rows, s.Needed, s.Left, t.recovery, t.effect)
}
