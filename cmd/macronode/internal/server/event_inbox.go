package server

import (
	"context"
	"slices"
	"sync"

	"macronode/adapters/hostclock"
	"macronode/core/event"
	"macronode/core/lifecycle/readiness"
	"macronode/core/types"
)

// eventInbox passes events to the loop around the core. Before there is a loop it keeps them.
type eventInbox struct {
	readiness readiness.Readiness // of a node without a loop

	mu    sync.Mutex
	loop  runningCore   // nil: the journal is being recovered
	early []event.Event // events from before the loop, without duplicates; at most maxEarly
}

// runningCore is the loop around the core, as the inbox uses it.
type runningCore interface {
	Send(ctx context.Context, e event.Event) (ok bool)
	Status() event.Status
}

// send passes an event to the loop, and waits while the queue of the loop is full.
func (e *eventInbox) send(ctx context.Context, what event.Event) {
	e.mu.Lock()
	l := e.loop
	if l == nil && !slices.Contains(e.early, what) {
		e.early = append(e.early, what)
	}
	e.mu.Unlock()
	if l != nil {
		l.Send(ctx, what)
	}
}

// attach sets the loop and passes the earlier events to it.
func (e *eventInbox) attach(ctx context.Context, l runningCore) {
	e.mu.Lock()
	early := e.early
	e.loop, e.early = l, nil
	e.mu.Unlock()
	for _, what := range early {
		l.Send(ctx, what)
	}
}

// attached reports whether there is a loop.
func (e *eventInbox) attached() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loop != nil
}

// endRequested reports whether a drain or an abort was requested before there was a loop.
func (e *eventInbox) endRequested() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.early, event.Event(event.Signal{Kind: event.Drain})) ||
		slices.Contains(e.early, event.Event(event.Signal{Kind: event.Abort}))
}

// trySend passes an event to the loop. It returns false if there is no loop, or if the loop did not take it.
func (e *eventInbox) trySend(ctx context.Context, what event.Event) bool {
	e.mu.Lock()
	l := e.loop
	e.mu.Unlock()
	return l != nil && l.Send(ctx, what)
}

// status returns the status of the core. Before there is a loop, it is starting, or degraded after the start timeout.
func (e *eventInbox) status() event.Status {
	e.mu.Lock()
	l, r := e.loop, e.readiness
	for c := range types.NumServices {
		up, down := slices.Index(e.early, event.Event(event.ServiceUp{Service: c})), slices.Index(e.early, event.Event(event.ServiceDown{Service: c}))
		if need, ok := c.Dependency(); ok && up > down {
			r.Satisfy(need)
		}
	}
	e.mu.Unlock()
	if l != nil {
		return l.Status()
	}
	r.Tick(hostclock.Mono())
	return event.Status{Phase: r.Verdict().Phase, WaitingFor: r.WaitingFor(), DegradedBy: r.DegradedBy(), AwaitedUpstreams: r.AwaitedUpstreams()}
}

// maxEarly is the number of different events before there is a loop: start and end of each service, and the signals.
const maxEarly = 2*int(types.NumServices) + int(event.AcceptClock)

// depth returns the number of early events, and its limit.
func (e *eventInbox) depth() (depth, limit int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.early), maxEarly
}
