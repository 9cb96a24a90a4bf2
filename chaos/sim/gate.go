package sim

import (
	"fmt"
	"slices"
	"time"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/types"
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
	keyed, strangers := quota.ClassSetOf(types.ClassInternal, types.ClassAuthed), quota.ClassSetOf(types.ClassAnon)
	of := func(little, much uint64) uint64 {
		if small {
			return little
		}
		return much
	}
	requests, bytes := func(few uint64) uint64 { return of(few, 1_000_000) }, func(few uint64) uint64 { return of(few, 1_000_000_000) }
	burst := of(1, 1000)
	return []quota.Rule{
		ofInstance - 1:      {Scope: types.ScopeInstance, Rate: requests(25), Every: time.Second, Burst: 8 * burst, Classes: quota.AllClasses},
		ofPeer - 1:          {Scope: types.ScopePeer, Rate: requests(10), Every: time.Second, Burst: 2 * burst, Classes: strangers},
		ofTenant - 1:        {Scope: types.ScopeTenant, Rate: requests(20), Every: time.Second, Burst: 4 * burst, Classes: keyed},
		ofKey - 1:           {Scope: types.ScopeKey, Unit: types.UnitBytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: keyed},
		shadowOfPeer - 1:    {Scope: types.ScopePeer, Rate: requests(10), Every: 2 * time.Second, Burst: burst, Classes: strangers, Shadow: true},
		shadowOfTenant - 1:  {Scope: types.ScopeTenant, Rate: requests(20), Every: 4 * time.Second, Burst: burst, Classes: keyed, Shadow: true},
		ofInstanceBytes - 1: {Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: bytes(100_000), Every: time.Second, Burst: bytes(10_000), Classes: quota.AllClasses},
		ofPeerBytes - 1:     {Scope: types.ScopePeer, Unit: types.UnitBytes, Rate: bytes(10_000), Every: time.Second, Burst: bytes(5_000), Classes: strangers},
		ofRoute - 1:         {Scope: types.ScopeRoute, Route: 3, Rate: requests(5), Every: time.Second, Burst: 3 * burst, Classes: quota.AllClasses},
		ofRouteBytes - 1:    {Scope: types.ScopeRoute, Route: 2, Unit: types.UnitBytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: quota.AllClasses},
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
	l := admission.Limits{Places: door(gate).All(), Quantum: 8 << 10, Weights: [types.NumClasses]uint64{4, 2, 1}, Least: 512,
		Wait: 25 * time.Millisecond, Grace: 200 * time.Millisecond, Routes: []int{0, 2, 1}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: l.Places, Queue: 12, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 4}
		if gate&narrowPermits != 0 {
			l.Facets[f] = admission.Facet{Permits: 2, Queue: 6, PerClass: [types.NumClasses]int{2, 2, 2}, PerFlow: 1, ClassPermits: [types.NumClasses]int{2, 2, 1}, FlowPermits: 1}
		}
	}
	if gate&narrowPermits != 0 { // one tenant's clients may fill their class
		l.Facets[types.FacetWallet] = admission.Facet{Permits: 2, Queue: 7, PerClass: [types.NumClasses]int{2, 3, 2}, PerFlow: 3}
		l.Facets[types.FacetQuery] = admission.Facet{Permits: 1, Queue: 8, PerClass: [types.NumClasses]int{2, 4, 2}, PerFlow: 2}
		l.Facets[types.Streams].Permits = 1 // with those of Beyond, no more than calls
		l.Facets[types.FacetStorage] = admission.Facet{Permits: 1, Queue: 2, PerClass: [types.NumClasses]int{2, 2, 2}, PerFlow: 1, ClassPermits: [types.NumClasses]int{1, 1, 1}, FlowPermits: 1}
	}
	c.Admission, c.QuotaLimits, c.MaxPacingDelay = l, quota.Limits{Peers: 3, Keys: 64, Tenants: 8}, 5*time.Millisecond
	c.Quotas = quotas(gate&smallQuotas != 0)
	r := upstream.Default(endpoints)
	r.EjectAfter, r.EjectFor, r.BreakerMinAttempts, r.BreakerOpenFor, r.HalfOpenInFlight, r.HalfOpenSuccesses = 2, 300*time.Millisecond, 3, 200*time.Millisecond, 2, 1
	c.MaxUpstreamCalls, c.Upstreams = 3, []upstream.Rules{r, r}
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
	in     event.Admit
	ticket types.Ticket       // of one that works
	why    event.RejectReason // it was told last
}

// A GateCell is who came, to which facet, and what he was told.
type GateCell struct {
	Class types.Class
	Facet types.Facet
	Why   event.RejectReason
}

func (c GateCell) String() string { return fmt.Sprintf("%v, %v: %v", c.Class, c.Facet, c.Why) }

// GateCells are all there could be.
func GateCells() (all []GateCell) {
	for class := range types.NumClasses {
		for facet := range types.NumFacets {
			for why := range event.NumRejectReasons {
				all = append(all, GateCell{class, facet, why})
			}
		}
	}
	return all
}

// spot is what stands in a slot, as far as the world saw.
type spot struct {
	class types.Class
	facet types.Facet
	works bool          // it was told to go
	told  bool          // and has been handed that: what else it is told is of a part of its bodies
	asks  bool          // whether such a part may go, and was not handed the word
	left  bool          // whoever asked does not wait for the verdict
	until types.Instant // its permit is its own
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
func (w *World) knock(p *pass, in event.Admit) {
	at, ok := w.gate.Enter(in)
	if !ok {
		w.gated(in.Class, in.Facet, event.RejectNoSlots)
		return
	}
	*p = pass{is: knocks, at: at, in: in}
	w.places[at] = spot{class: in.Class, facet: in.Facet}
}

// hears is what a request was told, if it was.
func (w *World) hears(p *pass) (v event.Decision, ok bool) {
	if v, ok = w.gate.Hear(p.at); !ok {
		return v, false
	}
	if p.is, p.ticket, p.why = works, v.Ticket, v.Reason; v.Problem != event.None {
		p.is = away
	}
	return v, true
}

// settles ends a request that works, through which so many bytes went; leaves one that waits.
func (w *World) settles(p *pass, bytes uint64) {
	if p.is == works {
		fate := event.Completion(p.ticket>>32+p.ticket) % event.NumCompletions // of one slot now this, now that
		w.gate.Settle(p.ticket, bytes, fate)
		w.note(w.draining && fate != event.CompletionDone, "ended in a drain: "+fate.String())
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
func (w *World) gated(class types.Class, facet types.Facet, why event.RejectReason) {
	w.GateCells[GateCell{class, facet, why}]++
	w.Saw["gate: "+why.String()]++
}

// toldAtGate notes what a step of the node was to those at the gate.
func (w *World) toldAtGate(in event.Event, told []event.Decision) {
	arrives, ok := in.(*event.Admit)
	if ok {
		w.places[arrives.Ticket.Slot()].until = w.now.Mono.Add(max(arrives.TimeLeft, arrives.PermitFor) + w.config.Admission.Grace)
	}
	if in, ok := in.(*event.ReserveBytes); ok && !slices.ContainsFunc(told, func(v event.Decision) bool { return v.Ticket == in.Ticket }) {
		w.Saw["more of a body waits"]++
	}
	for _, v := range told {
		p := w.places[v.Ticket.Slot()]
		if p.works { // it is told of a part of its bodies
			continue
		}
		w.places[v.Ticket.Slot()].works = v.Reason == event.Admitted
		if v.Reason == event.RejectNotServing && !ok {
			w.Saw["waited at the gate, and is told to go elsewhere"]++
		}
		if v.Reason != event.Admitted || p.class == types.ClassAnon || w.narrow == 0 {
			continue
		}
		if _, s := w.trace.Around(); s.Queued[p.facet][types.ClassAnon] > 0 {
			w.Saw["who has shown a key goes, and strangers wait"]++
		}
	}
}

// verdicts carries what a turn said to who waits at the gate, as the loop does.
func (w *World) verdicts(stepped []event.Event) {
	w.gate.Free(stepped)
	for _, v := range w.out.Decisions {
		spot := &w.places[v.Ticket.Slot()]
		p := *spot
		if spot.told = true; p.told {
			if spot.asks = false; !p.asks {
				w.fail("stream", "%v is told of what it did not ask: %+v", v.Ticket, v)
			}
			w.gate.Deliver(v)
			continue
		}
		w.gated(p.class, p.facet, v.Reason)
		if p.left {
			w.Saw["a verdict for who has left"]++
		}
		if p.left && v.Reason == event.Admitted {
			w.Saw["a permit for who has left"]++
		}
		if v.Reason == event.Admitted && v.Waited > 0 {
			w.Saw["waited for a permit, and got it"]++
		}
		if v.Shadow != 0 {
			w.Saw["a shadow would have refused"]++
		}
		w.gate.Deliver(v)
	}
}

// arrival is that of a client: by its key, if it has one here.
func (c *client) arrival() event.Admit {
	in := event.Admit{Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: c.tenant, Key: c.caller, DeclaredBytes: 100, ResponseEstimate: 200, TimeLeft: config().CommitTimeout}
	if c.boss {
		in.Key = boss.ID
	}
	if c.tenant != boss.Tenant {
		in.Class, in.Tenant, in.Key = types.ClassAnon, 0, 0
	}
	in.Peer[7] = c.mark[0]
	return in
}

// admitted reports that p may go. It asks, where it has not; in a life without trouble at the
// gate it is told at once.
func (w *World) admitted(p *pass, in event.Admit) bool {
	if p.is == away {
		w.knock(p, in)
		if p.is == knocks && (w.odds.gate == 0 || w.c.Choose("gate/at-once", 3) != 1) {
			w.lets()
		}
	}
	if p.is == knocks {
		if v, ok := w.hears(p); ok && v.Problem != event.None {
			w.tell(clients, decider, told, "the gate: %v, for %v", v.Problem, v.Reason)
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
	if s.Permits != [types.NumFacets]uint32{} || s.Queued != [types.NumFacets][types.NumClasses]uint32{} {
		w.fail("permit-lost", "everybody has left: out %v, queued %v", s.Permits, s.Queued)
	}
	for c := range types.NumClasses {
		if n := w.gate.In(c); n > 0 {
			w.fail("slot-lost", "everybody has left: %d slots of class %v are in use", n, c)
		}
	}
	w.calls()
}
