package loop_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/words"
)

// An oracle answers each question with what it was asked.
type oracle struct{ doorman }

func (o *oracle) Step(now words.Now, in event.Event, out *event.Effects) {
	ask, ok := in.(*event.Ask)
	if !ok {
		o.doorman.Step(now, in, out)
		return
	}
	told := event.Told{Slot: ask.Slot}
	switch ask.What {
	case event.AskPick:
		told.Picked.Ticket = words.Ticket(ask.Pick.Upstream)
	case event.AskRetry:
		told.Picked.Ticket = ask.Retry.Ticket + 1
	case event.AskTried:
		told.Onward.Again = ask.Tried.Spent
	case event.AskLook:
		told.Standing.Calls = uint32(ask.Look)
	}
	out.Told = append(out.Told, told)
}

// TestAsks: many ask at once, more than there are slots; each is told what it asked for,
// and whoever asks when the node has ended is told that too.
func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{doorman{out: map[words.Ticket]bool{}}}
		k := loop.NewDesk(loop.Door{1, 1, 1}, loop.Door{}, 3)
		l := loop.New(o, new(diary), new(diary), k, loop.Ports{Child: func(event.ChildOp) {}}, 8)
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context(), event.Boot{}) }()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for n := range 50 {
					up := uint16(100*i + n)
					if p := k.Asks.Pick(event.Pick{Upstream: up}); p.Ticket != words.Ticket(up) {
						t.Errorf("picked %v for %d", p.Ticket, up)
					}
					if p := k.Asks.Retry(event.Retry{Ticket: words.Ticket(up)}); p.Ticket != words.Ticket(up)+1 {
						t.Errorf("retried %v for %d", p.Ticket, up)
					}
					if s, ok := k.Asks.Look(up); !ok || s.Calls != uint32(up) {
						t.Errorf("%+v, %v of %d", s, ok, up)
					}
					if on := k.Asks.Failed(event.Tried{Spent: n%2 == 0}); on.Again != (n%2 == 0) {
						t.Errorf("%+v", on)
					}
				}
			})
		}
		wg.Wait()
		for range 10 { // more than there are slots; nobody waits for what is said
			k.Asks.Tell(event.Tried{})
		}
		synctest.Wait()
		if depth, limit := k.Asks.Asking(); depth != 0 || limit != 3 {
			t.Errorf("%d of %d ask", depth, limit)
		}
		l.Say(t.Context(), event.Signal{What: event.Drain})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for range 5 { // more than there are slots
			if p := k.Asks.Pick(event.Pick{}); p.Stop == event.Through {
				t.Error("goes through a node that has ended")
			}
			k.Asks.Tell(event.Tried{})
			if _, ok := k.Asks.Look(0); ok {
				t.Error("looks like something in a node that has ended")
			}
		}
	})
}
