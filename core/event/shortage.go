package event

import (
	"fmt"

	"macronode/core/types"
)

// A Shortage is the limit of usage that a request would exceed. Its zero value is no shortage.
type Shortage struct {
	Limit  UsageLimit
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

// A UsageLimit is a limit of the state of usage.
type UsageLimit uint8

const (
	NoUsageLimit UsageLimit = iota
	UsageTenantRows
	UsageRows
	UsageTenantDimensions
	UsageStreams
	UsageTenants
	UsageLines
	numUsageLimits
)

// Key returns the configuration key of l.
func (l UsageLimit) Key() string {
	return [...]string{"", "accounting.max_rows_per_tenant", "accounting.rows", "accounting.max_dimensions_per_tenant", "accounting.streams", "wallet.limits.tenants", "accounting.max_prepaid_lines", "?"}[min(l, numUsageLimits)]
}

// Detail describes s, for the response.
func (s Shortage) Detail() string {
	what, until := "rows of usage of the tenant", ", until windows are sealed"
	switch s.Limit {
	case UsageRows:
		what = "rows of usage of all tenants"
	case UsageTenantDimensions:
		what, until = "dimensions of the tenant", ""
	case UsageStreams:
		what, until = "dimensions of all tenants", ""
	case UsageTenants:
		what, until = "tenants with usage", ""
	case UsageLines:
		what, until = "prices and months of prepaid usage of all tenants", ", until a month is 36 days over"
	default:
	}
	return fmt.Sprintf("%s limits the %s: needed %d, left %d%s. No event of the request was recorded.", s.Limit.Key(), what, s.Needed, s.Left, until)
}
