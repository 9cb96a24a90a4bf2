// Package services runs the parts of the shell that are restarted when they end. It
// carries out what is asked for and tells what happened; whether a child starts
// again is decided in core.
//
//	Do(start) ──► run ──up()──► ChildUp ──returns, or panics──► ChildDown
//	Do(stop): its context ends          Do(kill): so does Hard of its context
package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"macronode/core/event"
	"macronode/core/types"
)

var (
	errMissing = errors.New("nobody added it")
	errUnasked = errors.New("ended without being asked to")
	errGoexit  = errors.New("ended its goroutine")
)

// A Run is the work of a child. It calls up once it serves, and returns when ctx
// ends: after finishing what is in, for as long as Hard(ctx) lasts. Up is not called
// after it has returned.
type Run func(ctx context.Context, up func()) error

// Set is the children of one node.
type Set struct{ children [types.NumServices]child }

// Counts are what became of a child's runs. Those that neither stopped, nor were
// killed, nor died are running.
type Counts struct {
	Started  uint64
	Stopped  uint64 // ended when asked
	Killed   uint64 // ended when told to end now
	Died     uint64 // ended by themselves
	Panicked uint64 // of all of them
}

// New is a set without children. Say takes what they have to tell; it is called
// from their goroutines and may block.
func New(log *slog.Logger, say func(event.Event)) *Set {
	s := new(Set)
	for name := range types.NumServices {
		c := &s.children[name]
		c.name, c.log, c.say = name, log.With("service", name.String()), say
		c.work = func(context.Context, func()) error { return errMissing }
	}
	return s
}

// Add says what a child does. It comes before the first Do.
func (s *Set) Add(name types.Service, run Run) { s.children[name].work = run }

// Do carries out what the node wants of a child. It does not block.
func (s *Set) Do(op event.ServiceCommand) {
	c := &s.children[op.Service]
	switch op.Verb {
	case event.StartService:
		c.start()
	case event.StopService:
		c.end(false)
	case event.KillService:
		c.end(true)
	}
}

// Counts tells what became of a child's runs.
func (s *Set) Counts(name types.Service) Counts {
	c := &s.children[name]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Wait returns when none of the named children runs, or of all, when none is named, and
// all of them have told so, or when ctx ends. Nothing is started meanwhile.
func (s *Set) Wait(ctx context.Context, names ...types.Service) error {
	for i := range s.children {
		c := &s.children[i]
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		c.mu.Lock()
		done := c.done
		c.mu.Unlock()
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("wait for child %v: %w", c.name, context.Cause(ctx))
		}
	}
	return nil
}

type hardKey struct{}

// Hard is the context that ends when the child of ctx shall end now, whatever it is
// at. It outlasts ctx, which ends when the child shall finish.
func Hard(ctx context.Context) context.Context {
	if hard, ok := ctx.Value(hardKey{}).(context.Context); ok {
		return hard
	}
	return ctx
}

// child is one part of the shell, running or not.
type child struct {
	name types.Service
	work Run
	log  *slog.Logger
	say  func(event.Event)

	mu         sync.Mutex
	stop, kill context.CancelFunc // of the run at hand; nil: there is none
	killed     bool
	done       chan struct{} // closed when the last run has been told of
	counts     Counts
}

func (c *child) start() {
	soft, kill, done, ok := c.begin()
	if !ok {
		c.log.Error("service start requested while running")
		return
	}
	go func() {
		err := errGoexit // stands where Run does not return
		defer func() {
			asked := soft.Err() != nil // its own context, no other's
			kill()
			c.ended(asked, err)
			c.say(event.ServiceDown{Service: c.name})
			close(done)
		}()
		err = c.Run(soft)
	}()
}

// begin takes note of a new run, unless there is one.
func (c *child) begin() (soft context.Context, kill func(), done chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil, nil, nil, false
	}
	hard, kill := context.WithCancel(context.Background())
	soft, c.stop = context.WithCancel(context.WithValue(hard, hardKey{}, hard))
	c.kill, c.killed, c.done = kill, false, make(chan struct{})
	c.counts.Started++
	return soft, kill, c.done, true
}

func (c *child) end(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stop == nil:
	case now:
		c.killed = true
		c.kill()
	default:
		c.stop()
	}
}

// Run does the child's work once. A panic ends here, as an error.
func (c *child) Run(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			c.log.Error("service panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			c.mu.Lock()
			c.counts.Panicked++
			c.mu.Unlock()
		}
	}()
	var once sync.Once
	return c.work(ctx, func() { once.Do(func() { c.say(event.ServiceUp{Service: c.name}) }) })
}

// ended counts a run that is over. Not asked to end, it has died, whatever it says:
// the end of somebody else's context is no reason to stay away.
func (c *child) ended(asked bool, err error) {
	c.mu.Lock()
	killed := c.killed
	switch {
	case !asked:
		c.counts.Died++
	case killed:
		c.counts.Killed++
	default:
		c.counts.Stopped++
	}
	c.stop, c.kill = nil, nil
	c.mu.Unlock()

	switch {
	case asked && (err == nil || errors.Is(err, context.Canceled)):
		c.log.Info("service stopped", "at_once", killed)
	case asked:
		c.log.Warn("service failed while stopping", "at_once", killed, "err", err)
	case err == nil:
		c.log.Error("service failed", "err", errUnasked)
	default:
		c.log.Error("service failed", "err", err)
	}
}
