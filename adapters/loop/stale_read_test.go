package loop_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/loop"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// failingIndex is an index that advances by some frames at each lookup, or fails and returns anything. Whether it
// failed is passed in Atomic, because the loop may still have an earlier request whose caller left.
type failingIndex struct {
	dice  *rand.Rand
	mark  types.LSN
	fails int // percent of failures
}

func (f *failingIndex) Look(in event.Event) error {
	f.mark += types.LSN(f.dice.IntN(3))
	r := in.(*event.Request)
	if r.Atomic = f.dice.IntN(100) < f.fails; r.Atomic {
		r.IndexedTo, r.Prior.At = 1000, 1000
		return errors.New("lost")
	}
	r.IndexedTo, r.Prior = f.mark, command.PriorOutcome{}
	return nil
}

// An evictingNode has evicted keys up to some frame, and needs an index that had reached it.
type evictingNode struct {
	recorder
	t      *testing.T
	forgot types.LSN
}

func (s *evictingNode) Step(now types.Now, in event.Event, out *event.Effects) {
	r, ok := in.(*event.Request)
	if !ok {
		s.recorder.Step(now, in, out)
		return
	}
	if r.Atomic && (r.IndexedTo > 0 || r.Prior != command.PriorOutcome{}) {
		s.t.Errorf("the node hears %v of an index that failed", r.IndexedTo)
	}
	why := event.NotFound
	if r.IndexedTo < s.forgot {
		why = event.StaleIndexRead
	}
	out.Replies = append(out.Replies, event.Reply{Ticket: r.Ticket, Problem: why})
}

// TestStaleIndexReadIsRetried: whatever the index returns and however often it fails,
// StaleIndexRead never reaches a caller, and failed look-ups are ignored.
func TestStaleIndexReadIsRetried(t *testing.T) {
	replied := map[event.Problem]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			index := &failingIndex{dice: dice, fails: []int{0, 10, 60}[seed%3]}
			s := &evictingNode{t: t, forgot: types.LSN(dice.IntN(12))}
			k := loop.NewDispatcher(loop.ClassLimits{1, 1, 1}, loop.ClassLimits{}, 1)
			k.Index = index
			l := loop.New(s, s, s, k, loop.Ports{Fold: s.fold, ServiceCommand: func(event.ServiceCommand) {}}, 8)
			done := make(chan error, 1)
			go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
			for range 6 {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+dice.IntN(400))*time.Millisecond)
				r, ok := k.Submit(ctx, types.ClassAuthed, &event.Request{})
				leave()
				if replied[r.Problem]++; !ok || r.Problem != event.NotFound && r.Problem != event.Unavailable && r.Problem != event.OutcomeUnknown {
					t.Errorf("seed %d: got %q", seed, r.Problem.Code())
				}
			}
			l.Send(t.Context(), event.Signal{Kind: event.Drain})
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	if replied[event.NotFound] < 50 || replied[event.Unavailable] < 20 {
		t.Errorf("too little was tried: %v", replied)
	}
}
