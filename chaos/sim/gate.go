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

// The limits of the gate in a run: wide, or narrow in one or both ways.
const (
	narrowPermits = 1 << iota
	smallQuotas
)

// Numbers of the quotas, from 1. Wide quotas have the same numbers.
const (
	ofInstance = 1 + iota
	ofPeer
	ofTenant
	ofKey
	shadowOfPeer
	shadowOfTenant
	ofInstanceBytes // from here on: rare at the start, and added by changes
	ofPeerBytes
	ofRoute
	ofRouteBytes
)

// mostWait is the longest wait in a queue of the gate, after any change.
const mostWait = 50 * time.Millisecond

// quotas returns small or wide quotas; the cost of each unit is whole nanoseconds.
func quotas(small bool) []quota.Rule {
	keyed, keyless := quota.ClassSetOf(types.ClassInternal, types.ClassAuthed), quota.ClassSetOf(types.ClassAnon)
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
		ofPeer - 1:          {Scope: types.ScopePeer, Rate: requests(10), Every: time.Second, Burst: 2 * burst, Classes: keyless},
		ofTenant - 1:        {Scope: types.ScopeTenant, Rate: requests(20), Every: time.Second, Burst: 4 * burst, Classes: keyed},
		ofKey - 1:           {Scope: types.ScopeKey, Unit: types.UnitBytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: keyed},
		shadowOfPeer - 1:    {Scope: types.ScopePeer, Rate: requests(10), Every: 2 * time.Second, Burst: burst, Classes: keyless, Shadow: true},
		shadowOfTenant - 1:  {Scope: types.ScopeTenant, Rate: requests(20), Every: 4 * time.Second, Burst: burst, Classes: keyed, Shadow: true},
		ofInstanceBytes - 1: {Scope: types.ScopeInstance, Unit: types.UnitBytes, Rate: bytes(100_000), Every: time.Second, Burst: bytes(10_000), Classes: quota.AllClasses},
		ofPeerBytes - 1:     {Scope: types.ScopePeer, Unit: types.UnitBytes, Rate: bytes(10_000), Every: time.Second, Burst: bytes(5_000), Classes: keyless},
		ofRoute - 1:         {Scope: types.ScopeRoute, Route: 3, Rate: requests(5), Every: time.Second, Burst: 3 * burst, Classes: quota.AllClasses},
		ofRouteBytes - 1:    {Scope: types.ScopeRoute, Route: 2, Unit: types.UnitBytes, Rate: bytes(20_000), Every: time.Second, Burst: bytes(20_000), Classes: quota.AllClasses},
	}
}

// door returns the number of slots of each class.
func door(gate int) loop.ClassLimits {
	if gate&narrowPermits != 0 {
		return loop.ClassLimits{9, 15, 12}
	}
	return loop.ClassLimits{8, 16, 12}
}

// gateway returns c with the admission policy.
func gateway(c node.Config, gate int) node.Config {
	l := admission.Limits{Places: door(gate).Total(), Quantum: 8 << 10, Weights: [types.NumClasses]uint64{4, 2, 1}, Least: 512,
		Wait: 25 * time.Millisecond, GiveWay: 45 * time.Millisecond, Grace: 200 * time.Millisecond, Routes: []event.RouteLimits{{}, {Requests: 2}, {Requests: 1}}}
	for f := range l.Facets {
		l.Facets[f] = admission.Facet{Permits: l.Places, Queue: 12, PerClass: [types.NumClasses]int{4, 4, 4}, PerFlow: 4}
		if gate&narrowPermits != 0 {
			l.Facets[f] = admission.Facet{Permits: 2, Queue: 6, PerClass: [types.NumClasses]int{2, 2, 2}, PerFlow: 1, ClassPermits: [types.NumClasses]int{2, 2, 1}, FlowPermits: 1}
		}
	}
	if gate&narrowPermits != 0 { // the clients of one tenant may fill their class
		l.Facets[types.FacetWallet] = admission.Facet{Permits: 2, Queue: 7, PerClass: [types.NumClasses]int{2, 3, 2}, PerFlow: 3}
		l.Facets[types.FacetQuery] = admission.Facet{Permits: 1, Queue: 8, PerClass: [types.NumClasses]int{2, 4, 2}, PerFlow: 2}
		l.Facets[types.Streams].Permits = 1 // with the permits of the proxy, at most the number of calls
		l.Facets[types.FacetStorage] = admission.Facet{Permits: 1, Queue: 2, PerClass: [types.NumClasses]int{2, 2, 2}, PerFlow: 1, ClassPermits: [types.NumClasses]int{1, 1, 1}, FlowPermits: 1}
	}
	c.Admission, c.QuotaLimits, c.MaxPacingDelay = l, quota.Limits{Peers: 3, Keys: 64, Tenants: 8}, 5*time.Millisecond
	c.Quotas = quotas(gate&smallQuotas != 0)
	r := upstream.Default(endpoints)
	r.EjectAfter, r.EjectFor, r.BreakerMinAttempts, r.BreakerOpenFor, r.HalfOpenInFlight, r.HalfOpenSuccesses = 2, 300*time.Millisecond, 3, 200*time.Millisecond, 2, 1
	c.MaxUpstreamCalls, c.Upstreams = 3, []upstream.Rules{r, r}
	return c
}

// Visit is the state of a request at the gate.
type visit uint8

const (
	away   visit = iota
	knocks       // entered, without a decision
	works        // admitted
)

// pass is a request at the gate.
type pass struct {
	is     visit
	at     uint32 // its slot
	in     event.Admit
	ticket types.Ticket       // of an admitted one
	why    event.RejectReason // the last decision
}

// A GateCell is a class, a facet, and a decision.
type GateCell struct {
	Class types.Class
	Facet types.Facet
	Why   event.RejectReason
}

func (c GateCell) String() string { return fmt.Sprintf("%v, %v: %v", c.Class, c.Facet, c.Why) }

// GateCells returns all cells.
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

// spot is the state of a slot, as far as the world saw.
type spot struct {
	class    types.Class
	facet    types.Facet
	works    bool          // admitted
	answered bool          // the decision was delivered: later ones are for parts of its bodies
	asks     bool          // a decision on a part is outstanding
	left     bool          // the caller does not wait for the decision
	key      types.KeyID   // 0: none, or the request is finished
	lost     bool          // its permit was taken because its key ended
	until    types.Instant // its permit is its own until then
}

// opens resets the gate for a new process.
func (w *World) opens() {
	if slices.ContainsFunc(w.visitors[:], func(v visitor) bool { return v.is == works }) {
		w.Saw["the power went, and permits were out"]++
	}
	w.taken, w.broken = 0, [event.NumCallers]uint64{}
	w.gate = loop.NewAdmission(door(w.narrow))
	w.places = make([]spot, w.gate.Size())
	w.visitors, w.moods = [len(w.visitors)]visitor{}, [len(w.moods)]mood{}
	for i := range w.visitors {
		w.visitors[i].number = i
	}
}

// knock enters a request. If all slots of its class are in use, the gate rejects it.
func (w *World) knock(p *pass, in event.Admit) {
	at, ok := w.gate.Enter(in)
	if !ok {
		w.gated(in.Class, in.Facet, event.RejectNoSlots)
		return
	}
	*p = pass{is: knocks, at: at, in: in}
	w.places[at] = spot{class: in.Class, facet: in.Facet, key: in.Key}
}

// hears returns the decision on a request, if there is one.
func (w *World) hears(p *pass) (v event.Decision, ok bool) {
	if v, ok = w.gate.PollDecision(p.at); !ok {
		return v, false
	}
	if p.is, p.ticket, p.why = works, v.Ticket, v.Reason; v.Problem != event.None {
		p.is = away
	}
	return v, true
}

// settles finishes an admitted request with a number of bytes, and cancels a waiting one.
func (w *World) settles(p *pass, bytes uint64) {
	if p.is == works {
		fate := event.Completion(p.ticket>>32+p.ticket) % event.NumCompletions // different completions of one slot
		w.gate.Finish(p.ticket, bytes, fate)
		w.places[p.at].key = 0
		w.note(w.draining && fate != event.CompletionDone, "ended in a drain: "+fate.String())
		p.is = away
	}
}

func (w *World) leaves(p *pass) {
	if p.is == knocks {
		w.gate.Abandon(p.at)
		w.places[p.at].left = true
		p.is = away
	}
}

// gated counts a decision.
func (w *World) gated(class types.Class, facet types.Facet, why event.RejectReason) {
	w.GateCells[GateCell{class, facet, why}]++
	w.Saw["gate: "+why.String()]++
}

// decidedAtGate notes the effect of a step on requests at the gate.
func (w *World) decidedAtGate(in event.Event, answered []event.Decision) {
	arrives, ok := in.(*event.Admit)
	if ok {
		w.places[arrives.Ticket.Slot()].until = w.now.Mono.Add(max(arrives.TimeLeft, arrives.PermitFor) + w.config.Admission.Grace)
	}
	if in, ok := in.(*event.ReserveBytes); ok && !slices.ContainsFunc(answered, func(v event.Decision) bool { return v.Ticket == in.Ticket }) {
		w.Saw["more of a body waits"]++
	}
	for _, v := range answered {
		p := w.places[v.Ticket.Slot()]
		if p.works { // a decision on a part
			continue
		}
		w.places[v.Ticket.Slot()].works = v.Reason == event.Admitted
		if v.Reason == event.RejectNotServing && !ok {
			w.Saw["a waiting request is rejected by a drain"]++
		}
		if v.Reason != event.Admitted || p.class == types.ClassAnon || w.narrow == 0 {
			continue
		}
		if _, s := w.trace.Around(); s.Queued[p.facet][types.ClassAnon] > 0 {
			w.Saw["a request with a key is admitted while keyless ones wait"]++
		}
	}
}

// verdicts delivers the decisions of a turn, as the loop does.
func (w *World) verdicts(stepped []event.Event) {
	w.gate.FreeFinished(stepped)
	for _, v := range w.out.Decisions {
		spot := &w.places[v.Ticket.Slot()]
		p := *spot
		if v.Reason == event.RejectGaveWay {
			w.givesWay(spot, v)
			continue
		}
		if v.Reason == event.RejectKeyEnded && p.answered && !p.lost {
			w.losesPermit(spot, v)
			continue
		}
		if spot.answered = true; p.answered {
			if spot.asks = false; !p.asks {
				w.fail("stream", "%v is told of what it did not ask: %+v", v.Ticket, v)
			}
			_ = w.gate.Deliver(v) // it did not give way
			continue
		}
		w.gated(p.class, p.facet, v.Reason)
		if p.left {
			w.Saw["a decision for a cancelled request"]++
		}
		if p.left && v.Reason == event.Admitted {
			w.Saw["a permit for a cancelled request"]++
		}
		if v.Reason == event.Admitted && v.Waited > 0 {
			w.Saw["waited for a permit, and got it"]++
		}
		if v.Shadow != 0 {
			w.Saw["a shadow would have refused"]++
		}
		_ = w.gate.Deliver(v)
	}
}

// givesWay delivers that a request gave way: only one without a key does, and it has no permit any more.
func (w *World) givesWay(spot *spot, v event.Decision) {
	if spot.class != types.ClassAnon || !spot.answered {
		w.fail("gave-way", "%v of class %v, answered %v, gives way", v.Ticket, spot.class, spot.answered)
	}
	w.gated(spot.class, spot.facet, v.Reason)
	spot.until = w.now.Mono
	_ = w.gate.Deliver(v) // visitors stay until their time is over
}

// losesPermit delivers that a request has lost its permit because its key ended.
func (w *World) losesPermit(spot *spot, v event.Decision) {
	w.gated(spot.class, spot.facet, v.Reason)
	spot.lost, spot.until = true, min(spot.until, w.now.Mono)
	_ = w.gate.Deliver(v) // visitors stay until their time is over
}

// endedKeys checks, when a revocation is acknowledged, that no request of the key has a permit, or waits for one.
func (w *World) endedKeys(id types.KeyID) {
	for at, p := range w.places {
		if p.key == id && p.works && !p.lost && !p.left {
			w.fail("key-ended", "slot %d has a permit, and its key %d was revoked", at, id)
		}
	}
}

// arrival returns a client's request: by its key, if it has one.
func (c *client) arrival(w *World) event.Admit {
	in := event.Admit{Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: c.tenant, Key: c.caller, DeclaredBytes: 100, ResponseEstimate: 200, TimeLeft: config().CommitTimeout}
	if c.boss {
		in.Key = boss.ID
	}
	if shown, _ := w.fol.Find(c.caller); c.tenant != boss.Tenant || shown.Revoked { // as far as the read model knows
		in.Class, in.Tenant, in.Key = types.ClassAnon, 0, 0
	}
	in.Peer[7] = c.mark[0]
	return in
}

// admitted reports whether p is admitted. It enters first if needed; in a run without trouble at
// the gate it is admitted at once.
func (w *World) admitted(p *pass, in event.Admit) bool {
	if p.is == away {
		w.knock(p, in)
		if p.is == knocks && (w.odds.gate == 0 || w.c.Choose("gate/at-once", 3) != 1) {
			w.lets()
		}
	}
	if p.is == knocks {
		if v, ok := w.hears(p); ok && v.Problem != event.None {
			w.tell(clients, decider, answeredTone, "the gate: %v, for %v", v.Problem, v.Reason)
		}
	}
	return p.is == works
}

// lets makes a turn with the gate's events only.
func (w *World) lets() {
	var events []event.Event
	for e := w.gate.NextEvent(); e != nil; e = w.gate.NextEvent() {
		events = append(events, e)
	}
	if len(events) > 0 {
		w.step(events...)
	}
}

// empties finishes all requests, and checks that all permits, slots and calls are free.
func (w *World) empties() {
	for _, c := range w.clients {
		if c.out != 0 {
			c.leave(w)
		}
		w.leaves(&c.pass)
		w.settles(&c.pass, 0)
	}
	for t, two := range w.copies { //nolint:maporder // all of them
		w.promise.left[t] = true
		w.settles(two.pass, 0)
	}
	clear(w.copies)
	for i := range w.visitors {
		w.visitors[i].goes(w)
	}
	w.lets()
	w.pass(mostWait)
	w.lets() // cancelled ones
	w.freed()
}

// freed checks that no request is left.
func (w *World) freed() {
	var s event.Status
	w.node.Status(&s)
	if s.Permits != [types.NumFacets]uint32{} || s.Queued != [types.NumFacets][types.NumClasses]uint32{} {
		w.fail("permit-lost", "everybody has left: out %v, queued %v", s.Permits, s.Queued)
	}
	for c := range types.NumClasses {
		if n := w.gate.InFlight(c); n > 0 {
			w.fail("slot-lost", "everybody has left: %d slots of class %v are in use", n, c)
		}
	}
	w.calls()
}
