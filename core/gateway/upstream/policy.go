package upstream

import (
	"macronode/core/event"
	"macronode/core/types"
)

// ApplyPolicy replaces the rules. An endpoint that stays keeps its health, its ejection and its
// calls; an upstream keeps its breaker and its retry budget. A removed or fresh endpoint loses
// its state: calls to it finish without being counted, and their retries go to other endpoints.
// An upstream none of whose endpoints stays starts anew; it may be another service, so its calls
// are not retried. An ejection or open circuit ends at its original time. If a half-open breaker
// exceeds its new limit, its probing restarts.
//
// It allocates if there are more upstreams than ever before, and visits every call.
func (m *Upstreams) ApplyPolicy(now types.Instant, rules []Rules) {
	types.Assert(CheckRules(rules) == nil, "upstream: rules without sense")
	m.Tick(now)
	for of := range m.upstreams {
		u := &m.upstreams[of]
		for by := range u.groups {
			u.groups[by].refill(now, &u.rules) // by the old rules
		}
	}
	for len(m.upstreams) < len(rules) {
		m.addUpstream(Rules{})
	}
	var gone [MaxUpstreams]uint16 // endpoints that were removed or are fresh
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
		if u.maxAttempts = max(u.maxAttempts, c.attempts); c.phase == waitingToRetry { // it was promised a retry
			u.maxAttempts = max(u.maxAttempts, c.attempts+1)
		}
	}
	if m.hasDue {
		m.setDue(now)
		m.Tick(now)
	}
}

// applyRules sets the rules of one upstream, and returns the endpoints that were removed or are
// fresh.
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
	for by := range u.groups {
		g := &u.groups[by]
		b := &g.breaker
		switch {
		case stay == 0:
			b.enter(event.CircuitClosed)
			b.timesOpened, g.budget.saved = 0, r.RetryPerSecond*retryCost
		case (b.state == event.CircuitHalfOpen || b.openForOne) && (b.inFlight > r.HalfOpenInFlight || b.successes >= r.HalfOpenSuccesses):
			b.enter(event.CircuitHalfOpen)
		}
		g.budget.saved = min(g.budget.saved, r.RetryBurst*retryCost)
	}
	return ^stay
}

// HashInto mixes r into h.
func (r *Rules) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(r.Endpoints)).Mix(uint64(r.ResetEndpoints)).Mix(uint64(r.MaxAttempts)).Mix(uint64(r.RetryPercent)).Mix(uint64(r.RetryPerSecond)).Mix(uint64(r.RetryBurst))
	h = h.Mix(uint64(r.EjectAfter)).Mix(uint64(r.EjectFor)).Mix(uint64(r.MaxEjectFor)).Mix(uint64(r.BreakerMinAttempts)).Mix(uint64(r.BreakerFailurePercent))
	h = h.Mix(uint64(r.BreakerOpenFor)).Mix(uint64(r.MaxBreakerOpenFor)).Mix(uint64(r.HalfOpenInFlight)).Mix(uint64(r.HalfOpenSuccesses))
	return h.Mix(uint64(r.UnhealthyAfter)).Mix(uint64(r.HealthyAfter))
}
