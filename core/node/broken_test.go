package node_test

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/upstream"
	"macronode/core/words"
)

// TestABreakerIsTold: a node is degraded while the breaker of an upstream is not closed, and
// does all that it did.
func TestABreakerIsTold(t *testing.T) {
	l := limits(8, 4)
	c := config(l)
	r := upstream.Default(1)
	r.Tries, r.Least, r.Eject, r.Trials = 1, 2, 1000, 1
	c.Calls, c.Beyond = 4, []upstream.Rules{upstream.Default(1), r}
	n := node.New(c, state.New(l, 1), 0, words.NewDice(1))
	now, out := words.Now{Wall: 1_700_000_000_000, Synced: true}, &event.Effects{}
	step := func(in event.Event) event.Told {
		out.Reset()
		n.Step(now, in, out)
		if len(out.Told) > 0 {
			return out.Told[0]
		}
		return event.Told{}
	}
	tried := func(e event.Ending) {
		picked := step(&event.Ask{What: event.AskPick, Pick: event.Pick{Upstream: 1}}).Picked
		if picked.Stop == event.Through {
			step(&event.Ask{What: event.AskTried, Tried: event.Tried{Ticket: picked.Ticket, Ending: e}})
		}
		if e == event.Answered {
			step(&event.Ask{What: event.AskTried, Tried: event.Tried{Ticket: picked.Ticket, Ending: event.Whole}})
		}
	}
	ails := func() bool {
		step(event.Tick{})
		var s event.Status
		n.Status(&s)
		return s.Ailing.Has(words.BreakerOpen)
	}
	if ails() {
		t.Fatal("before anything failed")
	}
	for range 4 {
		tried(event.Failed)
	}
	if !ails() {
		t.Fatal("it is open, and not told of")
	}
	for range 4 { // it rests, looks, and closes
		now.Mono = now.Mono.Plus(time.Minute)
		tried(event.Answered)
	}
	if ails() {
		t.Fatal("it is closed, and told of")
	}
}
