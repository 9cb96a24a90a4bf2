package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/words"
)

// house has two permits a facet, and four may wait for one.
func house() admit.Limits {
	l := admit.Limits{Places: 20, Quantum: 64 << 10, Weights: [words.Classes]uint64{10, 5, 1}, Least: 4 << 10,
		Wait: 25 * time.Millisecond, Grace: time.Second, Routes: []int{0, 1}}
	for f := range l.Facets {
		l.Facets[f] = admit.Facet{Permits: 2, Queue: 4, Class: [words.Classes]int{4, 4, 2}, Flow: 3}
	}
	return l
}

// rule reads SCOPE/N/DURATION/BURST, with /shadow behind it; NB counts bytes. That of a route is of
// route 1.
func rule(t *testing.T, said string) quota.Rule {
	t.Helper()
	w := strings.Split(said, "/")
	r := quota.Rule{Classes: quota.All, Shadow: len(w) > 4}
	scopes := []string{"instance", "peer", "key", "tenant", "route"}
	r.Scope = words.Scope(slices.Index(scopes, w[0]))
	if number, bytes := strings.CutSuffix(w[1], "B"); bytes {
		w[1], r.Unit = number, words.Bytes
	}
	every, err := time.ParseDuration(w[2])
	if _, wrong := fmt.Sscan(w[1]+" "+w[3], &r.Rate, &r.Burst); wrong != nil || err != nil {
		t.Fatal(said, wrong, err)
	}
	if r.Scope == words.OfRoute {
		r.Route = 1
	}
	if r.Every = every; r.Scope == words.OfKey || r.Scope == words.OfTenant {
		r.Classes = quota.Of(words.Internal, words.Authed)
	}
	return r
}

// admission reads what comes and goes at the door:
//
//	arrive money slot.use ann 7      a request of key 7, whose tenant is 7, from ann's address
//	arrive lists slot.use bob        a stranger's; behind it a route: /1
//	arrive money slot.use ann +5000  with a body of so many bytes, +? of nobody knows how many
//	stream slot.use 5000             may so many bytes go on?
//	settle slot.use 5000             so many have
//	settle slot.use given up         this is its fate; or turned away, or done: else done
func (s *stage) admission(w []string) string {
	var slot, use uint32
	ticket := func(text string) words.Ticket {
		if _, err := fmt.Sscanf(text, "%d.%d", &slot, &use); err != nil {
			s.t.Fatal(err)
		}
		return words.NewTicket(slot, use)
	}
	switch w[0] {
	case "stream":
		return s.step(&event.Stream{Ticket: ticket(w[1]), Bytes: s.number(w[2])})
	case "settle":
		end := &event.Settle{Ticket: ticket(w[1]), Bytes: 1000}
		for f := range event.Fates {
			if f.String() == strings.Join(w[2:], " ") {
				end.Fate, w = f, w[:2]
			}
		}
		if len(w) > 2 {
			end.Bytes = s.number(w[2])
		}
		return s.step(end)
	}
	in := event.Arrive{Ticket: ticket(w[2]), Class: words.Anon, Bytes: 100, Patience: time.Second}
	if last := w[len(w)-1]; last[0] == '/' {
		in.Route, w = uint16(s.number(last[1:])), w[:len(w)-1]
	}
	if last := w[len(w)-1]; last[0] == '+' {
		if in.Bytes, w = -1, w[:len(w)-1]; last != "+?" {
			in.Bytes = int64(s.number(last[1:]))
		}
	}
	for f := range words.Facets {
		if f.String() == w[1] {
			in.Facet = f
		}
	}
	copy(in.Peer[:], w[3])
	if len(w) > 4 {
		in.Class, in.Key, in.Tenant = words.Authed, words.KeyID(s.number(w[4])), words.Tenant(s.number(w[4]))
	}
	return s.step(&in)
}

// ask reads what those who send requests on want to know, and tell:
//
//	pick 0            where does a request to upstream 0 go?
//	tried failed      the last try: answered, turned, unsent, failed, late, left, whole, cut
//	retry             where does its next try go?
//	look 1            how does upstream 1 look?
func (s *stage) ask(w []string) string {
	in := &event.Ask{Slot: 7}
	switch w[0] {
	case "pick":
		in.Pick = event.Pick{Upstream: uint16(s.number(w[1])), Again: true}
	case "retry":
		in.What, in.Retry = event.AskRetry, event.Retry{Ticket: s.trip}
	case "look":
		in.What, in.Look = event.AskLook, uint16(s.number(w[1]))
	case "tried":
		in.What, in.Tried = event.AskTried, event.Tried{Ticket: s.trip, Patience: time.Second}
		for in.Tried.Ending.String() != w[1] {
			in.Tried.Ending++
		}
	}
	return s.step(in)
}

// verdict is what one is told.
func (s *stage) verdict(v event.Verdict) string {
	said := fmt.Sprintf("%d.%d goes", v.Ticket.Slot(), uint32(v.Ticket>>32))
	if v.Problem != event.None {
		said = fmt.Sprintf("%d.%d: %s, for %v", v.Ticket.Slot(), uint32(v.Ticket>>32), v.Problem.Code(), v.Why)
	}
	if s.counts && v.Problem == event.None {
		said += fmt.Sprintf(" with %d", v.Bytes)
	}
	if v.Waited > 0 {
		said += fmt.Sprintf(", after %v", v.Waited)
	}
	if v.Rule > 0 {
		said += fmt.Sprintf("; rule %d has %d left", v.Rule, v.Left)
	}
	if v.Retry > 0 {
		said += fmt.Sprintf(", come in %v", v.Retry)
	}
	if v.Shadow > 0 {
		said += fmt.Sprintf("; shadows %b", v.Shadow)
	}
	return said + "\n"
}

// TestArriveAllocatesNothing: a request is admitted and settled without garbage.
func TestArriveAllocatesNothing(t *testing.T) {
	r, in := newGate()
	var left event.Settle
	if n := testing.AllocsPerRun(1000, func() { r.pass(in, &left) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkArrive: quotas of instance, peer and tenant; a request comes, goes at once and
// is settled.
func BenchmarkArrive(b *testing.B) {
	r, in := newGate()
	var left event.Settle
	b.ReportAllocs()
	for b.Loop() {
		r.pass(in, &left)
	}
}

func newGate() (*rich, *event.Arrive) {
	r := newRich(1, 16)
	return r, &event.Arrive{Class: words.Authed, Key: boss, Tenant: 1, Bytes: 100, Patience: time.Second}
}

// pass carries one request through the door.
func (r *rich) pass(in *event.Arrive, left *event.Settle) {
	in.Ticket = words.NewTicket(in.Ticket.Slot(), uint32(in.Ticket>>32)+1)
	r.now.Mono += words.Instant(time.Millisecond)
	r.out.Reset()
	r.node.Step(r.now, in, &r.out)
	if len(r.out.Verdicts) != 1 || r.out.Verdicts[0].Problem != event.None {
		panic(fmt.Sprintf("%+v", r.out.Verdicts))
	}
	*left = event.Settle{Ticket: in.Ticket, Bytes: 100}
	r.node.Step(r.now, left, &r.out)
}

// TestLittleWaits: where the instance's quota paces, one tenant that asks without end does
// not keep out another that asks for little: one request of each may always wait.
func TestLittleWaits(t *testing.T) {
	l := limits(8, 4)
	c := config(l)
	c.Quotas = []quota.Rule{{Scope: words.OfInstance, Rate: 100, Every: time.Second, Burst: 1, Classes: quota.All}}
	c.Admit.Wait = time.Second
	p := porters(c)
	p.begin(t)
	ask := func(slot uint32, tenant words.Tenant) {
		ticket := words.NewTicket(slot, 1)
		p.asked[ticket] = true
		p.step(t, &event.Arrive{Ticket: ticket, Class: words.Authed, Key: boss, Tenant: tenant, Patience: 10 * time.Second})
	}
	for slot := range uint32(4) {
		ask(slot, 1)
	}
	ask(9, 2)
	if p.no[event.OverPace] == 0 || !p.asked[words.NewTicket(9, 1)] {
		t.Fatalf("refused %v; who asks for little waits: %v", p.no, p.asked[words.NewTicket(9, 1)])
	}
}
