package upstream

import (
	"macronode/core/types"
)

// countedTenants is the number of tenants whose attempts a breaker counts apart. It counts those of all others
// together.
const countedTenants = 7

// attemptCounts are the attempts in the window of a breaker, by tenant. The last element counts those of all tenants
// that have no element of their own.
type attemptCounts struct {
	newestBucket int64 // number of the newest bucket
	byTenant     [countedTenants + 1]tenantCounts
}

// tenantCounts are attempts by bucket.
type tenantCounts struct {
	tenant    types.Tenant
	successes [buckets]uint32 // answered
	failures  [buckets]uint32
}

func (c *tenantCounts) isEmpty() bool {
	return c.successes == [buckets]uint32{} && c.failures == [buckets]uint32{}
}

// clear removes all attempts. The buckets keep their numbers.
func (a *attemptCounts) clear() { a.byTenant = [countedTenants + 1]tenantCounts{} }

func (a *attemptCounts) isEmpty() bool {
	for at := range a.byTenant {
		if !a.byTenant[at].isEmpty() {
			return false
		}
	}
	return true
}

// advance clears buckets older than the window, and returns the place of the newest one.
func (a *attemptCounts) advance(now types.Instant) (newest int64) {
	n := int64(now) / int64(bucketWidth)
	for i := max(a.newestBucket+1, n-buckets+1); i <= n; i++ {
		for at := range a.byTenant {
			a.byTenant[at].successes[i%buckets], a.byTenant[at].failures[i%buckets] = 0, 0
		}
	}
	a.newestBucket = max(a.newestBucket, n)
	return a.newestBucket % buckets
}

// of returns the counts of a tenant. An element without attempts is given to the next tenant that has none. The common
// counts then start anew, because they may contain attempts of this tenant: no tenant is counted in two elements.
func (a *attemptCounts) of(t types.Tenant) *tenantCounts {
	var unused *tenantCounts
	for i := range a.byTenant[:countedTenants] {
		switch c := &a.byTenant[i]; {
		case c.tenant == t && !c.isEmpty():
			return c
		case unused == nil && c.isEmpty():
			unused = c
		}
	}
	common := &a.byTenant[countedTenants]
	if unused == nil {
		return common
	}
	*common = tenantCounts{}
	unused.tenant = t
	return unused
}

// succeeded and failed count an attempt of a tenant.
func (a *attemptCounts) succeeded(now types.Instant, t types.Tenant) {
	newest := a.advance(now)
	a.of(t).successes[newest]++
}

func (a *attemptCounts) failed(now types.Instant, t types.Tenant) {
	newest := a.advance(now)
	a.of(t).failures[newest]++
}

// mustOpen reports whether the attempts open the circuit: there are enough of them, enough of them failed, and also
// without the attempts of any one tenant enough of the others failed. So the failures of one tenant take no upstream
// from tenants whose requests succeed.
func (a *attemptCounts) mustOpen(r *Rules) bool {
	var all totals
	var by [countedTenants + 1]totals
	for at := range a.byTenant {
		by[at] = a.byTenant[at].totals()
		all.attempts, all.failures = all.attempts+by[at].attempts, all.failures+by[at].failures
	}
	if all.attempts < uint64(r.BreakerMinAttempts) || !all.exceed(r) {
		return false
	}
	for _, one := range by {
		others := totals{all.attempts - one.attempts, all.failures - one.failures}
		if !others.exceed(r) {
			return false
		}
	}
	return true
}

// totals are the attempts of the window.
type totals struct{ attempts, failures uint64 }

func (c *tenantCounts) totals() (sum totals) {
	for i := range buckets {
		sum.failures += uint64(c.failures[i])
		sum.attempts += uint64(c.successes[i]) + uint64(c.failures[i])
	}
	return sum
}

// exceed reports whether enough of the attempts failed. No attempts exceed.
func (n totals) exceed(r *Rules) bool {
	return n.failures*100 >= uint64(r.BreakerFailurePercent)*n.attempts
}

func (a *attemptCounts) hashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(a.newestBucket))
	for at := range a.byTenant {
		c := &a.byTenant[at]
		h = c.tenant.HashInto(h)
		for i := range buckets {
			h = h.Mix(uint64(c.successes[i])).Mix(uint64(c.failures[i]))
		}
	}
	return h
}
