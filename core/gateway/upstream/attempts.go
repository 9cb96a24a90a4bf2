package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Report hears what a try has come to, and says whether there is another.
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

// finishAttempt: a try has an answer, or will have none.
func (m *Upstreams) finishAttempt(now types.Instant, c *call, in event.AttemptResult) (on event.RetryDecision) {
	u, e := &m.upstreams[c.upstream], m.endpointOf(c)
	if in.Outcome == event.AttemptCompleted || in.Outcome == event.AttemptTruncated {
		return on // of an answer that was never told of
	}
	u.breaker.attemptReturned(c.epoch)
	switch in.Outcome {
	case event.AttemptAnswered:
		if c.phase = answered; !c.endpointGone {
			e.failuresInARow, e.seenHealthy = 0, true
			u.recordSuccess(now, c.epoch)
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

// leaveEndpoint: a call is with its endpoint no more.
func (m *Upstreams) leaveEndpoint(c *call) {
	if !c.endpointGone {
		m.endpointOf(c).calls--
	}
}

// finishAnswer: an answer is over, whole or not.
func (m *Upstreams) finishAnswer(now types.Instant, c *call, in event.AttemptResult) {
	switch in.Outcome {
	case event.AttemptCompleted, event.AttemptAbandoned:
	case event.AttemptTruncated:
		if !c.countedAsFailure {
			m.countFailure(now, c)
		}
	default:
		return // it was answered before
	}
	m.leaveEndpoint(c)
	m.freeCall(in.Ticket.Slot())
}

// countFailure counts a failure, of the endpoint and of its upstream.
func (m *Upstreams) countFailure(now types.Instant, c *call) {
	if c.endpointGone {
		return
	}
	u, e := &m.upstreams[c.upstream], m.endpointOf(c)
	if e.failuresInARow++; e.failuresInARow >= u.rules.EjectAfter && !e.ejected {
		if now > e.ejectedUntil.Add(u.rules.MaxEjectFor) {
			e.timesEjected = 0
		}
		e.ejected, e.ejectedUntil = true, now.Add(exponential(u.rules.EjectFor, u.rules.MaxEjectFor, e.timesEjected))
		e.timesEjected = min(e.timesEjected+1, maxStrikes)
		m.setDue(e.ejectedUntil)
	}
	if u.breaker.epoch == c.epoch && u.recordFailure(now) {
		rest := exponential(u.rules.BreakerOpenFor, u.rules.MaxBreakerOpenFor, u.breaker.timesOpened)
		rest -= time.Duration(m.rand.Uint64n(uint64(rest / 2)))
		u.breaker.open(now.Add(rest))
		m.setDue(u.breaker.openUntil)
	}
}

// decideRetry says whether a request is tried again, and why not. Only what is idempotent is, when none of
// its body is gone, nothing was said to the client, the breaker lets it through and its upstream has a retry to spare.
func (m *Upstreams) decideRetry(now types.Instant, c *call, in event.AttemptResult) (on event.RetryDecision) {
	u := &m.upstreams[c.upstream]
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
	case c.attempts >= u.rules.MaxAttempts || c.noMoreAttempts:
		on.NoRetry = event.NoRetryAttempts
	case u.breaker.state == event.CircuitOpen:
		on.NoRetry = event.NoRetryCircuitOpen
	case in.TimeLeft <= most:
		on.NoRetry = event.NoRetryDeadline
	case !u.spendRetry(now):
		on.NoRetry = event.NoRetryBudget
	}
	if on.NoRetry != event.RetryAllowed {
		return on
	}
	return event.RetryDecision{Retry: true, Wait: least + time.Duration(m.rand.Uint64n(uint64(most-least)+1))}
}

// HealthChecked hears of a health check.
func (m *Upstreams) HealthChecked(now types.Instant, in event.HealthChecked) {
	m.Tick(now)
	if int(in.Upstream) >= len(m.upstreams) || !m.upstreams[in.Upstream].rules.hasEndpoint(in.Endpoint) {
		return // of an endpoint that is none any more
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
