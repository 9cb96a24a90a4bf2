package node_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/state"
	"macronode/core/words"
)

// A porter is the shell at the gate: it knows what it has asked, and is told.
type porter struct {
	node  *node.Node
	now   words.Now
	out   event.Effects
	asked map[words.Ticket]bool // and not told
	in    map[words.Ticket]bool // told to go
	uses  uint32
	went  int
	no    [event.Whys]int
}

// step lets the node hear e; every verdict is of somebody who waits for one.
func (p *porter) step(t rapid.TB, e event.Event) {
	p.out.Reset()
	p.node.Step(p.now, e, &p.out)
	for _, v := range p.out.Verdicts {
		if !p.asked[v.Ticket] {
			t.Fatalf("%+v is told, and did not ask", v)
		}
		delete(p.asked, v.Ticket)
		if (v.Problem == event.None) != (v.Why == event.Admitted) {
			t.Fatalf("%+v", v)
		}
		if v.Problem == event.None {
			p.in[v.Ticket] = true
			p.went++
		}
		p.no[v.Why]++
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
		p.step(t, event.Folded{Upto: flushed.Upto})
	}
}

// begin brings the node up.
func (p *porter) begin(t rapid.TB) {
	for _, e := range []event.Event{event.Boot{Found: event.Recovery{Journal: 9}}, &event.Enrol{Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Boot: true}},
		event.ChildUp{Child: words.ChildHTTP}, event.ChildUp{Child: words.ChildAdmin}, event.ChildUp{Child: words.ChildSampler}} {
		p.step(t, e)
	}
}

// TestEveryArrivalIsTold: whatever comes and goes in whatever order, each arrival is told
// one thing, once, within the time that a queue takes; nobody is let in beyond the permits;
// and when all have left, all permits are there.
func TestEveryArrivalIsTold(t *testing.T) {
	var went, no = 0, [event.Whys]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := limits(8, 4)
		c := config(l)
		c.Quotas = []quota.Rule{
			{Scope: words.OfInstance, Rate: rapid.SampledFrom([]uint64{50, 1e6}).Draw(t, "rate"), Every: time.Second, Burst: 2, Classes: quota.All},
			{Scope: words.OfPeer, Rate: 20, Every: time.Second, Burst: 3, Classes: quota.Of(words.Anon)},
		}
		p := &porter{node: node.New(c, state.New(l, 1), 0, words.NewDice(1)), now: words.Now{Wall: 1_700_000_000_000},
			asked: map[words.Ticket]bool{}, in: map[words.Ticket]bool{}}
		p.begin(t)
		slots := map[uint32]words.Ticket{}
		first := func(of map[words.Ticket]bool) (least words.Ticket) { // the lowest, so that a run repeats
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
			in := &event.Arrive{Ticket: words.NewTicket(slot, p.uses), Class: words.Class(rapid.IntRange(0, 2).Draw(t, "class")), Facet: words.Facet(rapid.IntRange(0, 1).Draw(t, "facet")),
				Route: uint16(rapid.IntRange(0, 9).Draw(t, "route")), Bytes: 10, Patience: time.Second}
			if in.Class != words.Anon {
				in.Key, in.Tenant = boss, words.Tenant(1+rapid.IntRange(0, 5).Draw(t, "tenant")/5)
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
				p.step(t, &event.Settle{Ticket: ticket, Bytes: rapid.Uint64Range(0, 1<<20).Draw(t, "bytes")})
			}
		}
		pass := func(d time.Duration) {
			for end := p.now.Mono.Plus(d); ; {
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
			"arrive": arrive, "arrive again": burst, "arrive more": burst, "settle": settle,
			"stale": func(t *rapid.T) { // a word about an earlier use
				p.step(t, &event.Settle{Ticket: words.NewTicket(rapid.Uint32Range(0, 15).Draw(t, "slot"), 0)})
			},
			"time": func(t *rapid.T) { pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond) },
			"drain": func(t *rapid.T) {
				if rapid.IntRange(0, 200).Draw(t, "really") == 0 {
					p.step(t, event.Signal{What: event.Drain})
				}
			},
		})
		pass(26 * time.Millisecond)
		if len(p.asked) > 0 {
			t.Fatalf("%d are never told", len(p.asked))
		}
		for len(p.in) > 0 {
			settle(t)
		}
		var s event.Status
		p.node.Status(&s)
		if s.Out != [words.Facets]uint32{} || s.Queued != [words.Facets][words.Classes]uint32{} {
			t.Fatalf("out %v, queued %v", s.Out, s.Queued)
		}
		went += p.went
		for i := range no {
			no[i] += p.no[i]
		}
	})
	for _, w := range []event.Why{event.OverQuota, event.OverPace, event.QueueFull, event.OverRoute, event.WaitedLong, event.NotServing} {
		if no[w] == 0 && !t.Failed() {
			t.Errorf("nobody was refused for %v", w)
		}
	}
	t.Logf("%d went, refused %v", went, no)
}
