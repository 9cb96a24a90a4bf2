package loop

import (
	"context"
	"sync"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// ClassLimits are the limits of concurrent requests by class, so that a flood of one class takes no slot of
// another.
type ClassLimits [types.NumClasses]int

// Total returns the limit of all classes.
func (d ClassLimits) Total() (n int) {
	for _, part := range d {
		n += part
	}
	return n
}

// Dispatcher gives tickets to requests and delivers replies. A request without a slot is rejected. So the ring
// always has room for a request, and a later event for a ticket only marks its slot and is never rejected.
type Dispatcher struct {
	Admission *Admission // its events come through the same rings
	Upstreams *UpstreamClient

	rings     [types.NumClasses]chan event.Event
	free      [types.NumClasses]chan uint32
	slots     []slot
	cancelled chan types.Ticket // at most one per slot: never full

	Index       Index  // set before the first request; nil: no lookups
	OnStaleRead func() // called for each stale index read; nil: not called
}

type slot struct {
	mu             sync.Mutex // of this slot only; never held while blocking
	generation     uint32
	isWaiting      bool
	isCancelQueued bool // its ticket is in cancelled
	reply          chan event.Reply
}

// NewDispatcher returns a dispatcher and its admission. queries limits concurrent upstream queries.
func NewDispatcher(d, gate ClassLimits, asks int) *Dispatcher {
	k, total := &Dispatcher{}, d.Total()
	for c, n := range d {
		k.rings[c] = make(chan event.Event, n+gate[c])
	}
	k.free = freeSlots(d)
	k.Admission, k.Upstreams = newAdmission(gate, &k.rings), newUpstreamClient(asks)
	k.slots, k.cancelled = make([]slot, total), make(chan types.Ticket, total)
	for i := range k.slots {
		k.slots[i].reply = make(chan event.Reply, 1)
	}
	return k
}

// freeSlots returns the free slots of each class.
func freeSlots(d ClassLimits) (free [types.NumClasses]chan uint32) {
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

// Size returns the limit of concurrent requests of all classes.
func (k *Dispatcher) Size() int { return len(k.slots) }

// Depth and Limit are those of a class's ring; InFlight is the number of requests of a class.
func (k *Dispatcher) Depth(c types.Class) int    { return len(k.rings[c]) }
func (k *Dispatcher) Limit(c types.Class) int    { return cap(k.rings[c]) }
func (k *Dispatcher) InFlight(c types.Class) int { return cap(k.free[c]) - len(k.free[c]) }

// hasKeyedWaiting reports whether a request with a key is waiting.
func (k *Dispatcher) hasKeyedWaiting() bool {
	return len(k.rings[types.ClassInternal])+len(k.rings[types.ClassAuthed]) > 0
}

// Submit submits a request and waits for its reply; ok is false if there is no slot, and then
// nothing was decided. If ctx ends first, the outcome is unknown.
func (k *Dispatcher) Submit(ctx context.Context, c types.Class, in *event.Request) (r event.Reply, ok bool) {
	return k.withIndex(ctx, in, func() (event.Reply, bool) {
		return k.submit(ctx, c, in, func(t types.Ticket) { in.Ticket = t })
	})
}

// Execute submits a command of a plane that has no event of its own.
func (k *Dispatcher) Execute(ctx context.Context, c types.Class, in command.Command) (r event.Reply, ok bool) {
	e := &event.Execute{Command: in}
	return k.withIndex(ctx, e, func() (event.Reply, bool) {
		return k.submit(ctx, c, e, func(t types.Ticket) { in.Head().Ticket = t })
	})
}

// Find looks up the outcome of a key, and waits like Submit.
func (k *Dispatcher) Find(ctx context.Context, c types.Class, in *event.FindOutcome) (r event.Reply, ok bool) {
	return k.withIndex(ctx, in, func() (event.Reply, bool) {
		return k.submit(ctx, c, in, func(t types.Ticket) { in.Ticket = t })
	})
}

// CreateKey creates an API key and RevokeKey revokes one; they wait like Submit.
func (k *Dispatcher) CreateKey(ctx context.Context, in *event.CreateKey) (r event.Reply, ok bool) {
	return k.submit(ctx, types.ClassInternal, in, func(t types.Ticket) { in.Ticket = t })
}

func (k *Dispatcher) RevokeKey(ctx context.Context, in *event.RevokeKey) (r event.Reply, ok bool) {
	return k.submit(ctx, types.ClassInternal, in, func(t types.Ticket) { in.Ticket = t })
}

func (k *Dispatcher) submit(ctx context.Context, c types.Class, in event.Event, set func(types.Ticket)) (r event.Reply, ok bool) {
	var at uint32
	select {
	case at = <-k.free[c]:
	default:
		return r, false
	}
	s := &k.slots[at]
	t := s.acquire(at)
	set(t)
	select {
	case k.rings[c] <- in: // has room, unless cancellations are still to be handled
	case <-ctx.Done():
		s.stopWaiting()
		k.free[c] <- at
		return event.Reply{Ticket: t, Problem: event.OutcomeUnknown}, true
	}
	select {
	case r = <-s.reply:
	case <-ctx.Done():
		if s.stopWaiting() {
			k.queueCancel(s, t)
		}
		r = event.Reply{Ticket: t, Problem: event.OutcomeUnknown}
	}
	k.free[c] <- at
	return r, true
}

func (s *slot) acquire(at uint32) types.Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.isWaiting = true
	return types.NewTicket(at, s.generation)
}

// stopWaiting stops waiting for the reply; false if the reply came meanwhile.
func (s *slot) stopWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isWaiting {
		<-s.reply
		return false
	}
	s.isWaiting = false
	return true
}

// queueCancel queues a cancellation of t. One per slot is enough, so the ring never fills up; a lost one only
// means that the slot is freed later.
func (k *Dispatcher) queueCancel(s *slot, t types.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isCancelQueued {
		s.isCancelQueued = true
		k.cancelled <- t
	}
}

// cancelEvent returns the event for a ticket in cancelled.
func (k *Dispatcher) cancelEvent(t types.Ticket) event.Event {
	s := &k.slots[t.Slot()]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isCancelQueued = false
	return event.Cancel{Ticket: t}
}

// Deliver passes a reply to the caller with its ticket, if it still waits.
func (k *Dispatcher) Deliver(r event.Reply) {
	s := &k.slots[r.Ticket.Slot()]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isWaiting && types.NewTicket(r.Ticket.Slot(), s.generation) == r.Ticket {
		s.isWaiting = false
		s.reply <- r
	}
}
