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

// A kind of caller. All requests of one kind come from one caller: a key, or a peer without a
// key.
type kind struct {
	class types.Class
	facet types.Facet
	route uint16
}

func (k kind) String() string { return fmt.Sprintf("%v callers of %v", k.class, k.facet) }

// A request is one request of a caller.
type request struct {
	kind
	ticket types.Ticket
	state  uint8
	asks   bool   // waiting for a decision on its bytes
	rules  uint16 // bit i: quota i+1 has counted the request
}

const (
	waits uint8 = iota
	in
	finished
)

// simulation is a node and the requests that it handles.
type simulation struct {
	play      *play
	node      node.Node
	now       types.Now
	out       event.Effects
	decisions []event.Decision      // in the last step
	replies   []event.UpstreamReply // in the last step
	gate      *event.Policy
	requests  []request
	calls     []call                 // to upstreams
	events    []string               // the events so far
	counts    [quota.MaxRules]uint64 // admitted by each quota, since the start
	use       uint32
}

const began = 1_700_000_000_000

// newSimulation returns a node that serves, with a policy and as little state as possible.
func (p *play) newSimulation(places int, g *event.Policy) *simulation {
	c := node.Config{
		State: state.Limits{Ledger: ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
			Idempotency: idempotency.Limits{Keys: 1, PerTenant: 1, Tenants: 1, TTL: time.Hour, MinRetention: time.Second}, Keys: 1},
		MaxHeldReplies: places, MaxUnsyncedBytes: 1 << 20, CommitTimeout: time.Second, StallThreshold: time.Second, SyncTimeout: time.Minute, HeartbeatInterval: never, SweepInterval: never, StartTimeout: never,
		Drain: drain.Times{}, Admission: admission.Limits{Places: places, Least: 1, Grace: time.Second}, QuotaLimits: quota.Limits{Peers: 2, Keys: 1, Tenants: 1}, MaxUpstreamCalls: places,
	}.WithPolicy(g)
	s := &simulation{play: p, node: *node.New(c, state.New(c.State, 1), 0, types.NewRand(1)), now: types.Now{Wall: began}, gate: g}
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

func (s *simulation) copyTo(t *simulation) {
	of, out, requests, calls, events, decisions, replies := t.node, t.out, t.requests, t.calls, t.events, t.decisions, t.replies
	s.node.CopyTo(&of)
	*t = *s
	t.node, t.out, t.decisions, t.replies = of, out, decisions[:0], replies[:0]
	t.requests, t.calls, t.events = append(requests[:0], s.requests...), append(calls[:0], s.calls...), append(events[:0], s.events...)
}

// step handles e. Every flush succeeds at once.
func (s *simulation) step(e event.Event) {
	s.play.steps++
	s.out.Reset()
	s.node.Step(s.now, e, &s.out)
	s.decisions, s.replies = append(s.decisions, s.out.Decisions...), append(s.replies, s.out.UpstreamReplies...)
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

// handle handles e and the decisions that follow.
func (s *simulation) handle(e event.Event, what string) error {
	s.events, s.decisions, s.replies = append(s.events, what), s.decisions[:0], s.replies[:0]
	s.step(e)
	for i := range s.decisions {
		if err := s.decide(&s.decisions[i]); err != nil {
			return err
		}
	}
	if err := s.node.Check(); err != nil {
		return s.wrong("%w", err)
	}
	return nil
}

func (s *simulation) wrong(format string, args ...any) error {
	return fmt.Errorf("%w, after: %s", fmt.Errorf(format, args...), strings.Join(s.events, ", "))
}

// decide handles a decision on a request.
func (s *simulation) decide(v *event.Decision) error {
	for i := range s.requests {
		g := &s.requests[i]
		if g.asks && g.ticket == v.Ticket {
			g.asks = false
			return nil
		}
		if g.ticket != v.Ticket || g.state != waits {
			continue
		}
		if v.Problem != event.None {
			g.state = finished
			s.uncharge(g)
			return nil
		}
		g.state = in
		s.charge(g, true)
		switch of := &s.gate.Facets[g.facet]; {
		case s.gate.Weights[g.class] == 0:
			return s.wrong("%v are admitted although they are not served", g.kind)
		case s.count(g.facet, in) > of.Permits:
			return s.wrong("%v admits a request without a permit", g.facet)
		}
		return nil
	}
	return s.wrong("a decision on a request that does not wait")
}

func (s *simulation) count(f types.Facet, state uint8) (n int) {
	for i := range s.requests {
		if s.requests[i].facet == f && s.requests[i].state == state {
			n++
		}
	}
	return n
}

// arrive sends a request of a kind and returns its decision. decided is false if it waits.
func (s *simulation) arrive(k kind) (v event.Decision, decided bool, err error) {
	slot := uint32(0)
	for i := 0; i < len(s.requests); i++ {
		if s.requests[i].state != finished && s.requests[i].ticket.Slot() == slot {
			slot, i = slot+1, -1
		}
	}
	s.use++
	e := event.Admit{Ticket: types.NewTicket(slot, s.use), Class: k.class, Facet: k.facet, Route: k.route, DeclaredBytes: 1, TimeLeft: patience, Peer: types.NameHash{1}}
	if k.class != types.ClassAnon {
		e.Key, e.Tenant = key, 1
	}
	s.requests = append(s.requests, request{kind: k, ticket: e.Ticket})
	err = s.handle(&e, fmt.Sprintf("%v arrive", k))
	if g := &s.requests[len(s.requests)-1]; g.state != finished {
		s.charge(g, false)
	}
	for i := range s.decisions {
		if s.decisions[i].Ticket == e.Ticket {
			v, decided = s.decisions[i], true
		}
	}
	return v, decided, err
}

// finish finishes the first request in a state. any is false if there is none.
func (s *simulation) finish(state uint8) (any bool, err error) {
	for i := range s.requests {
		if g := &s.requests[i]; g.state == state {
			if g.state == waits {
				s.uncharge(g)
			}
			g.state, g.asks = finished, false
			return true, s.handle(&event.Finish{Ticket: g.ticket, Bytes: 1}, fmt.Sprintf("one of the %v finishes", g.kind))
		}
	}
	return false, nil
}

// reserveBytes lets the first admitted request reserve more bytes. any is false if there is none.
func (s *simulation) reserveBytes() (any bool, err error) {
	for i := range s.requests {
		if g := &s.requests[i]; g.state == in && !g.asks {
			g.asks = true
			return true, s.handle(&event.ReserveBytes{Ticket: g.ticket, Bytes: s.gate.Quantum}, fmt.Sprintf("one of the %v sends more", g.kind))
		}
	}
	return false, nil
}

// advance advances the time and handles the events that become due.
func (s *simulation) advance(d time.Duration) error {
	end := s.now.Mono.Add(d)
	for range 64 {
		due, any := s.node.Due()
		if !any || due > end {
			s.set(end)
			return nil
		}
		s.set(max(s.now.Mono, due))
		if err := s.handle(event.Tick{}, "a tick"); err != nil {
			return err
		}
		if again, any := s.node.Due(); any && again <= s.now.Mono {
			return s.wrong("a due event is still due after its tick")
		}
	}
	return s.wrong("events never stop")
}

func (s *simulation) set(at types.Instant) {
	s.now.Mono, s.now.Wall = at, types.Time(began)+types.Time(int64(at)/1e6)
}
