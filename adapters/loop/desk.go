package loop

import (
	"context"
	"sync"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// Door is how many of each class may be in at once: a flood of one cannot fill the part
// of another.
type Door [types.NumClasses]int

// All is how many may be in.
func (d Door) All() (n int) {
	for _, part := range d {
		n += part
	}
	return n
}

// Desk gives tickets to requests and hands replies to whoever waits for them. A
// request without a ticket is not let in, so that its ring always has room for it
// and whatever comes later for a ticket marks its slot and cannot be refused.
type Desk struct {
	Gate *Gate // at which requests arrive; its arrivals come through the same rings
	Asks *Asks // by those who send requests on

	rings [types.NumClasses]chan event.Event
	free  [types.NumClasses]chan uint32
	slots []slot
	gone  chan types.Ticket // at most one a slot: never full

	Index Index  // set before the first request; nil: nothing is ever sent back
	Again func() // is told of each that is sent back; nil: nobody is
}

type slot struct {
	mu         sync.Mutex // of this slot alone; nothing blocks under it
	generation uint32
	waits      bool
	marked     bool // a word about it lies in gone
	reply      chan event.Reply
}

// NewDesk opens the door to a desk, and the gate before it. So many may ask about upstreams
// at once.
func NewDesk(d, gate Door, asks int) *Desk {
	k, total := &Desk{}, d.All()
	for c, n := range d {
		k.rings[c] = make(chan event.Event, n+gate[c])
	}
	k.free = numbered(d)
	k.Gate, k.Asks = newGate(gate, &k.rings), newAsks(asks)
	k.slots, k.gone = make([]slot, total), make(chan types.Ticket, total)
	for i := range k.slots {
		k.slots[i].reply = make(chan event.Reply, 1)
	}
	return k
}

// numbered are the free slots of each class.
func numbered(d Door) (free [types.NumClasses]chan uint32) {
	next := uint32(0)
	for c, n := range d {
		free[c] = make(chan uint32, n)
		for range n {
			free[c] <- next
			next++
		}
	}
	return free
}

// Size is how many requests may be in at once, of all classes.
func (k *Desk) Size() int { return len(k.slots) }

// Depth and Limit are of one class's ring; In is how many of the class are in.
func (k *Desk) Depth(c types.Class) int { return len(k.rings[c]) }
func (k *Desk) Limit(c types.Class) int { return cap(k.rings[c]) }
func (k *Desk) In(c types.Class) int    { return cap(k.free[c]) - len(k.free[c]) }

// waits reports that somebody is at the door.
func (k *Desk) waits() bool {
	for _, ring := range k.rings {
		if len(ring) > 0 {
			return true
		}
	}
	return false
}

// Submit lets a request in and waits for its reply; ok is false when there is no
// room, and nothing was decided. Where ctx ends first the outcome is unknown.
func (k *Desk) Submit(ctx context.Context, c types.Class, in *event.Request) (r event.Reply, ok bool) {
	return k.informed(ctx, in, func() (event.Reply, bool) {
		return k.submit(ctx, c, in, func(t types.Ticket) { in.Ticket = t })
	})
}

// Execute submits a command of a plane that has no event of its own.
func (k *Desk) Execute(ctx context.Context, c types.Class, in command.Command) (r event.Reply, ok bool) {
	e := &event.Execute{Command: in}
	return k.informed(ctx, e, func() (event.Reply, bool) {
		return k.submit(ctx, c, e, func(t types.Ticket) { in.Head().Ticket = t })
	})
}

// Find asks what became of a key, and waits like Submit.
func (k *Desk) Find(ctx context.Context, c types.Class, in *event.FindOutcome) (r event.Reply, ok bool) {
	return k.informed(ctx, in, func() (event.Reply, bool) {
		return k.submit(ctx, c, in, func(t types.Ticket) { in.Ticket = t })
	})
}

// Enrol asks for a key to be known, Revoke for one to be nobody's, and they wait like
// Submit.
func (k *Desk) Enrol(ctx context.Context, in *event.CreateKey) (r event.Reply, ok bool) {
	return k.submit(ctx, types.ClassInternal, in, func(t types.Ticket) { in.Ticket = t })
}

func (k *Desk) Revoke(ctx context.Context, in *event.RevokeKey) (r event.Reply, ok bool) {
	return k.submit(ctx, types.ClassInternal, in, func(t types.Ticket) { in.Ticket = t })
}

func (k *Desk) submit(ctx context.Context, c types.Class, in event.Event, set func(types.Ticket)) (r event.Reply, ok bool) {
	var at uint32
	select {
	case at = <-k.free[c]:
	default:
		return r, false
	}
	s := &k.slots[at]
	t := s.take(at)
	set(t)
	select {
	case k.rings[c] <- in: // has room, unless those who left have not been looked at
	case <-ctx.Done():
		s.leave()
		k.free[c] <- at
		return event.Reply{Ticket: t, Problem: event.OutcomeUnknown}, true
	}
	select {
	case r = <-s.reply:
	case <-ctx.Done():
		if s.leave() {
			k.mark(s, t)
		}
		r = event.Reply{Ticket: t, Problem: event.OutcomeUnknown}
	}
	k.free[c] <- at
	return r, true
}

func (s *slot) take(at uint32) types.Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.waits = true
	return types.NewTicket(at, s.generation)
}

// leave ends the waiting; false means that the reply had come meanwhile.
func (s *slot) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waits {
		<-s.reply
		return false
	}
	s.waits = false
	return true
}

// mark leaves word that nobody waits for t; one word a slot is enough to keep the
// ring from ever being full, and a lost one costs no more than a place held longer.
func (k *Desk) mark(s *slot, t types.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.marked {
		s.marked = true
		k.gone <- t
	}
}

// canceled is the event that a word in gone stands for.
func (k *Desk) canceled(t types.Ticket) event.Event {
	s := &k.slots[t.Slot()]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = false
	return event.Cancel{Ticket: t}
}

// Deliver hands a reply to whoever has its ticket, if anybody still waits.
func (k *Desk) Deliver(r event.Reply) {
	s := &k.slots[r.Ticket.Slot()]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits && types.NewTicket(r.Ticket.Slot(), s.generation) == r.Ticket {
		s.waits = false
		s.reply <- r
	}
}
