package explore

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// A Hall is the node and the callers at its gate: the slots of the gate, the events to the node
// and back, and nothing else. It is the real node in the scope of specs/admission.
//
//	ask ─► ring of its class ─► Admit ─► decision ─► runs ─► finished ─► free
//	          └ cancels, and its decision has no caller ────────┘
//
// Invariants:
//
//	H1  every request gets one decision, within the longest wait
//	H2  a permit is used by each running or ending request, until it is reclaimed, and by no other
//	H3  the quota that a tenant sees counts its own requests, without rejected ones
//	H4  a rejection has a correct reason: flow, class, quota, pace, drain
//	H5  a request with a key is admitted at once if a permit is free
//	H6  a draining node admits no request, and none waits
//	H7  in the end every request has its decision, and all slots and permits are free
type Hall struct {
	p      *Party
	node   *node.Node
	now    types.Now
	guests [hallGuests]hallGuest
	uses   [hallSlots]uint32
	free   uint8     // free slots, a bit each
	rings  [2][]int8 // guests whose arrivals are on their way, by class
	ends   []types.Ticket
	had    [2]uint8 // used units: of the tenant, and of the keyless peer
	left   hallBudget
	broke  error
}

const (
	hallGuests = 4
	hallSlots  = 4
)

// hallBudget limits the rare actions.
type hallBudget struct{ leaves, agains, passes, jumps, drains, changes uint8 }

// A hallGuest makes a number of requests.
type hallGuest struct {
	asks  uint8
	pc    hallState
	slot  uint8
	use   uint32
	heard bool // it cancelled and got its decision, so its end is on its way
	since types.Instant
	until types.Instant // deadline of its decision
	keeps types.Instant // deadline of its permit
}

type hallState uint8

const (
	outside hallState = iota
	entering
	queueing
	working
	gone // it cancelled, and the node has not ended it
	ending
)

// Party has the callers and limits of a hall.
type Party struct {
	asks    [hallGuests]uint8 // of each guest; the first two belong to a tenant, the others have no key
	limits  admission.Limits
	quotas  []quota.Rule
	left    hallBudget
	changes []event.Policy
	config  node.Config
	out     event.Effects
	Saw     [hallSights]uint64
	report  [hallSlots]event.Decision // in the current step
	one     event.Admit
	end     event.Finish
}

// A hallSight is something that a party must show.
type hallSight uint8

const (
	hallGoes     hallSight = iota
	hallWaited             // and was admitted
	hallFull               // of its class, or its flow
	hallUsed               // a quota
	hallPaced              // of the instance
	hallLate               // waited too long
	hallShut               // rejected by a drain while it waited
	hallClosed             // arrived during a drain
	hallLeft               // a decision for a cancelled request
	hallLeftGo             // a permit for one
	hallTaken              // a permit was reclaimed
	hallLost               // and its request ended
	hallAgain              // finished twice
	hallStale              // after the slot was reused
	hallUnserved           // waited, and its class is no longer served
	hallMore               // a change admits a waiting request
	hallSights
)

func (s hallSight) String() string {
	return [hallSights]string{"goes", "waited", "full", "used", "paced", "late", "shut", "closed", "left", "a permit for who left", "taken", "lost", "again", "stale", "unserved", "more"}[s]
}

// hallLimits returns a number of permits, and short queues.
func hallLimits(permits, each int) admission.Limits {
	l := admission.Limits{Places: hallSlots, Quantum: 1 << 10, Weights: [types.NumClasses]uint64{4, 2, 1}, Least: 512, Wait: 20 * time.Millisecond, Grace: time.Second, Routes: []event.RouteLimits{{}}}
	l.Facets[types.FacetWallet] = admission.Facet{Permits: permits, Queue: 2 * each, PerClass: [types.NumClasses]int{0, each, each}, PerFlow: each}
	return l
}

// OpenHall returns the hall of a party: the node is ready, without requests.
func OpenHall(p *Party) *Hall {
	h := newShared(Plan{})
	p.config = h.config
	p.config.HeartbeatInterval, p.config.SweepInterval, p.config.Drain.LameDuck = 24*time.Hour, 24*time.Hour, 0
	p.config.Admission, p.config.Quotas, p.config.QuotaLimits, p.config.MaxPacingDelay = p.limits, p.quotas, quota.Limits{Peers: 2, Keys: 2, Tenants: 2}, 0
	w := &Hall{p: p, now: types.Now{Mono: 1, Wall: begin, Synced: true}, free: 1<<hallSlots - 1}
	w.node = w.fresh()
	w.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	w.step(&event.CreateKey{Ticket: types.NewTicket(9, 1), Key: boss})
	for c := range types.NumServices {
		w.step(event.ServiceUp{Service: c})
	}
	p.Saw, w.left = [hallSights]uint64{}, p.left
	for i := range w.guests {
		w.guests[i].asks = p.asks[i]
	}
	return w
}

func (w *Hall) fresh() *node.Node {
	return node.New(w.p.config, state.New(w.p.config.State, 1), 1, types.NewRand(1))
}

// CopyTo overwrites dst, reusing its memory.
func (w *Hall) CopyTo(dst *Hall) {
	n, rings, ends := dst.node, dst.rings, dst.ends
	if *dst = *w; n == nil {
		n = w.fresh()
	}
	w.node.CopyTo(n)
	dst.node, dst.ends = n, append(ends[:0], w.ends...)
	for i := range rings {
		dst.rings[i] = append(rings[i][:0], w.rings[i]...)
	}
}

// Hash covers everything that affects later steps.
func (w *Hall) Hash() types.Hash64 {
	h := w.node.Hash().Mix(uint64(w.now.Mono)).Mix(uint64(w.free))
	for i := range w.guests {
		g := &w.guests[i]
		h = h.Mix(uint64(g.asks) | uint64(g.pc)<<8 | uint64(g.slot)<<16 | uint64(g.use)<<32).Mix(uint64(g.since)).Mix(uint64(g.until)).Mix(uint64(g.keeps)).MixBool(g.heard)
	}
	for _, ring := range w.rings {
		h = h.Mix(uint64(len(ring)))
		for _, i := range ring {
			h = h.Mix(uint64(i))
		}
	}
	for _, t := range w.ends {
		h = h.Mix(uint64(t))
	}
	for _, n := range w.uses {
		h = h.Mix(uint64(n))
	}
	l := &w.left
	return h.Mix(uint64(len(w.ends))).Mix(uint64(w.had[0]) | uint64(w.had[1])<<8).
		Mix(uint64(l.leaves) | uint64(l.agains)<<8 | uint64(l.passes)<<16 | uint64(l.jumps)<<24 | uint64(l.drains)<<32 | uint64(l.changes)<<40)
}

// fail records the first violated rule of the current action.
func (w *Hall) fail(format string, args ...any) {
	if w.broke == nil {
		w.broke = fmt.Errorf(format, args...)
	}
}

// Check checks the invariants of the node, and of the requests.
func (w *Hall) Check() error {
	var s event.Status
	w.node.Status(&s)
	out, queued, due := uint32(0), uint32(0), types.Instant(0)
	for i := range w.guests {
		g := &w.guests[i]
		switch {
		case g.pc == queueing || g.pc == gone && !g.heard && !w.coming(i):
			if queued++; due == 0 || g.until < due {
				due = g.until
			}
		case (g.pc == working || g.pc == ending || g.pc == gone && g.heard) && g.keeps > w.now.Mono:
			out++
		}
	}
	if n := s.Permits[types.FacetWallet]; n != out {
		return fmt.Errorf("H2: %d permits are used, %d requests have one", n, out)
	}
	if n := s.Queued[types.FacetWallet][types.ClassAuthed] + s.Queued[types.FacetWallet][types.ClassAnon]; n != queued {
		return fmt.Errorf("H1: %d wait, and %d are queued", queued, n)
	}
	if at, any := w.node.Due(); queued > 0 && (!any || at > due) {
		return fmt.Errorf("H1: a request waits until %d, but the node is due at %d, %v", due, at, any)
	}
	if s.Phase >= types.Draining && queued > 0 {
		return fmt.Errorf("H6: %d wait while it is draining", queued)
	}
	return w.node.Check()
}

// Rest checks the end: every request has its decision, and everything is free.
func (w *Hall) Rest() error {
	for i := range w.guests {
		if g := &w.guests[i]; g.pc != outside {
			return fmt.Errorf("H7: guest %d is still %d", i, g.pc)
		}
	}
	var s event.Status
	if w.node.Status(&s); s.Permits != [types.NumFacets]uint32{} || w.free != 1<<hallSlots-1 {
		return fmt.Errorf("H7: out %v, free slots %b", s.Permits, w.free)
	}
	return nil
}
