package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/types"
)

// shelf is an index that comes on by one frame each time it is asked.
type shelf struct {
	mark  types.LSN
	asked int
	wrong error
}

func (s *shelf) Look(in event.Event) error {
	s.asked++
	s.mark++
	switch in := in.(type) {
	case *event.Request:
		in.IndexedTo = s.mark
	case *event.FindOutcome:
		in.IndexedTo = s.mark
	}
	return s.wrong
}

// picky is a node that sends back whoever asked the index before it had five frames.
type picky struct{ diary }

func (p *picky) Step(now types.Now, in event.Event, out *event.Effects) {
	switch in := in.(type) {
	case *event.Request:
		out.Replies = append(out.Replies, p.judge(in.Ticket, in.IndexedTo))
	case *event.FindOutcome:
		out.Replies = append(out.Replies, p.judge(in.Ticket, in.IndexedTo))
	default:
		p.diary.Step(now, in, out)
	}
}

func (p *picky) judge(t types.Ticket, upto types.LSN) event.Reply {
	if upto < 5 {
		return event.Reply{Ticket: t, Problem: event.StaleIndexRead}
	}
	return event.Reply{Ticket: t, Problem: event.NotFound}
}

// TestLooksAgain: who is sent back asks the index again, as long as it may wait; nobody
// outside is ever told so. An index that fails decides nothing.
func TestLooksAgain(t *testing.T) {
	for what, c := range map[string]struct {
		index *shelf
		wait  time.Duration
		asked int
		want  event.Problem
	}{
		"in the end":                            {&shelf{}, time.Minute, 5, event.NotFound},
		"at once":                               {&shelf{mark: 4}, time.Minute, 1, event.NotFound},
		"an index that fails":                   {&shelf{wrong: errors.New("lost")}, time.Minute, 1, event.Unavailable},
		"an index that fails, and knows better": {&shelf{mark: 9, wrong: errors.New("lost")}, time.Minute, 1, event.Unavailable},
		"a caller in a hurry":                   {&shelf{}, 2 * time.Millisecond, 2, event.Unavailable},
	} {
		for _, find := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p, index := &picky{}, *c.index
				k := loop.NewDesk(loop.Door{1, 1, 1}, loop.Door{}, 1)
				again := 0
				k.Index, k.Again = &index, func() { again++ }
				l := loop.New(p, p, p, k, loop.Ports{Fold: p.fold, Child: func(event.ServiceCommand) {}}, 8)
				done := make(chan error, 1)
				go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
				ctx, cancel := context.WithTimeout(t.Context(), c.wait)
				defer cancel()
				var r event.Reply
				var ok bool
				if find {
					r, ok = k.Find(ctx, types.ClassAuthed, &event.FindOutcome{})
				} else {
					r, ok = k.Submit(ctx, types.ClassAuthed, &event.Request{})
				}
				if !ok || r.Problem != c.want || index.asked != c.asked {
					t.Errorf("%s, find %v: %v after %d times, want %v after %d", what, find, r.Problem.Detail(), index.asked, c.want.Detail(), c.asked)
				}
				if back := c.asked; c.want == event.NotFound && again != back-1 {
					t.Errorf("%s, find %v: told of %d that were sent back, not %d", what, find, again, back-1)
				}
				l.Say(t.Context(), event.Signal{Kind: event.Drain})
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
