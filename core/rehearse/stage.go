package rehearse

import (
	"fmt"
	"strings"
	"time"

	"macronode/core/admit"
	"macronode/core/drain"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/state"
	"macronode/core/words"
)

// A kind of caller. All of one kind are one caller: of a key, or a stranger of an address.
type kind struct {
	class words.Class
	facet words.Facet
	route uint16
}

func (k kind) String() string { return fmt.Sprintf("%v callers of %v", k.class, k.facet) }

// A guest is one request that came.
type guest struct {
	kind
	ticket words.Ticket
	state  uint8
	asks   bool   // whether more of its bodies may go on
	rules  uint16 // bit i: quota i+1 has counted it
}

const (
	waits uint8 = iota
	in
	over
)

// stage is a node at its door, and who is there.
type stage struct {
	play   *play
	node   node.Node
	now    words.Now
	out    event.Effects
	said   []event.Verdict // in the last step
	asked  []event.Told    // the same
	gate   *event.Gate
	guests []guest
	calls  []call                 // with upstreams
	trail  []string               // what has happened
	counts [quota.MaxRules]uint64 // of each rule, since the beginning
	use    uint32
}

const began = 1_700_000_000_000

// small is a node of a gate with nothing else in it, that serves.
func (p *play) small(places int, g *event.Gate) *stage {
	c := node.Config{
		State: state.Limits{Ledger: ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
			Idem: idem.Limits{Keys: 1, Share: 1, Tenants: 1, TTL: time.Hour, Trail: time.Second}, Keys: 1},
		Held: places, Backlog: 1 << 20, Patience: time.Second, Stall: time.Second, Fail: time.Minute, Vouch: never, Sweep: never, Start: never,
		Drain: drain.Times{}, Admit: admit.Limits{Places: places, Least: 1, Grace: time.Second}, Subjects: quota.Limits{Peers: 2, Keys: 1, Tenants: 1}, Calls: places,
	}.With(g)
	s := &stage{play: p, node: *node.New(c, state.New(c.State, 1), 0, words.NewDice(1)), now: words.Now{Wall: began}, gate: g}
	s.step(event.Boot{Found: event.Recovery{Journal: 1}})
	s.step(&event.Enrol{Key: event.Key{ID: key, Tenant: 1, Scopes: event.AllScopes, Boot: true}})
	for child := range words.Children {
		s.step(event.ChildUp{Child: child})
	}
	return s
}

const (
	key      = 1
	never    = 4 * 366 * 24 * time.Hour
	patience = 5 * time.Second
)

func (s *stage) copyTo(t *stage) {
	of, out, guests, calls, trail, said, asked := t.node, t.out, t.guests, t.calls, t.trail, t.said, t.asked
	s.node.CopyTo(&of)
	*t = *s
	t.node, t.out, t.said, t.asked = of, out, said[:0], asked[:0]
	t.guests, t.calls, t.trail = append(guests[:0], s.guests...), append(calls[:0], s.calls...), append(trail[:0], s.trail...)
}

// step lets the node hear e. The disk is quick.
func (s *stage) step(e event.Event) {
	s.play.steps++
	s.out.Reset()
	s.node.Step(s.now, e, &s.out)
	s.said, s.asked = append(s.said, s.out.Verdicts...), append(s.asked, s.out.Told...)
	if len(s.out.Frames) == 0 {
		return
	}
	flushed := event.Durable{}
	for _, f := range s.out.Frames {
		flushed.Upto, flushed.Bytes = f.LSN, flushed.Bytes+uint64(f.Len)
	}
	s.step(flushed)
	s.step(event.Folded{Upto: flushed.Upto})
}

// hear lets the node hear e, and notes who is told what.
func (s *stage) hear(e event.Event, said string) error {
	s.trail, s.said, s.asked = append(s.trail, said), s.said[:0], s.asked[:0]
	s.step(e)
	for i := range s.said {
		if err := s.told(&s.said[i]); err != nil {
			return err
		}
	}
	if err := s.node.Check(); err != nil {
		return s.wrong("%w", err)
	}
	return nil
}

func (s *stage) wrong(format string, args ...any) error {
	return fmt.Errorf("%w, after: %s", fmt.Errorf(format, args...), strings.Join(s.trail, ", "))
}

// told notes a verdict: of somebody who waits for one.
func (s *stage) told(v *event.Verdict) error {
	for i := range s.guests {
		g := &s.guests[i]
		if g.asks && g.ticket == v.Ticket {
			g.asks = false
			return nil
		}
		if g.ticket != v.Ticket || g.state != waits {
			continue
		}
		if v.Problem != event.None {
			g.state = over
			s.undone(g)
			return nil
		}
		g.state = in
		s.charged(g, true)
		switch of := &s.gate.Facets[g.facet]; {
		case s.gate.Weights[g.class] == 0:
			return s.wrong("%v are let in, who are not served", g.kind)
		case s.count(g.facet, in) > of.Permits:
			return s.wrong("%v has more at work than permits, and one more is let in", g.facet)
		}
		return nil
	}
	return s.wrong("somebody is told who does not wait")
}

func (s *stage) count(f words.Facet, state uint8) (n int) {
	for i := range s.guests {
		if s.guests[i].facet == f && s.guests[i].state == state {
			n++
		}
	}
	return n
}

// arrive lets one of a kind come, and says what he was told at once; told is false where he
// waits.
func (s *stage) arrive(k kind) (v event.Verdict, told bool, err error) {
	slot := uint32(0)
	for i := 0; i < len(s.guests); i++ {
		if s.guests[i].state != over && s.guests[i].ticket.Slot() == slot {
			slot, i = slot+1, -1
		}
	}
	s.use++
	e := event.Arrive{Ticket: words.NewTicket(slot, s.use), Class: k.class, Facet: k.facet, Route: k.route, Bytes: 1, Patience: patience, Peer: words.ID{1}}
	if k.class != words.Anon {
		e.Key, e.Tenant = key, 1
	}
	s.guests = append(s.guests, guest{kind: k, ticket: e.Ticket})
	err = s.hear(&e, fmt.Sprintf("%v come", k))
	if g := &s.guests[len(s.guests)-1]; g.state != over {
		s.charged(g, false)
	}
	for i := range s.said {
		if s.said[i].Ticket == e.Ticket {
			v, told = s.said[i], true
		}
	}
	return v, told, err
}

// leaves settles the first who is in a state; false where there is none.
func (s *stage) leaves(state uint8) (any bool, err error) {
	for i := range s.guests {
		if g := &s.guests[i]; g.state == state {
			if g.state == waits {
				s.undone(g)
			}
			g.state, g.asks = over, false
			return true, s.hear(&event.Settle{Ticket: g.ticket, Bytes: 1}, fmt.Sprintf("one of the %v leaves", g.kind))
		}
	}
	return false, nil
}

// streams has the first who is let in, and does not ask yet, ask to send more; false where
// there is none.
func (s *stage) streams() (any bool, err error) {
	for i := range s.guests {
		if g := &s.guests[i]; g.state == in && !g.asks {
			g.asks = true
			return true, s.hear(&event.Stream{Ticket: g.ticket, Bytes: s.gate.Quantum}, fmt.Sprintf("one of the %v sends more", g.kind))
		}
	}
	return false, nil
}

// pass lets time go by, and does what is due meanwhile.
func (s *stage) pass(d time.Duration) error {
	end := s.now.Mono.Plus(d)
	for range 64 {
		due, any := s.node.Due()
		if !any || due > end {
			s.set(end)
			return nil
		}
		s.set(max(s.now.Mono, due))
		if err := s.hear(event.Tick{}, "a tick"); err != nil {
			return err
		}
		if again, any := s.node.Due(); any && again <= s.now.Mono {
			return s.wrong("what is due is still so behind its tick")
		}
	}
	return s.wrong("it is never quiet")
}

func (s *stage) set(at words.Instant) {
	s.now.Mono, s.now.Wall = at, words.Time(began)+words.Time(int64(at)/1e6)
}
