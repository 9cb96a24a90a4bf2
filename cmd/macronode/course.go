package main

import (
	"slices"

	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// went writes down what a request met behind the gate.
func (k keeps) went(to *decisions.Decision, c *proxy.Course) {
	to.FirstUS = c.First.Microseconds()
	to.Bytes = max(to.Bytes, c.Up.Load()+c.Down.Load())
	for i := range c.Legs {
		to.Legs = append(to.Legs, k.leg(&c.Legs[i]))
	}
}

func (k keeps) leg(l *proxy.Leg) decisions.Leg {
	to := decisions.Leg{Upstream: l.Upstream, Part: l.Part, Missing: l.Missing, Circuit: l.Circuit.String(),
		Halt: l.Halt.String(), Outcome: l.Outcome(), Count: l.Count}
	if l.Stop != event.EndpointPicked {
		to.Stop = l.Stop.String()
	}
	if l.Stop == event.NoEndpointUnhealthy {
		to.Sick = k.illOf(l.Upstream)
	}
	for i := range l.Tries {
		t := &l.Tries[i]
		to.Tries = append(to.Tries, decisions.Try{Endpoint: t.Endpoint, Out: t.Out, HTTP2: t.HTTP2, Outcome: t.Outcome(), Ending: t.Ending.String(),
			Status: t.Status, TookUS: t.Took.Microseconds()})
	}
	return to
}

// illOf are the endpoints of an upstream that checks call sick, each with what the last met.
func (l *life) illOf(upstream string) (all []string) {
	e := l.edition.Load()
	if e == nil {
		return nil
	}
	if n := slices.Index(e.numbers.upstreams.names, upstream); n >= 0 {
		for _, met := range l.checks.ill(n) {
			if slices.Contains(e.numbers.endpoints[upstream].names, met.Endpoint) { // it is there yet
				all = append(all, met.Endpoint+", "+metText(met))
			}
		}
	}
	return all
}

// count counts what a request met, by upstream.
func (k keeps) count(c *proxy.Course) {
	for i := range c.Legs {
		l := &c.Legs[i]
		u, ok := k.metrics.Upstream(l.Upstream)
		if !ok {
			continue // it was taken out of the configuration meanwhile
		}
		for n := range l.Tries {
			if t := &l.Tries[n]; t.Failed() {
				u.Failed(string(t.Symptom))
			}
		}
		up, down, first := c.Up.Load(), c.Down.Load(), c.First
		if l.Part != "" {
			up, down = 0, l.Down
			if l.Missing != "" {
				first = 0
			}
		}
		u.Moved(up, down)
		if outcome := l.Outcome(); outcome != "" {
			u.Ended(outcome, first)
		}
	}
}

// nameCounted has the upstreams and the quotas of an edition counted, and no others.
func (l *life) nameCounted(e *edition) {
	l.metrics.NameQuotas(e.counted.quotas)
	l.metrics.Name(e.counted.upstreams)
}

// showUpstreams has each upstream of the configuration shown as it is.
func (l *life) showUpstreams() {
	l.metrics.Standings(func(name string) (event.UpstreamStats, bool) {
		for n, of := range l.edition.Load().numbers.upstreams.names {
			if of == name && l.ear.hears() {
				return l.desk.Asks.Look(uint16(n))
			}
		}
		return event.UpstreamStats{}, false
	})
}

// watchUpstreams tells the operator when a breaker has opened or closed, by the bits of the
// upstreams' numbers.
func (l *life) watchUpstreams(broken uint64) {
	changed := broken ^ l.broken
	l.broken = broken
	if changed == 0 {
		return
	}
	for n, name := range l.edition.Load().numbers.upstreams.names {
		switch bit := uint64(1) << n; {
		case changed&bit == 0 || name == "":
		case broken&bit != 0:
			l.log.Warn("circuit breaker opened: only trial requests are sent to the upstream", "upstream", name)
		default:
			l.log.Info("circuit breaker closed", "upstream", name)
		}
	}
}
