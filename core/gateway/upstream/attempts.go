package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Report handles the outcome of an attempt, and decides whether there is another.
func (m *Upstreams) Report(now types.Instant, in event.AttemptResult) event.RetryDecision {
	m.Tick(now)
	c, ok := m.find(in.Ticket)
	if !ok {
		return event.RetryDecision{}
	}
	switch c.phase {
	case trying:
		return m.finishAttempt(now, c, in)
	case answered:
		m.finishAnswer(now, c, in)
	case waitingToRetry:
		if in.Outcome == event.AttemptAbandoned {
			m.freeCall(in.Ticket.Slot())
		}
	case free: // not found
	}
	return event.RetryDecision{}
}

// finishAttempt handles an attempt that got an answer, or will get none.
func (m *Upstreams) finishAttempt(now types.Instant, c *call, in event.AttemptResult) (on event.RetryDecision) {
	g, e := m.groupOf(c), m.endpointOf(c)
	if in.Outcome == event.AttemptCompleted || in.Outcome == event.AttemptTruncated {
		return on // the answer was never reported
	}
	g.breaker.attemptReturned(c.epoch)
	switch in.Outcome {
	case event.AttemptAnswered:
		if c.phase = answered; !c.endpointGone {
			e.ejections[c.callers].failuresInARow, e.seenHealthy = 0, true
			g.breaker.recordSuccess(now, &m.upstreams[c.upstream].rules, c.epoch, c.caller)
		}
		return on
	case event.AttemptAbandoned:
	default:
		m.countFailure(now, c)
	}
	switch on = m.decideRetry(now, c, in); {
	case on.Retry:
		m.leaveEndpoint(c)
		c.phase = waitingToRetry
	case in.Outcome == event.AttemptAnswered5xx:
		c.phase, c.countedAsFailure = answered, true
	default:
		m.leaveEndpoint(c)
		m.freeCall(in.Ticket.Slot())
	}
	return on
}

// leaveEndpoint removes a call from its endpoint.
func (m *Upstreams) leaveEndpoint(c *call) {
	if !c.endpointGone {
		m.endpointOf(c).calls--
	}
}

// finishAnswer handles the end of an answer, complete or not.
func (m *Upstreams) finishAnswer(now types.Instant, c *call, in event.AttemptResult) {
	switch in.Outcome {
	case event.AttemptCompleted, event.AttemptAbandoned:
	case event.AttemptTruncated:
		if !c.countedAsFailure {
			m.countFailure(now, c)
		}
	default:
		return // it was counted before
	}
	m.leaveEndpoint(c)
	m.freeCall(in.Ticket.Slot())
}

// countFailure counts a failure of the endpoint and of its upstream, for the callers of the call.
func (m *Upstreams) countFailure(now types.Instant, c *call) {
	if c.endpointGone {
		return
	}
	r, g, e := &m.upstreams[c.upstream].rules, m.groupOf(c), &m.endpointOf(c).ejections[c.callers]
	if e.failuresInARow++; e.failuresInARow >= r.EjectAfter && !e.ejected {
		if now > e.ejectedUntil.Add(r.MaxEjectFor) {
			e.timesEjected = 0
		}
		e.ejected, e.ejectedUntil = true, now.Add(exponential(r.EjectFor, r.MaxEjectFor, e.timesEjected))
		e.timesEjected = min(e.timesEjected+1, maxStrikes)
		m.setDue(e.ejectedUntil)
	}
	if g.breaker.recordFailure(now, r, c.epoch, c.caller) {
		m.openCircuit(now, c)
	}
}

// openCircuit opens a circuit after a failure of a call.
func (m *Upstreams) openCircuit(now types.Instant, c *call) {
	r, b := &m.upstreams[c.upstream].rules, &m.groupOf(c).breaker
	if b.openForOne {
		b.enter(event.CircuitOpen) // until the same time
		return
	}
	rest := exponential(r.BreakerOpenFor, r.MaxBreakerOpenFor, b.timesOpened)
	rest -= time.Duration(m.rand.Uint64n(uint64(rest / 2)))
	b.open(now.Add(rest), c.caller)
	m.setDue(b.openUntil)
}

// decideRetry decides whether a request is retried, and why not. A request is retried only if it
// is idempotent, its body is still complete, no response was started, the circuit is closed and
// the retry budget allows it.
func (m *Upstreams) decideRetry(now types.Instant, c *call, in event.AttemptResult) (on event.RetryDecision) {
	r, g := &m.upstreams[c.upstream].rules, m.groupOf(c)
	most := exponential(MaxFirstBackoff, MaxBackoff, c.attempts-1)
	least := min(exponential(MinBackoff, MaxBackoff, c.attempts-1), most)
	switch {
	case in.Outcome == event.AttemptAbandoned:
		return on // nothing failed
	case in.Outcome == event.AttemptTimedOut:
		on.NoRetry = event.NoRetryDeadline
	case !c.idempotent:
		on.NoRetry = event.NoRetryMethod
	case in.BodyConsumed:
		on.NoRetry = event.NoRetryBodyConsumed
	case in.ResponseStarted:
		on.NoRetry = event.NoRetryResponseStarted
	case c.attempts >= r.MaxAttempts || c.noMoreAttempts:
		on.NoRetry = event.NoRetryAttempts
	case g.breaker.stateFor(c.caller) == event.CircuitOpen:
		on.NoRetry = event.NoRetryCircuitOpen
	case in.TimeLeft <= most:
		on.NoRetry = event.NoRetryDeadline
	case !g.spendRetry(now, r):
		on.NoRetry = event.NoRetryBudget
	}
	if on.NoRetry != event.RetryAllowed {
		return on
	}
	return event.RetryDecision{Retry: true, Wait: least + time.Duration(m.rand.Uint64n(uint64(most-least)+1))}
}

// HealthChecked handles the result of a health check.
func (m *Upstreams) HealthChecked(now types.Instant, in event.HealthChecked) {
	m.Tick(now)
	if int(in.Upstream) >= len(m.upstreams) || !m.upstreams[in.Upstream].rules.hasEndpoint(in.Endpoint) {
		return // of a removed endpoint
	}
	u := &m.upstreams[in.Upstream]
	e := &m.endpoints[u.firstEndpoint+uint16(in.Endpoint)]
	e.seenHealthy = e.seenHealthy || in.Healthy
	if in.Healthy != e.unhealthy || u.rules.UnhealthyAfter == 0 {
		e.contraryChecks = 0
		return
	}
	need := u.rules.UnhealthyAfter
	if e.unhealthy {
		need = u.rules.HealthyAfter
	}
	if e.contraryChecks++; e.contraryChecks >= need {
		e.unhealthy, e.contraryChecks = !e.unhealthy, 0
		m.setDown(in.Upstream)
	}
}
