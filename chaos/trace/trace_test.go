package trace_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// TestLegal: every step of a node, well or not, to its end or not, is one of the
// specifications; and what makes that hard was seen.
func TestLegal(t *testing.T) {
	saw, steps := map[string]int{}, 0
	for seed := range uint64(400) {
		g := rig{}
		if err := g.live(seed, 200, odds{faults: seed%4 != 0, ends: seed%2 == 0}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steps += g.steps
		for what, n := range g.saw {
			saw[what] += n
		}
	}
	t.Logf("%d steps, saw %v", steps, saw)
	for _, must := range []string{"told ", "told unknown", "told unavailable", "told busy", "told in_progress", "told not_found",
		"nonce", "replayed", "starting", "ready", "degraded", "lame duck", "draining", "aborting", "stopped"} {
		if saw[must] == 0 {
			t.Errorf("never saw %q", must)
		}
	}
}

// edit writes a frame again with one record changed; false: no record was.
func edit(s *trace.Step, change func(*record.Record) bool) bool {
	if len(s.Frame) == 0 {
		return false
	}
	h, rest, err := record.Open(s.Frame)
	if err != nil {
		return false
	}
	to, done := record.Begin(nil, h.LSN, h.At), false
	for range h.Count {
		var r record.Record
		if rest, err = record.Next(rest, &r); err != nil {
			return false
		}
		done = done || change(&r)
		to, _ = record.Add(to, 0, &r)
	}
	if done {
		s.Frame = to
	}
	return done
}

func isA[E event.Event](s *trace.Step) bool { _, ok := s.In.(E); return ok }

func tell(s *trace.Step, change func(*event.Reply) bool) bool {
	for i := range s.Replies {
		if change(&s.Replies[i]) {
			return true
		}
	}
	return false
}

// queue is who waits, and the frame that the last of them who left waited for.
type queue struct {
	tickets map[words.Ticket]bool
	left    words.LSN
	over    words.Ticket // was refused, and is seen to be held
}

// note looks at a step; true where somebody leaves who waits for a frame to come.
func (q *queue) note(v *trace.View, s *trace.Step) bool {
	if r, ok := s.In.(*event.Request); ok && v.LSN > v.Folded {
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

// busy reports that the step's only reply is that there is no room.
func busy(s *trace.Step) bool { return len(s.Replies) == 1 && s.Replies[0].Problem == event.Busy }

// shift is what is seen after a step, at another time; a frame has it too.
func shift(v *trace.View, s *trace.Step, by time.Duration) bool {
	v.Offset -= by
	v.At = words.Time((time.Duration(s.Now.Wall)*time.Millisecond - v.Offset) / time.Millisecond)
	return true
}

// sure is a view without doubt of the clock, where no more than that makes the difference.
func sure(v *trace.View) bool {
	ails := v.Ailing.Without(words.ClockDoubted)
	if ails == 0 && v.Phase == words.Degraded {
		return false
	}
	v.Ailing = ails
	return true
}

func debit(r *record.Record) bool { return r.Kind == record.Moved && r.Op != event.Issue }

// TestIllegal: a life that is seen otherwise in one place is refused there, by the rule
// that it breaks.
func TestIllegal(t *testing.T) {
	type spoil func(before, after *trace.View, s *trace.Step) bool
	var last words.Name
	var waits queue
	began := func(v *trace.View) bool { return v.Phase >= words.LameDuck }
	for name, c := range map[string]struct {
		rule  string
		spoil spoil
	}{
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
			ok := v.Phase == words.Aborting && b.Phase < words.Aborting && v.Report.Aborted > b.Report.Aborted && len(s.Replies) > 0
			if ok {
				v.Held, s.Replies = uint32(len(s.Replies)), nil
			}
			return ok
		}},

		"a nonce that is skipped": {"NonceExact", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := debit(r)
				if ok {
					r.Nonce++
				}
				return ok
			})
		}},
		"a seq that is skipped": {"SeqExact", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Counted()
				if ok {
					r.Seq++
				}
				return ok
			})
		}},
		"money from nowhere": {"Conservation", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Moved
				if ok {
					r.ToNow, _ = r.ToNow.Plus(words.Units(1))
				}
				return ok
			})
		}},
		"money to nowhere": {"Conservation", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := debit(r) && !r.FromNow.Zero()
				if ok {
					r.FromNow, _ = r.FromNow.Minus(words.Units(1))
				}
				return ok
			})
		}},
		"more than there is": {"NonNegative", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := debit(r)
				if ok {
					r.Amount = words.Units(1 << 40)
				}
				return ok
			})
		}},
		"held, and not counted": {"HeldIsSum", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Held
				if ok {
					r.HeldNow, _ = r.HeldNow.Plus(words.Units(1))
				}
				return ok
			})
		}},
		"a hold that is not there": {"EndsOnce", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Lapsed
				if ok {
					r.Hold = words.NewTxID(9, words.Place{LSN: 1})
				}
				return ok
			})
		}},
		"a key that is not the asked": {"AnswersItsRequest", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Moved
				if ok {
					r.Key.Text = []byte("other")
				}
				return ok
			})
		}},
		"a key twice": {"OneOutcomePerKey", func(before, _ *trace.View, s *trace.Step) bool {
			q, ok := s.In.(*event.Request)
			if !ok || len(s.Frame) == 0 {
				return false
			}
			was := last
			if last = q.Key; before.LSN < 4 || was.Text == nil {
				return false
			}
			other := *q
			other.Key = was
			s.In = &other
			return edit(s, func(r *record.Record) bool { r.Key = was; return r.Keyed() })
		}},
		"forgets too much": {"WindowExact", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Forgot
				if ok {
					r.Upto += 2
				}
				return ok
			})
		}},
		"forgets in silence": {"WindowExact", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Keys > 0
			if ok {
				v.Keys--
			}
			return ok
		}},
		"a wrong funds refusal": {"RefusedRightly", func(_, _ *trace.View, s *trace.Step) bool {
			q, ok := s.In.(*event.Request)
			if !ok {
				return false
			}
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Refused && r.Problem == event.InsufficientFunds
				if ok {
					c := *q
					c.Amount = words.Amount{}
					s.In = &c
				}
				return ok
			})
		}},
		"a nonce refused wrongly": {"OnlyUsedIsStored", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Refused && r.Problem == event.NonceUsed
				if ok {
					r.Nonce++
				}
				return ok
			})
		}},
		"another's outcome": {"IdenticalOutcome", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.None && r.Place.LSN > 3
				if ok {
					r.Place.LSN--
				}
				return ok
			})
		}},
		"a nonce that is not next": {"NonceExact", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.NonceAhead
				if ok {
					r.Nonce++
				}
				return ok
			})
		}},
		"a conflict with nothing": {"TellsDurable", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.None && !r.Replayed && r.Place.LSN > 3
				if ok {
					r.Problem = event.IdempotencyConflict
				}
				return ok
			})
		}},
		"a refusal too soon": {"TellsDurable", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > v.Folded && v.Held > b.Held && v.LSN == b.LSN
			if ok {
				v.Held--
				s.Replies = []event.Reply{{Ticket: s.In.(*event.Request).Ticket, Problem: event.NonceAhead}}
			}
			return ok
		}},
		"a place too many": {"Bounded", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Held == 4 && busy(s)
			if ok {
				v.Held, s.Replies = 5, nil
			}
			return ok
		}},
		"a share too much": {"ShareKept", func(b, v *trace.View, s *trace.Step) bool {
			q, ok := s.In.(*event.Request)
			switch {
			case waits.over == 0 && ok && v.Held == 3 && busy(s):
				waits.over, s.Replies = q.Ticket, nil
			case waits.over > 0 && isA[event.Folded](s) && v.Held == 0:
				b.Held++
				at := slices.IndexFunc(s.Replies, func(r event.Reply) bool { return r.Ticket > waits.over })
				if at < 0 {
					at = len(s.Replies)
				}
				s.Replies = slices.Insert(slices.Clone(s.Replies), at, event.Reply{Ticket: waits.over, Problem: event.NotFound})
				return true
			case waits.over > 0:
				b.Held++
			default:
				return false
			}
			v.Held++
			return false
		}},
		"refused while there is room": {"RefusedRightly", func(_, v *trace.View, s *trace.Step) bool {
			ok := v.Held == 0 && isA[*event.Find](s) && len(s.Replies) == 1
			if ok {
				s.Replies[0] = event.Reply{Ticket: s.Replies[0].Ticket, Problem: event.Busy}
			}
			return ok
		}},
		"told before who came first": {"InOrder", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Replies) == 2 && isA[event.Folded](s)
			if ok {
				s.Replies[0], s.Replies[1] = s.Replies[1], s.Replies[0]
			}
			return ok
		}},
		"who left is counted no more": {"CrowdExact", func(_, v *trace.View, s *trace.Step) bool {
			ok := waits.note(v, s)
			if ok {
				v.Held--
			}
			return ok
		}},
		"lost where somebody has left": {"NoneLost", func(_, v *trace.View, s *trace.Step) bool {
			waits.note(v, s)
			ok := isA[event.Folded](s) && v.Folded < waits.left && len(s.Replies) == 1 && s.Replies[0].Problem == event.NonceAhead
			if ok {
				s.Replies = nil
			}
			return ok
		}},

		"time that goes back": {"NeverBack", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.At == b.At && shift(v, s, -time.Millisecond)
		}},
		"time that runs": {"Rate", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && shift(v, s, 2*time.Second)
		}},
		"time that stands": {"Rate", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && v.At-b.At == 400 && shift(v, s, -200*time.Millisecond)
		}},
		"time that leads of its own": {"NoLeadOfItsOwn", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && v.At-b.At == 400 && shift(v, s, 10*time.Millisecond)
		}},
		"a second step within a minute": {"StepsAreRare", func(b, v *trace.View, s *trace.Step) bool {
			return v.Offset > 60*time.Millisecond && v.Offset <= 400*time.Millisecond && v.At > b.At && v.At-b.At < 500 && shift(v, s, v.Offset)
		}},
		"far, and not doubted": {"FarIsDoubted", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Offset > 10*time.Second && v.Ailing.Has(words.ClockDoubted) && !b.Ailing.Has(words.ClockDoubted)
			return ok && sure(v)
		}},
		"believed too early": {"BelievedLate", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Offset > 15*time.Second && v.Ailing.Has(words.ClockDoubted) && b.Ailing.Has(words.ClockDoubted)
			return ok && sure(v) && shift(v, s, v.Offset)
		}},
		"a doubt without end": {"Settles", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && b.Ailing.Has(words.ClockDoubted) && !v.Ailing.Has(words.ClockDoubted) && b.Offset > 20*time.Second
			if ok {
				v.Ailing = v.Ailing.With(words.ClockDoubted)
				shift(v, s, -v.Offset-b.Offset)
				v.At = words.Time((time.Duration(s.Now.Wall)*time.Millisecond - b.Offset) / time.Millisecond)
				v.Offset = b.Offset
			}
			return ok
		}},
		"accepted, and still doubted": {"Accept", func(b, v *trace.View, s *trace.Step) bool {
			in, ok := s.In.(event.Signal)
			ok = ok && in.What == event.AcceptClock && b.Offset > time.Second
			return ok && shift(v, s, v.Offset-b.Offset)
		}},
		"a day that takes more": {"DayCeiling", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Moved
				if ok {
					r.Spent, _ = r.Spent.Plus(words.Units(1))
				}
				return ok
			})
		}},
		"a frame of yesterday": {"NotBehindFrames", func(before, _ *trace.View, s *trace.Step) bool {
			if len(s.Frame) == 0 || before.LSN == 0 {
				return false
			}
			h, _, _ := record.Open(s.Frame)
			s.Frame = record.Begin(nil, h.LSN, 1)
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(600) {
				waits = queue{tickets: map[words.Ticket]bool{}}
				g := rig{spoil: c.spoil}
				err := g.live(seed, 200, odds{faults: seed%3 != 0, ends: true})
				if !g.spoilt {
					continue
				}
				var b *trace.Broken
				if !errors.As(err, &b) || b.Rule != c.rule {
					t.Fatalf("seed %d: %v, want %s", seed, err, c.rule)
				}
				return
			}
			t.Fatal("no life had it")
		})
	}
}

// BenchmarkSteps is what one step costs to hold, the node's own part left out.
func BenchmarkSteps(b *testing.B) {
	type seen struct {
		before, after trace.View
		step          trace.Step
	}
	var all []seen
	g := rig{}
	g.spoil = func(before, after *trace.View, s *trace.Step) bool {
		one := seen{*before, *after, *s}
		one.step.Frame = append([]byte(nil), s.Frame...)
		one.step.Replies = append([]event.Reply(nil), s.Replies...)
		one.step.Childs = append([]event.ChildOp(nil), s.Childs...)
		all = append(all, one)
		return false
	}
	if err := g.live(4, 20_000, odds{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		watch := trace.Watch(trace.New(config()))
		for i := range all {
			if err := watch(&all[i].before, &all[i].after, &all[i].step); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(all))/b.Elapsed().Seconds(), "steps/s")
	b.Logf("evidence: trace.steps_per_cpu_second = %.0f", float64(b.N)*float64(len(all))/b.Elapsed().Seconds())
}
