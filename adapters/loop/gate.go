package loop

import (
	"context"
	"sync"

	"macronode/core/event"
	"macronode/core/types"
)

// Gate is where requests arrive, and where they are settled. It has as many slots as may
// wait and be at work; a slot is a request's until the node has stepped what ends it: a
// verdict that refuses, or its Settle. So no word about a slot ever waits for room, and none
// is taken for that of a later use.
type Gate struct {
	slots   []pass
	rings   *[types.NumClasses]chan event.Event
	empty   [types.NumClasses]chan uint32
	settled chan event.Event // a part that is asked for, and the end: at most two a slot, never full
}

// pass is one slot.
type pass struct {
	mu    sync.Mutex // of this slot alone; nothing blocks under it
	uses  uint32
	left  bool // whoever asked does not wait for the verdict
	asks  bool // whether more may go on, and was not told
	over  bool // it is settled
	class types.Class
	in    event.Admit
	part  event.ReserveBytes
	end   event.Finish
	says  chan event.Decision
	turn  chan struct{} // of who asks whether more may go on: both bodies of a request may
}

// NewGate is a gate that stands alone, with rings of its own: for a world without goroutines,
// where Enter, Hear and Leave, Further and HearFurther are one caller's moves, and Comes, Free and
// Deliver the loop's.
func NewGate(d Door) *Gate {
	k := &Desk{}
	for c, n := range d {
		k.rings[c] = make(chan event.Event, n)
	}
	return newGate(d, &k.rings)
}

func newGate(d Door, rings *[types.NumClasses]chan event.Event) *Gate {
	g := &Gate{slots: make([]pass, d.All()), rings: rings, empty: numbered(d), settled: make(chan event.Event, 2*d.All())}
	for i := range g.slots {
		g.slots[i].says, g.slots[i].turn = make(chan event.Decision, 1), make(chan struct{}, 1)
	}
	return g
}

// Arrive asks for a permit and waits for the verdict. Who is told to go has it until Settle.
// ok is false where there is no room even to ask, or where ctx ends first: then nothing is
// to be settled.
func (g *Gate) Arrive(ctx context.Context, in event.Admit) (v event.Decision, ok bool) {
	at, ok := g.Enter(in)
	if !ok {
		return v, false
	}
	select {
	case v = <-g.slots[at].says:
		g.heard(v)
		return v, true
	case <-ctx.Done():
		g.Leave(at)
		return v, false
	}
}

// Enter takes a slot and asks; ok is false where there is no room even for that. Whoever has
// entered hears the verdict, or leaves.
func (g *Gate) Enter(in event.Admit) (at uint32, ok bool) {
	select {
	case at = <-g.empty[in.Class]:
	default:
		return 0, false
	}
	p := &g.slots[at]
	p.mu.Lock()
	p.uses++
	p.left, p.asks, p.over, p.class, p.in = false, false, false, in.Class, in
	p.in.Ticket = types.NewTicket(at, p.uses)
	p.forget()
	p.mu.Unlock()
	g.rings[in.Class] <- &p.in // has room for every slot of the class
	return at, true
}

// Hear is the verdict of who has entered, if it is there.
func (g *Gate) Hear(at uint32) (v event.Decision, ok bool) {
	select {
	case v = <-g.slots[at].says:
		g.heard(v)
		return v, true
	default:
		return v, false
	}
}

// heard gives the slot of one who is refused back.
func (g *Gate) heard(v event.Decision) {
	if at := v.Ticket.Slot(); v.Problem != event.None {
		g.empty[g.slots[at].class] <- at
	}
}

// Leave ends the waiting for a verdict. One that has come meanwhile is dealt with here, one
// that comes later where it comes.
func (g *Gate) Leave(at uint32) {
	p := &g.slots[at]
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case v := <-p.says:
		g.abandon(p, v)
	default:
		p.left = true
	}
}

// abandon deals with a verdict for which nobody waits.
func (g *Gate) abandon(p *pass, v event.Decision) {
	if v.Problem != event.None {
		g.empty[p.class] <- v.Ticket.Slot()
		return
	}
	g.settle(p, event.Finish{Ticket: v.Ticket})
}

// Deliver hands a verdict to whoever waits for it.
func (g *Gate) Deliver(v event.Decision) {
	p := &g.slots[v.Ticket.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.in.Ticket != v.Ticket, p.over: // of a part of one that was settled meanwhile
	case p.left:
		g.abandon(p, v)
	default:
		p.asks = false
		p.says <- v
	}
}

// Stream asks whether so many further bytes of a request that was told to go may go on, and
// waits for the word. ok is false where ctx ends first, or the request is settled.
func (g *Gate) Stream(ctx context.Context, t types.Ticket, bytes uint64) (v event.Decision, ok bool) {
	p := &g.slots[t.Slot()]
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return v, false
	}
	if !g.Further(t, bytes) {
		return v, false
	}
	select {
	case v = <-p.says:
		return v, true
	case <-ctx.Done():
		return v, false
	}
}

// Further asks whether so many further bytes of a request may go on; ok is false where the slot
// is another's now, or settled, or a word for it is on its way still. Whoever has asked hears
// that, or nothing: the next who asks is told of his own.
func (g *Gate) Further(t types.Ticket, bytes uint64) (ok bool) {
	p := &g.slots[t.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in.Ticket != t || p.over || p.asks {
		return false
	}
	p.forget()
	p.part, p.asks = event.ReserveBytes{Ticket: t, Bytes: bytes}, true
	g.settled <- &p.part // has room: one is on its way at most
	return true
}

// HearFurther is the word of who has asked, if it is there.
func (g *Gate) HearFurther(t types.Ticket) (v event.Decision, ok bool) {
	select {
	case v = <-g.slots[t.Slot()].says:
		return v, true
	default:
		return v, false
	}
}

// forget drops a word for which nobody has waited.
func (p *pass) forget() {
	select {
	case <-p.says:
	default:
	}
}

// Settle ends a request that was told to go, once, and says what became of it.
func (g *Gate) Settle(t types.Ticket, bytes uint64, f event.Completion) {
	p := &g.slots[t.Slot()]
	p.mu.Lock()
	defer p.mu.Unlock()
	g.settle(p, event.Finish{Ticket: t, Bytes: bytes, Completion: f})
}

// settle comes behind whatever was asked for the slot, so that nothing is on its way when
// another has it.
func (g *Gate) settle(p *pass, end event.Finish) {
	p.over, p.end = true, end
	g.settled <- &p.end
}

// Comes is what is on its way to the node, in the order in which the loop takes it; nil:
// nothing is.
func (g *Gate) Comes() event.Event {
	select {
	case of := <-g.settled:
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

// Free gives the slots back whose Settle the node has stepped.
func (g *Gate) Free(stepped []event.Event) {
	for _, e := range stepped {
		if end, ok := e.(*event.Finish); ok {
			at := end.Ticket.Slot()
			g.empty[g.slots[at].class] <- at
		}
	}
}

// Size is how many may be in, In how many of a class are; Settled is of the words of
// those who are in.
func (g *Gate) Size() int                   { return len(g.slots) }
func (g *Gate) In(c types.Class) int        { return cap(g.empty[c]) - len(g.empty[c]) }
func (g *Gate) Limit(c types.Class) int     { return cap(g.empty[c]) }
func (g *Gate) Settled() (depth, limit int) { return len(g.settled), cap(g.settled) }
