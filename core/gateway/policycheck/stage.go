package policycheck

import (
	"fmt"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// A kind of caller. All of one kind are one caller: of a key, or a stranger of an address.
type kind struct {
	class types.Class
	facet types.Facet
	route uint16
}

func (k kind) String() string { return fmt.Sprintf("%v callers of %v", k.class, k.facet) }

// A guest is one request that came.
type guest struct {
	kind
	ticket types.Ticket
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
	now    types.Now
	out    event.Effects
	said   []event.Decision      // in the last step
	asked  []event.UpstreamReply // the same
	gate   *event.Policy
	guests []guest
	calls  []call                 // with upstreams
	trail  []string               // what has happened
	counts [quota.MaxRules]uint64 // of each rule, since the beginning
	use    uint32
}

const began = 1_700_000_000_000

// small is a node of a gate with nothing else in it, that serves.
func (p *play) small(places int, g *event.Policy) *stage {
	c := node.Config{
		State: state.Limits{Ledger: ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
			Idempotency: idempotency.Limits{Keys: 1, PerTenant: 1, Tenants: 1, TTL: time.Hour, MinRetention: time.Second}, Keys: 1},
		MaxHeldReplies: places, MaxUnsyncedBytes: 1 << 20, CommitTimeout: time.Second, StallThreshold: time.Second, SyncTimeout: time.Minute, HeartbeatInterval: never, SweepInterval: never, StartTimeout: never,
		Drain: drain.Times{}, Admission: admission.Limits{Places: places, Least: 1, Grace: time.Second}, QuotaLimits: quota.Limits{Peers: 2, Keys: 1, Tenants: 1}, MaxUpstreamCalls: places,
	}.WithPolicy(g)
	s := &stage{play: p, node: *node.New(c, state.New(c.State, 1), 0, types.NewRand(1)), now: types.Now{Wall: began}, gate: g}
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 1}})
	s.step(&event.CreateKey{Key: event.Key{ID: key, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	for child := range types.NumServices {
		s.step(event.ServiceUp{Service: child})
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
	s.said, s.asked = append(s.said, s.out.Decisions...), append(s.asked, s.out.UpstreamReplies...)
	if len(s.out.Frames) == 0 {
		return
	}
	flushed := event.Durable{}
	for _, f := range s.out.Frames {
		flushed.Upto, flushed.Bytes = f.LSN, flushed.Bytes+uint64(f.Len)
	}
	s.step(flushed)
	s.step(event.Applied{Upto: flushed.Upto})
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
func (s *stage) told(v *event.Decision) error {
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

func (s *stage) count(f types.Facet, state uint8) (n int) {
	for i := range s.guests {
		if s.guests[i].facet == f && s.guests[i].state == state {
			n++
		}
	}
	return n
}

// arrive lets one of a kind come, and says what he was told at once; told is false where he
// waits.
func (s *stage) arrive(k kind) (v event.Decision, told bool, err error) {
	slot := uint32(0)
	for i := 0; i < len(s.guests); i++ {
		if s.guests[i].state != over && s.guests[i].ticket.Slot() == slot {
			slot, i = slot+1, -1
		}
	}
	s.use++
	e := event.Admit{Ticket: types.NewTicket(slot, s.use), Class: k.class, Facet: k.facet, Route: k.route, DeclaredBytes: 1, TimeLeft: patience, Peer: types.NameHash{1}}
	if k.class != types.ClassAnon {
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
			return true, s.hear(&event.Finish{Ticket: g.ticket, Bytes: 1}, fmt.Sprintf("one of the %v leaves", g.kind))
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
			return true, s.hear(&event.ReserveBytes{Ticket: g.ticket, Bytes: s.gate.Quantum}, fmt.Sprintf("one of the %v sends more", g.kind))
		}
	}
	return false, nil
}

// pass lets time go by, and does what is due meanwhile.
func (s *stage) pass(d time.Duration) error {
	end := s.now.Mono.Add(d)
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

func (s *stage) set(at types.Instant) {
	s.now.Mono, s.now.Wall = at, types.Time(began)+types.Time(int64(at)/1e6)
}
