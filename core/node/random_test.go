package node_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// A randomNode is a node with random requests, and its frames that are not durable.
type randomNode struct {
	t        *testing.T
	node     *node.Node
	now      types.Now
	out      event.Effects
	frames   []event.Frame
	keys     int
	ticket   types.Ticket
	onRecord func(at types.Time, r *record.Record) // hears each record
}

func newRandomNode(t *testing.T, s state.State, c node.Config) *randomNode {
	t.Helper()
	g := &randomNode{t: t, node: node.New(c, s, 1, types.NewRand(1)), now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}}
	g.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	g.step(&event.CreateKey{Ticket: g.next(), Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	for c := range types.NumServices {
		g.step(event.ServiceUp{Service: c})
	}
	g.settle(len(g.frames))
	return g
}

func (g *randomNode) next() types.Ticket { g.ticket++; return g.ticket }

// step returns the problem of the last request, if it got a reply in this step.
func (g *randomNode) step(in event.Event) (problem event.Problem, any bool) {
	g.t.Helper()
	g.out.Reset()
	g.node.Step(g.now, in, &g.out)
	for _, f := range g.out.Frames {
		g.frames = append(g.frames, f)
		h, rest, err := record.Open(g.out.Body(f))
		for range h.Count {
			var r record.Record
			if err == nil {
				rest, err = record.Next(rest, &r)
			}
			if err == nil && g.onRecord != nil {
				g.onRecord(h.At, &r)
			}
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if err := g.node.Check(); err != nil {
		g.t.Fatal(err)
	}
	for _, r := range g.out.Replies {
		if r.Ticket == g.ticket {
			problem, any = r.Problem, true
		}
	}
	return problem, any
}

// settle makes n frames durable, applied and indexed.
func (g *randomNode) settle(n int) {
	if n == 0 {
		return
	}
	d := event.Durable{Upto: g.frames[n-1].LSN}
	for _, f := range g.frames[:n] {
		d.Bytes += uint64(f.Len)
	}
	g.frames = g.frames[n:]
	for _, in := range []event.Event{d, event.Applied{Upto: d.Upto}, event.Indexed{Upto: d.Upto}} {
		g.step(in)
	}
}

func (g *randomNode) issue() *event.Request {
	g.keys++
	r := &event.Request{Header: command.Header{Ticket: g.next(), Caller: boss, Tenant: 1, Key: name(fmt.Sprintf("k%d", g.keys)), IndexedTo: g.node.LSN()}}
	r.Item = event.Item{Op: event.Issue, To: name("ann"), Asset: name("EUR"), Amount: types.MinorUnits(1)}
	r.Seal(nil)
	return r
}

func (g *randomNode) status() (s event.Status) {
	g.node.Status(&s)
	return s
}

func (g *randomNode) goes(d time.Duration) {
	g.now.Mono, g.now.Wall = g.now.Mono.Add(d), g.now.Wall.Add(d)
	g.step(event.Tick{})
}

// TestBacklogIsBounded: whatever the requests and however slow the disk, the bytes that wait for it are bounded
// and counted.
func TestBacklogIsBounded(t *testing.T) {
	l := limits(8, 4096)
	c := config(l)
	c.MaxUnsyncedBytes = 4 << 10
	g, dice, problem := newRandomNode(t, state.New(l, 1), c), rand.New(rand.NewPCG(1, 1)), map[event.Problem]int{}
	for range 3000 {
		if dice.IntN(120) > 0 {
			if why, now := g.step(g.issue()); now {
				problem[why]++
			}
		} else if len(g.frames) > 0 {
			g.settle(1 + dice.IntN(len(g.frames)))
		}
		waits := uint64(0)
		for _, f := range g.frames {
			waits += uint64(f.Len)
		}
		if s := g.status(); s.Backlog != waits || waits > c.MaxUnsyncedBytes {
			t.Fatalf("%d bytes wait, counted as %d of %d", waits, s.Backlog, c.MaxUnsyncedBytes)
		}
	}
	if problem[event.Busy] < 100 || g.status().LSN < 100 {
		t.Fatalf("too little was tried: %v, %v", problem, g.status().LSN)
	}
}

// TestUntrustedClockExpiresNothing: while the clock is not trusted, no key is forgotten and no hold expires,
// whatever the machine's time is. With a trusted clock keys are.
func TestUntrustedClockExpiresNothing(t *testing.T) {
	l := limits(8, 4096)
	c := config(l)
	doubts, forgot := 0, 0
	for seed := range uint64(20) {
		g, dice := newRandomNode(t, state.New(l, 1), c), rand.New(rand.NewPCG(seed, 1))
		doubted := false
		g.onRecord = func(at types.Time, r *record.Record) {
			if r.Kind != record.KeysForgotten && r.Kind != record.HoldExpired {
				return
			}
			if forgot++; doubted && g.status().DegradedBy.Has(types.ClockUntrusted) {
				t.Fatalf("seed %d: %v at %d, in doubt", seed, r.Kind, at)
			}
		}
		for range 200 {
			doubted = g.status().DegradedBy.Has(types.ClockUntrusted)
			if doubted {
				doubts++
			}
			switch dice.IntN(8) {
			case 0:
				g.now.Wall = g.now.Wall.Add(time.Duration(dice.IntN(4)-1) * time.Hour)
				g.now.Synced = dice.IntN(3) == 0
			case 1, 2, 3:
				g.goes(time.Duration(1+dice.IntN(40)) * time.Second)
			default:
				g.step(g.issue())
			}
			g.settle(len(g.frames))
		}
	}
	if doubts < 100 || forgot < 20 {
		t.Fatalf("%d steps in doubt, %d times something ended: too little was tried", doubts, forgot)
	}
}

// TestTimeContinuesAfterRestart: no frame of a new process is older than the last one before, whatever the
// machine's time is.
func TestTimeContinuesAfterRestart(t *testing.T) {
	l := limits(8, 64)
	for _, ahead := range []time.Duration{0, time.Millisecond, time.Minute, time.Hour, 24 * time.Hour, 1000 * time.Hour} {
		s := state.New(l, 1)
		s.At = types.Time(1_700_000_000_000).Add(ahead)
		was := s.At
		g := &randomNode{t: t, node: node.New(config(l), s, 1, types.NewRand(1)), now: types.Now{Mono: 1, Wall: 1_700_000_000_000}}
		g.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
		g.goes(time.Second)
		if at := g.status().At; at < was || len(g.frames) == 0 {
			t.Errorf("%v ahead: the new time is %v before the old", ahead, time.Duration(was-at)*time.Millisecond)
		}
	}
}

// TestDrainingRejectsPolicy: while the node drains every request is rejected and nothing is written; before, it is
// served.
func TestDrainingRejectsPolicy(t *testing.T) {
	l := limits(8, 64)
	asks := map[string]func(*randomNode) event.Event{
		"money": func(g *randomNode) event.Event { return g.issue() },
		"a key that is new": func(g *randomNode) event.Event {
			return &event.CreateKey{Ticket: g.next(), Caller: boss, Tenant: 1, Key: event.Key{ID: 8, Tenant: 1, Scopes: event.AllScopes}}
		},
		"a key that is known": func(g *randomNode) event.Event {
			return &event.CreateKey{Ticket: g.next(), Key: event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}}
		},
		"the end of a key": func(g *randomNode) event.Event {
			return &event.RevokeKey{Ticket: g.next(), Caller: boss, Tenant: 1, Key: boss}
		},
	}
	c := config(l)
	c.Drain.LameDuck = time.Second
	for what, ask := range asks {
		for phase, until := range map[types.Phase][]time.Duration{types.Ready: nil, types.LameDuck: {0}, types.Draining: {0, time.Second}, types.Aborting: {0, time.Second, 3 * time.Second}} {
			g := newRandomNode(t, state.New(l, 1), c)
			g.step(g.issue()) // keeps a drain from its end
			for i, d := range until {
				if i == 0 {
					g.step(event.Signal{Kind: event.Drain})
				}
				g.goes(d)
			}
			before := g.status()
			why, now := g.step(ask(g))
			after := g.status()
			if before.Phase != phase || after.Phase != phase {
				t.Fatalf("%s: %v and %v, not %v", what, before.Phase, after.Phase, phase)
			}
			closed := phase >= types.Draining
			if closed != (now && why == event.Unavailable) || closed && after.LSN != before.LSN {
				t.Errorf("%s, %v: told %v %q, %v after %v", what, phase, now, why.Code(), after.LSN, before.LSN)
			}
		}
	}
}
