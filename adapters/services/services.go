// Package services runs the parts of the process that are restarted when they end. It carries out
// commands and reports events; the core decides about restarts.
//
//	Do(start) ──► run ──up()──► ServiceUp ──returns, or panics──► ServiceDown
//	Do(stop): its context ends          Do(kill): Hard of its context ends too
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
	errMissing    = errors.New("the service has no implementation")
	errUnexpected = errors.New("ended without a stop command")
	errGoexit     = errors.New("ended its goroutine")
)

// A Run is the work of a service. It calls up when it serves, and returns when ctx ends; it may
// finish its work until Hard(ctx) ends. It must not call up after it has returned.
type Run func(ctx context.Context, up func()) error

// Set has the services of a node.
type Set struct{ children [types.NumServices]child }

// Counts are the outcomes of a service's runs. The remaining run, if any, is running.
type Counts struct {
	Started  uint64
	Stopped  uint64 // ended after a stop command
	Killed   uint64 // ended after a kill command
	Died     uint64 // ended without a command
	Panicked uint64 // part of all of them
}

// New returns a set without services. say gets their events; it is called from their goroutines
// and may block.
func New(log *slog.Logger, say func(event.Event)) *Set {
	s := new(Set)
	for name := range types.NumServices {
		c := &s.children[name]
		c.name, c.log, c.say = name, log.With("service", name.String()), say
		c.work = func(context.Context, func()) error { return errMissing }
	}
	return s
}

// Add sets the work of a service. It must precede the first Do.
func (s *Set) Add(name types.Service, run Run) { s.children[name].work = run }

// Do carries out a command of the node. It does not block.
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

// Counts returns the outcomes of a service's runs.
func (s *Set) Counts(name types.Service) Counts {
	c := &s.children[name]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// Wait returns when none of the named services runs, or none at all if no name is given, and
// their events were delivered; or when ctx ends. No service is started meanwhile.
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

// Hard returns the context that ends when the service of ctx must end at once. It outlives ctx,
// which ends when the service should finish.
func Hard(ctx context.Context) context.Context {
	if hard, ok := ctx.Value(hardKey{}).(context.Context); ok {
		return hard
	}
	return ctx
}

// child is one service.
type child struct {
	name types.Service
	work Run
	log  *slog.Logger
	say  func(event.Event)

	mu         sync.Mutex
	stop, kill context.CancelFunc // of the current run; nil: none
	killed     bool
	done       chan struct{} // closed when the event of the last run was delivered
	counts     Counts
}

func (c *child) start() {
	soft, kill, done, ok := c.begin()
	if !ok {
		c.log.Error("service start requested while running")
		return
	}
	go func() {
		err := errGoexit // for a Run that calls runtime.Goexit
		defer func() {
			asked := soft.Err() != nil // its own context, not another one
			kill()
			c.ended(asked, err)
			c.say(event.ServiceDown{Service: c.name})
			close(done)
		}()
		err = c.Run(soft)
	}()
}

// begin starts a run, unless there is one.
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

// Run runs the work once. A panic becomes an error.
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

// ended counts a finished run. Without a command it has died, whatever it returns: the end of
// another context is not a reason to stop.
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
		c.log.Error("service failed", "err", errUnexpected)
	default:
		c.log.Error("service failed", "err", err)
	}
}
