package policycheck_test

import (
	"strings"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/policycheck"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/types"
)

// gate returns the policy of a node in front of a service.
func gate() event.Policy {
	g := event.Policy{Version: 1, Quantum: 64 << 10, Weights: [types.NumClasses]uint64{10, 5, 1}, MaxWait: 25 * time.Millisecond, MaxPacingDelay: time.Millisecond, Routes: []event.RouteLimits{{}, {}, {Requests: 7}}}
	for f := range g.Facets {
		g.Facets[f] = event.FacetLimits{Permits: 256, Queue: 512, PerClass: [types.NumClasses]int{256, 256, 170}, PerFlow: 128}
	}
	g.Quotas = []event.Quota{
		{Scope: types.ScopeInstance, Rate: 5000, Every: time.Second, Burst: 100, Classes: quota.AllClasses},
		{Scope: types.ScopePeer, Rate: 10, Every: time.Second, Burst: 20, Classes: quota.ClassSetOf(types.ClassAnon)},
		{Scope: types.ScopeTenant, Unit: types.UnitBytes, Rate: 1 << 20, Every: time.Second, Burst: 1 << 22, Classes: quota.ClassSetOf(types.ClassAuthed, types.ClassInternal)},
		{Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: 1 << 24, Every: time.Second, Burst: 1 << 24, Classes: quota.AllClasses},
		{Scope: types.ScopeRoute, Route: 2, Rate: 3, Every: time.Second, Burst: 2, Classes: quota.AllClasses},
	}
	g.Upstreams = []event.Upstream{event.Upstream(upstream.Default(2)), event.Upstream(upstream.Default(1))}
	return g
}

func config() node.Config {
	c := node.Config{MaxHeldReplies: 512, MaxUpstreamCalls: 768, Admission: admission.Limits{Places: 4096, Least: 4 << 10, Grace: time.Second}}
	g := gate()
	return c.WithPolicy(&g)
}

// TestAcceptsValidChanges accepts valid changes, in a bounded number of steps.
func TestAcceptsValidChanges(t *testing.T) {
	for what, alter := range map[string]func(*event.Policy){
		"no change":             func(*event.Policy) {},
		"fewer permits":         func(g *event.Policy) { g.Facets[types.FacetWallet].Permits = 1 },
		"more permits":          func(g *event.Policy) { g.Facets[types.FacetWallet].Permits = 300 },
		"a smaller queue":       func(g *event.Policy) { g.Facets[types.FacetWallet].Queue, g.Facets[types.FacetWallet].PerFlow = 1, 1 },
		"weight 0, anon":        func(g *event.Policy) { g.Weights[types.ClassAnon] = 0 },
		"weight 0, authed":      func(g *event.Policy) { g.Weights[types.ClassAuthed] = 0 },
		"a smaller quantum":     func(g *event.Policy) { g.Quantum = 4 << 10 },
		"no wait":               func(g *event.Policy) { g.MaxWait = 0 },
		"no quotas":             func(g *event.Policy) { g.Quotas = nil },
		"fewer quotas":          func(g *event.Policy) { g.Quotas[0], g.Quotas[1] = event.Quota{}, event.Quota{} },
		"slower":                func(g *event.Policy) { g.Quotas[1].Rate, g.Quotas[1].Burst = 1, 1 },
		"faster":                func(g *event.Policy) { g.Quotas[1].Rate, g.Quotas[1].Burst = 1000, 1000 },
		"fresh":                 func(g *event.Policy) { g.ResetQuotas = 3 },
		"a shadow of rate 0":    func(g *event.Policy) { g.Quotas[1].Rate, g.Quotas[1].Shadow = 0, true },
		"fewer endpoints":       func(g *event.Policy) { g.Upstreams[0].Endpoints = 2 },
		"fewer half-open calls": func(g *event.Policy) { g.Upstreams[0].HalfOpenInFlight, g.Upstreams[0].HalfOpenSuccesses = 1, 1 },
		"no upstream":           func(g *event.Policy) { g.Upstreams = nil },
		"not checked":           func(g *event.Policy) { g.Upstreams[0].UnhealthyAfter, g.Upstreams[0].HealthyAfter = 0, 0 },
	} {
		to, began := gate(), time.Now()
		alter(&to)
		played, err := policycheck.Change(config(), &to)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %d steps in %v", what, played.Steps, time.Since(began))
		if played.Steps > policycheck.MaxSteps || played.Partial {
			t.Errorf("%s: %+v", what, played)
		}
	}
}

// TestRejectsInvalidPolicies rejects each invalid policy with its reason.
func TestRejectsInvalidPolicies(t *testing.T) {
	for want, alter := range map[string]func(*event.Policy){
		"slots": func(g *event.Policy) { g.Facets[types.FacetQuery].Queue = 5000 },
		"anon callers of wallet would never be admitted, even alone: the class has no part of the queue":      func(g *event.Policy) { g.Facets[types.FacetWallet].PerClass[types.ClassAnon] = 0 },
		"internal callers of query would never be admitted, even alone: a flow has no part of the queue":      func(g *event.Policy) { g.Facets[types.FacetQuery].PerFlow = 0 },
		"internal callers of proxy would never be admitted, even alone: there are no permits":                 func(g *event.Policy) { g.Facets[types.FacetProxy].Permits = 0 },
		"internal callers of proxy would never be admitted, even alone: the queue has no room":                func(g *event.Policy) { g.Facets[types.FacetProxy].Queue = 0 },
		"anon callers of wallet would never be admitted, even alone: quota 2 admits no request":               func(g *event.Policy) { g.Quotas[1].Rate = 0 },
		"a quota of the instance admits no request":                                                           func(g *event.Policy) { g.Quotas[0].Rate = 0 },
		"internal callers of wallet, route 2, would never be admitted, even alone: quota 5 admits no request": func(g *event.Policy) { g.Quotas[4].Rate = 0 },
	} {
		to := gate()
		alter(&to)
		_, err := policycheck.Change(config(), &to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		c := config()
		if err := policycheck.Gate(c.WithPolicy(&to)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("from the start: %v, want %s", err, want)
		}
	}
}

// large returns a policy with the largest number of quotas and upstreams, all different.
func large(version uint64) event.Policy {
	g := gate()
	g.Version, g.Quotas, g.Upstreams = version, nil, nil
	for i := range uint64(quota.MaxRules) {
		q := event.Quota{Scope: types.QuotaScope(i % uint64(types.ScopeRoute)), Rate: 1 + i*version, Every: time.Second, Burst: 1 + i + 3*version, Classes: quota.AllClasses}
		if i%3 == 0 {
			q.Scope, q.Route = types.ScopeRoute, uint16(i)+1
		}
		g.Quotas = append(g.Quotas, q)
	}
	for i := range upstream.MaxUpstreams {
		u := upstream.Default(uint8(1 + i%upstream.MaxEndpoints))
		u.MaxAttempts, u.RetryPerSecond = uint8(1+i%5), uint32(i)+uint32(version)
		g.Upstreams = append(g.Upstreams, event.Upstream(u))
	}
	return g
}

// TestLargestPolicyIsWithinMaxSteps shows that the number of steps is bounded.
func TestLargestPolicyIsWithinMaxSteps(t *testing.T) {
	from, to := large(1), large(2)
	began := time.Now()
	played, err := policycheck.Change(config().WithPolicy(&from), &to)
	if err != nil || played.Steps >= policycheck.MaxSteps || played.Partial {
		t.Errorf("%+v: %v", played, err)
	}
	t.Logf("%d steps in %v", played.Steps, time.Since(began))
}

func BenchmarkChange(b *testing.B) {
	from, to := large(1), large(2)
	for b.Loop() {
		if _, err := policycheck.Change(config().WithPolicy(&from), &to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	for b.Loop() {
		if err := policycheck.Gate(config()); err != nil {
			b.Fatal(err)
		}
	}
}
