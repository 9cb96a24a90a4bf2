package trace_test

import (
	"maps"
	"slices"
	"time"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/record"
	"macronode/core/types"
)

// services returns two upstreams with low limits.
func services() []upstream.Rules {
	r := upstream.Default(2)
	r.RetryPercent, r.RetryPerSecond, r.RetryBurst = 40, 1, 2
	r.BreakerMinAttempts, r.BreakerOpenFor, r.MaxBreakerOpenFor = 6, 400*time.Millisecond, 2*time.Second
	r.HalfOpenInFlight, r.HalfOpenSuccesses = 2, 3
	return []upstream.Rules{r, r}
}

// forwards sends a request to an upstream, or reports the result of one.
func (g *rig) forwards() error {
	var in event.UpstreamQuery
	tickets := slices.Sorted(maps.Keys(g.sent))
	if len(tickets) < 2 || g.r.IntN(3) == 0 {
		in = event.UpstreamQuery{Kind: event.QueryPick, Pick: event.Pick{Upstream: uint16(g.r.IntN(2)), Idempotent: g.r.IntN(5) > 0, Callers: event.Callers(g.r.IntN(4) / 3),
			Caller: event.CallerID(g.r.IntN(1 + g.r.IntN(10)))}}
		if g.r.IntN(8) == 0 {
			in = event.UpstreamQuery{Kind: event.QueryStats, Upstream: in.Pick.Upstream}
		}
		return g.queries(&in)
	}
	t := tickets[g.r.IntN(len(tickets))]
	if g.sent[t] == "waits" && g.r.IntN(4) > 0 {
		return g.queries(&event.UpstreamQuery{Kind: event.QueryRetry, Retry: event.Retry{Ticket: t}})
	}
	outcomes := []event.AttemptOutcome{event.AttemptAnswered, event.AttemptAnswered, event.AttemptAnswered5xx, event.AttemptFailed, event.AttemptFailed, event.AttemptUnsent, event.AttemptTimedOut, event.AttemptAbandoned}
	if g.sent[t] == "answered" {
		outcomes = []event.AttemptOutcome{event.AttemptCompleted, event.AttemptCompleted, event.AttemptTruncated, event.AttemptAbandoned}
	}
	return g.queries(&event.UpstreamQuery{Kind: event.QueryReport, Result: event.AttemptResult{Ticket: t, Outcome: outcomes[g.r.IntN(len(outcomes))],
		BodyConsumed: g.r.IntN(10) == 0, ResponseStarted: g.r.IntN(10) == 0, TimeLeft: time.Duration(1+g.r.IntN(20)) * 50 * time.Millisecond}})
}

// queries sends a query and records the phase of its request.
func (g *rig) queries(in *event.UpstreamQuery) error {
	if err := g.say(in); err != nil || len(g.out.UpstreamReplies) == 0 {
		return err
	}
	is := g.out.UpstreamReplies[0]
	switch t := in.Result.Ticket; in.Kind {
	case event.QueryPick, event.QueryRetry:
		delete(g.sent, in.Retry.Ticket)
		if is.Picked.NoEndpoint == event.EndpointPicked {
			g.sent[is.Picked.Ticket] = "out"
		}
		g.saw["sent "+is.Picked.NoEndpoint.String()+" "+is.Picked.Circuit.String()]++
	case event.QueryReport:
		g.saw["retry "+is.Retry.NoRetry.String()]++
		switch {
		case is.Retry.Retry:
			g.sent[t] = "waits"
			g.saw["retried"]++
		case g.sent[t] == "out" && (in.Result.Outcome == event.AttemptAnswered || in.Result.Outcome == event.AttemptAnswered5xx):
			g.sent[t] = "answered"
		default:
			delete(g.sent, t)
		}
	case event.QueryStats:
	}
	return nil
}

// grants creates a key with fewer grants than the first one, tries to create one with such a key, or revokes one.
func (g *rig) grants() error {
	if len(g.others) > 0 && g.r.IntN(3) == 0 {
		return g.say(&event.RevokeKey{Ticket: g.next(), Caller: boss, Tenant: 1, Key: g.others[g.r.IntN(len(g.others))]})
	}
	in := &event.CreateKey{Ticket: g.next(), Caller: boss, Tenant: 1, Key: event.Key{ID: types.KeyID(100 + g.ticket), Tenant: 1, Scopes: event.AllScopes}}
	if g.r.IntN(2) == 0 {
		in.Key.Scopes = event.Scopes(g.r.IntN(int(event.AllScopes) + 1))
	}
	if len(g.others) > 0 && g.r.IntN(2) == 0 {
		in.Caller = g.others[g.r.IntN(len(g.others))]
	}
	in.Key.Accounts, _ = types.ParsePatterns([]string{"", "ann,b*", "cy"}[g.r.IntN(3)])
	if g.r.IntN(4) == 0 {
		in.Key.Assets, _ = types.ParsePatterns("USD*")
	}
	if g.r.IntN(2) == 0 {
		in.Key.Expires = g.now.Wall.Add(time.Duration(1+g.r.IntN(5)) * time.Second)
	}
	if err := g.say(in); err != nil {
		return err
	}
	if len(g.out.Frames) > 0 {
		g.others = append(g.others, in.Key.ID)
	}
	return nil
}

// replied changes the first reply of a step to a query of a kind.
func replied(s *trace.Step, kind event.UpstreamQueryKind, change func(*event.UpstreamReply) bool) bool {
	in, ok := s.In.(*event.UpstreamQuery)
	return ok && in.Kind == kind && len(s.Answers) > 0 && change(&s.Answers[0])
}

// unforwarded returns runs with an attempt that is not permitted.
func unforwarded() map[string]illegal {
	sends := func(rule string, change func(*event.Picked) bool) illegal {
		return illegal{rule, func(_, _ *trace.View, s *trace.Step) bool {
			return replied(s, event.QueryPick, func(r *event.UpstreamReply) bool { return change(&r.Picked) })
		}}
	}
	retries := func(rule string, why event.NoRetryReason, change func(*event.AttemptResult, *event.RetryDecision) bool) illegal {
		return illegal{rule, func(_, _ *trace.View, s *trace.Step) bool {
			return replied(s, event.QueryReport, func(r *event.UpstreamReply) bool {
				if r.Retry.NoRetry != why || !change(&s.In.(*event.UpstreamQuery).Result, &r.Retry) {
					return false
				}
				r.Retry.Retry, r.Retry.NoRetry = true, event.RetryAllowed
				return true
			})
		}}
	}
	always := func(*event.AttemptResult, *event.RetryDecision) bool { return true }
	goes := func(is event.CircuitState) func(*event.Picked) bool {
		return func(p *event.Picked) bool {
			ok := p.NoEndpoint == event.NoEndpointCircuitOpen && p.Circuit == is
			if ok {
				p.NoEndpoint = event.EndpointPicked
			}
			return ok
		}
	}
	var closedAt [2][event.NumCallers]types.Instant // when the breaker was last seen closed
	return map[string]illegal{
		"an attempt at an open breaker": sends("OpenAdmitsNothing", goes(event.CircuitOpen)),
		"a probe too many":              sends("ProbesAreFew", goes(event.CircuitHalfOpen)),
		"an endpoint that is not there": sends("EndpointIsThere", func(p *event.Picked) bool {
			ok := p.NoEndpoint == event.EndpointPicked
			p.Endpoint += 2
			return ok
		}),
		"open for no failures": sends("OpensForFailures", func(p *event.Picked) bool {
			ok := p.NoEndpoint == event.EndpointPicked && p.Circuit == event.CircuitClosed
			if ok {
				p.NoEndpoint, p.Circuit = event.NoEndpointCircuitOpen, event.CircuitOpen
			}
			return ok
		}),
		"half-open, and never open": sends("OpensForFailures", func(p *event.Picked) bool {
			ok := p.NoEndpoint == event.EndpointPicked && p.Circuit == event.CircuitClosed
			if ok {
				p.Circuit = event.CircuitHalfOpen
			}
			return ok
		}),
		"closed for no answers": sends("ClosesForAnswers", func(p *event.Picked) bool {
			ok := p.Circuit == event.CircuitOpen
			if ok {
				p.NoEndpoint, p.Circuit = event.EndpointPicked, event.CircuitClosed
			}
			return ok
		}),
		"half-open too soon": {"OpenLasts", func(_, _ *trace.View, s *trace.Step) bool {
			return replied(s, event.QueryPick, func(r *event.UpstreamReply) bool {
				in := s.In.(*event.UpstreamQuery).Pick
				closed := &closedAt[in.Upstream][in.Callers]
				switch p := &r.Picked; {
				case p.NoEndpoint == event.EndpointPicked && p.Circuit == event.CircuitClosed:
					*closed = s.Now.Mono
				case p.Circuit == event.CircuitOpen && *closed > 0 && s.Now.Mono < closed.Add(services()[in.Upstream].BreakerOpenFor/2):
					p.Circuit = event.CircuitHalfOpen
					return true
				}
				return false
			})
		}},
		"another attempt by a method that allows none": retries("RetryIsAllowed", event.NoRetryMethod, always),
		"another attempt when the body is gone":        retries("RetryIsAllowed", event.NoRetryBodyConsumed, always),
		"another attempt after the response started":   retries("RetryIsAllowed", event.NoRetryResponseStarted, always),
		"an attempt too many":                          retries("AttemptsAreFew", event.NoRetryAttempts, always),
		"another attempt at an open breaker":           retries("OpenAdmitsNothing", event.NoRetryCircuitOpen, always),
		"another attempt that nothing was saved for":   retries("RetriesAreSaved", event.NoRetryBudget, always),
		"another attempt when there is no time": retries("RetryInTime", event.NoRetryDeadline, func(in *event.AttemptResult, on *event.RetryDecision) bool {
			on.Wait = in.TimeLeft + 1
			return in.Outcome == event.AttemptFailed
		}),
		"a retry that was not granted": {"RetryIsAllowed", func(_, _ *trace.View, s *trace.Step) bool {
			return replied(s, event.QueryReport, func(r *event.UpstreamReply) bool {
				in := &s.In.(*event.UpstreamQuery).Result
				ok := in.Outcome == event.AttemptCompleted
				r.Retry.Retry = ok
				return ok
			})
		}},
	}
}

// ungranted returns runs in which a key gets more than its grants.
func ungranted() map[string]illegal {
	revoked := map[types.KeyID]bool{}
	acknowledged := map[types.Ticket]types.KeyID{}
	ended := map[types.KeyID]bool{}
	limited := map[types.KeyID]bool{}
	edited := func(rule string, change func(*record.Record) bool) illegal {
		return illegal{rule, func(_, _ *trace.View, s *trace.Step) bool { return edit(s, change) }}
	}
	created := func(change func(*record.Record)) func(*record.Record) bool {
		return func(r *record.Record) bool {
			ok := r.Kind == record.KeyCreated
			if ok {
				change(r)
			}
			return ok
		}
	}
	by := func(change func(*record.Record)) func(*record.Record) bool {
		return func(r *record.Record) bool {
			ok := r.Kind == record.Posted && r.Caller >= 100
			if ok {
				change(r)
			}
			return ok
		}
	}
	return map[string]illegal{
		"a scope that its creation did not name":  edited("GrantIsNamed", created(func(r *record.Record) { r.APIKey.Scopes ^= event.ScopeRead })),
		"accounts that its creation did not name": edited("GrantIsNamed", created(func(r *record.Record) { r.APIKey.Accounts, _ = types.ParsePatterns("zed") })),
		"a key that is good for longer":           edited("GrantIsNamed", created(func(r *record.Record) { r.APIKey.Expires++ })),
		"a key that an unknown key created":       edited("GrantWithin", created(func(r *record.Record) { r.Caller = 999 })),
		"a record of an unknown key":              edited("GrantCovers", by(func(r *record.Record) { r.Caller = 999 })),
		"a record of another tenant":              edited("GrantCovers", by(func(r *record.Record) { r.Tenant = 2 })),
		"a ref of charges, by a key that is limited to accounts": {"GrantCovers", func(_, _ *trace.View, s *trace.Step) bool {
			if in, ok := s.In.(*event.CreateKey); ok && !in.Key.Accounts.CoversAll() {
				limited[in.Key.ID] = true
			}
			return isA[*event.Request](s) && edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Posted && limited[r.Caller] && len(r.Ref.Text) > 0 // a further ref is wrong for the window, too
				if ok {
					r.Ref = types.Name{Text: []byte("usage:1:2")}
				}
				return ok
			})
		}},
		"a record of a revoked key": {"GrantCovers", func(_, _ *trace.View, s *trace.Step) bool {
			if in, ok := s.In.(*event.RevokeKey); ok && len(s.Frame) > 0 {
				revoked[in.Key] = true
			}
			return isA[*event.Request](s) && edit(s, func(r *record.Record) bool {
				for k := range revoked {
					r.Caller = k
				}
				return r.Kind == record.Posted && len(revoked) > 0
			})
		}},
		"a key is made on a full disk": {"WritesNeedJournal", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.CreateKey](s) && len(s.Frame) > 0 && b.DegradedBy == 0
			if ok {
				b.DegradedBy, v.DegradedBy = b.DegradedBy.With(types.DiskFull), v.DegradedBy.With(types.DiskFull)
			}
			return ok
		}},
		"a key is revoked with a failed journal": {"WritesNeedJournal", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.RevokeKey](s) && len(s.Frame) > 0
			if ok {
				b.DegradedBy, v.DegradedBy = b.DegradedBy.With(types.JournalFailed), v.DegradedBy.With(types.JournalFailed)
			}
			return ok
		}},
		"a revoked key gets something": {"InvalidKeyGetsNothing", func(_, _ *trace.View, s *trace.Step) bool {
			if in, ok := s.In.(*event.RevokeKey); ok {
				acknowledged[in.Ticket] = in.Key
			}
			for _, r := range s.Replies {
				if k := acknowledged[r.Ticket]; k != 0 && r.Problem == event.None {
					ended[k] = true
				}
			}
			in, ok := s.In.(*event.Request)
			return ok && ended[in.Caller] && tell(s, func(r *event.Reply) bool {
				ok := r.Ticket == in.Ticket
				r.Problem = event.None
				return ok
			})
		}},
	}
}
