package loop_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/types"
)

// An oracle answers each question with what it was asked.
type oracle struct{ doorman }

func (o *oracle) Step(now types.Now, in event.Event, out *event.Effects) {
	ask, ok := in.(*event.UpstreamQuery)
	if !ok {
		o.doorman.Step(now, in, out)
		return
	}
	told := event.UpstreamReply{Slot: ask.Slot}
	switch ask.Kind {
	case event.QueryPick:
		told.Picked.Ticket = types.Ticket(ask.Pick.Upstream)
	case event.QueryRetry:
		told.Picked.Ticket = ask.Retry.Ticket + 1
	case event.QueryReport:
		told.Retry.Retry = ask.Result.BodyConsumed
	case event.QueryStats:
		told.Stats.InFlight = uint32(ask.Upstream)
	}
	out.UpstreamReplies = append(out.UpstreamReplies, told)
}

// TestAsks: many ask at once, more than there are slots; each is told what it asked for,
// and whoever asks when the node has ended is told that too.
func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{doorman{out: map[types.Ticket]bool{}}}
		k := loop.NewDesk(loop.Door{1, 1, 1}, loop.Door{}, 3)
		l := loop.New(o, new(diary), new(diary), k, loop.Ports{Child: func(event.ServiceCommand) {}}, 8)
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for n := range 50 {
					up := uint16(100*i + n)
					if p := k.Asks.Pick(event.Pick{Upstream: up}); p.Ticket != types.Ticket(up) {
						t.Errorf("picked %v for %d", p.Ticket, up)
					}
					if p := k.Asks.Retry(event.Retry{Ticket: types.Ticket(up)}); p.Ticket != types.Ticket(up)+1 {
						t.Errorf("retried %v for %d", p.Ticket, up)
					}
					if s, ok := k.Asks.Look(up); !ok || s.InFlight != uint32(up) {
						t.Errorf("%+v, %v of %d", s, ok, up)
					}
					if on := k.Asks.Failed(event.AttemptResult{BodyConsumed: n%2 == 0}); on.Retry != (n%2 == 0) {
						t.Errorf("%+v", on)
					}
				}
			})
		}
		wg.Wait()
		for range 10 { // more than there are slots; nobody waits for what is said
			k.Asks.Tell(event.AttemptResult{})
		}
		synctest.Wait()
		if depth, limit := k.Asks.Asking(); depth != 0 || limit != 3 {
			t.Errorf("%d of %d ask", depth, limit)
		}
		l.Say(t.Context(), event.Signal{Kind: event.Drain})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for range 5 { // more than there are slots
			if p := k.Asks.Pick(event.Pick{}); p.NoEndpoint == event.EndpointPicked {
				t.Error("goes through a node that has ended")
			}
			k.Asks.Tell(event.AttemptResult{})
			if _, ok := k.Asks.Look(0); ok {
				t.Error("looks like something in a node that has ended")
			}
		}
	})
}
