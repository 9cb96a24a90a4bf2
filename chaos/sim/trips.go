package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// There are two upstreams with two endpoints each.
const (
	upstreams = 2
	endpoints = 2
)

// A mood is the behaviour of an endpoint.
type mood uint8

const (
	well  mood = iota
	dead       // no connection
	hangs      // no answer
	turns      // answers 503
	lies       // truncates its answers
	moods
)

// A trip is a visitor's request to an upstream.
type trip struct {
	is      leg
	ticket  types.Ticket
	of      int // index of the endpoint
	repeats bool
	tries   int
	rests   types.Instant // the next attempt is not before that
}

type leg uint8

const (
	home leg = iota
	trying
	resting
	answered
)

// ask sends an upstream query and returns the reply.
func (w *World) ask(in event.UpstreamQuery) event.UpstreamReply {
	w.step(&in)
	if len(w.out.UpstreamReplies) != 1 || w.out.UpstreamReplies[0].Slot != in.Slot {
		w.fail("ask", "%+v is told %+v", in, w.out.UpstreamReplies)
		return event.UpstreamReply{}
	}
	return w.out.UpstreamReplies[0]
}

// travels: visitors with proxy permits continue their calls.
func (w *World) travels() {
	for i := range w.visitors {
		if v := &w.visitors[i]; v.is == works && v.in.Facet == types.FacetProxy {
			w.travel(v)
		}
	}
}

func (w *World) travel(v *visitor) {
	t := &v.trip
	switch {
	case t.is == home && t.tries == 0:
		t.of, t.repeats = w.c.Choose("trip/upstream", upstreams)*endpoints, w.c.Choose("trip/repeats", 3) != 1
		w.picked(v, w.ask(event.UpstreamQuery{Slot: uint32(v.number), Pick: event.Pick{Upstream: uint16(t.of / endpoints), Idempotent: t.repeats, Callers: event.CallersOf(v.in.Class), Caller: event.CallerOf(v.in.Flow())}}))
	case t.is == resting && t.rests <= w.now.Mono:
		w.picked(v, w.ask(event.UpstreamQuery{Slot: uint32(v.number), Kind: event.QueryRetry, Retry: event.Retry{Ticket: t.ticket}}))
	case t.is == trying:
		w.tries(v)
	case t.is == answered:
		how := event.AttemptCompleted
		if w.moods[t.of] == lies {
			how = event.AttemptTruncated
		}
		w.tried(v, how)
		t.is = home
	}
}

// picked handles a picked endpoint, or none.
func (w *World) picked(v *visitor, answered event.UpstreamReply) {
	t, p := &v.trip, answered.Picked
	w.Saw["upstream: "+p.NoEndpoint.String()]++
	if t.tries++; p.NoEndpoint != event.EndpointPicked {
		open := 0
		for i := range w.visitors {
			if w.visitors[i].trip.is != home {
				open++
			}
		}
		if p.NoEndpoint == event.NoEndpointStale || p.NoEndpoint == event.NoEndpointOverflow && open < gateway(config(), 0).MaxUpstreamCalls {
			w.fail("trip-stopped", "%v, with %d calls open", p.NoEndpoint, open)
		}
		t.is = home
		return
	}
	if t.tries > 1 {
		w.Saw["upstream: tried again"]++
		if t.ticket != p.Ticket || !t.repeats || t.tries > int(gateway(config(), 0).Upstreams[0].MaxAttempts) {
			w.fail("sent-again", "try %d, repeats %v, as %v of %v", t.tries, t.repeats, p.Ticket, t.ticket)
		}
	}
	t.is, t.ticket, t.of = trying, p.Ticket, t.of/endpoints*endpoints+int(p.Endpoint)
}

// tries makes the result of an attempt, by the mood of the endpoint.
func (w *World) tries(v *visitor) {
	t := &v.trip
	how := [moods]event.AttemptOutcome{event.AttemptAnswered, event.AttemptUnsent, event.AttemptTimedOut, event.AttemptAnswered5xx, event.AttemptAnswered}[w.moods[t.of]]
	if w.moods[t.of] == hangs && w.c.Choose("trip/patient", 3) != 1 {
		return
	}
	on := w.tried(v, how)
	switch {
	case on.Retry:
		t.is, t.rests = resting, w.now.Mono.Add(on.Wait)
	case how == event.AttemptAnswered || how == event.AttemptAnswered5xx:
		t.is = answered
	default:
		t.is = home
	}
}

// tried reports an attempt, sometimes twice.
func (w *World) tried(v *visitor, how event.AttemptOutcome) event.RetryDecision {
	in := event.UpstreamQuery{Slot: uint32(v.number), Kind: event.QueryReport, Result: event.AttemptResult{Ticket: v.trip.ticket, Outcome: how, TimeLeft: time.Second}}
	on := w.ask(in).Retry
	w.Saw["upstream: "+how.String()]++
	if on.Retry && !v.trip.repeats {
		w.fail("sent-again", "%v, of what is not to be repeated", how)
	}
	if w.odd("trip/twice", 6, 1) {
		w.Saw["upstream: reported twice"]++
		if twice := w.ask(in).Retry; twice.Retry {
			w.fail("trip-twice", "%v is told twice, and is tried again", how)
		}
	}
	return on
}

// turnsMood changes the mood of an endpoint; a health check may notice.
func (w *World) turnsMood() {
	at := w.c.Choose("trip/endpoint", len(w.moods))
	if w.moods[at] = mood(w.c.Choose("trip/mood", int(moods))); w.moods[at] == well {
		w.Saw["upstream: came back"]++
	}
	if w.c.Choose("trip/both", 2) == 1 { // as in a network failure
		w.moods[at^1] = w.moods[at]
	}
	for range w.c.Choose("trip/checks", 4) {
		w.step(event.HealthChecked{Upstream: uint16(at / endpoints), Endpoint: uint8(at % endpoints), Healthy: w.moods[at] == well})
	}
}

// queriesUpstream queries the state of an upstream.
func (w *World) queriesUpstream() {
	of := w.c.Choose("trip/upstream", upstreams)
	s := w.ask(event.UpstreamQuery{Kind: event.QueryStats, Upstream: uint16(of)}).Stats
	out := uint32(0)
	for i := range w.visitors {
		if t := &w.visitors[i].trip; t.is != home && t.of/endpoints == of {
			out++
		}
	}
	if s.InFlight > out || s.Healthy+s.Ejected[event.Authenticated] > endpoints {
		w.fail("look", "%d trips are out, and %+v", out, s)
	}
	for by, c := range s.Circuits {
		w.Saw["upstream: looked at, "+c.State.String()]++
		w.note(c.State != event.CircuitClosed && s.Circuits[1-by].State == event.CircuitClosed, "upstream: open for "+event.Callers(by).String()+" callers only")
	}
}

// comesHome abandons a call.
func (w *World) comesHome(v *visitor) {
	if v.trip.is != home {
		w.tried(v, event.AttemptAbandoned)
		v.trip.is = home
	}
}

// calls checks that all calls are free.
func (w *World) calls() {
	var open []types.Ticket
	for n := range gateway(config(), 0).MaxUpstreamCalls {
		p := w.ask(event.UpstreamQuery{Pick: event.Pick{Upstream: uint16(n % upstreams)}}).Picked
		if p.NoEndpoint == event.NoEndpointOverflow {
			w.fail("call-lost", "nobody has a call, and %d is one too many", n+1)
		}
		if p.NoEndpoint == event.EndpointPicked {
			open = append(open, p.Ticket)
		}
	}
	for _, t := range open {
		w.ask(event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: t, Outcome: event.AttemptAbandoned}})
	}
}
