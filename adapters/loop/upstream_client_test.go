package loop_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/types"
)

// echoNode replies to each query with a function of the query.
type echoNode struct{ admitNode }

func (o *echoNode) Step(now types.Now, in event.Event, out *event.Effects) {
	ask, ok := in.(*event.UpstreamQuery)
	if !ok {
		o.admitNode.Step(now, in, out)
		return
	}
	reply := event.UpstreamReply{Slot: ask.Slot}
	switch ask.Kind {
	case event.QueryPick:
		reply.Picked.Ticket = types.Ticket(ask.Pick.Upstream)
	case event.QueryRetry:
		reply.Picked.Ticket = ask.Retry.Ticket + 1
	case event.QueryReport:
		reply.Retry.Retry = ask.Result.BodyConsumed
	case event.QueryStats:
		reply.Stats.InFlight = uint32(ask.Upstream)
	}
	out.UpstreamReplies = append(out.UpstreamReplies, reply)
}

// TestEachQueryGetsItsReply: concurrent queries, more than there are slots, get their own
// replies; queries after the end of the node return false.
func TestEachQueryGetsItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &echoNode{admitNode{out: map[types.Ticket]bool{}}}
		k := loop.NewDispatcher(loop.ClassLimits{1, 1, 1}, loop.ClassLimits{}, 3)
		l := loop.New(o, new(recorder), new(recorder), k, loop.Ports{ServiceCommand: func(event.ServiceCommand) {}}, 8)
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for n := range 50 {
					up := uint16(100*i + n)
					if p := k.Upstreams.Pick(event.Pick{Upstream: up}); p.Ticket != types.Ticket(up) {
						t.Errorf("picked %v for %d", p.Ticket, up)
					}
					if p := k.Upstreams.Retry(event.Retry{Ticket: types.Ticket(up)}); p.Ticket != types.Ticket(up)+1 {
						t.Errorf("retried %v for %d", p.Ticket, up)
					}
					if s, ok := k.Upstreams.Stats(up); !ok || s.InFlight != uint32(up) {
						t.Errorf("%+v, %v of %d", s, ok, up)
					}
					if on := k.Upstreams.ReportFailure(event.AttemptResult{BodyConsumed: n%2 == 0}); on.Retry != (n%2 == 0) {
						t.Errorf("%+v", on)
					}
				}
			})
		}
		wg.Wait()
		for range 10 { // more than there are slots; no reply is awaited
			k.Upstreams.Report(event.AttemptResult{})
		}
		synctest.Wait()
		if depth, limit := k.Upstreams.InFlight(); depth != 0 || limit != 3 {
			t.Errorf("%d of %d ask", depth, limit)
		}
		l.Send(t.Context(), event.Signal{Kind: event.Drain})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for range 5 { // more than there are slots
			if p := k.Upstreams.Pick(event.Pick{}); p.NoEndpoint == event.EndpointPicked {
				t.Error("goes through a node that has ended")
			}
			k.Upstreams.Report(event.AttemptResult{})
			if _, ok := k.Upstreams.Stats(0); ok {
				t.Error("looks like something in a node that has ended")
			}
		}
	})
}
