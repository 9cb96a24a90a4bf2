package trace_test

import (
	"maps"
	"slices"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/types"
)

// queue tracks held replies, and the frame of the last cancelled one.
type queue struct {
	tickets map[types.Ticket]bool
	left    types.LSN
}

// note handles a step; true if a request that waits for a later frame is cancelled.
func (q *queue) note(v *trace.View, s *trace.Step) bool {
	if r, ok := s.In.(*event.Request); ok && v.LSN > v.Applied {
		q.tickets[r.Ticket] = true
	}
	for _, r := range s.Replies {
		delete(q.tickets, r.Ticket)
	}
	c, ok := s.In.(event.Cancel)
	if ok = ok && q.tickets[c.Ticket]; ok {
		q.left = v.LSN
		delete(q.tickets, c.Ticket)
	}
	return ok
}

// busy reports whether the step's only reply is busy.
func busy(s *trace.Step) bool { return len(s.Replies) == 1 && s.Replies[0].Problem == event.Busy }

// unqueued are runs that Queue does not permit.
func unqueued(waits *queue) map[string]illegal {
	return map[string]illegal{
		"a place too many": {"Bounded", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.HeldReplies == 4 && busy(s)
			if ok {
				v.HeldReplies, s.Replies = 5, nil
			}
			return ok
		}},
		"a share too much": {"ShareKept", func(_, v *trace.View, s *trace.Step) bool {
			_, request := s.In.(*event.Request)
			ok := request && v.HeldReplies == 3 && busy(s)
			if ok {
				v.HeldReplies, s.Replies = 4, nil
			}
			return ok
		}},
		"refused while there is room": {"RefusedRightly", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.HeldReplies == 0 && isA[*event.FindOutcome](s) && len(s.Replies) == 1
			if ok {
				s.Replies[0] = event.Reply{Ticket: s.Replies[0].Ticket, Problem: event.Busy}
			}
			return ok
		}},
		"a reply out of order": {"InOrder", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Replies) == 2 && isA[event.Applied](s)
			if ok {
				s.Replies[0], s.Replies[1] = s.Replies[1], s.Replies[0]
			}
			return ok
		}},
		"a cancelled reply is not counted": {"CrowdExact", func(_, v *trace.View, s *trace.Step) bool {
			ok := waits.note(v, s)
			if ok {
				v.HeldReplies--
			}
			return ok
		}},
		"a reply out of turn, while another is cancelled": {"RightReply", func(b, v *trace.View, s *trace.Step) bool {
			waits.note(v, s)
			ok := isA[event.Applied](s) && int(b.HeldReplies-v.HeldReplies) > len(s.Replies) && len(waits.tickets) > 0
			if ok {
				s.Replies = append(s.Replies, event.Reply{Ticket: slices.Max(slices.Collect(maps.Keys(waits.tickets)))})
			}
			return ok
		}},
		"waits for a frame of others, and for longer": {"Served", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Applied](s) && b.HeldReplies == v.HeldReplies+1 && len(s.Replies) == 1 && s.Replies[0].Problem == event.NonceAhead
			if ok {
				s.Replies, v.HeldReplies = nil, b.HeldReplies
			}
			return ok
		}},
		"lost beside a cancelled one": {"NoneLost", func(_, v *trace.View, s *trace.Step) bool {
			waits.note(v, s)
			ok := isA[event.Applied](s) && v.Applied < waits.left && len(s.Replies) == 1 && s.Replies[0].Problem == event.NonceAhead
			if ok {
				s.Replies = nil
			}
			return ok
		}},
	}
}
