package event_test

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

func TestHashForgetsNothing(t *testing.T) {
	r := event.Reply{Ticket: types.NewTicket(3, 4), After: 5, Position: types.Position{LSN: 6, Index: 7}, Problem: event.Busy, Nonce: 8, Item: 9}
	hashcoverage.Every(t, &r, func() types.Hash64 { return r.HashInto(1) })
	s := command.PriorOutcome{Hash: types.RequestHash{1}, ID: types.TxID{2}, At: 3}
	hashcoverage.Every(t, &s, func() types.Hash64 { return s.HashInto(1) })
}

// TestResetKeepsMemory: a turn allocates once.
func TestResetKeepsMemory(t *testing.T) {
	var e event.Effects
	turn := func() {
		e.Reset()
		e.Arena = append(e.Arena, "of the frame before|body"...)
		e.Frames = append(e.Frames, event.Frame{LSN: 1, Off: 20, Len: 4})
		e.Replies = append(e.Replies, event.Reply{})
		e.ServiceCommands = append(e.ServiceCommands, event.ServiceCommand{})
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := string(e.Body(e.Frames[0])); got != "body" {
		t.Errorf("the body is %q", got)
	}
	e.Reset()
	if len(e.Arena)+len(e.Frames)+len(e.Replies)+len(e.ServiceCommands) != 0 {
		t.Errorf("left after a reset: %+v", e)
	}
}
