package node_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// An admissionClient is the adapter of admission: it tracks its requests and their decisions.
type admissionClient struct {
	node  *node.Node
	now   types.Now
	out   event.Effects
	asked map[types.Ticket]bool // and not told
	in    map[types.Ticket]bool // told to go
	parts map[types.Ticket]bool // of them, those that asked for further bytes, and were not told
	went  map[types.Ticket]uint64
	on    [2]int // parts that went on, and that did not
	uses  uint32
	goes  int
	no    [event.NumRejectReasons]int
}

// step steps the node; every decision must belong to a waiting request.
func (p *admissionClient) step(t rapid.TB, e event.Event) {
	p.out.Reset()
	p.node.Step(p.now, e, &p.out)
	for _, v := range p.out.Decisions {
		if p.parts[v.Ticket] {
			p.further(t, v)
			continue
		}
		if !p.asked[v.Ticket] {
			t.Fatalf("%+v is told, and did not ask", v)
		}
		delete(p.asked, v.Ticket)
		if (v.Problem == event.None) != (v.Reason == event.Admitted) {
			t.Fatalf("%+v", v)
		}
		if v.Problem == event.None {
			p.in[v.Ticket] = true
			p.goes++
		}
		p.no[v.Reason]++
	}
	if err := p.node.Check(); err != nil {
		t.Fatal(err)
	}
	flushed := event.Durable{}
	for _, f := range p.out.Frames {
		flushed.Upto, flushed.Bytes = f.LSN, flushed.Bytes+uint64(f.Len)
	}
	if flushed.Upto > 0 { // the disk is quick
		p.step(t, flushed)
		p.step(t, event.Applied{Upto: flushed.Upto})
	}
}

// further handles the decision on a reservation.
func (p *admissionClient) further(t rapid.TB, v event.Decision) {
	delete(p.parts, v.Ticket)
	if !p.in[v.Ticket] || (v.Problem == event.None) != (v.Bytes > 0) {
		t.Fatalf("%+v is told of further bytes", v)
	}
	if v.Bytes > 0 {
		p.went[v.Ticket] += v.Bytes
		p.on[0]++
	} else {
		p.on[1]++
	}
}

// newAdmissionClient returns a client without requests.
func newAdmissionClient(c node.Config) *admissionClient {
	return &admissionClient{node: node.New(c, state.New(c.State, 1), 0, types.NewRand(1)), now: types.Now{Wall: 1_700_000_000_000},
		asked: map[types.Ticket]bool{}, in: map[types.Ticket]bool{}, parts: map[types.Ticket]bool{}, went: map[types.Ticket]uint64{}}
}

// begin starts the node.
func (p *admissionClient) begin(t rapid.TB) {
	for _, e := range []event.Event{event.Recovered{Recovery: event.Recovery{Journal: 9}}, &event.CreateKey{Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}},
		event.ServiceUp{Service: types.ServiceHTTP}, event.ServiceUp{Service: types.ServiceAdmin}, event.ServiceUp{Service: types.ServiceSampler}} {
		p.step(t, e)
	}
}

// TestEveryAdmitGetsDecision: for any sequence of events, each request gets exactly one decision, within the time
// limit of the queue. The permits are never exceeded, and in the end all are free.
func TestEveryAdmitGetsDecision(t *testing.T) {
	var went, no, on = 0, [event.NumRejectReasons]int{}, [2]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := limits(8, 4)
		c := config(l)
		c.Quotas = []quota.Rule{
			{Scope: types.ScopeInstance, Rate: rapid.SampledFrom([]uint64{50, 1e6}).Draw(t, "rate"), Every: time.Second, Burst: 2, Classes: quota.AllClasses},
			{Scope: types.ScopePeer, Rate: 20, Every: time.Second, Burst: 3, Classes: quota.ClassSetOf(types.ClassAnon)},
		}
		for _, scope := range []types.QuotaScope{types.ScopeInstance, types.ScopePeer, types.ScopeTenant} {
			if rapid.Bool().Draw(t, "counts bytes") {
				c.Quotas = append(c.Quotas, quota.Rule{Scope: scope, Unit: types.UnitBytes, Rate: rapid.SampledFrom([]uint64{500, 5000, 1 << 20}).Draw(t, "bytes a second"),
					Every: time.Second, Burst: 20_000, Classes: quota.AllClasses})
			}
		}
		p := newAdmissionClient(c)
		p.begin(t)
		slots := map[uint32]types.Ticket{}
		first := func(of map[types.Ticket]bool) (least types.Ticket) { // the lowest, so that a run repeats
			for ticket := range of {
				if least == 0 || ticket < least {
					least = ticket
				}
			}
			return least
		}
		arrive := func(t *rapid.T) {
			slot := rapid.Uint32Range(0, 15).Draw(t, "slot")
			if was := slots[slot]; p.asked[was] || p.in[was] {
				return
			}
			p.uses++
			in := &event.Admit{Ticket: types.NewTicket(slot, p.uses), Class: types.Class(rapid.IntRange(0, 2).Draw(t, "class")), Facet: types.Facet(rapid.IntRange(0, 1).Draw(t, "facet")),
				Route: uint16(rapid.IntRange(0, 9).Draw(t, "route")), DeclaredBytes: rapid.SampledFrom([]int64{10, 10, -1, 100_000}).Draw(t, "bytes"), TimeLeft: time.Second}
			if in.Class != types.ClassAnon {
				in.Key, in.Tenant = boss, types.Tenant(1+rapid.IntRange(0, 5).Draw(t, "tenant")/5)
			}
			in.Peer[0] = byte(1 + rapid.IntRange(0, 9).Draw(t, "peer")/9)
			slots[slot] = in.Ticket
			p.asked[in.Ticket] = true
			p.step(t, in)
		}
		burst := func(t *rapid.T) {
			for range 4 {
				arrive(t)
			}
		}
		settle := func(t *rapid.T) {
			if ticket := first(p.in); ticket != 0 {
				delete(p.in, ticket)
				delete(p.parts, ticket)
				p.step(t, &event.Finish{Ticket: ticket, Bytes: rapid.Uint64Range(0, 10_000).Draw(t, "bytes") + p.went[ticket]})
			}
		}
		stream := func(t *rapid.T) {
			for slot := range uint32(16) {
				if ticket := slots[slot]; p.in[ticket] && !p.parts[ticket] && rapid.Bool().Draw(t, "streams") {
					p.parts[ticket] = true
					p.step(t, &event.ReserveBytes{Ticket: ticket, Bytes: rapid.Uint64Range(1, 100_000).Draw(t, "bytes")})
				}
			}
		}
		pass := func(d time.Duration) {
			for end := p.now.Mono.Add(d); ; {
				due, any := p.node.Due()
				if !any || due > end {
					p.now.Mono = end
					return
				}
				p.now.Mono = max(p.now.Mono, due) + 1
				p.step(t, event.Tick{})
				if still, any := p.node.Due(); any && still == due {
					t.Fatalf("due at %d, and still so behind its tick", due)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": arrive, "arrive again": burst, "arrive more": burst, "settle": settle, "stream": stream, "stream again": stream,
			"stale": func(t *rapid.T) { // a word about an earlier use
				ticket := types.NewTicket(rapid.Uint32Range(0, 15).Draw(t, "slot"), 0)
				p.step(t, &event.Finish{Ticket: ticket})
				p.step(t, &event.ReserveBytes{Ticket: ticket, Bytes: 1})
			},
			"change": func(t *rapid.T) { p.change(t, &c) },
			"time":   func(t *rapid.T) { pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond) },
			"drain": func(t *rapid.T) {
				if rapid.IntRange(0, 200).Draw(t, "really") == 0 {
					p.step(t, event.Signal{Kind: event.Drain})
				}
			},
		})
		pass(26 * time.Millisecond)
		if len(p.asked) > 0 {
			t.Fatalf("%d are never told", len(p.asked))
		}
		if len(p.in) > 0 {
			stream(t)
			pass(2*time.Second + 1) // its peer's, key's and tenant's time, and its turn
			if len(p.parts) > 0 {
				t.Fatalf("%d are never told whether they may go on", len(p.parts))
			}
		}
		for len(p.in) > 0 {
			settle(t)
		}
		var s event.Status
		p.node.Status(&s)
		if s.Permits != [types.NumFacets]uint32{} || s.Queued != [types.NumFacets][types.NumClasses]uint32{} {
			t.Fatalf("out %v, queued %v", s.Permits, s.Queued)
		}
		went, on[0], on[1] = went+p.goes, on[0]+p.on[0], on[1]+p.on[1]
		for i := range no {
			no[i] += p.no[i]
		}
	})
	for _, w := range []event.RejectReason{event.RejectQuotaExceeded, event.RejectPacingTimeout, event.RejectQueueFull, event.RejectRouteLimit, event.RejectQueueTimeout, event.RejectNotServing} {
		if no[w] == 0 && !t.Failed() {
			t.Errorf("nobody was refused for %v", w)
		}
	}
	if !t.Failed() && !testing.Short() && (on[0] < 100 || on[1] == 0) {
		t.Errorf("%d parts went on, %d did not: too little was tried", on[0], on[1])
	}
	t.Logf("%d went, refused %v; %d parts went on, %d did not", went, no, on[0], on[1])
}
