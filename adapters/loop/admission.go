package loop

import (
	"context"
	"sync"

	"macronode/core/event"
	"macronode/core/types"
)

// Admission passes admission events to the node and decisions back. Its slots limit the requests that wait or run.
// A slot belongs to a request until the node has handled its end: a rejection, or its Finish. So an event about a
// slot never waits for room, and is never taken for an event of a later use.
type Admission struct {
	slots   []admissionSlot
	rings   *[types.NumClasses]chan event.Event
	free    [types.NumClasses]chan uint32
	updates chan event.Event // a reservation and the end: at most two per slot, never full
}

// admissionSlot is a slot of a request.
type admissionSlot struct {
	mu          sync.Mutex // of this slot only; never held while blocking
	generation  uint32
	isAbandoned bool // the caller does not wait for the decision
	isAdmitted  bool // the decision was that it has a permit
	isLost      bool // its permit was taken since
	awaitsBytes bool // a decision on reserved bytes is outstanding
	isReserved  bool // it is, or ReserveBytes has not returned it yet
	isFinished  bool
	class       types.Class
	holder      Holder // of the permit; nil: it need not hear that the permit is lost
	admit       event.Admit
	reserve     event.ReserveBytes
	finish      event.Finish
	decisions   chan event.Decision
	turn        chan struct{} // serialises the callers of ReserveBytes: both bodies of a request may reserve
}

// A Holder is a request that has a permit. LosePermit says that it has none any more, and why: it is to end soon. It is called at
// most once, on a goroutine of its own, and perhaps after Finish.
type Holder = interface{ LosePermit(why event.RejectReason) }

// NewAdmission returns an admission with its own rings, for simulators without goroutines: Enter, PollDecision,
// Abandon, Reserve and PollReserved are the steps of a caller; NextEvent, FreeFinished and Deliver are those of
// the loop.
func NewAdmission(d ClassLimits) *Admission {
	k := &Dispatcher{}
	for c, n := range d {
		k.rings[c] = make(chan event.Event, n)
	}
	return newAdmission(d, &k.rings)
}

func newAdmission(d ClassLimits, rings *[types.NumClasses]chan event.Event) *Admission {
	g := &Admission{slots: make([]admissionSlot, d.Total()), rings: rings, free: freeSlots(d), updates: make(chan event.Event, 2*d.Total())}
	for i := range g.slots {
		g.slots[i].decisions, g.slots[i].turn = make(chan event.Decision, 1), make(chan struct{}, 1)
	}
	return g
}

// Admit requests a permit for holder, which may be nil, and waits for the decision. An admitted request has it until Finish. ok is
// false if there is no slot or ctx ends first; then Finish must not be called.
func (g *Admission) Admit(ctx context.Context, in event.Admit, holder Holder) (v event.Decision, ok bool) {
	at, ok := g.enter(in, holder)
	if !ok {
		return v, false
	}
	select {
	case v = <-g.slots[at].decisions:
		g.freeIfRejected(v)
		return v, true
	case <-ctx.Done():
		g.Abandon(at)
		return v, false
	}
}

// Enter takes a slot and sends the request; ok is false if there is none. Then the caller calls PollDecision until
// the decision is there, or Abandon.
func (g *Admission) Enter(in event.Admit) (at uint32, ok bool) { return g.enter(in, nil) }

func (g *Admission) enter(in event.Admit, holder Holder) (at uint32, ok bool) {
	select {
	case at = <-g.free[in.Class]:
	default:
		return 0, false
	}
	p := &g.slots[at]
	p.mu.Lock()
	p.generation++
	p.isAbandoned, p.isAdmitted, p.isLost, p.awaitsBytes, p.isReserved, p.isFinished = false, false, false, false, false, false
	p.class, p.holder, p.admit = in.Class, holder, in
	p.admit.Ticket = types.NewTicket(at, p.generation)
	p.dropDecision()
	p.mu.Unlock()
	g.rings[in.Class] <- &p.admit // has room for every slot of the class
	return at, true
}

// PollDecision returns the decision on an entered request, if it is there.
func (g *Admission) PollDecision(at uint32) (v event.Decision, ok bool) {
	select {
	case v = <-g.slots[at].decisions:
		g.freeIfRejected(v)
		return v, true
	default:
		return v, false
	}
}

// freeIfRejected frees the slot of a rejected request.
func (g *Admission) freeIfRejected(v event.Decision) {
	if at := v.Ticket.Slot(); v.Problem != event.None {
		g.free[g.slots[at].class] <- at
	}
}

// Abandon stops waiting for a decision. A decision that came meanwhile is handled here, a later one on delivery.
func (g *Admission) Abandon(at uint32) {
	p := &g.slots[at]
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case v := <-p.decisions:
		g.discard(p, v)
	default:
		p.isAbandoned = true
	}
}

// discard handles a decision without a caller.
func (g *Admission) discard(p *admissionSlot, v event.Decision) {
	if v.Problem != event.None {
		g.free[p.class] <- v.Ticket.Slot()
		return
	}
	g.sendFinish(p, event.Finish{Ticket: v.Ticket})
}

// Deliver passes a decision to its caller. If it takes the permit of an admitted request, Deliver returns the holder that has to end the
// request; nil: none. A decision on reserved bytes stays outstanding then.
func (g *Admission) Deliver(v event.Decision) Holder {
	p := &g.slots[v.Ticket.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.admit.Ticket != v.Ticket, p.isFinished: // of reserved bytes of a finished request
	case p.isAbandoned:
		g.discard(p, v)
	case p.isAdmitted && !p.isLost && (v.Reason == event.RejectGaveWay || v.Reason == event.RejectKeyEnded):
		p.isLost = true
		return p.holder
	default:
		p.isAdmitted = p.isAdmitted || v.Problem == event.None
		p.awaitsBytes = false
		p.decisions <- v
	}
	return nil
}

// ReserveBytes reserves further bytes of an admitted request and waits for the decision. ok is false if ctx ends
// first, or the request is finished. If ctx ends first, the reservation stays: the next call waits for its decision
// and reserves nothing.
func (g *Admission) ReserveBytes(ctx context.Context, t types.Ticket, bytes uint64) (v event.Decision, ok bool) {
	p := &g.slots[t.Slot()]
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return v, false
	}
	if !p.reserves(t) && !g.Reserve(t, bytes) {
		return v, false
	}
	select {
	case v = <-p.decisions:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.isReserved = p.isReserved && p.admit.Ticket != t // the slot may have another request by now
		return v, true
	case <-ctx.Done():
		return v, false
	}
}

// reserves reports whether a reservation of a request waits for ReserveBytes to return its decision.
func (p *admissionSlot) reserves(t types.Ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admit.Ticket == t && !p.isFinished && p.isReserved
}

// Reserve reserves further bytes of a request; ok is false if the slot belongs to another request, is finished, or
// still waits for a decision. The caller then calls PollReserved.
func (g *Admission) Reserve(t types.Ticket, bytes uint64) (ok bool) {
	p := &g.slots[t.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.admit.Ticket != t || p.isFinished || p.awaitsBytes {
		return false
	}
	p.dropDecision()
	p.reserve, p.awaitsBytes, p.isReserved = event.ReserveBytes{Ticket: t, Bytes: bytes}, true, true
	g.updates <- &p.reserve // has room: at most one per slot
	return true
}

// PollReserved returns the decision on reserved bytes, if it is there.
func (g *Admission) PollReserved(t types.Ticket) (v event.Decision, ok bool) {
	select {
	case v = <-g.slots[t.Slot()].decisions:
		return v, true
	default:
		return v, false
	}
}

// dropDecision drops a decision that was not read.
func (p *admissionSlot) dropDecision() {
	select {
	case <-p.decisions:
	default:
	}
}

// Finish ends an admitted request, once, with its outcome.
func (g *Admission) Finish(t types.Ticket, bytes uint64, f event.Completion) {
	p := &g.slots[t.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	g.sendFinish(p, event.Finish{Ticket: t, Bytes: bytes, Completion: f})
}

// sendFinish sends the end after all other events of the slot, so that none is outstanding when the slot is
// reused.
func (g *Admission) sendFinish(p *admissionSlot, end event.Finish) {
	p.isFinished, p.holder, p.finish = true, nil, end
	g.updates <- &p.finish
}

// NextEvent returns the next event for the node, in the order of the loop; nil if there is none.
func (g *Admission) NextEvent() event.Event {
	select {
	case of := <-g.updates:
		return of
	default:
	}
	for _, ring := range g.rings {
		select {
		case in := <-ring:
			return in
		default:
		}
	}
	return nil
}

// FreeFinished frees the slots whose Finish the node has handled.
func (g *Admission) FreeFinished(stepped []event.Event) {
	for _, e := range stepped {
		if end, ok := e.(*event.Finish); ok {
			at := end.Ticket.Slot()
			g.free[g.slots[at].class] <- at
		}
	}
}

// Size is the limit of requests, InFlight the number of a class; Updates is the queue of reservations and ends.
func (g *Admission) Size() int                   { return len(g.slots) }
func (g *Admission) InFlight(c types.Class) int  { return cap(g.free[c]) - len(g.free[c]) }
func (g *Admission) Limit(c types.Class) int     { return cap(g.free[c]) }
func (g *Admission) Updates() (depth, limit int) { return len(g.updates), cap(g.updates) }
