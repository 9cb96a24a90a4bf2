package main

import (
	"fmt"

	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// went writes down what a request met behind the gate.
func (k keeps) went(to *decisions.Decision, c *proxy.Course) {
	to.Matched, to.FirstUS = fmt.Sprintf("routes[%d]", c.Route), c.First.Microseconds()
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
		to.Tries = append(to.Tries, decisions.Try{Endpoint: t.Endpoint, Out: t.Out, Outcome: t.Ending.String(), Symptom: string(t.Symptom),
			Status: t.Status, TookUS: t.Took.Microseconds()})
	}
	return to
}
