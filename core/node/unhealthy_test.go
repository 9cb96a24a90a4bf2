package node_test

import (
	"testing"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// TestNoEndpointIsReported: while health checks fail on every endpoint of an upstream, the node is degraded and
// names the upstream.
func TestNoEndpointIsReported(t *testing.T) {
	l := limits(8, 4)
	c := config(l)
	c.MaxUpstreamCalls, c.Upstreams = 4, []upstream.Rules{upstream.Default(1), upstream.Default(2)}
	n := node.New(c, state.New(l, 1), 0, types.NewRand(1))
	now, out := types.Now{Wall: 1_700_000_000_000, Synced: true}, &event.Effects{}
	step := func(in event.Event) {
		out.Reset()
		n.Step(now, in, out)
	}
	probe := func(endpoint uint8, well bool) {
		for range 3 {
			step(event.HealthChecked{Upstream: 1, Endpoint: endpoint, Healthy: well})
		}
	}
	want := func(what string, down uint64) {
		t.Helper()
		step(event.Tick{})
		var s event.Status
		if n.Status(&s); s.Down != down || s.DegradedBy.Has(types.NoEndpoint) != (down != 0) {
			t.Errorf("%s: down %b, ails of it %v, want %b", what, s.Down, s.DegradedBy.Has(types.NoEndpoint), down)
		}
	}
	want("at first", 0)
	probe(0, false)
	want("one of two", 0)
	probe(1, false)
	want("both", 2)
	probe(0, true)
	want("one is well again", 0)
}
