package event_test

import (
	"testing"

	"macronode/ci/flip"
	"macronode/core/event"
	"macronode/core/words"
)

func TestHashForgetsNothing(t *testing.T) {
	r := event.Reply{Ticket: words.NewTicket(3, 4), After: 5, Place: words.Place{LSN: 6, Index: 7}, Problem: event.Busy, Nonce: 8, Item: 9}
	flip.Every(t, &r, func() words.Hash64 { return r.Mix(1) })
	s := event.Seen{Asked: words.Asked{1}, ID: words.TxID{2}, At: 3}
	flip.Every(t, &s, func() words.Hash64 { return s.Mix(1) })
}

// TestResetKeepsMemory: a turn pays once for what it says.
func TestResetKeepsMemory(t *testing.T) {
	var e event.Effects
	turn := func() {
		e.Reset()
		e.Arena = append(e.Arena, "of the frame before|body"...)
		e.Frames = append(e.Frames, event.Frame{LSN: 1, Off: 20, Len: 4})
		e.Replies = append(e.Replies, event.Reply{})
		e.Childs = append(e.Childs, event.ChildOp{})
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := string(e.Body(e.Frames[0])); got != "body" {
		t.Errorf("the body is %q", got)
	}
	e.Reset()
	if len(e.Arena)+len(e.Frames)+len(e.Replies)+len(e.Childs) != 0 {
		t.Errorf("left after a reset: %+v", e)
	}
}
