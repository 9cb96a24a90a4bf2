package main

import (
	"context"
	"slices"
	"sync"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/words"
)

// ear takes what the shell has to say, also before there is a loop to hear it.
type ear struct {
	mu    sync.Mutex
	loop  *loop.Loop
	early []event.Event // none twice: they are few, whatever is said
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
func (e *ear) hear(ctx context.Context, l *loop.Loop) {
	e.mu.Lock()
	early := e.early
	e.loop, e.early = l, nil
	e.mu.Unlock()
	for _, what := range early {
		l.Say(ctx, what)
	}
}

// ends reports that somebody wanted an end before there was a loop.
func (e *ear) ends() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.early, event.Event(event.Signal{What: event.Drain})) ||
		slices.Contains(e.early, event.Event(event.Signal{What: event.Abort}))
}

// status is what the node says of itself; before it is there, that it starts.
func (e *ear) status() event.Status {
	e.mu.Lock()
	l := e.loop
	e.mu.Unlock()
	if l == nil {
		return event.Status{Phase: words.Starting, Unmet: words.AllDependencies}
	}
	return l.Status()
}
