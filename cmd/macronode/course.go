package main

import (
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
		Halt: l.Halt.String(), Count: l.Count}
	if l.Stop != event.Through {
		to.Stop = l.Stop.String()
	}
	for i := range l.Tries {
		t := &l.Tries[i]
		to.Tries = append(to.Tries, decisions.Try{Endpoint: t.Endpoint, Out: t.Out, HTTP2: t.HTTP2, Outcome: t.Ending.String(), Symptom: string(t.Symptom),
			Status: t.Status, TookUS: t.Took.Microseconds()})
	}
	return to
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
			if s := l.Tries[n].Symptom; s != proxy.Fine {
				u.Failed(string(s))
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

// nameUpstreams has those of an edition counted, and no others.
func (l *life) nameUpstreams(e *edition) {
	var names []string
	for i := range e.config.Upstreams {
		names = append(names, e.config.Upstreams[i].Name)
	}
	l.metrics.Name(names)
}

// showUpstreams has each upstream of the configuration shown as it is.
func (l *life) showUpstreams() {
	l.metrics.Standings(func(name string) (event.Standing, bool) {
		for n, of := range l.edition.Load().numbers.upstreams.names {
			if of == name && l.ear.hears() {
				return l.desk.Asks.Look(uint16(n))
			}
		}
		return event.Standing{}, false
	})
}

// watchChecks looks at an upstream behind a check of it, and tells the operator when health
// checks call endpoints of it sick that they did not before, or do not any more.
func (l *life) watchChecks(upstream uint16) {
	if names := l.edition.Load().numbers.upstreams.names; l.ear.hears() && int(upstream) < len(names) {
		if is, ok := l.desk.Asks.Look(upstream); ok {
			l.tellChecks(upstream, names[upstream], &is)
		}
	}
}

func (l *life) tellChecks(upstream uint16, name string, is *event.Standing) {
	sick := uint32(is.Which)
	was := l.sick[upstream].Swap(sick)
	if was&^sick != 0 {
		l.log.Info("health checks do not call some endpoints of an upstream sick any more", "upstream", name, "sick", is.Sick, "well", is.Well)
	}
	if sick&^was != 0 {
		l.log.Warn("health checks call some endpoints of an upstream sick: nobody is sent there", "upstream", name, "sick", is.Sick, "well", is.Well)
	}
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
			l.log.Warn("the breaker of an upstream has opened: nobody is sent there but to see how it is", "upstream", name)
		default:
			l.log.Info("the breaker of an upstream has closed", "upstream", name)
		}
	}
}
