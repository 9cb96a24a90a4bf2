package policycheck

import (
	"fmt"
	"math/bits"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// MaxPairs is the largest number of distinct upstream changes that are explored.
const MaxPairs = 4

// A call is a request to an upstream.
type call struct {
	ticket types.Ticket
	state  uint8
}

const (
	attempting uint8 = iota
	answered
	backingOff
	ended
)

// The steps of an upstream.
const (
	pick = iota
	fail
	answer
	whole
	retry
	failChecks // failed health checks
	due
	steps
)

// upstreams explores the change of each upstream separately: upstreams do not depend on each
// other.
func (p *play) upstreams(from, to event.Policy) error {
	type pair struct{ was, is event.Upstream }
	var met []pair
	for i := range max(len(from.Upstreams), len(to.Upstreams)) {
		var of pair
		if i < len(from.Upstreams) {
			of.was = from.Upstreams[i]
		}
		if i < len(to.Upstreams) {
			of.is = to.Upstreams[i]
		}
		shrinkUpstreams(&of.was, &of.is)
		known := len(met) == MaxPairs
		for _, other := range met {
			known = known || other == of
		}
		if known {
			continue
		}
		met = append(met, of)
		if err := p.checkUpstream(of.was, of.is); err != nil {
			return fmt.Errorf("upstream %d: %w", i, err)
		}
	}
	return nil
}

// shrinkUpstreams replaces the numbers of two upstreams by small ones in the same order.
func shrinkUpstreams(was, is *event.Upstream) {
	for _, of := range [...][2]*uint32{{&was.EjectAfter, &is.EjectAfter}, {&was.BreakerMinAttempts, &is.BreakerMinAttempts}, {&was.HalfOpenInFlight, &is.HalfOpenInFlight}, {&was.HalfOpenSuccesses, &is.HalfOpenSuccesses}} {
		a, b := int(*of[0]), int(*of[1])
		rankAll(&a, &b)
		*of[0], *of[1] = uint32(a), uint32(b)
	}
	for _, of := range [...][2]*uint8{{&was.UnhealthyAfter, &is.UnhealthyAfter}, {&was.HealthyAfter, &is.HealthyAfter}} {
		a, b := int(*of[0]), int(*of[1])
		rankAll(&a, &b)
		*of[0], *of[1] = uint8(a), uint8(b)
	}
}

// checkUpstream explores the change of an upstream that is healthy, unhealthy, with an open circuit,
// or half-open.
func (p *play) checkUpstream(was, is event.Upstream) error {
	before, behind := event.Policy{Upstreams: []event.Upstream{was}, Quantum: 1}, event.Policy{Upstreams: []event.Upstream{is}, Quantum: 1}
	for _, history := range [...][]int{{}, {failChecks}, {pick, fail, pick, fail, pick, fail, pick, fail}, {pick, pick, pick, fail, fail, fail, due}} {
		s := p.newSimulation(8, &before)
		for _, step := range history {
			if _, err := s.ask(step, &was); err != nil {
				return fmt.Errorf("before the change: %w", err)
			}
		}
		if err := p.exploreUpstream(s, &was, &behind, 2); err != nil {
			return err
		}
	}
	return nil
}

// exploreUpstream explores every history of a number of steps, with the change after each.
func (p *play) exploreUpstream(s *simulation, was *event.Upstream, to *event.Policy, more int) error {
	if p.exhausted() {
		return nil
	}
	is := &to.Upstreams[0]
	for step := range steps {
		t := p.copy(s)
		t.gate = to
		err := t.handle(&event.ApplyPolicy{Policy: *to}, "the change")
		if err == nil {
			_, err = t.ask(step, is)
		}
		if err == nil {
			err = t.checkRecovery(is)
		}
		if p.done(t); err != nil {
			return err
		}
	}
	if more == 0 {
		return nil
	}
	for step := range steps {
		t := p.copy(s)
		possible, err := t.ask(step, was)
		if err == nil && possible {
			err = p.exploreUpstream(t, was, to, more-1)
		}
		if p.done(t); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a step. possible is false if the step cannot be made.
func (s *simulation) ask(step int, of *event.Upstream) (possible bool, err error) {
	switch step {
	case pick:
		return true, s.beginAttempt(&event.UpstreamQuery{Kind: event.QueryPick, Pick: event.Pick{Idempotent: true}}, nil)
	case fail:
		return s.endAttempt(attempting, event.AttemptFailed)
	case answer:
		return s.endAttempt(attempting, event.AttemptAnswered)
	case whole:
		return s.endAttempt(answered, event.AttemptCompleted)
	case retry:
		if c := s.first(backingOff); c != nil {
			return true, s.beginAttempt(&event.UpstreamQuery{Kind: event.QueryRetry, Retry: event.Retry{Ticket: c.ticket}}, c)
		}
		return false, nil
	case failChecks:
		return of.UnhealthyAfter > 0, s.reportHealth(of, int(of.UnhealthyAfter), false)
	default:
		at, any := s.node.Due()
		if !any {
			return false, nil
		}
		return true, s.advance(max(0, time.Duration(at-s.now.Mono)))
	}
}

func (s *simulation) first(state uint8) *call {
	for i := range s.calls {
		if s.calls[i].state == state {
			return &s.calls[i]
		}
	}
	return nil
}

// beginAttempt begins an attempt: of c, or of a new request.
func (s *simulation) beginAttempt(e *event.UpstreamQuery, c *call) error {
	if err := s.handle(e, "an attempt begins"); err != nil {
		return err
	}
	picked := s.replies[0].Picked
	if c == nil {
		s.calls = append(s.calls, call{ticket: picked.Ticket})
		c = &s.calls[len(s.calls)-1]
	}
	if c.state = attempting; picked.NoEndpoint != event.EndpointPicked {
		c.state = ended
	} else if s.gate.Upstreams[0].Endpoints>>picked.Endpoint&1 == 0 {
		return s.wrong("an attempt goes to an endpoint that does not exist")
	}
	return nil
}

// endAttempt ends the first attempt, or response, in progress.
func (s *simulation) endAttempt(state uint8, how event.AttemptOutcome) (possible bool, err error) {
	c := s.first(state)
	if c == nil {
		return false, nil
	}
	if err := s.handle(&event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: c.ticket, Outcome: how, TimeLeft: time.Minute}}, "an attempt: "+how.String()); err != nil {
		return true, err
	}
	switch {
	case s.replies[0].Retry.Retry:
		c.state = backingOff
	case how == event.AttemptAnswered:
		c.state = answered
	default:
		c.state = ended
	}
	return true, nil
}

// reportHealth reports a number of health checks of each endpoint.
func (s *simulation) reportHealth(of *event.Upstream, many int, well bool) error {
	for m := of.Endpoints; m != 0; m &= m - 1 {
		for range many {
			if err := s.handle(event.HealthChecked{Endpoint: uint8(bits.TrailingZeros16(m)), Healthy: well}, "a health check"); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRecovery ends everything in progress and lets health checks and time pass. Then the upstream
// must serve again.
func (s *simulation) checkRecovery(of *event.Upstream) error {
	for _, state := range [...]uint8{attempting, answered, backingOff} {
		for any := true; any; {
			var err error
			if any, err = s.endAttempt(state, event.AttemptAbandoned); err != nil {
				return err
			}
		}
	}
	if of.UnhealthyAfter > 0 {
		if err := s.reportHealth(of, int(of.HealthyAfter), true); err != nil {
			return err
		}
	}
	if err := s.advance(24 * time.Hour); err != nil {
		return err
	}
	for range of.HalfOpenSuccesses + 1 {
		if err := s.beginAttempt(&event.UpstreamQuery{Kind: event.QueryPick}, nil); err != nil {
			return err
		}
		switch stop := s.replies[0].Picked.NoEndpoint; {
		case of.Endpoints == 0 && stop == event.EndpointPicked:
			return s.wrong("an upstream without endpoints is used")
		case of.Endpoints == 0:
			return nil
		case stop != event.EndpointPicked:
			return s.wrong("the upstream never serves again: %v", stop)
		}
		for _, end := range [...]struct {
			state uint8
			how   event.AttemptOutcome
		}{{attempting, event.AttemptAnswered}, {answered, event.AttemptCompleted}} {
			if _, err := s.endAttempt(end.state, end.how); err != nil {
				return err
			}
		}
	}
	if err := s.handle(&event.UpstreamQuery{Kind: event.QueryStats}, "a query of the statistics"); err != nil {
		return err
	}
	if v := s.replies[0].Stats; v.InFlight != 0 || v.Circuits[event.Authenticated].State != event.CircuitClosed {
		return s.wrong("after all calls have ended, %d calls are in flight and the circuit is %v", v.InFlight, v.Circuits[event.Authenticated].State)
	}
	return nil
}
