// Package loop connects the node to the outside: one goroutine reads the clock, steps the node, and carries out
// its effects. It decides nothing.
//
//	requests ─► dispatcher ─► Turn ─► batch k+1 grows ─► sealer: write, sync k ─► follower
//	                           ▲                            │ Durable               │ Applied
//	                           └────────────────────────────┴───────────────────────┘
package loop

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A Stepper is the node.
type Stepper interface {
	Step(now types.Now, in event.Event, out *event.Effects)
	Due() (at types.Instant, any bool)
	Status(s *event.Status)
}

// A Clock reads the machine's clocks. It is read once per turn, and while a batch waits.
type Clock interface{ Now() types.Now }

// A Journal takes a batch in two steps; a crash may follow each.
type Journal interface {
	Write(arena []byte, frames []event.Frame) ([]record.Sealed, error)
	Sync() (types.LSN, error)
}

// Ports are the callbacks of the loop. None of them blocks it.
type Ports struct {
	Fold           func([]record.Sealed) error              // applies durable batches to the read model; called on its own goroutine
	ServiceCommand func(event.ServiceCommand)               // starts and stops services
	ClassifyFault  func(error) event.Fault                  // classifies a disk error
	Flush          func(frames, bytes int, t time.Duration) // called when a batch is durable
}

// Loop owns the clock and the node; no other goroutine uses them.
type Loop struct {
	node       Stepper
	clock      Clock
	journal    Journal
	ports      Ports
	dispatcher *Dispatcher
	batch      int // most events per turn

	status      atomic.Pointer[event.Status]
	events      []event.Event
	out         event.Effects
	next        Batch            // the batch that grows
	waited      int              // turns for which an idle sealer waited
	waitsSince  types.Instant    // when it began to wait
	external    chan event.Event // events from other goroutines: never rejected, may wait
	toSealer    chan *Batch      // to the sealer
	fromSealer  chan *Batch      // from the sealer
	folds       chan []record.Sealed
	followerErr chan error // the follower failed

	losing sync.WaitGroup // of requests that lose their permit
}

// New returns a loop that handles at most batch events per turn.
func New(n Stepper, c Clock, j Journal, k *Dispatcher, p Ports, batch int) *Loop {
	l := &Loop{node: n, clock: c, journal: j, ports: p, dispatcher: k, batch: batch,
		external: make(chan event.Event, 64), toSealer: make(chan *Batch, 1), fromSealer: make(chan *Batch, 1),
		folds: make(chan []record.Sealed, 4), followerErr: make(chan error, 1)}
	l.fromSealer <- new(Batch)
	l.status.Store(l.nodeStatus())
	return l
}

// Status returns the status of the node after the last turn. It is read-only.
func (l *Loop) Status() event.Status { return *l.status.Load() }

// Send sends an event to the node. It waits while the queue is full, and returns false if ctx ends first.
func (l *Loop) Send(ctx context.Context, e event.Event) (ok bool) {
	select {
	case l.external <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// Batch is the frames of one sync.
type Batch struct {
	Arena  []byte
	Frames []event.Frame
}

// Add copies the frames of a turn.
func (b *Batch) Add(out *event.Effects) {
	for _, f := range out.Frames {
		off := uint32(len(b.Arena))
		b.Arena = append(b.Arena, out.Body(f)...)
		b.Frames = append(b.Frames, event.Frame{LSN: f.LSN, Off: off, Len: f.Len})
	}
}

// Turn steps the node with some events at one instant. The simulator uses it too.
func Turn(s Stepper, now types.Now, in []event.Event, out *event.Effects) {
	out.Reset()
	for _, e := range in {
		s.Step(now, e, out)
	}
}

// Run steps the node, beginning with first, until the node has stopped (nil) or an error. When it
// returns, the sealer and the follower have ended, and all durable frames are folded.
func (l *Loop) Run(ctx context.Context, first event.Event) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.seal(ctx) })
	wg.Go(func() { l.follow(ctx) })
	err := l.run(ctx, first)
	close(l.dispatcher.Upstreams.ended)
	stop()
	wg.Wait()
	l.losing.Wait()
	return err
}

func (l *Loop) run(ctx context.Context, first event.Event) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	l.events = append(l.events[:0], first)
	for {
		now := l.clock.Now()
		l.turn(now)
		if !l.yieldForMore(now.Mono) {
			l.flush()
		}
		s := l.nodeStatus()
		if s.Phase == types.Stopped {
			s = l.drainUpdates()
		}
		l.status.Store(s)
		if s.Phase == types.Stopped {
			return nil
		}
		if due, any := l.node.Due(); any {
			timer.Reset(max(0, time.Duration(due-now.Mono)))
		}
		if err := l.wait(ctx, timer); err != nil {
			return err
		}
	}
}

// turn steps the current events, and passes the effects on.
func (l *Loop) turn(now types.Now) {
	Turn(l.node, now, l.events, &l.out)
	l.dispatcher.Admission.FreeFinished(l.events)
	l.next.Add(&l.out)
	for _, r := range l.out.Replies {
		l.dispatcher.Deliver(r)
	}
	for _, v := range l.out.Decisions {
		if h := l.dispatcher.Admission.Deliver(v); h != nil {
			l.losing.Go(func() { h.LosePermit(v.Reason) }) // it takes locks of a connection
		}
	}
	for _, t := range l.out.UpstreamReplies {
		l.dispatcher.Upstreams.deliver(t)
	}
	for _, op := range l.out.ServiceCommands {
		l.ports.ServiceCommand(op)
	}
}

// drainUpdates handles the remaining ends of requests after the node has stopped.
func (l *Loop) drainUpdates() *event.Status {
	for pending := len(l.dispatcher.Admission.updates); pending > 0; pending -= len(l.events) { // and no more: running requests may continue to reserve
		l.events = l.events[:0]
		for range min(pending, l.batch) {
			l.events = append(l.events, <-l.dispatcher.Admission.updates)
		}
		l.turn(l.clock.Now())
	}
	return l.nodeStatus()
}

// nodeStatus returns the status of the node.
func (l *Loop) nodeStatus() *event.Status {
	s := new(event.Status)
	l.node.Status(s)
	return s
}

// wait blocks for one event, then takes all others that are ready.
func (l *Loop) wait(ctx context.Context, timer *time.Timer) error {
	l.events = l.events[:0]
	rings, ticks := &l.dispatcher.rings, false
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-l.followerErr:
		return err
	case e := <-l.external:
		l.events = append(l.events, e)
	case t := <-l.dispatcher.cancelled:
		l.events = append(l.events, l.dispatcher.cancelEvent(t))
	case e := <-l.dispatcher.Admission.updates:
		l.events = append(l.events, e)
	case e := <-l.dispatcher.Upstreams.queries:
		l.events = append(l.events, e)
	case <-timer.C:
		ticks = true // after the events of the disk: they may have been in time
	case e := <-rings[types.ClassInternal]:
		l.events = append(l.events, e)
	case e := <-rings[types.ClassAuthed]:
		l.events = append(l.events, e)
	case e := <-rings[types.ClassAnon]:
		l.events = append(l.events, e)
	}
	for len(l.external) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, <-l.external)
	}
	if ticks {
		l.events = append(l.events, event.Tick{})
	}
	for len(l.dispatcher.cancelled) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, l.dispatcher.cancelEvent(<-l.dispatcher.cancelled))
	}
	for len(l.dispatcher.Admission.updates) > 0 && len(l.events) < l.batch-l.batch/4 { // otherwise streaming bodies would delay arrivals
		l.events = append(l.events, <-l.dispatcher.Admission.updates)
	}
	for len(l.dispatcher.Upstreams.queries) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, <-l.dispatcher.Upstreams.queries)
	}
	for _, ring := range rings {
		for len(ring) > 0 && len(l.events) < l.batch {
			l.events = append(l.events, <-ring)
		}
	}
	return nil
}

// yieldForMore yields before an idle sealer gets its batch, and reports whether another goroutine added to it: a
// sync costs the same for one frame as for fifty. It uses no timer; if no goroutine is ready, it takes no time. If
// hundreds are, as in a flood of requests that are rejected, each yield waits for all of them: so the batch waits
// only for requests with a key, which may write, and for about the time of one sync.
func (l *Loop) yieldForMore(now types.Instant) bool {
	if len(l.fromSealer) == 0 || len(l.next.Frames) == 0 || len(l.next.Frames) >= l.batch/2 || l.waited == maxWaitTurns {
		return false
	}
	if l.waited == 0 {
		l.waitsSince = now
	}
	for range maxYields {
		if l.clock.Now().Mono > l.waitsSince.Add(maxWait) {
			return false
		}
		runtime.Gosched()
		if l.dispatcher.hasKeyedWaiting() {
			l.waited++
			return true
		}
	}
	return false
}

const (
	maxYields    = 3                // largest number of yields without a new event
	maxWaitTurns = 16               // largest number of turns that a batch waits
	maxWait      = time.Millisecond // time after which a batch waits no more
)

// flush passes the batch to the sealer if it is idle.
func (l *Loop) flush() {
	if len(l.next.Frames) == 0 {
		return
	}
	l.waited = 0
	select {
	case spare := <-l.fromSealer:
		full := l.next
		l.next = Batch{spare.Arena[:0], spare.Frames[:0]}
		*spare = full
		l.toSealer <- spare
	default:
	}
}

// seal is the goroutine of the disk: chain, write, sync, report. After a failure it reports the
// same for every batch: the journal rejects writes.
func (l *Loop) seal(ctx context.Context) {
	defer close(l.folds)
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.toSealer:
			l.sealOne(ctx, b)
		}
	}
}

func (l *Loop) sealOne(ctx context.Context, b *Batch) {
	from, frames, bytes, began := b.Frames[0].LSN, len(b.Frames), len(b.Arena), time.Now()
	sealed, err := l.journal.Write(b.Arena, b.Frames)
	var upto types.LSN
	if err == nil {
		upto, err = l.journal.Sync()
	}
	l.fromSealer <- b
	if err != nil {
		l.Send(ctx, event.FlushFailed{From: from, Fault: l.ports.ClassifyFault(err)})
		return
	}
	l.ports.Flush(frames, bytes, time.Since(began))
	l.Send(ctx, event.Durable{Upto: upto, Bytes: uint64(bytes)})
	l.folds <- sealed
}

// follow is the goroutine of the read model. It folds durable frames even after the loop has
// ended. If it fails, the loop must end, because answers would be wrong.
func (l *Loop) follow(ctx context.Context) {
	for sealed := range l.folds {
		if err := l.ports.Fold(sealed); err != nil {
			l.followerErr <- fmt.Errorf("follower: fold %v: %w", sealed[0].LSN, err)
			break
		}
		l.Send(ctx, event.Applied{Upto: sealed[len(sealed)-1].LSN})
	}
	for range l.folds { // keep receiving, so that senders do not block
	}
}
