package trace

import (
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/types"
)

// A breaker counts attempts in a window of buckets.
const (
	breakerSpan   = 10
	breakerBucket = time.Second
)

const retryPrice = 100 // hundredths of a retry

// A call is one request to an upstream.
type call struct {
	upstream   uint16
	callers    event.Callers
	caller     event.CallerID
	endpoint   uint8
	idempotent bool
	attempts   uint8
	phase      string // out, waits or answered
	probe      bool   // the attempt began while the breaker was half-open
	epoch      int    // of the breaker when the attempt began
	counted    bool   // its response was counted as a failure
	gone       bool   // its endpoint was replaced: the result is not counted
	last       bool   // its upstream was replaced: it is not retried
}

// breakerCallers is the number of callers whose attempts a breaker counts apart.
const breakerCallers = 7

// An attempted is an attempt whose result the breaker counts.
type attempted struct {
	bucket int64
	failed bool
	caller event.CallerID
	common bool // it is counted with those of other callers
}

// A target is the state of an upstream for a group of callers, derived from their attempts.
type target struct {
	rules     upstream.Rules
	circuit   event.CircuitState
	epoch     int
	reported  []attempted // in this epoch
	probes    uint32      // in flight
	successes uint32      // half-open
	opened    types.Instant
	openFor   time.Duration // the minimum
	forOne    bool          // it is open for one caller only: the first probe failed
	whose     event.CallerID
	unsure    bool // its probes and successes are not known, until it is closed

	saved    int64 // retry budget, in hundredths of a retry
	refilled types.Instant
}

// trips checks the attempts at upstreams against the breaker and the retry rules.
type trips struct {
	targets [][event.NumCallers]target
	calls   map[types.Ticket]*call
}

func newTrips(c node.Config) trips {
	p := trips{calls: map[types.Ticket]*call{}}
	for _, r := range c.Upstreams {
		t := target{rules: r, saved: int64(r.RetryPerSecond) * retryPrice}
		p.targets = append(p.targets, [...]target{t, t})
	}
	return p
}

// of returns the target of a call.
func (p *trips) of(c *call) *target { return &p.targets[c.upstream][c.callers] }

func (p *trips) step(before, after *View, s *Step) error {
	now := s.Now.Mono
	switch in := s.In.(type) { //nolint:gochecksumtype // the others do not concern upstreams
	case *event.ApplyPolicy:
		if after.PolicyVersion == in.Policy.Version && before.PolicyVersion != in.Policy.Version {
			p.renews(now, in.Policy.Upstreams)
		}
	case *event.UpstreamQuery:
		for i := range s.Answers {
			if err := p.answer(now, in, &s.Answers[i]); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func (p *trips) answer(now types.Instant, in *event.UpstreamQuery, is *event.UpstreamReply) error {
	switch in.Kind {
	case event.QueryPick:
		if int(in.Pick.Upstream) >= len(p.targets) {
			return nil
		}
		t := &p.targets[in.Pick.Upstream][in.Pick.Callers]
		if is.Picked.NoEndpoint != event.NoEndpointOverflow {
			t.earns(now)
		}
		return p.picked(now, &call{upstream: in.Pick.Upstream, callers: in.Pick.Callers, caller: in.Pick.Caller, idempotent: in.Pick.Idempotent, phase: "waits"}, &is.Picked)
	case event.QueryRetry:
		c := p.calls[in.Retry.Ticket]
		if is.Picked.NoEndpoint == event.NoEndpointStale {
			return nil
		}
		if c == nil || c.phase != "waits" || c.last && is.Picked.NoEndpoint == event.EndpointPicked {
			return broken("RetryIsAllowed", "a retry that was not granted goes out: %+v", is.Picked)
		}
		return p.picked(now, c, &is.Picked)
	case event.QueryReport:
		return p.reported(now, &in.Result, is.Retry)
	case event.QueryStats:
		if int(in.Upstream) < len(p.targets) {
			for by := range is.Stats.Circuits {
				t := &p.targets[in.Upstream][by]
				if err := t.sees(now, is.Stats.Circuits[by].State, t.whose); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// picked checks the endpoint of an attempt, or that there is none.
func (p *trips) picked(now types.Instant, c *call, is *event.Picked) error {
	if is.NoEndpoint == event.NoEndpointOverflow {
		return nil
	}
	t := p.of(c)
	if err := t.sees(now, is.Circuit, c.caller); err != nil {
		return err
	}
	if is.NoEndpoint != event.EndpointPicked {
		delete(p.calls, is.Ticket)
		return nil
	}
	c.attempts++
	switch {
	case is.Circuit == event.CircuitOpen:
		return broken("OpenAdmitsNothing", "an attempt goes to upstream %d, whose breaker is open", c.upstream)
	case is.Circuit == event.CircuitHalfOpen && !t.unsure && t.probes >= t.rules.HalfOpenInFlight:
		return broken("ProbesAreFew", "%d attempts are out to upstream %d, whose breaker is half-open", t.probes+1, c.upstream)
	case t.rules.Endpoints>>is.Endpoint&1 == 0:
		return broken("EndpointIsThere", "upstream %d has no endpoint %d", c.upstream, is.Endpoint)
	case c.attempts > 1 && !c.idempotent:
		return broken("RetryIsAllowed", "a request that is not idempotent goes out again")
	}
	c.phase, c.endpoint, c.epoch, c.gone, c.probe = "out", is.Endpoint, t.epoch, false, is.Circuit == event.CircuitHalfOpen
	if c.probe {
		t.probes++
	}
	p.calls[is.Ticket] = c
	return nil
}

// reported checks the decision after an attempt.
func (p *trips) reported(now types.Instant, in *event.AttemptResult, on event.RetryDecision) error {
	c := p.calls[in.Ticket]
	if c == nil || c.phase != "out" {
		if on.Retry {
			return broken("RetryIsAllowed", "a retry of a request that is not at an endpoint")
		}
		p.ended(now, c, in)
		return nil
	}
	if in.Outcome == event.AttemptCompleted || in.Outcome == event.AttemptTruncated {
		return nil // the end of a response whose start was not reported
	}
	t := p.of(c)
	if c.probe && c.epoch == t.epoch && t.probes > 0 {
		t.probes--
	}
	switch {
	case in.Outcome == event.AttemptAnswered:
		if c.phase = "answered"; !c.gone {
			t.succeeds(now, c)
		}
	case in.Outcome != event.AttemptAbandoned && !c.gone:
		t.fails(now, c)
	}
	switch {
	case on.Retry:
		c.phase = "waits"
		return p.retries(now, c, in, on)
	case in.Outcome == event.AttemptAnswered5xx:
		c.phase, c.counted = "answered", true
	case in.Outcome != event.AttemptAnswered:
		delete(p.calls, in.Ticket)
	}
	return nil
}

// ended handles the end of a response, and a request that is not retried after all.
func (p *trips) ended(now types.Instant, c *call, in *event.AttemptResult) {
	switch {
	case c == nil:
	case c.phase == "waits":
		if in.Outcome == event.AttemptAbandoned {
			delete(p.calls, in.Ticket)
		}
	case in.Outcome == event.AttemptTruncated, in.Outcome == event.AttemptCompleted, in.Outcome == event.AttemptAbandoned:
		if in.Outcome == event.AttemptTruncated && !c.counted && !c.gone {
			p.of(c).fails(now, c)
		}
		delete(p.calls, in.Ticket)
	}
}

// retries checks a retry that is granted.
func (p *trips) retries(now types.Instant, c *call, in *event.AttemptResult, on event.RetryDecision) error {
	t := p.of(c)
	t.refill(now)
	t.saved -= retryPrice
	switch failed := in.Outcome == event.AttemptAnswered5xx || in.Outcome == event.AttemptUnsent || in.Outcome == event.AttemptFailed; {
	case !failed, !c.idempotent, in.BodyConsumed, in.ResponseStarted, c.last:
		return broken("RetryIsAllowed", "a retry of %+v after %+v", *c, *in)
	case c.attempts >= t.rules.MaxAttempts:
		return broken("AttemptsAreFew", "a retry after %d attempts of %d", c.attempts, t.rules.MaxAttempts)
	case on.Wait > in.TimeLeft:
		return broken("RetryInTime", "a retry after %v, and %v are left", on.Wait, in.TimeLeft)
	case t.stateFor(c.caller) == event.CircuitOpen && !t.unsure && now < t.opened.Add(t.openFor): // later it may be half-open
		return broken("OpenAdmitsNothing", "a retry is granted to upstream %d, whose breaker is open", c.upstream)
	case t.saved < 0:
		return broken("RetriesAreSaved", "a retry to upstream %d, which has saved none", c.upstream)
	}
	return nil
}

// earns adds a request's share to the retry budget, up to the burst.
func (t *target) earns(now types.Instant) {
	t.refill(now)
	t.saved = min(t.saved+int64(t.rules.RetryPercent), int64(t.rules.RetryBurst)*retryPrice)
}

// refill adds the configured retries per second to the budget, up to those of one second.
func (t *target) refill(now types.Instant) {
	n := int64(now-t.refilled) / int64(time.Second)
	if n <= 0 {
		return
	}
	t.refilled = t.refilled.Add(time.Duration(n) * time.Second)
	spare := int64(t.rules.RetryPerSecond)
	t.saved = max(t.saved, min(t.saved+min(n, spare)*retryPrice, spare*retryPrice))
}

// stateFor returns the state for the requests of a caller.
func (t *target) stateFor(of event.CallerID) event.CircuitState {
	if t.forOne && of != t.whose {
		return event.CircuitHalfOpen
	}
	return t.circuit
}

// passes handles the time. A breaker that is open for one caller becomes half-open for all at a time that is drawn. From the
// least such time on, its probes may be those of before or after.
func (t *target) passes(now types.Instant) {
	if t.forOne && now >= t.opened.Add(t.openFor) {
		t.circuit, t.forOne, t.unsure = event.CircuitHalfOpen, false, true
	}
}

// succeeds counts an attempt that was answered.
func (t *target) succeeds(now types.Instant, c *call) {
	t.passes(now)
	if t.unsure || c.epoch != t.epoch {
		return
	}
	switch t.stateFor(c.caller) {
	case event.CircuitClosed:
		t.reports(now, c.caller, false)
	case event.CircuitHalfOpen:
		if t.successes++; t.successes >= t.rules.HalfOpenSuccesses {
			t.becomes(event.CircuitClosed)
		}
	case event.CircuitOpen: // for its caller
	}
}

// fails counts an attempt that failed. A closed breaker opens at the configured share of failures, for one
// caller if all attempts are of it; a half-open one for the
// caller of the first failure, and at that of another caller for all.
func (t *target) fails(now types.Instant, c *call) {
	t.passes(now)
	if t.unsure || c.epoch != t.epoch {
		return
	}
	switch {
	case t.circuit == event.CircuitClosed:
		t.reports(now, c.caller, true)
		if t.opens() {
			alone := !slices.ContainsFunc(t.reported, func(a attempted) bool { return a.caller != c.caller })
			t.becomes(event.CircuitOpen)
			t.forOne, t.whose = alone, c.caller
			t.opened, t.openFor = now, t.rules.BreakerOpenFor/2
		}
	case !t.forOne:
		t.circuit, t.forOne, t.whose = event.CircuitOpen, true, c.caller
		t.opened, t.openFor = now, t.rules.BreakerOpenFor/2
	case c.caller != t.whose:
		t.becomes(event.CircuitOpen) // until the same time
	}
}

// reports adds an attempt and removes those that have left the window.
func (t *target) reports(now types.Instant, by event.CallerID, failed bool) {
	newest := int64(now) / int64(breakerBucket)
	t.reported = slices.DeleteFunc(t.reported, func(a attempted) bool { return a.bucket <= newest-breakerSpan })
	apart := map[event.CallerID]bool{}
	for _, a := range t.reported {
		if !a.common {
			apart[a.caller] = true
		}
	}
	t.reported = append(t.reported, attempted{newest, failed, by, !apart[by] && len(apart) >= breakerCallers})
}

// opens reports whether enough attempts failed: of all, and of those that are left without any one caller and without the
// common ones. If there are common ones, some must be left.
func (t *target) opens() bool {
	type sums struct{ all, failures int }
	var all, common sums
	by := map[event.CallerID]sums{}
	for _, a := range t.reported {
		s := by[a.caller]
		if a.common {
			s = common
		}
		all.all, s.all = all.all+1, s.all+1
		if a.failed {
			all.failures, s.failures = all.failures+1, s.failures+1
		}
		if a.common {
			common = s
		} else {
			by[a.caller] = s
		}
	}
	if all.all < int(t.rules.BreakerMinAttempts) || all.failures*100 < int(t.rules.BreakerFailurePercent)*all.all {
		return false
	}
	for _, s := range by { //nolint:maporder // all must hold
		left := sums{all.all - s.all - common.all, all.failures - s.failures - common.failures}
		if left.failures*100 < int(t.rules.BreakerFailurePercent)*left.all || left.all == 0 && common.all > 0 {
			return false
		}
	}
	return true
}

func (t *target) becomes(s event.CircuitState) {
	t.circuit, t.reported, t.probes, t.successes, t.unsure, t.forOne = s, nil, 0, 0, false, false
	t.epoch++
}

// sees checks the state of a breaker for a caller against the reported attempts. Time alone changes it from
// open to half-open.
func (t *target) sees(now types.Instant, is event.CircuitState, by event.CallerID) error {
	t.passes(now)
	switch was := t.stateFor(by); {
	case t.unsure && is != event.CircuitClosed:
		t.circuit = is
		return nil
	case is == was:
		return nil
	case t.unsure:
	case was == event.CircuitOpen && is == event.CircuitHalfOpen:
		if now < t.opened.Add(t.openFor) {
			return broken("OpenLasts", "a breaker that opened at %v is half-open at %v", t.opened, now)
		}
	case is == event.CircuitOpen:
		return broken("OpensForFailures", "a breaker is open for no failures")
	case is == event.CircuitClosed:
		return broken("ClosesForAnswers", "a breaker that was %v is closed", t.circuit)
	default:
		return broken("OpensForFailures", "a breaker that was %v is half-open", t.circuit)
	}
	t.becomes(is)
	return nil
}

// renews replaces the rules. An upstream that keeps no endpoint is reset.
func (p *trips) renews(now types.Instant, rules []event.Upstream) {
	var gone [upstream.MaxUpstreams]uint16
	for len(p.targets) < len(rules) {
		p.targets = append(p.targets, [event.NumCallers]target{})
	}
	for i := range p.targets {
		var r upstream.Rules
		if i < len(rules) {
			r = upstream.Rules(rules[i])
		}
		for by := range p.targets[i] {
			gone[i] = p.targets[i][by].renews(now, r)
		}
	}
	for _, c := range p.calls {
		c.last = c.last || gone[c.upstream] == 1<<upstream.MaxEndpoints-1
		c.gone = c.gone || c.phase != "waits" && gone[c.upstream]>>c.endpoint&1 == 1
	}
}

// renews replaces the rules of one upstream, and returns the endpoints that were removed or are fresh.
func (t *target) renews(now types.Instant, r upstream.Rules) (gone uint16) {
	t.refill(now) // by the old rules
	stay := t.rules.Endpoints & r.Endpoints &^ r.ResetEndpoints
	if t.rules.Endpoints|r.Endpoints == 0 {
		return 0
	}
	if r.ResetEndpoints = 0; r.Endpoints == 0 {
		r = upstream.Rules{}
	}
	t.openFor = min(t.openFor, r.BreakerOpenFor/2)
	t.rules = r
	switch {
	case stay == 0:
		t.becomes(event.CircuitClosed)
		t.saved = int64(r.RetryPerSecond) * retryPrice
	case t.circuit == event.CircuitHalfOpen, t.forOne:
		t.circuit, t.forOne, t.unsure = event.CircuitHalfOpen, false, true
	}
	t.saved = min(t.saved, int64(r.RetryBurst)*retryPrice)
	return ^stay
}
