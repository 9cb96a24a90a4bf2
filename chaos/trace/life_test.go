package trace_test

import (
	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/words"
)

// unlived are lives that Drain has not.
func unlived() map[string]illegal {
	began := func(v *trace.View) bool { return v.Phase >= words.LameDuck }
	return map[string]illegal{
		"ready before its needs": {"ReadyOnce", func(_, v *trace.View, _ *trace.Step) bool { v.Ready = v.Phase == words.Starting; return v.Ready }},
		"reads before its needs": {"ReadyOnce", func(_, v *trace.View, _ *trace.Step) bool { v.Reads = v.Phase == words.Starting; return v.Reads }},
		"ready while it ends":    {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool { v.Ready = began(v) && v.Reads; return v.Ready }},
		"ready with a stalled journal": {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool {
			v.Ready = v.Reads && v.Ailing.Has(words.Stalled)
			return v.Ready
		}},
		"not ready, for no reason": {"ReadyHonest", func(_, v *trace.View, _ *trace.Step) bool { ok := v.Ready; v.Ready = false; return ok }},
		"no reads for a stalled one": {"ReadsGoOn", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.Reads && v.Ailing.Has(words.Stalled)
			v.Reads = v.Reads && !ok
			return ok
		}},
		"reads while it drains": {"ReadsGoOn", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Reads && v.Phase == words.Draining
			v.Reads = v.Reads || ok
			return ok
		}},
		"a phase of another name": {"Need", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.Phase == words.Ready
			if ok {
				v.Phase = words.Degraded
			}
			return ok
		}},
		"ready again after a lame duck": {"PhasesAdvance", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == words.LameDuck
			if ok {
				v.Phase = words.Ready
			}
			return ok
		}},
		"an end that nobody asked for": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == words.Ready
			if ok {
				v.Phase = words.LameDuck
			}
			return ok
		}},
		"a drain beyond its time": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == words.Draining && v.Phase > words.Draining
			if ok {
				v.Phase = words.Draining
			}
			return ok
		}},
		"a lame duck for ever": {"InTime", func(b, v *trace.View, _ *trace.Step) bool {
			ok := b.Phase == words.LameDuck && v.Phase > b.Phase
			if ok {
				v.Phase = b.Phase
			}
			return ok
		}},
		"stopped with work in": {"InTime", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == words.Draining && v.Durable < v.LSN
			if ok {
				v.Phase = words.Stopped
			}
			return ok
		}},
		"a child is started while it ends": {"NoRestart", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == words.Draining
			if ok {
				s.Childs = append(s.Childs, event.ChildOp{Child: words.ChildIndexer, What: event.StartChild})
			}
			return ok
		}},
		"the listener is not asked to end": {"Close", func(b, v *trace.View, s *trace.Step) bool {
			ok := b.Phase == words.LameDuck && v.Phase >= words.Draining && len(s.Childs) > 0
			if ok {
				s.Childs = nil
			}
			return ok
		}},
		"a need is met by nobody": {"Need", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && v.Unmet.Has(words.NeedAdmin)
			if ok {
				v.Unmet = v.Unmet.Without(words.NeedAdmin)
			}
			return ok
		}},
		"a listener that is down": {"Need", func(_, v *trace.View, s *trace.Step) bool {
			d, ok := s.In.(event.ChildDown)
			ok = ok && d.Child == words.ChildHTTP
			if ok {
				v.Unmet = v.Unmet.Without(words.NeedHTTP)
			}
			return ok
		}},
		"an ailment of nowhere": {"Need", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && !v.Ailing.Has(words.DiskFull)
			if ok {
				v.Ailing = v.Ailing.With(words.DiskFull)
			}
			return ok
		}},
		"a failed journal is well": {"Fail", func(b, v *trace.View, s *trace.Step) bool {
			ok := b.Ailing.Has(words.JournalFailed) && isA[event.Tick](s)
			if ok {
				v.Ailing = v.Ailing.Without(words.JournalFailed)
			}
			return ok
		}},
		"still stalled": {"Sync", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Durable](s)
			if ok {
				v.Ailing = v.Ailing.With(words.Stalled)
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
			ok := isA[event.Tick](s) && v.Folded < v.Durable
			if ok {
				v.Folded++
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
			ok := isA[event.Folded](s) && v.Durable < v.LSN
			if ok {
				v.Folded = v.Durable + 1
				s.In = event.Folded{Upto: v.Folded}
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
				b.Ailing, v.Ailing = b.Ailing.With(words.Stalled), v.Ailing.With(words.Stalled)
			}
			return ok
		}},
		"a frame while it drains": {"NothingNew", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > b.LSN
			if ok {
				b.Phase = words.Draining
			}
			return ok
		}},
		"a reply for nobody": {"Tell", func(_, _ *trace.View, s *trace.Step) bool {
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
			return tell(s, func(r *event.Reply) bool { r.After = v.Folded + 1; return true })
		}},
		"a reply that is lost": {"AllHear", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Replies) == 1 && !isA[*event.Request](s) && !isA[*event.Find](s)
			if ok {
				s.Replies = nil
			}
			return ok
		}},
		"held, and counted twice": {"AllHear", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Held > 0 && v.Held < 4
			if ok {
				v.Held++
			}
			return ok
		}},
		"held beyond its frame": {"Fold", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Folded](s) && len(s.Replies) > 0 && s.Replies[0].Problem == event.None && !s.Replies[0].Replayed
			if ok {
				s.Replies, v.Held = s.Replies[1:], v.Held+1
			}
			return ok
		}},
		"waits for what is lost": {"NobodyWaitsForLost", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Refused](s) && len(s.Replies) > 0 && v.Held == 0
			if ok {
				v.Held, s.Replies = uint32(len(s.Replies)), nil
			}
			return ok
		}},
		"waits through an abort": {"AbortIsNow", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Phase == words.Aborting && b.Phase < words.Aborting && v.GaveUp > b.GaveUp && len(s.Replies) > 0
			if ok {
				v.Held, s.Replies = uint32(len(s.Replies)), nil
			}
			return ok
		}},
	}
}
