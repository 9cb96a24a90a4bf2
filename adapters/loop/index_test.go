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

// advancingIndex is an index that advances by one frame at each lookup.
type advancingIndex struct {
	mark  types.LSN
	asked int
	wrong error
}

func (s *advancingIndex) Look(in event.Event) error {
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

// stalenessNode is a node that rejects index reads before frame 5.
type stalenessNode struct{ recorder }

func (p *stalenessNode) Step(now types.Now, in event.Event, out *event.Effects) {
	switch in := in.(type) {
	case *event.Request:
		out.Replies = append(out.Replies, p.reply(in.Ticket, in.IndexedTo))
	case *event.FindOutcome:
		out.Replies = append(out.Replies, p.reply(in.Ticket, in.IndexedTo))
	default:
		p.recorder.Step(now, in, out)
	}
}

func (p *stalenessNode) reply(t types.Ticket, upto types.LSN) event.Reply {
	if upto < 5 {
		return event.Reply{Ticket: t, Problem: event.StaleIndexRead}
	}
	return event.Reply{Ticket: t, Problem: event.NotFound}
}

// TestStaleReadRetriesUntilDeadline: a stale index read is repeated within the deadline of the
// request, and never reaches the caller. A failed look-up decides nothing.
func TestStaleReadRetriesUntilDeadline(t *testing.T) {
	for what, c := range map[string]struct {
		index *advancingIndex
		wait  time.Duration
		asked int
		want  event.Problem
	}{
		"in the end":                      {&advancingIndex{}, time.Minute, 5, event.NotFound},
		"at once":                         {&advancingIndex{mark: 4}, time.Minute, 1, event.NotFound},
		"an index that fails":             {&advancingIndex{wrong: errors.New("lost")}, time.Minute, 1, event.Unavailable},
		"a failing index with fresh data": {&advancingIndex{mark: 9, wrong: errors.New("lost")}, time.Minute, 1, event.Unavailable},
		"a caller in a hurry":             {&advancingIndex{}, 2 * time.Millisecond, 2, event.Unavailable},
	} {
		for _, find := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p, index := &stalenessNode{}, *c.index
				k := loop.NewDispatcher(loop.ClassLimits{1, 1, 1}, loop.ClassLimits{}, 1)
				again := 0
				k.Index, k.OnStaleRead = &index, func() { again++ }
				l := loop.New(p, p, p, k, loop.Ports{Fold: p.fold, ServiceCommand: func(event.ServiceCommand) {}}, 8)
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
					t.Errorf("%s, find %v: %d stale reads reported, not %d", what, find, again, back-1)
				}
				l.Send(t.Context(), event.Signal{Kind: event.Drain})
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
