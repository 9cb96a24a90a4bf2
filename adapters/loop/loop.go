// Package loop is where the node meets the world: the one goroutine that reads the
// clock, steps the node, and carries out what it asks for. It decides nothing.
//
//	requests ─► desk ─► Turn ─► batch k+1 grows ─► sealer: write, sync k ─► follower
//	                     ▲                            │ Durable               │ Folded
//	                     └────────────────────────────┴───────────────────────┘
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

// A Clock tells what the machine claims. It is read once a turn.
type Clock interface{ Now() types.Now }

// A Journal takes a batch in two moves, each of which a crash can follow.
type Journal interface {
	Write(arena []byte, frames []event.Frame) ([]record.Sealed, error)
	Sync() (types.LSN, error)
}

// Ports are what stands around the loop. None of them blocks it.
type Ports struct {
	Fold  func([]record.Sealed) error              // the follower's; runs on its own goroutine
	Child func(event.ServiceCommand)               // starts and stops children
	Fault func(error) event.Fault                  // how the disk failed
	Flush func(frames, bytes int, t time.Duration) // a batch became durable
}

// Loop owns the clock and the node; nothing else touches either.
type Loop struct {
	node    Stepper
	clock   Clock
	journal Journal
	ports   Ports
	desk    *Desk
	batch   int // events a turn, at most

	status atomic.Pointer[event.Status]
	events []event.Event
	out    event.Effects
	next   Batch            // grows
	waited int              // turns for which it was kept from an idle sealer
	late   chan event.Event // what the shell has to say: never refused, may wait
	begin  chan *Batch      // to the sealer
	free   chan *Batch      // and back
	folds  chan []record.Sealed
	lost   chan error // the follower cannot go on
}

// New makes a loop that takes at most batch events a turn.
func New(n Stepper, c Clock, j Journal, k *Desk, p Ports, batch int) *Loop {
	l := &Loop{node: n, clock: c, journal: j, ports: p, desk: k, batch: batch,
		late: make(chan event.Event, 64), begin: make(chan *Batch, 1), free: make(chan *Batch, 1),
		folds: make(chan []record.Sealed, 4), lost: make(chan error, 1)}
	l.free <- new(Batch)
	l.status.Store(l.look())
	return l
}

// Status is what the node said of itself after the last turn. It is not written to
// any more.
func (l *Loop) Status() event.Status { return *l.status.Load() }

// Say tells the node what happened; it waits while the loop is behind, and gives up
// when ctx ends: then the node is not told.
func (l *Loop) Say(ctx context.Context, e event.Event) (told bool) {
	select {
	case l.late <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// Batch is what one sync makes durable.
type Batch struct {
	Arena  []byte
	Frames []event.Frame
}

// Add copies a turn's frames out of its arena.
func (b *Batch) Add(out *event.Effects) {
	for _, f := range out.Frames {
		off := uint32(len(b.Arena))
		b.Arena = append(b.Arena, out.Body(f)...)
		b.Frames = append(b.Frames, event.Frame{LSN: f.LSN, Off: off, Len: f.Len})
	}
}

// Turn carries events to their effects, all at one instant. The simulator takes the
// same turns.
func Turn(s Stepper, now types.Now, in []event.Event, out *event.Effects) {
	out.Reset()
	for _, e := range in {
		s.Step(now, e, out)
	}
}

// Run steps the node, beginning with first, until the node has stopped (nil) or
// cannot go on. When it returns, the sealer and the follower have ended, and all
// that was durable is folded.
func (l *Loop) Run(ctx context.Context, first event.Event) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.seal(ctx) })
	wg.Go(func() { l.follow(ctx) })
	err := l.run(ctx, first)
	close(l.desk.Asks.over)
	stop()
	wg.Wait()
	return err
}

func (l *Loop) run(ctx context.Context, first event.Event) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	l.events = append(l.events[:0], first)
	for {
		now := l.clock.Now()
		l.turn(now)
		if !l.comes() {
			l.flush()
		}
		s := l.look()
		if s.Phase == types.Stopped {
			s = l.last()
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

// turn has the node step the events at hand, and hands on what it says.
func (l *Loop) turn(now types.Now) {
	Turn(l.node, now, l.events, &l.out)
	l.desk.Gate.Free(l.events)
	l.next.Add(&l.out)
	for _, r := range l.out.Replies {
		l.desk.Deliver(r)
	}
	for _, v := range l.out.Decisions {
		l.desk.Gate.Deliver(v)
	}
	for _, t := range l.out.UpstreamReplies {
		l.desk.Asks.deliver(t)
	}
	for _, op := range l.out.ServiceCommands {
		l.ports.Child(op)
	}
}

// last hears out a node that has stopped: what became of those who had left by then has been
// said, and may not have been stepped.
func (l *Loop) last() *event.Status {
	for said := len(l.desk.Gate.settled); said > 0; said -= len(l.events) { // and no more: who is in still may go on asking
		l.events = l.events[:0]
		for range min(said, l.batch) {
			l.events = append(l.events, <-l.desk.Gate.settled)
		}
		l.turn(l.clock.Now())
	}
	return l.look()
}

// look is what the node says of itself now.
func (l *Loop) look() *event.Status {
	s := new(event.Status)
	l.node.Status(s)
	return s
}

// wait blocks for one event, then takes what else is there.
func (l *Loop) wait(ctx context.Context, timer *time.Timer) error {
	l.events = l.events[:0]
	rings, ticks := &l.desk.rings, false
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-l.lost:
		return err
	case e := <-l.late:
		l.events = append(l.events, e)
	case t := <-l.desk.gone:
		l.events = append(l.events, l.desk.canceled(t))
	case e := <-l.desk.Gate.settled:
		l.events = append(l.events, e)
	case e := <-l.desk.Asks.ring:
		l.events = append(l.events, e)
	case <-timer.C:
		ticks = true // after what the disk has said: it may have been in time
	case e := <-rings[types.ClassInternal]:
		l.events = append(l.events, e)
	case e := <-rings[types.ClassAuthed]:
		l.events = append(l.events, e)
	case e := <-rings[types.ClassAnon]:
		l.events = append(l.events, e)
	}
	for len(l.late) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, <-l.late)
	}
	if ticks {
		l.events = append(l.events, event.Tick{})
	}
	for len(l.desk.gone) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, l.desk.canceled(<-l.desk.gone))
	}
	for len(l.desk.Gate.settled) > 0 && len(l.events) < l.batch-l.batch/4 { // or bodies that stream would keep out who comes
		l.events = append(l.events, <-l.desk.Gate.settled)
	}
	for len(l.desk.Asks.ring) > 0 && len(l.events) < l.batch {
		l.events = append(l.events, <-l.desk.Asks.ring)
	}
	for _, ring := range rings {
		for len(ring) > 0 && len(l.events) < l.batch {
			l.events = append(l.events, <-ring)
		}
	}
	return nil
}

// comes lets others run before an idle sealer is given its batch, and reports that
// one of them had more for it: a sync costs the same for one frame as for fifty.
// There is no timer in it; where nobody runs, it takes no time.
func (l *Loop) comes() bool {
	if len(l.free) == 0 || len(l.next.Frames) == 0 || len(l.next.Frames) >= l.batch/2 || l.waited == patient {
		return false
	}
	for range polite {
		runtime.Gosched()
		if l.desk.waits() {
			l.waited++
			return true
		}
	}
	return false
}

const (
	polite  = 3  // how often others may go first, before they are believed to be done
	patient = 16 // turns that a batch waits for others, whatever they bring
)

// flush hands the grown batch to the sealer, if that is idle.
func (l *Loop) flush() {
	if len(l.next.Frames) == 0 {
		return
	}
	l.waited = 0
	select {
	case spare := <-l.free:
		full := l.next
		l.next = Batch{spare.Arena[:0], spare.Frames[:0]}
		*spare = full
		l.begin <- spare
	default:
	}
}

// seal is the disk's goroutine: chain, write, sync, say so. After a failure it says
// the same of every batch: the journal is of no more use.
func (l *Loop) seal(ctx context.Context) {
	defer close(l.folds)
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.begin:
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
	l.free <- b
	if err != nil {
		l.Say(ctx, event.FlushFailed{From: from, Fault: l.ports.Fault(err)})
		return
	}
	l.ports.Flush(frames, bytes, time.Since(began))
	l.Say(ctx, event.Durable{Upto: upto, Bytes: uint64(bytes)})
	l.folds <- sealed
}

// follow is the other core's goroutine. What is durable it takes in even when the
// loop has ended; when it cannot, the loop must end, because answers would lie.
func (l *Loop) follow(ctx context.Context) {
	for sealed := range l.folds {
		if err := l.ports.Fold(sealed); err != nil {
			l.lost <- fmt.Errorf("follower: fold %v: %w", sealed[0].LSN, err)
			break
		}
		l.Say(ctx, event.Applied{Upto: sealed[len(sealed)-1].LSN})
	}
	for range l.folds { // nobody is to be kept waiting
	}
}
