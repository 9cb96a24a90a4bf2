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

// A Hall is the node and those who come to its gate: the shell's slots, the ways to the node
// and back, and nothing else. What specs/admission has of them, this has of the real node.
//
//	ask ─► ring of its class ─► Arrive ─► told ─► works ─► settled ─► free
//	          └ leaves, and its verdict finds nobody ──────┘
//
// Invariants:
//
//	H1  whoever asks is told once, within the time that a queue takes
//	H2  a permit is out for each who works or will be settled, until it is taken back, and for nobody else
//	H3  what a tenant is told of his quota is what his own have had: of who was refused after all, nothing
//	H4  who is refused has a reason: his flow, his class, his quota, the pace, a drain
//	H5  who has shown a key goes at once where a permit is free
//	H6  a draining node lets nobody in, and nobody wait
//	H7  in the end everybody has heard, and all slots and permits are there
type Hall struct {
	p      *Party
	node   *node.Node
	now    types.Now
	guests [hallGuests]hallGuest
	uses   [hallSlots]uint32
	free   uint8     // slots, a bit each
	rings  [2][]int8 // guests whose arrivals are on their way, of strangers and of the others
	ends   []types.Ticket
	had    [2]uint8 // of the quotas: of the tenant, and of the strangers' peer
	left   hallBudget
	broke  error
}

const (
	hallGuests = 4
	hallSlots  = 4
)

// hallBudget is what may still happen.
type hallBudget struct{ leaves, agains, passes, jumps, drains, changes uint8 }

// A hallGuest asks so many times.
type hallGuest struct {
	asks  uint8
	pc    hallState
	slot  uint8
	use   uint32
	heard bool // one that left: its verdict has come, so its end is on its way
	since types.Instant
	until types.Instant // it is to be told by then
	keeps types.Instant // its permit is its own until then
}

type hallState uint8

const (
	outside hallState = iota
	entering
	queueing
	working
	gone // it has left, and the node has not said its last word
	ending
)

// Party is who comes to a hall, and what it is like.
type Party struct {
	asks    [hallGuests]uint8 // of each guest; the first two are of a tenant, the others strangers
	limits  admission.Limits
	quotas  []quota.Rule
	left    hallBudget
	changes []event.Policy
	config  node.Config
	out     event.Effects
	Saw     [hallSights]uint64
	said    [hallSlots]event.Decision // in the step at hand
	one     event.Admit
	end     event.Finish
}

// A hallSight is what a party is there to show.
type hallSight uint8

const (
	hallGoes     hallSight = iota
	hallWaited             // and went
	hallFull               // of its class, or its flow
	hallUsed               // a quota
	hallPaced              // by the instance's
	hallLate               // waited too long
	hallShut               // told so by a drain while it waited
	hallClosed             // came when it was draining
	hallLeft               // a verdict for who had left
	hallLeftGo             // a permit
	hallTaken              // a permit was taken back
	hallLost               // and its holder ended
	hallAgain              // settled twice
	hallStale              // and the slot was used again by then
	hallUnserved           // waited, and its class is not served any more
	hallMore               // a change let somebody go
	hallSights
)

func (s hallSight) String() string {
	return [hallSights]string{"goes", "waited", "full", "used", "paced", "late", "shut", "closed", "left", "a permit for who left", "taken", "lost", "again", "stale", "unserved", "more"}[s]
}

// hallLimits are so many permits, and room for one of each class behind them, or two.
func hallLimits(permits, each int) admission.Limits {
	l := admission.Limits{Places: hallSlots, Quantum: 1 << 10, Weights: [types.NumClasses]uint64{4, 2, 1}, Least: 512, Wait: 20 * time.Millisecond, Grace: time.Second, Routes: []int{0}}
	l.Facets[types.FacetWallet] = admission.Facet{Permits: permits, Queue: 2 * each, PerClass: [types.NumClasses]int{0, each, each}, PerFlow: each}
	return l
}

// OpenHall is a party's hall at its start: the node is ready, and nobody is in.
func OpenHall(p *Party) *Hall {
	h := newHouse(Plan{})
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

// Hash is of all that decides what follows.
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

// fail notes the first rule that the action at hand breaks.
func (w *Hall) fail(format string, args ...any) {
	if w.broke == nil {
		w.broke = fmt.Errorf(format, args...)
	}
}

// Check is the node's own invariants, and those of who is in.
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
		return fmt.Errorf("H2: %d permits are out, and %d who have one", n, out)
	}
	if n := s.Queued[types.FacetWallet][types.ClassAuthed] + s.Queued[types.FacetWallet][types.ClassAnon]; n != queued {
		return fmt.Errorf("H1: %d wait, and %d are queued", queued, n)
	}
	if at, any := w.node.Due(); queued > 0 && (!any || at > due) {
		return fmt.Errorf("H1: somebody waits until %d, and the node is due at %d, %v", due, at, any)
	}
	if s.Phase >= types.Draining && queued > 0 {
		return fmt.Errorf("H6: %d wait while it is draining", queued)
	}
	return w.node.Check()
}

// Rest is asked at the end: everybody has heard, and all is there again.
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
