package upstream

import (
	"macronode/core/event"
	"macronode/core/types"
)

// ApplyPolicy puts rules in the place of those that are. An endpoint that stays keeps its health,
// its ejection and its calls, an upstream its breaker and what it has saved. Of one that is
// none any more, or fresh, nothing is known from now on: calls that are with it are heard
// out, nothing is learnt of how they end, and where they are tried again, then elsewhere. An
// upstream of which no endpoint stays begins anew; it may be another service, so nothing
// that was with it is tried again. What is out or open ends when it would
// have ended. A breaker that is half-open beyond its new rules looks anew.
//
// It allocates where there are more upstreams than there ever were, and looks at every call.
func (m *Upstreams) ApplyPolicy(now types.Instant, rules []Rules) {
	types.Assert(CheckRules(rules) == nil, "upstream: rules without sense")
	m.Tick(now)
	for of := range m.upstreams {
		m.upstreams[of].refill(now) // by the rules that were
	}
	for len(m.upstreams) < len(rules) {
		m.addUpstream(Rules{})
	}
	var gone [MaxUpstreams]uint16 // endpoints whose calls are past
	for of := range m.upstreams {
		var r Rules
		if of < len(rules) {
			r = rules[of]
		}
		gone[of] = m.applyRules(&m.upstreams[of], r)
		m.setDown(uint16(of))
	}
	for i := range m.calls {
		c := &m.calls[i]
		if c.phase == free {
			continue
		}
		c.noMoreAttempts = c.noMoreAttempts || gone[c.upstream] == 1<<MaxEndpoints-1
		c.endpointGone = c.endpointGone || c.phase != waitingToRetry && gone[c.upstream]>>c.endpoint&1 == 1
		c.tried &^= gone[c.upstream]
		u := &m.upstreams[c.upstream]
		if u.maxAttempts = max(u.maxAttempts, c.attempts); c.phase == waitingToRetry { // it was told to come again
			u.maxAttempts = max(u.maxAttempts, c.attempts+1)
		}
	}
	if m.hasDue {
		m.setDue(now)
		m.Tick(now)
	}
}

// applyRules gives one upstream its rules, and says which endpoints are none any more, or others.
func (m *Upstreams) applyRules(u *upstream, r Rules) (gone uint16) {
	stay := u.rules.Endpoints & r.Endpoints &^ r.ResetEndpoints
	if u.rules.Endpoints|r.Endpoints == 0 {
		return 0
	}
	if r.ResetEndpoints = 0; r.Endpoints == 0 {
		r = Rules{}
	}
	u.rules, u.maxAttempts = r, r.MaxAttempts
	for n := range m.endpointsOf(u) {
		e := &m.endpointsOf(u)[n]
		if stay>>n&1 == 0 {
			*e = endpoint{}
			continue
		}
		if r.UnhealthyAfter == 0 {
			e.unhealthy, e.contraryChecks = false, 0
		}
	}
	b := &u.breaker
	switch {
	case stay == 0:
		b.enter(event.CircuitClosed)
		b.timesOpened, u.budget.saved = 0, r.RetryPerSecond*retryCost
	case b.state == event.CircuitHalfOpen && (b.inFlight > r.HalfOpenInFlight || b.successes >= r.HalfOpenSuccesses):
		b.enter(event.CircuitHalfOpen)
	}
	u.budget.saved = min(u.budget.saved, r.RetryBurst*retryCost)
	return ^stay
}

// HashInto is h after all of r.
func (r *Rules) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(r.Endpoints)).Mix(uint64(r.ResetEndpoints)).Mix(uint64(r.MaxAttempts)).Mix(uint64(r.RetryPercent)).Mix(uint64(r.RetryPerSecond)).Mix(uint64(r.RetryBurst))
	h = h.Mix(uint64(r.EjectAfter)).Mix(uint64(r.EjectFor)).Mix(uint64(r.MaxEjectFor)).Mix(uint64(r.BreakerMinAttempts)).Mix(uint64(r.BreakerFailurePercent))
	h = h.Mix(uint64(r.BreakerOpenFor)).Mix(uint64(r.MaxBreakerOpenFor)).Mix(uint64(r.HalfOpenInFlight)).Mix(uint64(r.HalfOpenSuccesses))
	return h.Mix(uint64(r.UnhealthyAfter)).Mix(uint64(r.HealthyAfter))
}
