package sim

import (
	"time"

	"macronode/core/event"
)

// failsForOne makes the requests of one caller to an upstream fail, while those of another are answered. Sometimes the
// circuit opened before, because the requests of both failed. The trace judges each step.
func (w *World) failsForOne() {
	of := uint16(w.c.Choose("trip/upstream", upstreams))
	one, other := event.CallerID(1+w.c.Choose("trip/tenant", 3)), event.CallerID(4)
	failures := int(gateway(config(), 0).Upstreams[of].BreakerMinAttempts)
	if w.c.Choose("trip/opened", 2) == 1 {
		for range failures {
			w.requests(of, one, event.AttemptFailed)
			w.requests(of, other, event.AttemptFailed)
		}
		w.pass(time.Duration(w.c.Choose("trip/wait", 8)) * 250 * time.Millisecond)
		if w.requests(of, one, event.AttemptFailed) == event.CircuitHalfOpen {
			was := w.requests(of, other, event.AttemptAnswered)
			w.note(was == event.CircuitHalfOpen, "upstream: open for one caller only")
		}
		return
	}
	if w.requests(of, other, event.AttemptAnswered) != event.CircuitClosed {
		return
	}
	for range failures {
		w.requests(of, one, event.AttemptFailed)
	}
	w.note(w.requests(of, other, event.AttemptAnswered) == event.CircuitClosed, "upstream: the requests of one caller fail, and the circuit stays closed")
}

// requests makes a request of a caller with one attempt, if there is an endpoint, and returns the circuit before it.
func (w *World) requests(of uint16, by event.CallerID, outcome event.AttemptOutcome) event.CircuitState {
	p := w.ask(event.UpstreamQuery{Pick: event.Pick{Upstream: of, Caller: by}}).Picked
	if p.NoEndpoint == event.EndpointPicked {
		for _, o := range []event.AttemptOutcome{outcome, event.AttemptCompleted} {
			w.ask(event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: p.Ticket, Outcome: o}})
		}
	}
	return p.Circuit
}
