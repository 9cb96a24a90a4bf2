package policycheck_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/policycheck"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

var gates = flag.Int("gates", 12, "pairs of gates that TestValidChangesPass draws")

// drawn draws a valid policy: every caller that is served can be admitted.
func drawn(d *types.Rand) event.Policy {
	n := func(least, most uint64) uint64 { return least + d.Uint64n(most-least+1) }
	g := event.Policy{Version: n(1, 9), Quantum: n(4<<10, 1<<20), MaxWait: time.Duration(n(0, 1000)) * time.Millisecond, MaxPacingDelay: time.Duration(n(0, 100)) * time.Millisecond,
		Routes: make([]event.RouteLimits, n(0, 30)), ResetQuotas: uint16(n(0, 1<<16-1))}
	for f := range g.Facets {
		of := event.FacetLimits{Permits: int(n(1, 40)), Queue: int(n(1, 60))}
		of.PerFlow = int(n(1, uint64(of.Queue)))
		for c := range of.PerClass {
			of.PerClass[c], g.Weights[c] = int(n(1, uint64(of.Queue))), n(0, 12)
		}
		g.Facets[f] = of
	}
	for range n(0, quota.MaxRules) {
		q := event.Quota{Scope: types.QuotaScope(n(0, uint64(types.NumQuotaScopes)-1)), Unit: types.QuotaUnit(n(0, 1)), Rate: n(1, 10000), Classes: quota.AllClasses, Shadow: n(0, 4) == 0,
			Every: [...]time.Duration{time.Second, time.Minute, 100 * time.Hour}[n(0, 2)], Burst: n(1, 100)}
		if q.Scope == types.ScopeRoute {
			q.Route = uint16(n(1, 5))
		}
		if q.Scope == types.ScopePeer || q.Scope == types.ScopeRoute {
			q.Classes = event.ClassSet(n(1, 7))
		}
		if n(0, 5) == 0 {
			q = event.Quota{}
		}
		g.Quotas = append(g.Quotas, q)
	}
	for range n(0, 5) {
		u := upstream.Default(0)
		u.Endpoints, u.ResetEndpoints, u.MaxAttempts = uint16(n(0, 31)), uint16(n(0, 31)), uint8(n(1, 10))
		u.EjectAfter, u.HalfOpenInFlight, u.HalfOpenSuccesses, u.BreakerMinAttempts = uint32(n(1, 5)), uint32(n(1, 5)), uint32(n(1, 5)), uint32(n(1, 20))
		if n(0, 2) == 0 {
			u.UnhealthyAfter, u.HealthyAfter = 0, 0
		}
		g.Upstreams = append(g.Upstreams, event.Upstream(u))
	}
	return g
}

// TestValidChangesPass changes a random valid policy to another: no error is reported.
func TestValidChangesPass(t *testing.T) {
	most := 0
	for seed := range *gates {
		d := types.NewRand(uint64(seed))
		from, to := drawn(&d), drawn(&d)
		if d.Uint64n(2) == 0 { // or a similar one
			quotas, upstreams := to.Quotas, to.Upstreams
			to = from
			to.Quotas = slices.Clone(from.Quotas)
			for i := range min(len(quotas), len(from.Quotas)) {
				if to.Quotas[i].Rate > 0 && quotas[i].Rate > 0 {
					to.Quotas[i].Rate, to.Quotas[i].Burst = quotas[i].Rate, quotas[i].Burst
				}
			}
			to.Upstreams = upstreams
		}
		played, err := policycheck.Change(config().WithPolicy(&from), &to)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		most = max(most, played.Steps)
	}
	t.Logf("%d steps at most", most)
}
