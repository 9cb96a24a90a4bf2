package main

import (
	"context"
	"slices"
	"sync"

	"macronode/adapters/hostclock"
	"macronode/core/event"
	"macronode/core/lifecycle/readiness"
	"macronode/core/types"
)

// ear takes what the shell has to say, also before there is a loop to hear it.
type ear struct {
	start readiness.Readiness // of a node that has no loop yet

	mu    sync.Mutex
	loop  runningCore
	early []event.Event // none twice: they are few, whatever is said
}

// runningCore is the loop around the core, as the ear uses it.
type runningCore interface {
	Say(ctx context.Context, e event.Event) (told bool)
	Status() event.Status
}

// say tells the node; it waits while the loop is behind.
func (e *ear) say(ctx context.Context, what event.Event) {
	e.mu.Lock()
	l := e.loop
	if l == nil && !slices.Contains(e.early, what) {
		e.early = append(e.early, what)
	}
	e.mu.Unlock()
	if l != nil {
		l.Say(ctx, what)
	}
}

// hear gives the ear its loop, which learns first what was said before.
func (e *ear) hear(ctx context.Context, l runningCore) {
	e.mu.Lock()
	early := e.early
	e.loop, e.early = l, nil
	e.mu.Unlock()
	for _, what := range early {
		l.Say(ctx, what)
	}
}

// hears reports that there is a loop.
func (e *ear) hears() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loop != nil
}

// ends reports that somebody wanted an end before there was a loop.
func (e *ear) ends() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.early, event.Event(event.Signal{Kind: event.Drain})) ||
		slices.Contains(e.early, event.Event(event.Signal{Kind: event.Abort}))
}

// tell tells the node, which must be there already; false where it is not told.
func (e *ear) tell(ctx context.Context, what event.Event) bool {
	e.mu.Lock()
	l := e.loop
	e.mu.Unlock()
	return l != nil && l.Say(ctx, what)
}

// status is what the node says of itself; before it is there, that it starts, or that it
// should have long ago.
func (e *ear) status() event.Status {
	e.mu.Lock()
	l, r := e.loop, e.start
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

// earlyWords is how many different words there can be before there is a loop: of each child
// that it came and that it went, and what an operator wants.
const earlyWords = 2*int(types.NumServices) + int(event.AcceptClock)

// waiting is how many there are.
func (e *ear) waiting() (depth, limit int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.early), earlyWords
}
