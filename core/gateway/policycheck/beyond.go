package policycheck

import (
	"fmt"
	"math/bits"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// MaxPairs is how many upstreams are played: of those that are alike before a change, and
// behind it, one.
const MaxPairs = 4

// A call is a request with an upstream.
type call struct {
	ticket types.Ticket
	state  uint8
}

const (
	trying uint8 = iota
	answered
	resting
	ended
)

// what may happen beyond.
const (
	pick = iota
	fail
	answer
	whole
	retry
	sicken // health checks
	due
	steps
)

// upstreams plays what becomes of upstreams: one at a time, for none knows of another.
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
		alike(&of.was, &of.is)
		known := len(met) == MaxPairs
		for _, other := range met {
			known = known || other == of
		}
		if known {
			continue
		}
		met = append(met, of)
		if err := p.upstream(of.was, of.is); err != nil {
			return fmt.Errorf("upstream %d: %w", i, err)
		}
	}
	return nil
}

// alike makes the numbers of two small, in the same order.
func alike(was, is *event.Upstream) {
	for _, of := range [...][2]*uint32{{&was.EjectAfter, &is.EjectAfter}, {&was.BreakerMinAttempts, &is.BreakerMinAttempts}, {&was.HalfOpenInFlight, &is.HalfOpenInFlight}, {&was.HalfOpenSuccesses, &is.HalfOpenSuccesses}} {
		a, b := int(*of[0]), int(*of[1])
		ranked(&a, &b)
		*of[0], *of[1] = uint32(a), uint32(b)
	}
	for _, of := range [...][2]*uint8{{&was.UnhealthyAfter, &is.UnhealthyAfter}, {&was.HealthyAfter, &is.HealthyAfter}} {
		a, b := int(*of[0]), int(*of[1])
		ranked(&a, &b)
		*of[0], *of[1] = uint8(a), uint8(b)
	}
}

// upstream plays a change of one that is well, one that is sick, one that is broken, and one
// that is looked at.
func (p *play) upstream(was, is event.Upstream) error {
	before, behind := event.Policy{Upstreams: []event.Upstream{was}, Quantum: 1}, event.Policy{Upstreams: []event.Upstream{is}, Quantum: 1}
	for _, history := range [...][]int{{}, {sicken}, {pick, fail, pick, fail, pick, fail, pick, fail}, {pick, pick, pick, fail, fail, fail, due}} {
		s := p.small(8, &before)
		for _, step := range history {
			if _, err := s.ask(step, &was); err != nil {
				return fmt.Errorf("before the change: %w", err)
			}
		}
		if err := p.onward(s, &was, &behind, 2); err != nil {
			return err
		}
	}
	return nil
}

// onward plays every history of so many steps, and the change behind each.
func (p *play) onward(s *stage, was *event.Upstream, to *event.Policy, more int) error {
	if p.exhausted() {
		return nil
	}
	is := &to.Upstreams[0]
	for step := range steps {
		t := p.copy(s)
		t.gate = to
		err := t.hear(&event.ApplyPolicy{Policy: *to}, "the change")
		if err == nil {
			_, err = t.ask(step, is)
		}
		if err == nil {
			err = t.recovers(is)
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
			err = p.onward(t, was, to, more-1)
		}
		if p.done(t); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a step; possible is false where there is nobody to make it.
func (s *stage) ask(step int, of *event.Upstream) (possible bool, err error) {
	switch step {
	case pick:
		return true, s.picks(&event.UpstreamQuery{Kind: event.QueryPick, Pick: event.Pick{Idempotent: true}}, nil)
	case fail:
		return s.tried(trying, event.AttemptFailed)
	case answer:
		return s.tried(trying, event.AttemptAnswered)
	case whole:
		return s.tried(answered, event.AttemptCompleted)
	case retry:
		if c := s.first(resting); c != nil {
			return true, s.picks(&event.UpstreamQuery{Kind: event.QueryRetry, Retry: event.Retry{Ticket: c.ticket}}, c)
		}
		return false, nil
	case sicken:
		return of.UnhealthyAfter > 0, s.probes(of, int(of.UnhealthyAfter), false)
	default:
		at, any := s.node.Due()
		if !any {
			return false, nil
		}
		return true, s.pass(max(0, time.Duration(at-s.now.Mono)))
	}
}

func (s *stage) first(state uint8) *call {
	for i := range s.calls {
		if s.calls[i].state == state {
			return &s.calls[i]
		}
	}
	return nil
}

// picks begins a try: of c, or of a request that is new.
func (s *stage) picks(e *event.UpstreamQuery, c *call) error {
	if err := s.hear(e, "a try begins"); err != nil {
		return err
	}
	said := s.asked[0].Picked
	if c == nil {
		s.calls = append(s.calls, call{ticket: said.Ticket})
		c = &s.calls[len(s.calls)-1]
	}
	if c.state = trying; said.NoEndpoint != event.EndpointPicked {
		c.state = ended
	} else if s.gate.Upstreams[0].Endpoints>>said.Endpoint&1 == 0 {
		return s.wrong("a try goes to an endpoint that is none")
	}
	return nil
}

// tried ends the first try, or answer, that is under way.
func (s *stage) tried(state uint8, how event.AttemptOutcome) (possible bool, err error) {
	c := s.first(state)
	if c == nil {
		return false, nil
	}
	if err := s.hear(&event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: c.ticket, Outcome: how, TimeLeft: time.Minute}}, "a try: "+how.String()); err != nil {
		return true, err
	}
	switch {
	case s.asked[0].Retry.Retry:
		c.state = resting
	case how == event.AttemptAnswered:
		c.state = answered
	default:
		c.state = ended
	}
	return true, nil
}

// probes tells of so many health checks of each endpoint.
func (s *stage) probes(of *event.Upstream, many int, well bool) error {
	for m := of.Endpoints; m != 0; m &= m - 1 {
		for range many {
			if err := s.hear(event.HealthChecked{Endpoint: uint8(bits.TrailingZeros16(m)), Healthy: well}, "a health check"); err != nil {
				return err
			}
		}
	}
	return nil
}

// recovers ends all that is under way, lets health checks and time do what they can, and
// then has the upstream serve again.
func (s *stage) recovers(of *event.Upstream) error {
	for _, state := range [...]uint8{trying, answered, resting} {
		for any := true; any; {
			var err error
			if any, err = s.tried(state, event.AttemptAbandoned); err != nil {
				return err
			}
		}
	}
	if of.UnhealthyAfter > 0 {
		if err := s.probes(of, int(of.HealthyAfter), true); err != nil {
			return err
		}
	}
	if err := s.pass(24 * time.Hour); err != nil {
		return err
	}
	for range of.HalfOpenSuccesses + 1 {
		if err := s.picks(&event.UpstreamQuery{Kind: event.QueryPick}, nil); err != nil {
			return err
		}
		switch stop := s.asked[0].Picked.NoEndpoint; {
		case of.Endpoints == 0 && stop == event.EndpointPicked:
			return s.wrong("it has no endpoint, and is asked")
		case of.Endpoints == 0:
			return nil
		case stop != event.EndpointPicked:
			return s.wrong("nobody will ever ask it again: %v", stop)
		}
		for _, end := range [...]struct {
			state uint8
			how   event.AttemptOutcome
		}{{trying, event.AttemptAnswered}, {answered, event.AttemptCompleted}} {
			if _, err := s.tried(end.state, end.how); err != nil {
				return err
			}
		}
	}
	if err := s.hear(&event.UpstreamQuery{Kind: event.QueryStats}, "a look"); err != nil {
		return err
	}
	if v := s.asked[0].Stats; v.InFlight != 0 || v.Circuit != event.CircuitClosed {
		return s.wrong("all is over, and it has %d calls and is %v", v.InFlight, v.Circuit)
	}
	return nil
}
