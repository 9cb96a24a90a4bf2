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

// A fickle index comes on by some frames at each look, or fails and says anything. Whether it
// failed stands in the request, as Atomic: the loop may have one before it whose caller left,
// while the next one is looked up.
type fickle struct {
	dice  *rand.Rand
	mark  types.LSN
	fails int // in a hundred
}

func (f *fickle) Look(in event.Event) error {
	f.mark += types.LSN(f.dice.IntN(3))
	r := in.(*event.Request)
	if r.Atomic = f.dice.IntN(100) < f.fails; r.Atomic {
		r.IndexedTo, r.Prior.At = 1000, 1000
		return errors.New("lost")
	}
	r.IndexedTo, r.Prior = f.mark, command.PriorOutcome{}
	return nil
}

// A strict node has forgotten up to some frame, and wants an index that had that.
type strict struct {
	diary
	t      *testing.T
	forgot types.LSN
}

func (s *strict) Step(now types.Now, in event.Event, out *event.Effects) {
	r, ok := in.(*event.Request)
	if !ok {
		s.diary.Step(now, in, out)
		return
	}
	if r.Atomic && (r.IndexedTo > 0 || r.Prior != command.PriorOutcome{}) {
		s.t.Errorf("the node hears %v of an index that failed", r.IndexedTo)
	}
	why := event.NotFound // decided
	if r.IndexedTo < s.forgot {
		why = event.StaleIndexRead
	}
	out.Replies = append(out.Replies, event.Reply{Ticket: r.Ticket, Problem: why})
}

// TestNobodyIsSentAway: whatever the index says and however often it fails, nobody outside
// is told to look again, and what it did not say is not heard.
func TestNobodyIsSentAway(t *testing.T) {
	told := map[event.Problem]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			index := &fickle{dice: dice, fails: []int{0, 10, 60}[seed%3]}
			s := &strict{t: t, forgot: types.LSN(dice.IntN(12))}
			k := loop.NewDesk(loop.Door{1, 1, 1}, loop.Door{}, 1)
			k.Index = index
			l := loop.New(s, s, s, k, loop.Ports{Fold: s.fold, Child: func(event.ServiceCommand) {}}, 8)
			done := make(chan error, 1)
			go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
			for range 6 {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+dice.IntN(400))*time.Millisecond)
				r, ok := k.Submit(ctx, types.ClassAuthed, &event.Request{})
				leave()
				if told[r.Problem]++; !ok || r.Problem != event.NotFound && r.Problem != event.Unavailable && r.Problem != event.OutcomeUnknown {
					t.Errorf("seed %d: told %q", seed, r.Problem.Code())
				}
			}
			l.Say(t.Context(), event.Signal{Kind: event.Drain})
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	if told[event.NotFound] < 50 || told[event.Unavailable] < 20 {
		t.Errorf("too little was tried: %v", told)
	}
}
