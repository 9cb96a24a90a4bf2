package trace_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

const places = 16

// smallGate returns limits with few permits and short queues; callers without a key cannot use the
// query facet.
func smallGate() admission.Limits {
	l := admission.Limits{Places: places, Quantum: 4 << 10, Weights: [types.NumClasses]uint64{4, 2, 1}, Least: 512,
		Wait: 25 * time.Millisecond, GiveWay: 30 * time.Millisecond, Grace: 200 * time.Millisecond, Routes: []event.RouteLimits{{}, {Requests: 2}}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 2, Queue: 5, PerClass: [types.NumClasses]int{3, 3, 3}, PerFlow: 2}
	}
	return l
}

func quotas() []quota.Rule {
	keyed := quota.ClassSetOf(types.ClassInternal, types.ClassAuthed)
	return []quota.Rule{
		{Scope: types.ScopeInstance, Rate: 25, Every: time.Second, Burst: 5, Classes: quota.AllClasses},
		{Scope: types.ScopePeer, Rate: 10, Every: time.Second, Burst: 3, Classes: quota.ClassSetOf(types.ClassAnon)},
		{Scope: types.ScopeTenant, Rate: 20, Every: time.Second, Burst: 6, Classes: keyed},
		{Scope: types.ScopeKey, Unit: types.UnitBytes, Rate: 20_000, Every: time.Second, Burst: 20_000, Classes: keyed},
		{Scope: types.ScopeRoute, Route: 1, Rate: 5, Every: time.Second, Burst: 3, Classes: quota.AllClasses},
		{Scope: types.ScopeRoute, Route: 3, Classes: quota.AllClasses}, // closed
		{Scope: types.ScopeTenant, Rate: 5, Every: time.Second, Burst: 1, Classes: keyed, Shadow: true},
		{Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: 100_000, Every: time.Second, Burst: 10_000, Classes: quota.AllClasses},
		{Scope: types.ScopePeer, Unit: types.UnitBytes, Rate: 20_000, Every: time.Second, Burst: 5_000, Classes: quota.ClassSetOf(types.ClassAnon)},
	}
}

// arrival draws a request.
func (g *rig) arrival() *event.Admit {
	in := &event.Admit{Class: types.Class(g.r.IntN(3)), Facet: types.Facet(g.r.IntN(2)), Route: uint16([]int{0, 0, 0, 0, 1, 2, 2, 3}[g.r.IntN(8)]),
		DeclaredBytes: []int64{-1, 100, 3000, 9000}[g.r.IntN(4)], ResponseEstimate: 100, TimeLeft: time.Duration((1+g.r.IntN(150))*(1+g.r.IntN(3))) * time.Millisecond}
	in.Peer[7] = byte(g.r.IntN(4))
	if in.Class != types.ClassAnon {
		in.Tenant = types.Tenant(1 + g.r.IntN(2))
		if in.Key = types.KeyID(in.Tenant); in.Tenant == 1 && len(g.others) > 0 && g.r.IntN(2) == 0 {
			in.Key = g.others[g.r.IntN(len(g.others))]
		}
	}
	return in
}

// comes makes a move: requests arrive, one finishes or sends more, the policy changes, or a
// little time passes, after which a tick may be late.
func (g *rig) comes() error {
	switch n := g.r.IntN(12); {
	case n == 11 && g.config == nil:
		return g.renews()
	case n > 8:
		at := g.r.IntN(places)
		return g.say(&event.ReserveBytes{Ticket: g.slots[at], Bytes: uint64(1 + g.r.IntN(9000))})
	case n < 4:
		in := g.arrival()
		for range 1 + g.r.IntN(5) {
			one := *in
			if g.r.IntN(2) == 0 {
				one = *g.arrival()
			}
			at := slices.Index(g.slots[:], 0)
			if at < 0 {
				return nil
			}
			one.Ticket = types.NewTicket(uint32(at), uint32(g.next()))
			g.slots[at], g.keyless[one.Ticket] = one.Ticket, one.Class == types.ClassAnon
			if err := g.say(&one); err != nil {
				return err
			}
		}
		return nil
	case n < 7: // a waiting request leaves; the event may be of an earlier use
		at := g.r.IntN(places)
		t := g.slots[at]
		if g.slots[at] = 0; t == 0 {
			t = types.NewTicket(uint32(at), 1)
		}
		return g.say(&event.Finish{Ticket: t, Bytes: uint64(g.r.IntN(20_000)), Completion: event.Completion(g.r.IntN(int(event.NumCompletions)))})
	default:
		gone := time.Duration(1+g.r.IntN(40)) * time.Millisecond
		g.now.Mono, g.now.Wall = g.now.Mono.Add(gone), g.now.Wall.Add(gone)
		if n == 8 {
			return nil
		}
		return g.say(event.Tick{})
	}
}

// renews makes one quota faster, slower, larger or smaller, or replaces it by a fresh one.
func (g *rig) renews() error {
	to := g.is.Policy()
	to.Version++
	i := g.r.IntN(len(to.Quotas))
	q, was := &to.Quotas[i], quotas()[i]
	if was.Rate > 0 {
		q.Rate, q.Every, q.Burst = was.Rate<<g.r.IntN(2), was.Every*time.Duration(1+g.r.IntN(3)), 1+was.Burst*uint64(g.r.IntN(4))/2
	}
	if g.r.IntN(4) == 0 {
		to.ResetQuotas = 1 << i
	}
	g.is = g.is.WithPolicy(&to)
	return g.say(&event.ApplyPolicy{Policy: to})
}

// verdict changes the first decision of a kind in a step.
func verdict(s *trace.Step, of func(*event.Decision) bool, change func(*event.Decision)) bool {
	for i := range s.Verdicts {
		if of(&s.Verdicts[i]) {
			change(&s.Verdicts[i])
			return true
		}
	}
	return false
}

func why(is event.RejectReason) func(*event.Decision) bool {
	return func(v *event.Decision) bool { return v.Reason == is }
}

// unlet are runs that Admission or DRR do not permit.
func unlet() map[string]illegal {
	got := func(is event.RejectReason, change func(*event.Decision)) func(_, _ *trace.View, s *trace.Step) bool {
		return func(_, _ *trace.View, s *trace.Step) bool { return verdict(s, why(is), change) }
	}
	say := func(is event.RejectReason) func(*event.Decision) {
		return func(v *event.Decision) {
			if v.Reason, v.Problem = is, is.Problem(); is == event.Admitted {
				v.Problem = event.None
			}
		}
	}
	var works types.Ticket
	var noTicket [types.NumFacets][types.NumClasses]uint32
	return map[string]illegal{
		"comes to a slot where another works": {"SlotsExact", func(_, _ *trace.View, s *trace.Step) bool {
			switch in := s.In.(type) {
			case event.Recovered:
				works = 0
			case *event.Finish:
				if in.Ticket == works {
					works = 0
				}
			case *event.Admit:
				if works != 0 {
					another := *in
					another.Ticket = types.NewTicket(works.Slot(), 1<<20)
					s.In = &another
					return true
				}
				for _, v := range s.Verdicts {
					if v.Ticket == in.Ticket && v.Reason == event.Admitted {
						works = v.Ticket
					}
				}
			}
			return false
		}},
		"no decision": {"NoneLost", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Verdicts) > 0
			s.Verdicts = nil
			return ok
		}},
		"two decisions": {"OneVerdict", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Verdicts) > 0
			if ok {
				s.Verdicts = append(slices.Clone(s.Verdicts), s.Verdicts[0])
			}
			return ok
		}},
		"another goes first": {"InTurn", func(_, _ *trace.View, s *trace.Step) bool {
			ok := len(s.Verdicts) > 1 && s.Verdicts[0].Ticket != s.Verdicts[1].Ticket
			if ok {
				s.Verdicts[0], s.Verdicts[1] = s.Verdicts[1], s.Verdicts[0]
			}
			return ok
		}},
		"refused, and there is room":       {"RefusedRightly", got(event.Admitted, say(event.RejectQueueFull))},
		"refused for a quota that he has":  {"RefusedRightly", got(event.Admitted, say(event.RejectQuotaExceeded))},
		"goes, and his quota is used up":   {"Refused", got(event.RejectQuotaExceeded, say(event.Admitted))},
		"goes, and his flow has its share": {"Refused", got(event.RejectFlowLimit, say(event.Admitted))},
		"goes through a drain":             {"Refused", got(event.RejectNotServing, say(event.Admitted))},
		"waits as long as the pace wants": {"Paced", func(b, _ *trace.View, s *trace.Step) bool {
			return isA[*event.Admit](s) && b.Queued == noTicket && verdict(s, why(event.RejectPacingTimeout), say(event.RejectQuotaExceeded))
		}},
		"refused for the pace of others": {"RefusedRightly", func(b, _ *trace.View, s *trace.Step) bool {
			return isA[*event.Admit](s) && b.Queued == noTicket && verdict(s, why(event.Admitted), say(event.RejectPacingTimeout))
		}},
		"has more left than he has": {"QuotaExact", got(event.RejectQuotaExceeded, func(v *event.Decision) { v.Left++ })},
		"RetryAfter is too short":   {"QuotaExact", got(event.RejectQuotaExceeded, func(v *event.Decision) { v.RetryAfter-- })},
		"a shadow rule without a report": {"QuotaExact", func(_, _ *trace.View, s *trace.Step) bool {
			return verdict(s, func(v *event.Decision) bool { return v.Shadow != 0 }, func(v *event.Decision) { v.Shadow = 0 })
		}},
		"more of a body than may go": {"QuotaExact", func(_, _ *trace.View, s *trace.Step) bool {
			return isA[*event.ReserveBytes](s) && verdict(s, why(event.Admitted), func(v *event.Decision) { v.Bytes++ })
		}},
		"a part that waits, and is not counted": {"QueueBounded", func(_, v *trace.View, _ *trace.Step) bool {
			ok := v.PacedParts > 0
			if ok {
				v.PacedParts--
			}
			return ok
		}},
		"gives way, and keeps its permit": {"PermitsExact", func(_, v *trace.View, s *trace.Step) bool {
			return verdict(s, why(event.RejectGaveWay), func(*event.Decision) { v.Permits[types.FacetWallet]++ })
		}},
		"another one gives way": {"InTurn", got(event.RejectGaveWay, func(v *event.Decision) { v.Ticket++ })},
		"a wrong waiting time":  {"OneVerdict", got(event.RejectQueueTimeout, func(v *event.Decision) { v.Waited++ })},
		"a permit that is nowhere": {"PermitsExact", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Finish](s) && v.Permits[types.FacetQuery] > 0
			if ok {
				v.Permits[types.FacetQuery]--
			}
			return ok
		}},
		"a queued request is not counted": {"QueueBounded", func(_, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Admit](s) && v.Queued[types.FacetWallet][types.ClassAnon] > 0
			if ok {
				v.Queued[types.FacetWallet][types.ClassAnon]--
			}
			return ok
		}},
		"an end during a drain is not reported": {"Reported", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Finish](s) && v.Report != b.Report
			if ok {
				v.Report = b.Report
			}
			return ok
		}},
		"an abort is reported as finished": {"Reported", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[*event.Finish](s) && v.Report.Aborted > b.Report.Aborted
			if ok {
				v.Report.Aborted, v.Report.Finished = v.Report.Aborted-1, v.Report.Finished+1
			}
			return ok
		}},
		"an end is reported twice": {"Reported", func(_, v *trace.View, s *trace.Step) bool {
			ok := verdict(s, why(event.RejectNotServing), func(*event.Decision) {}) && v.Report.Rejected > 0
			if ok {
				v.Report.Rejected++
			}
			return ok
		}},
		"a request in progress at the end is not reported": {"Reported", func(b, v *trace.View, _ *trace.Step) bool {
			ok := v.Phase == types.Stopped && b.Phase < types.Stopped && v.Report.Aborted > b.Report.Aborted && v.AbortedReplies == b.AbortedReplies
			if ok {
				v.Report.Aborted = b.Report.Aborted
			}
			return ok
		}},
		"a permit that is never taken back": {"PermitsReturn", func(b, v *trace.View, _ *trace.Step) bool {
			ok := v.PermitsRevoked > b.PermitsRevoked
			if ok {
				v.PermitsRevoked--
			}
			return ok
		}},
	}
}

// TestKeylessRequestsChangeNothing: as long as there are permits and tokens, the decisions on
// requests with a key, including all numbers, do not depend on requests without a key. Two nodes
// are compared, of which one gets such requests too.
func TestKeylessRequestsChangeNothing(t *testing.T) {
	went, no := 0, 0
	for seed := uint64(1); seed < 200; seed += 3 {
		c := config()
		for f := range c.Admission.Facets {
			c.Admission.Facets[f].Permits = places
		}
		c.Quotas, c.Admission.Routes = c.Quotas[1:4], nil // of peers, tenants and keys
		if seed%5 == 1 {
			c.Admission.Weights[types.ClassAnon] = 0
		}
		alone := &rig{node: node.New(c, state.New(c.State, 1), 1, types.NewRand(seed)), watch: trace.Watch(trace.New(c)), now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}}
		g := &rig{}
		answers := ""
		g.hears = func(in event.Event, got []event.Decision) error {
			switch in := in.(type) {
			case *event.Admit:
				if in.Class == types.ClassAnon {
					return nil
				}
			case *event.Finish:
				if g.keyless[in.Ticket] {
					return nil
				}
			case *event.ReserveBytes:
				if g.keyless[in.Ticket] {
					return nil
				}
			}
			alone.now = g.now
			alone.out.Reset()
			alone.node.Step(g.now, in, &alone.out)
			got = slices.DeleteFunc(slices.Clone(got), func(v event.Decision) bool { return g.keyless[v.Ticket] })
			for i := range got {
				if got[i].Ahead = 0; got[i].Reason == event.Admitted {
					went++
				} else {
					no++
				}
			}
			for i := range alone.out.Decisions {
				alone.out.Decisions[i].Ahead = 0
			}
			if !slices.Equal(got, alone.out.Decisions) {
				answers = fmt.Sprintf("got %+v, but %+v without keyless requests", got, alone.out.Decisions)
				return errSpoilt
			}
			return nil
		}
		g.config = &c
		if err := g.live(seed, 300, odds{faults: seed%2 == 0, ends: seed%3 == 0}); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, answers)
		}
	}
	if went < 1000 || no < 100 {
		t.Fatalf("%d went and %d were refused: too little was tried", went, no)
	}
}
