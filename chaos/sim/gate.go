package sim

import (
	"fmt"
	"slices"
	"time"

	"macronode/adapters/loop"
	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/upstream"
	"macronode/core/words"
)

// How the gate of a life is: so wide that nobody minds, or narrow in one way or both.
const (
	narrowPermits = 1 << iota
	smallQuotas
)

// Numbers of the quotas, from 1. Those that are wide have the same.
const (
	ofInstance = 1 + iota
	ofPeer
	ofTenant
	ofKey
	shadowOfPeer
	shadowOfTenant
	ofInstanceBytes // from here on, those that few lives begin with, and that a change may bring
	ofPeerBytes
	ofRoute
	ofRouteBytes
)

// mostWait is in a queue of the gate, whatever it is changed to.
const mostWait = 50 * time.Millisecond

// quotas are small, or so wide that nobody minds: the cost of each unit is a whole number of
// nanoseconds.
func quotas(small bool) []quota.Rule {
	keyed, strangers := quota.Of(words.Internal, words.Authed), quota.Of(words.Anon)
	of := func(little, much uint64) uint64 {
		if small {
			return little
		}
		return much
	}
	requests, bytes := func(few uint64) uint64 { return of(few, 1_000_000) }, func(few uint64) uint64 { return of(few, 1_000_000_000) }
	burst := of(1, 1000)
	return []quota.Rule{
		ofInstance - 1:      {Scope: words.OfInstance, Rate: requests(25), Every: time.Second, Burst: 8 * burst, Classes: quota.All},
		ofPeer - 1:          {Scope: words.OfPeer, Rate: requests(10), Every: time.Second, Burst: 2 * burst, Classes: strangers},
		ofTenant - 1:        {Scope: words.OfTenant, Rate: requests(20), Every: time.Second, Burst: 4 * burst, Classes: keyed},
		ofKey - 1:           {Scope: words.OfKey, Unit: words.Bytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: keyed},
		shadowOfPeer - 1:    {Scope: words.OfPeer, Rate: requests(10), Every: 2 * time.Second, Burst: burst, Classes: strangers, Shadow: true},
		shadowOfTenant - 1:  {Scope: words.OfTenant, Rate: requests(20), Every: 4 * time.Second, Burst: burst, Classes: keyed, Shadow: true},
		ofInstanceBytes - 1: {Scope: words.OfInstance, Unit: words.Bytes, Rate: bytes(100_000), Every: time.Second, Burst: bytes(10_000), Classes: quota.All},
		ofPeerBytes - 1:     {Scope: words.OfPeer, Unit: words.Bytes, Rate: bytes(10_000), Every: time.Second, Burst: bytes(5_000), Classes: strangers},
		ofRoute - 1:         {Scope: words.OfRoute, Route: 3, Rate: requests(5), Every: time.Second, Burst: 3 * burst, Classes: quota.All},
		ofRouteBytes - 1:    {Scope: words.OfRoute, Route: 2, Unit: words.Bytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: quota.All},
	}
}

// door is how many of each class the shell lets ask and work at once.
func door(gate int) loop.Door {
	if gate&narrowPermits != 0 {
		return loop.Door{9, 15, 12}
	}
	return loop.Door{8, 16, 12}
}

// gateway is what c has for those who come: the part of a configuration that says who is
// let in.
func gateway(c node.Config, gate int) node.Config {
	l := admit.Limits{Places: door(gate).All(), Quantum: 8 << 10, Weights: [words.Classes]uint64{4, 2, 1}, Least: 512,
		Wait: 25 * time.Millisecond, Grace: 200 * time.Millisecond, Routes: []int{0, 2, 1}}
	for f := range l.Facets {
		l.Facets[f] = admit.Facet{Permits: l.Places, Queue: 12, Class: [words.Classes]int{4, 4, 4}, Flow: 4}
		if gate&narrowPermits != 0 {
			l.Facets[f] = admit.Facet{Permits: 2, Queue: 6, Class: [words.Classes]int{2, 2, 2}, Flow: 1, ClassPermits: [words.Classes]int{2, 2, 1}, FlowPermits: 1}
		}
	}
	if gate&narrowPermits != 0 { // one tenant's clients may fill their class
		l.Facets[words.Money] = admit.Facet{Permits: 2, Queue: 7, Class: [words.Classes]int{2, 3, 2}, Flow: 3}
		l.Facets[words.Lists] = admit.Facet{Permits: 1, Queue: 8, Class: [words.Classes]int{2, 4, 2}, Flow: 2}
		l.Facets[words.Streams].Permits = 1 // with those of Beyond, no more than calls
	}
	c.Admit, c.Subjects, c.Pace = l, quota.Limits{Peers: 3, Keys: 64, Tenants: 8}, 5*time.Millisecond
	c.Quotas = quotas(gate&smallQuotas != 0)
	r := upstream.Default(endpoints)
	r.Eject, r.Out, r.Least, r.Rest, r.Floor, r.Trials = 2, 300*time.Millisecond, 3, 200*time.Millisecond, 2, 1
	c.Calls, c.Beyond = 3, []upstream.Rules{r, r}
	return c
}

// Visit is where a request at the gate stands.
type visit uint8

const (
	away   visit = iota
	knocks       // it has entered, and has not heard
	works        // it was told to go
)

// pass is one request at the gate, of a client or of a visitor.
type pass struct {
	is     visit
	at     uint32 // its slot
	in     event.Arrive
	ticket words.Ticket // of one that works
	why    event.Why    // it was told last
}

// A GateCell is who came, to which facet, and what he was told.
type GateCell struct {
	Class words.Class
	Facet words.Facet
	Why   event.Why
}

func (c GateCell) String() string { return fmt.Sprintf("%v, %v: %v", c.Class, c.Facet, c.Why) }

// GateCells are all there could be.
func GateCells() (all []GateCell) {
	for class := range words.Classes {
		for facet := range words.Facets {
			for why := range event.Whys {
				all = append(all, GateCell{class, facet, why})
			}
		}
	}
	return all
}

// spot is what stands in a slot, as far as the world saw.
type spot struct {
	class words.Class
	facet words.Facet
	works bool          // it was told to go
	told  bool          // and has been handed that: what else it is told is of a part of its bodies
	asks  bool          // whether such a part may go, and was not handed the word
	left  bool          // whoever asked does not wait for the verdict
	until words.Instant // its permit is its own
}

// opens is a gate of a new process: nobody is in.
func (w *World) opens() {
	if slices.ContainsFunc(w.visitors[:], func(v visitor) bool { return v.is == works }) {
		w.Saw["the power went, and permits were out"]++
	}
	w.taken, w.broken = 0, 0
	w.gate = loop.NewGate(door(w.narrow))
	w.places = make([]spot, w.gate.Size())
	w.visitors, w.moods = [len(w.visitors)]visitor{}, [len(w.moods)]mood{}
	for i := range w.visitors {
		w.visitors[i].number = i
	}
}

// knock has a request enter. Where all slots of its class are in use, the shell refuses it.
func (w *World) knock(p *pass, in event.Arrive) {
	at, ok := w.gate.Enter(in)
	if !ok {
		w.gated(in.Class, in.Facet, event.NoSlot)
		return
	}
	*p = pass{is: knocks, at: at, in: in}
	w.places[at] = spot{class: in.Class, facet: in.Facet}
}

// hears is what a request was told, if it was.
func (w *World) hears(p *pass) (v event.Verdict, ok bool) {
	if v, ok = w.gate.Hear(p.at); !ok {
		return v, false
	}
	if p.is, p.ticket, p.why = works, v.Ticket, v.Why; v.Problem != event.None {
		p.is = away
	}
	return v, true
}

// settles ends a request that works, through which so many bytes went; leaves one that waits.
func (w *World) settles(p *pass, bytes uint64) {
	if p.is == works {
		fate := event.Fate(p.ticket>>32+p.ticket) % event.Fates // of one slot now this, now that
		w.gate.Settle(p.ticket, bytes, fate)
		w.note(w.draining && fate != event.Done, "ended in a drain: "+fate.String())
		p.is = away
	}
}

func (w *World) leaves(p *pass) {
	if p.is == knocks {
		w.gate.Leave(p.at)
		w.places[p.at].left = true
		p.is = away
	}
}

// gated counts what one was told.
func (w *World) gated(class words.Class, facet words.Facet, why event.Why) {
	w.GateCells[GateCell{class, facet, why}]++
	w.Saw["gate: "+why.String()]++
}

// toldAtGate notes what a step of the node was to those at the gate.
func (w *World) toldAtGate(in event.Event, told []event.Verdict) {
	arrives, ok := in.(*event.Arrive)
	if ok {
		w.places[arrives.Ticket.Slot()].until = w.now.Mono.Plus(max(arrives.Patience, arrives.Keeps) + w.config.Admit.Grace)
	}
	if in, ok := in.(*event.Stream); ok && !slices.ContainsFunc(told, func(v event.Verdict) bool { return v.Ticket == in.Ticket }) {
		w.Saw["more of a body waits"]++
	}
	for _, v := range told {
		p := w.places[v.Ticket.Slot()]
		if p.works { // it is told of a part of its bodies
			continue
		}
		w.places[v.Ticket.Slot()].works = v.Why == event.Admitted
		if v.Why == event.NotServing && !ok {
			w.Saw["waited at the gate, and is told to go elsewhere"]++
		}
		if v.Why != event.Admitted || p.class == words.Anon || w.narrow == 0 {
			continue
		}
		if _, s := w.trace.Around(); s.Queued[p.facet][words.Anon] > 0 {
			w.Saw["who has shown a key goes, and strangers wait"]++
		}
	}
}

// verdicts carries what a turn said to who waits at the gate, as the loop does.
func (w *World) verdicts(stepped []event.Event) {
	w.gate.Free(stepped)
	for _, v := range w.out.Verdicts {
		spot := &w.places[v.Ticket.Slot()]
		p := *spot
		if spot.told = true; p.told {
			if spot.asks = false; !p.asks {
				w.fail("stream", "%v is told of what it did not ask: %+v", v.Ticket, v)
			}
			w.gate.Deliver(v)
			continue
		}
		w.gated(p.class, p.facet, v.Why)
		if p.left {
			w.Saw["a verdict for who has left"]++
		}
		if p.left && v.Why == event.Admitted {
			w.Saw["a permit for who has left"]++
		}
		if v.Why == event.Admitted && v.Waited > 0 {
			w.Saw["waited for a permit, and got it"]++
		}
		if v.Shadow != 0 {
			w.Saw["a shadow would have refused"]++
		}
		w.gate.Deliver(v)
	}
}

// arrival is that of a client: by its key, if it has one here.
func (c *client) arrival() event.Arrive {
	in := event.Arrive{Class: words.Authed, Facet: words.Money, Tenant: c.tenant, Key: c.caller, Bytes: 100, Answer: 200, Patience: config().Patience}
	if c.boss {
		in.Key = boss.ID
	}
	if c.tenant != boss.Tenant {
		in.Class, in.Tenant, in.Key = words.Anon, 0, 0
	}
	in.Peer[7] = c.mark[0]
	return in
}

// admitted reports that p may go. It asks, where it has not; in a life without trouble at the
// gate it is told at once.
func (w *World) admitted(p *pass, in event.Arrive) bool {
	if p.is == away {
		w.knock(p, in)
		if p.is == knocks && (w.odds.gate == 0 || w.c.Choose("gate/at-once", 3) != 1) {
			w.lets()
		}
	}
	if p.is == knocks {
		if v, ok := w.hears(p); ok && v.Problem != event.None {
			w.tell(clients, decider, told, "the gate: %v, for %v", v.Problem, v.Why)
		}
	}
	return p.is == works
}

// lets is a turn of those alone who are at the gate.
func (w *World) lets() {
	var events []event.Event
	for e := w.gate.Comes(); e != nil; e = w.gate.Comes() {
		events = append(events, e)
	}
	if len(events) > 0 {
		w.step(events...)
	}
}

// empties sends everybody home, and wants the gate as it was when nobody had come yet: all
// permits, all slots, all calls to upstreams.
func (w *World) empties() {
	for _, c := range w.clients {
		if c.out != 0 {
			c.leave(w)
		}
		w.leaves(&c.pass)
		w.settles(&c.pass, 0)
	}
	for t, two := range w.twins { //nolint:maporder // all of them
		w.promise.left[t] = true
		w.settles(two.pass, 0)
	}
	clear(w.twins)
	for i := range w.visitors {
		w.visitors[i].goes(w)
	}
	w.lets()
	w.pass(mostWait)
	w.lets() // for whom nobody waited
	w.freed()
}

// freed wants nobody to be in.
func (w *World) freed() {
	var s event.Status
	w.node.Status(&s)
	if s.Out != [words.Facets]uint32{} || s.Queued != [words.Facets][words.Classes]uint32{} {
		w.fail("permit-lost", "everybody has left: out %v, queued %v", s.Out, s.Queued)
	}
	for c := range words.Classes {
		if n := w.gate.In(c); n > 0 {
			w.fail("slot-lost", "everybody has left: %d slots of class %v are in use", n, c)
		}
	}
	w.calls()
}
