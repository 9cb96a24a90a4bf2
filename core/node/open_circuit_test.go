package node_test

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// TestOpenCircuitDegrades: while a circuit is open the node is degraded, and serves as before.
func TestOpenCircuitDegrades(t *testing.T) {
	l := limits(8, 4)
	c := config(l)
	r := upstream.Default(1)
	r.MaxAttempts, r.BreakerMinAttempts, r.EjectAfter, r.HalfOpenSuccesses = 1, 2, 1000, 1
	c.MaxUpstreamCalls, c.Upstreams = 4, []upstream.Rules{upstream.Default(1), r}
	n := node.New(c, state.New(l, 1), 0, types.NewRand(1))
	now, out := types.Now{Wall: 1_700_000_000_000, Synced: true}, &event.Effects{}
	step := func(in event.Event) event.UpstreamReply {
		out.Reset()
		n.Step(now, in, out)
		if len(out.UpstreamReplies) > 0 {
			return out.UpstreamReplies[0]
		}
		return event.UpstreamReply{}
	}
	tried := func(e event.AttemptOutcome) {
		picked := step(&event.UpstreamQuery{Kind: event.QueryPick, Pick: event.Pick{Upstream: 1}}).Picked
		if picked.NoEndpoint == event.EndpointPicked {
			step(&event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: picked.Ticket, Outcome: e}})
		}
		if e == event.AttemptAnswered {
			step(&event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: picked.Ticket, Outcome: event.AttemptCompleted}})
		}
	}
	isDegraded := func() bool {
		step(event.Tick{})
		var s event.Status
		n.Status(&s)
		return s.DegradedBy.Has(types.CircuitOpen)
	}
	if isDegraded() {
		t.Fatal("before anything failed")
	}
	for range 4 {
		tried(event.AttemptFailed)
	}
	if !isDegraded() {
		t.Fatal("it is open, and not told of")
	}
	for range 4 { // it rests, looks, and closes
		now.Mono = now.Mono.Add(time.Minute)
		tried(event.AttemptAnswered)
	}
	if isDegraded() {
		t.Fatal("it is closed, and told of")
	}
}
