package trace_test

import (
	"bytes"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

func debit(r *record.Record) bool { return r.Kind == record.Posted && r.Op != event.Issue }

// until changes the expiry of holds in a run, up to the first that ends in a given way.
func until(ends record.Kind, at types.Time) func(_, _ *trace.View, s *trace.Step) bool {
	return func(_, _ *trace.View, s *trace.Step) (ended bool) {
		edit(s, func(r *record.Record) bool {
			ended = ended || r.Kind == ends
			held := r.Kind == record.HoldOpened
			if held {
				r.ExpiresAt = at
			}
			return held
		})
		return ended
	}
}

// unpaid are runs that Wallet does not permit.
func unpaid() map[string]illegal {
	var last types.Name
	var ref []byte
	return map[string]illegal{
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
				ok := r.IsMovement()
				if ok {
					r.Seq++
				}
				return ok
			})
		}},
		"money from nowhere": {"Conservation", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Posted
				if ok {
					r.ToBalance, _ = r.ToBalance.Add(types.MinorUnits(1))
				}
				return ok
			})
		}},
		"money to nowhere": {"Conservation", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := debit(r) && !r.FromBalance.IsZero()
				if ok {
					r.FromBalance, _ = r.FromBalance.Sub(types.MinorUnits(1))
				}
				return ok
			})
		}},
		"more than there is": {"NonNegative", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := debit(r)
				if ok {
					r.Amount = types.MinorUnits(1 << 40)
				}
				return ok
			})
		}},
		"held, and not counted": {"HeldIsSum", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.HoldOpened
				if ok {
					r.HeldBalance, _ = r.HeldBalance.Add(types.MinorUnits(1))
				}
				return ok
			})
		}},
		"more of a hold than it has": {"CapturedWithin", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.HoldCaptured
				if ok {
					r.Amount = types.MinorUnits(1 << 40)
				}
				return ok
			})
		}},
		"lapses before its time": {"NoneBeforeDue", until(record.HoldExpired, 1<<50)},
		"paid after its time":    {"NoneWhenDue", until(record.HoldCaptured, 1)},
		"released, and still counted": {"HeldIsSum", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.HoldExpired || r.Kind == record.HoldCaptured
				if ok {
					r.HeldBalance, _ = r.HeldBalance.Add(types.MinorUnits(1))
				}
				return ok
			})
		}},
		"held, and not there": {"Covered", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.HoldOpened
				if ok {
					r.Amount, _ = r.Amount.Add(types.MinorUnits(1 << 40))
					r.HeldBalance, _ = r.HeldBalance.Add(types.MinorUnits(1 << 40))
				}
				return ok
			})
		}},
		"a missing hold": {"EndsOnce", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.HoldExpired
				if ok {
					r.Hold = types.NewTxID(9, types.Position{LSN: 1})
				}
				return ok
			})
		}},
		"the outcome of another key": {"AnswersItsRequest", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Posted
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
			return edit(s, func(r *record.Record) bool { r.Key = was; return r.IsOutcome() })
		}},
		"a ref twice": {"RefOnce", func(_, _ *trace.View, s *trace.Step) bool {
			if isA[event.Recovered](s) {
				ref = nil
			}
			return edit(s, func(r *record.Record) bool {
				was, ok := ref, len(r.Ref.Text) > 0
				if ok {
					ref = bytes.Clone(r.Ref.Text)
					r.Ref.Text = was
				}
				return ok && was != nil
			})
		}},
		"a frame that is skipped": {"StateIsFold", func(b, _ *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && reframe(s, func(h *record.Header) { h.LSN++ })
		}},
		"a frame that is not counted": {"StateIsFold", func(b, v *trace.View, s *trace.Step) bool {
			ok := b.LSN > 0 && v.LSN == b.LSN
			if ok {
				s.Frame = record.Begin(nil, v.LSN+1, v.At)
			}
			return ok
		}},
		"evicts too much": {"WindowExact", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.KeysForgotten
				if ok {
					r.Upto += 2
				}
				return ok
			})
		}},
		"evicts without a record": {"WindowExact", func(_, v *trace.View, s *trace.Step) bool {
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
				ok := r.Kind == record.Rejected && r.Problem == event.InsufficientFunds
				if ok {
					c := *q
					c.Amount = types.Amount{}
					s.In = &c
				}
				return ok
			})
		}},
		"a nonce refused wrongly": {"OnlyUsedIsStored", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Rejected && r.Problem == event.NonceUsed
				if ok {
					r.Nonce++
				}
				return ok
			})
		}},
		"the outcome of another request": {"IdenticalOutcome", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.None && r.Position.LSN > 3
				if ok {
					r.Position.LSN--
				}
				return ok
			})
		}},
		"a wrong expected nonce": {"NonceExact", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.NonceAhead
				if ok {
					r.Nonce++
				}
				return ok
			})
		}},
		"a conflict without an outcome": {"TellsDurable", func(_, _ *trace.View, s *trace.Step) bool {
			return tell(s, func(r *event.Reply) bool {
				ok := r.Problem == event.None && !r.Replayed && r.Position.LSN > 3
				if ok {
					r.Problem = event.IdempotencyConflict
				}
				return ok
			})
		}},
		"a refusal too soon": {"TellsDurable", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Request](s) && v.LSN > v.Applied && v.HeldReplies > b.HeldReplies && v.LSN == b.LSN
			if ok {
				v.HeldReplies--
				s.Replies = []event.Reply{{Ticket: s.In.(*event.Request).Ticket, Problem: event.NonceAhead}}
			}
			return ok
		}},
	}
}
