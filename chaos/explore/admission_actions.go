package explore

import (
	"fmt"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// The atomic actions of a hall.
type hallAct uint8

const (
	hallAsk   hallAct = iota + 1 // a guest enters: its arrival is on its way
	hallCome                     // the first arrival of a ring reaches the node
	hallEnd                      // a guest finishes
	hallLeave                    // a guest cancels
	hallWord                     // an end reaches the node
	hallTwice                    // and arrives a second time
	hallPass                     // time passes until the node is due
	hallJump                     // time passes, as long as a permit is kept
	hallDrain
	hallChange
	hallActs
)

// Say describes an action.
func (w *Hall) Say(a Action) string {
	what := [hallActs]string{"", "enters", "arrival of ring", "is done", "leaves", "end", "end, to come again,", "time passes", "time jumps", "drain", "change"}
	return fmt.Sprintf("%d %s", a.n(), what[hallAct(a.kind())])
}

// Enabled returns the possible actions.
func (w *Hall) Enabled(to []Action) []Action {
	add := func(a hallAct, n int) { to = append(to, action(act(a), n, false, false)) }
	for i := range w.guests {
		switch g := &w.guests[i]; g.pc {
		case outside:
			if g.asks > 0 && w.slot(i) >= 0 {
				add(hallAsk, i)
			}
		case entering, queueing:
			if w.left.leaves > 0 {
				add(hallLeave, i)
			}
		case working:
			add(hallEnd, i)
		case gone, ending:
		}
	}
	for i, ring := range w.rings {
		if len(ring) > 0 {
			add(hallCome, i)
		}
	}
	for i := range w.ends {
		if add(hallWord, i); w.left.agains > 0 {
			add(hallTwice, i)
		}
	}
	if due, any := w.node.Due(); any && due < w.now.Mono.Add(time.Minute) && w.left.passes > 0 {
		add(hallPass, 0)
	} else if any && due < w.now.Mono.Add(time.Minute) && len(to) == 0 { // otherwise a request would wait for ever
		add(hallPass, 0)
	}
	if w.left.jumps > 0 {
		add(hallJump, 0)
	}
	if w.left.drains > 0 {
		add(hallDrain, 0)
	}
	if int(w.left.changes) > 0 {
		add(hallChange, int(w.left.changes))
	}
	return to
}

func otherTenant(i int) bool { return i >= hallGuests/2 }

// slot returns a free slot of a guest's class; negative if there is none.
func (w *Hall) slot(i int) int {
	from := 0
	if otherTenant(i) {
		from = hallSlots / 2
	}
	for s := from; s < from+hallSlots/2; s++ {
		if w.free>>s&1 == 1 {
			return s
		}
	}
	return -1
}

// Do does an action, and returns the violated rule.
func (w *Hall) Do(a Action) error {
	w.broke = nil
	g := &w.guests[a.n()%hallGuests]
	switch hallAct(a.kind()) {
	case hallAsk:
		at := w.slot(a.n())
		w.uses[at]++
		g.asks--
		w.free &^= 1 << at
		g.pc, g.slot, g.use, g.since, g.heard = entering, uint8(at), w.uses[at], w.now.Mono, false
		ring := &w.rings[0]
		if !otherTenant(a.n()) {
			ring = &w.rings[1]
		}
		*ring = append(*ring, int8(a.n()))
	case hallCome:
		ring := &w.rings[a.n()]
		i := int((*ring)[0])
		*ring = append((*ring)[:0], (*ring)[1:]...)
		w.comes(i)
	case hallEnd:
		g.pc = ending
		w.ends = append(w.ends, types.NewTicket(uint32(g.slot), g.use))
	case hallLeave:
		w.left.leaves--
		g.pc = gone
	case hallTwice:
		w.left.agains--
		w.p.Saw[hallAgain]++
		w.ends = append(w.ends, w.ends[a.n()])
		w.settles(a.n())
	case hallWord:
		w.settles(a.n())
	case hallPass:
		w.left.passes -= min(1, w.left.passes)
		due, _ := w.node.Due()
		w.now.Mono = max(w.now.Mono, due)
		w.step(event.Tick{})
	case hallJump:
		w.left.jumps--
		w.now.Mono = w.now.Mono.Add(3 * time.Second)
		w.step(event.Tick{})
	case hallDrain:
		w.left.drains--
		w.step(event.Signal{Kind: event.Drain})
	case hallChange, hallActs:
		w.left.changes--
		gate := w.p.changes[len(w.p.changes)-a.n()]
		w.step(&event.ApplyPolicy{Policy: gate})
	}
	return w.broke
}

// coming reports whether a guest's arrival has not reached the node.
func (w *Hall) coming(i int) bool {
	return slices.Contains(w.rings[0], int8(i)) || slices.Contains(w.rings[1], int8(i))
}

// comes delivers an arrival to the node.
func (w *Hall) comes(i int) {
	g, in := &w.guests[i], &w.p.one
	*in = event.Admit{Ticket: types.NewTicket(uint32(g.slot), g.use), Class: types.ClassAuthed, Tenant: boss.Tenant, Key: boss.ID, DeclaredBytes: 100, TimeLeft: time.Second}
	if otherTenant(i) {
		in.Class, in.Tenant, in.Key = types.ClassAnon, 0, 0
		in.Peer[7] = 9
	}
	if g.pc == entering {
		g.pc = queueing
	}
	g.until, g.keeps = w.now.Mono.Add(w.p.config.Admission.Wait), w.now.Mono.Add(in.TimeLeft+w.p.config.Admission.Grace)
	var s event.Status
	w.node.Status(&s)
	slot := g.slot
	w.p.report[slot] = event.Decision{}
	w.step(in)
	g.slot = slot // of a rejected one
	w.judges(i, &s)
}

func (w *Hall) waits(i int) bool {
	g := &w.guests[i]
	return g.pc == queueing || g.pc == gone && !g.heard
}

// settles delivers an end; a repeated or stale one changes nothing.
func (w *Hall) settles(n int) {
	t := w.ends[n]
	w.ends = append(w.ends[:n], w.ends[n+1:]...)
	w.p.end = event.Finish{Ticket: t, Bytes: 100}
	mine := false
	for i := range w.guests {
		g := &w.guests[i]
		if types.NewTicket(uint32(g.slot), g.use) != t || g.pc != ending && !(g.pc == gone && g.heard) {
			continue
		}
		if mine = true; g.keeps <= w.now.Mono {
			w.p.Saw[hallLost]++
		}
		w.leavesFor(g)
	}
	if !mine && w.uses[t.Slot()] != uint32(t>>32) {
		w.p.Saw[hallStale]++
	}
	w.step(&w.p.end)
}

// leavesFor frees a guest's slot.
func (w *Hall) leavesFor(g *hallGuest) {
	w.free |= 1 << g.slot
	*g = hallGuest{asks: g.asks}
}

// step is a step of the node, and the delivery of its effects. Frames are durable at once.
func (w *Hall) step(e event.Event) {
	out := &w.p.out
	var before, after event.Status
	w.node.Status(&before)
	out.Reset()
	w.node.Step(w.now, e, out)
	w.node.Status(&after)
	if after.PermitsRevoked > before.PermitsRevoked {
		w.p.Saw[hallTaken]++
	}
	for _, v := range out.Decisions {
		w.observed(v, e, after.Phase)
	}
	if len(out.Frames) > 0 {
		d := event.Durable{}
		for _, f := range out.Frames {
			d.Upto, d.Bytes = f.LSN, d.Bytes+uint64(f.Len)
		}
		w.step(d)
		w.step(event.Applied{Upto: d.Upto})
	}
}

// observed handles a decision.
func (w *Hall) observed(v event.Decision, in event.Event, phase types.Phase) {
	i := slices.IndexFunc(w.guests[:], func(g hallGuest) bool {
		return g.pc != outside && types.NewTicket(uint32(g.slot), g.use) == v.Ticket
	})
	if i < 0 || !w.waits(i) || w.guests[i].heard {
		w.fail("H1: %v gets %v, but does not wait", v.Ticket, v.Reason)
		return
	}
	g := &w.guests[i]
	if w.now.Mono > g.until && v.Reason == event.Admitted {
		w.fail("H1: guest %d is admitted at %d, after its deadline %d", i, w.now.Mono, g.until)
	}
	w.sees(g, v, in)
	if v.Reason == event.Admitted && phase >= types.Draining {
		w.fail("H6: guest %d goes while it is draining", i)
	}
	if a, ok := in.(*event.Admit); v.Reason != event.Admitted && !(ok && a.Ticket == v.Ticket) { // it waited, and its charge is undone
		if w.had[0]--; otherTenant(i) {
			w.had[0]++
			w.had[1]--
		}
	}
	w.p.report[g.slot] = v
	switch {
	case v.Reason != event.Admitted:
		w.leavesFor(g)
	case g.pc == gone:
		g.heard = true
		w.ends = append(w.ends, v.Ticket)
	default:
		g.pc = working
	}
}

// judges compares a decision, or the lack of one, with the state before.
func (w *Hall) judges(i int, before *event.Status) {
	of, mine, gate := 0, w.quota(types.ScopeTenant), w.gate()
	if otherTenant(i) {
		of, mine = 1, w.quota(types.ScopePeer)
	}
	class, f := types.ClassAuthed-types.Class(-of), &gate.Facets[types.FacetWallet]
	why, free := w.p.report[w.guests[i].slot].Reason, int(before.Permits[types.FacetWallet]) < f.Permits
	paced := len(w.p.quotas) > 0 && w.p.quotas[0].Scope == types.ScopeInstance
	queued := before.Queued[types.FacetWallet]
	right := map[event.RejectReason]bool{
		event.Admitted:            mine == 0 || uint64(w.had[of]) < mine,
		event.RejectQuotaExceeded: mine > 0 && uint64(w.had[of]) >= mine,
		event.RejectPacingTimeout: paced,
		event.RejectQueueFull:     queued[types.ClassAuthed]+queued[types.ClassAnon] >= uint32(f.Queue),
		event.RejectClassLimit:    queued[class] >= uint32(f.PerClass[class]),
		event.RejectFlowLimit:     queued[class] >= uint32(f.PerFlow),
		event.RejectClassDisabled: gate.Weights[class] == 0,
		event.RejectNotServing:    before.Phase >= types.Draining,
	}[why]
	if !right {
		w.fail("H4: guest %d gets %v: used %v, queued %v, phase %v", i, why, w.had, queued, before.Phase)
	}
	if why != event.Admitted {
		return
	}
	w.had[of]++
	if w.waits(i) && free && !paced {
		w.fail("H5: guest %d waits, and a permit is free", i)
	}
	if v := w.p.report[w.guests[i].slot]; v.Rule > 0 && !w.waits(i) && uint64(v.Left) != mine-uint64(w.had[of]) {
		w.fail("H3: guest %d sees %d left, of %d used %d", i, v.Left, mine, w.had[of])
	}
}

// gate returns the current policy.
func (w *Hall) gate() event.Policy {
	if n := len(w.p.changes) - int(w.left.changes); n > 0 {
		return w.p.changes[n-1]
	}
	return w.p.config.Policy()
}

// quota returns the burst of the rule of a scope; 0 if there is none.
func (w *Hall) quota(of types.QuotaScope) uint64 {
	for _, r := range w.p.quotas {
		if r.Scope == of {
			return r.Burst
		}
	}
	return 0
}

// sees notes what a decision shows.
func (w *Hall) sees(g *hallGuest, v event.Decision, in event.Event) {
	saw := func(s hallSight, is bool) {
		if is {
			w.p.Saw[s]++
		}
	}
	_, arrives := in.(*event.Admit)
	_, changes := in.(*event.ApplyPolicy)
	saw(hallGoes, v.Reason == event.Admitted && v.Waited == 0)
	saw(hallWaited, v.Reason == event.Admitted && !arrives)
	saw(hallMore, v.Reason == event.Admitted && changes)
	saw(hallFull, v.Reason == event.RejectClassLimit || v.Reason == event.RejectFlowLimit || v.Reason == event.RejectQueueFull)
	saw(hallUsed, v.Reason == event.RejectQuotaExceeded)
	saw(hallPaced, v.Reason == event.RejectPacingTimeout)
	saw(hallLate, v.Reason == event.RejectQueueTimeout)
	saw(hallShut, v.Reason == event.RejectNotServing && !arrives)
	saw(hallClosed, v.Reason == event.RejectNotServing && arrives)
	saw(hallLeft, g.pc == gone)
	saw(hallLeftGo, g.pc == gone && v.Reason == event.Admitted)
	saw(hallUnserved, v.Reason == event.RejectClassDisabled && changes)
}
