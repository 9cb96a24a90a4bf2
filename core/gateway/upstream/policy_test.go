package upstream_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
	model "macronode/models/upstream"
)

// change draws other rules for an upstream and its model: endpoints stay, are added, are removed
// or become fresh; sometimes none is left.
func change(t *rapid.T, now types.Instant, m *upstream.Upstreams, w *model.Upstream) upstream.Rules {
	rules, wants := drawn(t)
	if rapid.IntRange(0, 3).Draw(t, "unchecked") == 0 {
		rules.UnhealthyAfter, rules.HealthyAfter, wants.Fall, wants.Rise = 0, 0, 0, 0
	}
	rules.Endpoints = rapid.Uint16Range(0, 1<<6-1).Draw(t, "there")
	rules.ResetEndpoints = rapid.SampledFrom([]uint16{0, 0, 1, 2, 1<<16 - 1}).Draw(t, "fresh")
	var there, fresh [upstream.MaxEndpoints]bool
	for n := range there {
		there[n], fresh[n] = rules.Endpoints>>n&1 == 1, rules.ResetEndpoints>>n&1 == 1
	}
	if rules.Endpoints == 0 {
		wants = model.Rules{}
	}
	m.ApplyPolicy(now, []upstream.Rules{rules})
	w.Change(int64(now), wants, there, fresh)
	return rules
}

// TestChangeToSameRulesChangesNothing applies the same rules again, with calls in progress.
func TestChangeToSameRulesChangesNothing(t *testing.T) {
	r := upstream.Default(2)
	r.EjectAfter, r.BreakerMinAttempts = 2, 4
	m := upstream.New(8, types.NewRand(1), r, upstream.Rules{}, r)
	for i := range 8 {
		p := m.Pick(types.Instant(i), event.Pick{Upstream: uint16(2 * (i % 2)), Idempotent: true})
		if i%3 > 0 {
			m.Report(types.Instant(i), event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptFailed, TimeLeft: 1e9})
		}
		was := m.HashInto(0)
		if m.ApplyPolicy(types.Instant(i), []upstream.Rules{r, {}, r}); m.HashInto(0) != was {
			t.Fatalf("after %d it has another hash", i)
		}
	}
}

// TestSmallerHalfOpenLimitRestartsProbing: if a half-open breaker has more attempts in flight
// than its new limit, they no longer count, and new ones start within the limit.
func TestSmallerHalfOpenLimitRestartsProbing(t *testing.T) {
	r := upstream.Default(1)
	r.BreakerMinAttempts = 2
	m, now := upstream.New(8, types.NewRand(1), r), types.Instant(0)
	first, second := m.Pick(now, event.Pick{}), m.Pick(now, event.Pick{})
	for _, p := range [...]event.Picked{first, second} {
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptFailed})
	}
	now, _ = m.Due()
	first, second = m.Pick(now, event.Pick{}), m.Pick(now, event.Pick{})
	r.HalfOpenInFlight, r.HalfOpenSuccesses = 1, 1
	m.ApplyPolicy(now, []upstream.Rules{r})
	for _, p := range [...]event.Picked{first, second} {
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptAnswered})
	}
	if err := m.Check(); err != nil || m.Stats(0).Circuits[event.Authenticated].State != event.CircuitHalfOpen {
		t.Fatalf("%v, and it is %v", err, m.Stats(0).Circuits[event.Authenticated].State)
	}
	if one, more := m.Pick(now, event.Pick{}), m.Pick(now, event.Pick{}); one.NoEndpoint != event.EndpointPicked || more.NoEndpoint != event.NoEndpointCircuitOpen {
		t.Errorf("picked %v and %v", one.NoEndpoint, more.NoEndpoint)
	}
}
