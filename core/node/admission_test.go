package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// smallLimits has two permits per facet, and a queue of four.
func smallLimits() admission.Limits {
	l := admission.Limits{Places: 26, Quantum: 64 << 10, Weights: [types.NumClasses]uint64{10, 5, 1}, Least: 4 << 10,
		Wait: 25 * time.Millisecond, Grace: time.Second, Routes: []event.RouteLimits{{}, {Requests: 1}}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: 2, Queue: 4, PerClass: [types.NumClasses]int{4, 4, 2}, PerFlow: 3}
	}
	return l
}

// rule parses SCOPE/N/DURATION/BURST, optionally with /shadow; NB counts bytes. A rule of a route is for route 1.
func rule(t *testing.T, text string) quota.Rule {
	t.Helper()
	w := strings.Split(text, "/")
	r := quota.Rule{Classes: quota.AllClasses, Shadow: len(w) > 4}
	scopes := []string{"instance", "peer", "key", "tenant", "route"}
	r.Scope = types.QuotaScope(slices.Index(scopes, w[0]))
	if number, bytes := strings.CutSuffix(w[1], "B"); bytes {
		w[1], r.Unit = number, types.UnitBytes
	}
	every, err := time.ParseDuration(w[2])
	if _, wrong := fmt.Sscan(w[1]+" "+w[3], &r.Rate, &r.Burst); wrong != nil || err != nil {
		t.Fatal(text, wrong, err)
	}
	if r.Scope == types.ScopeRoute {
		r.Route = 1
	}
	if r.Every = every; r.Scope == types.ScopeKey || r.Scope == types.ScopeTenant {
		r.Classes = quota.ClassSetOf(types.ClassInternal, types.ClassAuthed)
	}
	return r
}

// permitOf parses a slot and its use.
func (s *stage) permitOf(text string) types.Ticket {
	var slot, use uint32
	if _, err := fmt.Sscanf(text, "%d.%d", &slot, &use); err != nil {
		s.t.Fatal(err)
	}
	return types.NewTicket(slot, use)
}

// admission parses what happens at admission:
//
//	arrive money slot.use ann 7      a request with key 7 of tenant 7, from ann's address
//	arrive lists slot.use bob        an anonymous one; optionally with a route: /1
//	arrive money slot.use ann +5000  with a body of 5000 bytes; +? of unknown length
//	stream slot.use 5000             reserves bytes
//	settle slot.use 5000             finishes with bytes
//	settle slot.use given up         finishes as aborted; or turned away, or done, which is the default
func (s *stage) admission(w []string) string {
	ticket := s.permitOf
	switch w[0] {
	case "stream":
		return s.step(&event.ReserveBytes{Ticket: ticket(w[1]), Bytes: s.number(w[2])})
	case "settle":
		end := &event.Finish{Ticket: ticket(w[1]), Bytes: 1000}
		for f := range event.NumCompletions {
			if f.String() == strings.Join(w[2:], " ") {
				end.Completion, w = f, w[:2]
			}
		}
		if len(w) > 2 {
			end.Bytes = s.number(w[2])
		}
		return s.step(end)
	}
	in := event.Admit{Ticket: ticket(w[2]), Class: types.ClassAnon, DeclaredBytes: 100, TimeLeft: time.Second}
	if last := w[len(w)-1]; last[0] == '/' {
		in.Route, w = uint16(s.number(last[1:])), w[:len(w)-1]
	}
	if last := w[len(w)-1]; last[0] == '+' {
		if in.DeclaredBytes, w = -1, w[:len(w)-1]; last != "+?" {
			in.DeclaredBytes = int64(s.number(last[1:]))
		}
	}
	for f := range types.NumFacets {
		if f.String() == w[1] {
			in.Facet = f
		}
	}
	copy(in.Peer[:], w[3])
	if len(w) > 4 {
		in.Class, in.Key, in.Tenant = types.ClassAuthed, types.KeyID(s.number(w[4])), types.Tenant(s.number(w[4]))
	}
	return s.step(&in)
}

// ask parses queries about upstreams, and reports:
//
//	pick 0            picks an endpoint of upstream 0
//	tried failed      reports the last attempt: answered, turned, unsent, failed, late, left, whole, cut
//	retry             picks the endpoint of its next attempt
//	look 1            reads the state of upstream 1
func (s *stage) ask(w []string) string {
	in := &event.UpstreamQuery{Slot: 7}
	switch w[0] {
	case "pick":
		in.Pick = event.Pick{Upstream: uint16(s.number(w[1])), Idempotent: true}
	case "retry":
		in.Kind, in.Retry = event.QueryRetry, event.Retry{Ticket: s.trip}
	case "look":
		in.Kind, in.Upstream = event.QueryStats, uint16(s.number(w[1]))
	case "tried":
		in.Kind, in.Result = event.QueryReport, event.AttemptResult{Ticket: s.trip, TimeLeft: time.Second}
		for in.Result.Outcome.String() != w[1] {
			if in.Result.Outcome++; in.Result.Outcome == event.NumAttemptOutcomes {
				s.t.Fatalf("unknown outcome %q", w[1])
			}
		}
	}
	return s.step(in)
}

// verdict describes a decision.
func (s *stage) verdict(v event.Decision) string {
	text := fmt.Sprintf("%d.%d goes", v.Ticket.Slot(), uint32(v.Ticket>>32))
	if v.Problem != event.None {
		text = fmt.Sprintf("%d.%d: %s, for %v", v.Ticket.Slot(), uint32(v.Ticket>>32), v.Problem.Code(), v.Reason)
	}
	if s.counts && v.Problem == event.None {
		text += fmt.Sprintf(" with %d", v.Bytes)
	}
	if v.Waited > 0 {
		text += fmt.Sprintf(", after %v", v.Waited)
	}
	if v.Rule > 0 {
		text += fmt.Sprintf("; rule %d has %d left", v.Rule, v.Left)
	}
	if v.RetryAfter > 0 {
		text += fmt.Sprintf(", come in %v", v.RetryAfter)
	}
	if v.Shadow > 0 {
		text += fmt.Sprintf("; shadows %b", v.Shadow)
	}
	return text + "\n"
}

// TestAdmitAllocatesNothing: a request is admitted and finished without garbage.
func TestAdmitAllocatesNothing(t *testing.T) {
	r, in := newGate()
	var left event.Finish
	if n := testing.AllocsPerRun(1000, func() { r.pass(in, &left) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkArrive: with quotas of instance, peer and tenant, a request is admitted at once and finished.
func BenchmarkArrive(b *testing.B) {
	r, in := newGate()
	var left event.Finish
	b.ReportAllocs()
	for b.Loop() {
		r.pass(in, &left)
	}
}

func newGate() (*rich, *event.Admit) {
	r := newRich(1, 16)
	return r, &event.Admit{Class: types.ClassAuthed, Key: boss, Tenant: 1, DeclaredBytes: 100, TimeLeft: time.Second}
}

// pass admits and finishes one request.
func (r *rich) pass(in *event.Admit, left *event.Finish) {
	in.Ticket = types.NewTicket(in.Ticket.Slot(), uint32(in.Ticket>>32)+1)
	r.now.Mono += types.Instant(time.Millisecond)
	r.out.Reset()
	r.node.Step(r.now, in, &r.out)
	if len(r.out.Decisions) != 1 || r.out.Decisions[0].Problem != event.None {
		panic(fmt.Sprintf("%+v", r.out.Decisions))
	}
	*left = event.Finish{Ticket: in.Ticket, Bytes: 100}
	r.node.Step(r.now, left, &r.out)
}

// TestSmallFlowWaitsLittle: if the instance quota paces, a tenant with endless requests does not lock out one with
// few: one request of each can always wait.
func TestSmallFlowWaitsLittle(t *testing.T) {
	l := limits(8, 4)
	c := config(l)
	c.Quotas = []quota.Rule{{Scope: types.ScopeInstance, Rate: 100, Every: time.Second, Burst: 1, Classes: quota.AllClasses}}
	c.Admission.Wait = time.Second
	p := newAdmissionClient(c)
	p.begin(t)
	ask := func(slot uint32, tenant types.Tenant) {
		ticket := types.NewTicket(slot, 1)
		p.asked[ticket] = true
		p.step(t, &event.Admit{Ticket: ticket, Class: types.ClassAuthed, Key: boss, Tenant: tenant, TimeLeft: 10 * time.Second})
	}
	for slot := range uint32(4) {
		ask(slot, 1)
	}
	ask(9, 2)
	if p.no[event.RejectPacingTimeout] == 0 || !p.asked[types.NewTicket(9, 1)] {
		t.Fatalf("refused %v; who asks for little waits: %v", p.no, p.asked[types.NewTicket(9, 1)])
	}
}
