package trace_test

import (
	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/types"
)

// unlived are runs that Drain does not permit.
func unlived() map[string]illegal {
	began := func(v *trace.View) bool { return v.Phase >= types.LameDuck }
	return map[string]illegal{
		"ready before its needs": {"ReadyOnce", func(_, v *trace.View, _ *trace.Step) bool { v.Ready = v.Phase == types.Starting; return v.Ready }},
		"reads before its needs": {"ReadyOnce", func(_, v *trace.View, _ *trace.Step) bool { v.Reads = v.Phase == types.Starting; return v.Reads }},
		"ready while it ends":    {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool { v.Ready = began(v) && v.Reads; return v.Ready }},
		"ready with a stalled journal": {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool {
			v.Ready = v.Reads && v.DegradedBy.Has(types.JournalStalled)
			return v.Ready
		}},
		"not ready, for no reason": {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool { ok := v.Ready; v.Ready = false; return ok }},
		"no reads for a stalled one": {"ReadsGoOn", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.Reads && v.DegradedBy.Has(types.JournalStalled)
			v.Reads = v.Reads && !ok
			return ok
		}},
		"reads while it drains": {"ReadsGoOn", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Reads && v.Phase == types.Draining
			v.Reads = v.Reads || ok
			return ok
		}},
		"an admitted request is rejected by a drain": {"AdmittedFinish", func(b, _ *trace.View, s *trace.Step) bool {
			in, ok := s.In.(*event.Request)
			if ok = ok && b.Phase == types.Draining && len(s.Frame) > 0 && !b.DegradedBy.Has(types.IndexBehind); ok {
				s.Replies = []event.Reply{{Ticket: in.Ticket, Problem: event.Unavailable}}
			}
			return ok
		}},
		"no writes of admitted requests while it drains": {"AdmittedFinish", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.Phase == types.Draining && v.AdmittedWrites
			v.AdmittedWrites = v.AdmittedWrites && !ok
			return ok
		}},
		"a phase of another name": {"Need", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.Phase == types.Ready
			if ok {
				v.Phase = types.Degraded
			}
			return ok
		}},
		"ready again after a lame duck": {"PhasesAdvance", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == types.LameDuck
			if ok {
				v.Phase = types.Ready
			}
			return ok
		}},
		"a drain without a signal": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == types.Ready
			if ok {
				v.Phase = types.LameDuck
			}
			return ok
		}},
		"a drain after its deadline": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == types.Draining && v.Phase > types.Draining
			if ok {
				v.Phase = types.Draining
			}
			return ok
		}},
		"a lame duck for ever": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == types.LameDuck && v.Phase > b.Phase
			if ok {
				v.Phase = b.Phase
			}
			return ok
		}},
		"stopped with work in": {"InTime", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == types.Draining && v.Durable < v.LSN
			if ok {
				v.Phase = types.Stopped
			}
			return ok
		}},
		"a child is started while it ends": {"NoRestart", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == types.Draining
			if ok {
				s.Childs = append(s.Childs, event.ServiceCommand{Service: types.ServiceIndex, Verb: event.StartService})
			}
			return ok
		}},
		"the listener is not stopped": {"Close", func(b, v *trace.View, s *trace.Step) bool {
			ok := b.Phase == types.LameDuck && v.Phase >= types.Draining && len(s.Childs) > 0
			if ok {
				s.Childs = nil
			}
			return ok
		}},
		"a dependency without its service": {"Need", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && v.WaitingFor.Has(types.DependencyAdmin)
			if ok {
				v.WaitingFor = v.WaitingFor.Without(types.DependencyAdmin)
			}
			return ok
		}},
		"a listener that is down": {"Need", func(_, v *trace.View, s *trace.Step) bool {
			d, ok := s.In.(event.ServiceDown)
			ok = ok && d.Service == types.ServiceHTTP
			if ok {
				v.WaitingFor = v.WaitingFor.Without(types.DependencyHTTP)
			}
			return ok
		}},
		"an ailment of nowhere": {"Need", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && !v.DegradedBy.Has(types.DiskFull)
			if ok {
				v.DegradedBy = v.DegradedBy.With(types.DiskFull)
			}
			return ok
		}},
		"a failed journal is well": {"Fail", func(b, v *trace.View, s *trace.Step) bool {
			ok := b.DegradedBy.Has(types.JournalFailed) && isA[event.Tick](s)
			if ok {
				v.DegradedBy = v.DegradedBy.Without(types.JournalFailed)
			}
			return ok
		}},
		"still stalled": {"Sync", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Durable](s)
			if ok {
				v.DegradedBy = v.DegradedBy.With(types.JournalStalled)
			}
			return ok
		}},
		"durable without a word": {"Sync", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && v.Durable < v.LSN
			if ok {
				v.Durable++
			}
			return ok
		}},
		"folded without a word": {"Sync", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && v.Applied < v.Durable
			if ok {
				v.Applied++
			}
			return ok
		}},
		"a sync that is not noted": {"Sync", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Durable](s) && v.Durable > b.Durable
			v.Durable = b.Durable
			return ok
		}},
		"durable, and never written": {"Ordered", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Durable](s)
			if ok {
				v.Durable = v.LSN + 1
				s.In = event.Durable{Upto: v.Durable}
			}
			return ok
		}},
		"folded, and not durable": {"Ordered", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Applied](s) && v.Durable < v.LSN
			if ok {
				v.Applied = v.Durable + 1
				s.In = event.Applied{Upto: v.Applied}
			}
			return ok
		}},
		"a frame of no bytes": {"Emit", func(b, v *trace.View, s *trace.Step) bool { ok := v.LSN > b.LSN; s.Frame = nil; return ok }},
		"two frames in one": {"Emit", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.LSN > b.LSN
			if ok {
				v.LSN++
			}
			return ok
		}},
		"a frame of a word": {"Emit", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > b.LSN
			if ok {
				s.In = event.Indexed{}
			}
			return ok
		}},
		"a frame while it stalls": {"WritesNeedJournal", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > b.LSN
			if ok {
				b.DegradedBy, v.DegradedBy = b.DegradedBy.With(types.JournalStalled), v.DegradedBy.With(types.JournalStalled)
			}
			return ok
		}},
		"a frame while it drains": {"NothingNew", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > b.LSN
			if ok {
				b.Phase = types.Draining
			}
			return ok
		}},
		"a reply without a request": {"Tell", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool { r.Ticket += 1000; return true })
		}},
		"a reply twice": {"Tell", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Replies) == 1 && !isA[*event.Request](s)
			if ok {
				s.Replies = append(s.Replies, s.Replies[0])
			}
			return ok
		}},
		"a reply before its frame": {"TellsFolded", func(_, v *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool { r.After = v.Applied + 1; return true })
		}},
		"a reply that is lost": {"AllHear", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Replies) == 1 && !isA[*event.Request](s) && !isA[*event.FindOutcome](s)
			if ok {
				s.Replies = nil
			}
			return ok
		}},
		"held, and counted twice": {"AllHear", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.HeldReplies > 0 && v.HeldReplies < 4
			if ok {
				v.HeldReplies++
			}
			return ok
		}},
		"held after its frame": {"Fold", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Applied](s) && len(s.Replies) > 0 && s.Replies[0].Problem == event.None && !s.Replies[0].Replayed
			if ok {
				s.Replies, v.HeldReplies = s.Replies[1:], v.HeldReplies+1
			}
			return ok
		}},
		"waits for what is lost": {"NobodyWaitsForLost", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.FlushFailed](s) && len(s.Replies) > 0 && v.HeldReplies == 0
			if ok {
				v.HeldReplies, s.Replies = uint32(len(s.Replies)), nil
			}
			return ok
		}},
		"waits through an abort": {"AbortIsNow", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == types.Aborting && b.Phase < types.Aborting && v.AbortedReplies > b.AbortedReplies && len(s.Replies) > 0
			if ok {
				v.HeldReplies, s.Replies = uint32(len(s.Replies)), nil
			}
			return ok
		}},
	}
}
