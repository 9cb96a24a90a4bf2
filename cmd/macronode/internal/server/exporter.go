package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"macronode/adapters/export"
	"macronode/adapters/hostclock"
	"macronode/adapters/index"
	"macronode/adapters/metrics"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/command"
	"macronode/core/event"
	plane "macronode/core/export"
	"macronode/core/lanes"
	"macronode/core/types"
)

const (
	failuresInRow = 5                     // attempts after which a sink is reported as failing
	opensOfLook   = 32                    // lanes that are made in one look; the others follow at once
	idlePause     = time.Minute           // of an exporter that nothing is due for
	missingPause  = time.Second           // before another attempt to make a lane
	refusedPause  = 10 * time.Millisecond // of an exporter that may not deliver what is due
)

// exporter delivers to one sink. One goroutine calls the machine; each delivery and each command has its own.
type exporter struct {
	of       *exports
	settings settings.Sink
	sink     export.Sink
	metrics  *metrics.Exports
	log      *slog.Logger
	news     chan struct{}  // streams have changed, or an operator has changed a lane
	ended    chan delivery  // at most Inflight
	answered chan answer    // at most Commands
	running  sync.WaitGroup // deliveries and commands
	stopping chan struct{}  // closed when it is to end: in a drain, or because the sink is changed or removed
	stopOnce sync.Once
	done     chan struct{} // closed when it has ended

	offered  map[index.Stream]uint64 // heads that the machine has; as many as there are streams
	missing  bool                    // the sink is not recorded, or a lane could not be made
	full     map[types.Tenant]bool   // have no room for another lane; at most wallet.limits.tenants
	fullTo   types.Instant           // then they are tried again
	draining bool

	mu      sync.Mutex // guards what follows
	machine *lanes.Machine
	again   bool // an operator has changed a lane: look at all of them
	state   sinkState
	oldest  map[laneKey]time.Time // when the item was due that a lane delivers or repeats; at most Active
	began   map[laneKey]time.Time // of the attempts in progress; at most Inflight
	after   []*exporter           // that must end before it begins; empty when they have
	left    time.Time             // when a change has stopped it; zero: none has
}

// laneKey identifies a lane, or the redelivery of a quarantined item of it.
type laneKey struct {
	lane types.LaneID
	row  uint64 // position of the item; 0: the lane itself
}

func keyOfSend(s lanes.Send) laneKey {
	if s.Row {
		return laneKey{s.Lane, s.Position}
	}
	return laneKey{lane: s.Lane}
}

func keyOfCommand(c lanes.Command) laneKey {
	if c.Row {
		return laneKey{c.Lane, c.From}
	}
	return laneKey{lane: c.Lane}
}

// sinkState is what the last attempts have shown.
type sinkState struct {
	Stopped  bool          // the receiver wants no items; until a restart or until it is resumed
	Failures int           // attempts in a row that have failed because of the sink
	Failing  bool          // Failures has reached failuresInRow, and none has succeeded since
	Full     bool          // there is no room for the sink or a lane
	NoRoom   string        // why some streams get nothing, because of Full; empty: each has its lane
	Since    time.Time     // when NoRoom began
	Stuck    bool          // there is no room in the quarantine
	Reason   string        // of the last attempt that failed
	At       time.Time     // of that
	Paused   types.Instant // the receiver has asked for no attempts before
}

// A delivery is an attempt that has ended, an answer a command that has.
type delivery struct {
	lanes.Send
	export.Result
	unread bool // there was no attempt: the item could not be read
}

type answer struct {
	lanes.Command
	lanes.Answer
}

func newExporter(of *exports, s settings.Sink) (*exporter, error) {
	sink, err := export.New(s.Config)
	if err != nil {
		return nil, err
	}
	limits := s.LaneLimits(of.lanes)
	return &exporter{of: of, settings: s, sink: sink, log: of.log.With("sink", s.Name), news: make(chan struct{}, 1),
		ended: make(chan delivery, limits.Inflight), answered: make(chan answer, limits.Commands), stopping: make(chan struct{}), done: make(chan struct{}),
		offered: map[index.Stream]uint64{}, full: map[types.Tenant]bool{}, oldest: map[laneKey]time.Time{}, began: map[laneKey]time.Time{},
		machine: lanes.New(limits, s.Weight, types.NewRand(datadir.Random64()))}, nil
}

// stop makes the exporter deliver what is due now, and end.
func (e *exporter) stop() { e.stopOnce.Do(func() { close(e.stopping) }) }

// leave makes the exporter end when what it is delivering has ended. It starts no other delivery.
func (e *exporter) leave() {
	e.mu.Lock()
	e.machine.Stop()
	e.left = time.Now()
	e.mu.Unlock()
	e.stop()
}

// run delivers until ctx ends, or until it is stopped and nothing is being delivered.
func (e *exporter) run(ctx context.Context) {
	select {
	case <-e.stopping: // before it began
		_ = e.sink.Close() // it has written nothing
		return
	default:
	}
	if err := e.settings.CheckSecrets(); err != nil {
		e.log.Error("secret of the sink cannot be used: its items wait", "err", err)
	}
	delivering, cut := context.WithCancel(ctx)
	defer func() {
		cut()
		e.running.Wait()
		_ = e.sink.Close() // nothing is open that was not synced
	}()
	due, stopping := time.NewTimer(0), e.stopping
	defer due.Stop()
	var over, late <-chan time.Time
	for {
		wait := e.start(ctx, delivering)
		if e.draining && wait > 0 && e.isIdle() {
			return
		}
		due.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			stopping, e.draining = nil, true
			over = time.After(e.of.drainTime)
		case <-over: // what is being delivered is delivered again after the next start
			over = nil
			if !e.left.IsZero() { // a changed sink waits for this one; a drain ends without it
				late = time.After(slowAnswer)
			}
			e.mu.Lock()
			e.machine.Stop()
			e.mu.Unlock()
			cut()
		case <-late:
			e.log.Warn("delivery of the sink was cut and has not ended: a changed sink waits for it", "for", e.unended(time.Now()).age.Round(time.Second))
		case d := <-e.ended:
			e.end(d)
		case a := <-e.answered:
			e.settled(a)
		case <-e.news:
			e.look(ctx)
		case <-due.C:
			if e.missing {
				e.look(ctx)
			}
		}
	}
}

// settled passes the answer to a command on. If there is no room in the quarantine, the lane keeps its item.
func (e *exporter) settled(a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Answered(hostclock.Mono(), a.Command, a.Answer)
	if k := keyOfCommand(a.Command); a.Kind == lanes.Quarantine && a.Answer == lanes.Done || !e.machine.Loaded(k.lane, k.row) {
		delete(e.oldest, k)
	}
}

// isIdle reports that nothing runs: of what is left, nothing can be delivered now.
func (e *exporter) isIdle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Idle()
}

// start starts what the machine wants now, and returns the time until it may want more.
func (e *exporter) start(ctx, delivering context.Context) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := hostclock.Mono()
	for {
		c, ok := e.machine.NextCommand(now)
		if !ok {
			break
		}
		e.running.Go(func() { e.answered <- answer{c, e.settle(ctx, c)} })
	}
	canSend := !e.state.Stopped && now >= e.state.Paused
	for canSend {
		s, ok := e.machine.Next(now)
		if !ok {
			break
		}
		e.running.Go(func() { e.ended <- e.deliver(delivering, s) })
	}
	if e.machine.Again() && e.of.streams.known.Load() != nil && !e.draining {
		wake(e.news)
	}
	wait := idlePause
	if e.missing {
		wait = missingPause
	}
	if at, any := e.machine.Due(); any {
		wait = min(wait, max(0, time.Duration(at-now)))
	}
	switch {
	case !canSend && e.state.Stopped:
		wait = max(wait, refusedPause)
	case !canSend:
		wait = max(min(wait, time.Duration(e.state.Paused-now)), refusedPause)
	}
	return wait
}

// deliver makes one attempt.
func (e *exporter) deliver(ctx context.Context, s lanes.Send) delivery {
	item, err := e.of.streams.item(ctx, s.Lane, s.Position)
	if err != nil {
		return delivery{s, export.Result{Outcome: export.Retryable, Reason: err.Error()}, true}
	}
	e.mu.Lock()
	e.oldest[keyOfSend(s)], e.began[keyOfSend(s)] = item.Time, time.Now()
	e.mu.Unlock()
	item.HasPrior = func() (bool, error) { return e.hasPrior(s) }
	return delivery{s, e.sink.Deliver(ctx, item), false}
}

// hasPrior reports whether the item before one was for this sink: then its lane has delivered it, or an operator has skipped it.
func (e *exporter) hasPrior(s lanes.Send) (bool, error) {
	after, _ := e.of.streams.journal.readModel.Sink(e.settings.Name)
	if s.Position == 1 || after == 0 {
		return s.Position > 1, nil
	}
	l, ok := e.of.streams.journal.readModel.Lane(s.Lane)
	if !ok {
		return false, errNoLane
	}
	of := index.Stream{Tenant: s.Lane.Tenant}
	if dimension, usage := plane.DimensionOf(string(l.Stream)); usage {
		of.Dimension = dimension
	}
	at, err := e.of.streams.frameOf(of, s.Position-1)
	return at > after, err
}

// end passes the outcome of an attempt on, and logs a change of the state of the sink.
func (e *exporter) end(d delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, r := hostclock.Mono(), lanes.Result{Outcome: lanes.Retryable, Status: uint16(d.Status)}
	switch d.Outcome {
	case export.OK:
		r.Outcome = lanes.OK
	case export.Duplicate:
		r.Outcome = lanes.Duplicate
	case export.Permanent:
		if r.Outcome, r.Reason = lanes.Permanent, types.ExportRejected; d.TooLarge {
			r.Reason = types.ExportTooLarge
		}
	case export.Retryable, export.Stopped:
	}
	e.machine.Sent(now, d.Send, r)
	k := keyOfSend(d.Send)
	delete(e.began, k)
	if r.Outcome == lanes.OK || r.Outcome == lanes.Duplicate || !e.machine.Loaded(k.lane, k.row) {
		delete(e.oldest, k)
	}
	if d.unread {
		e.state.Reason, e.state.At = d.Reason, time.Now().UTC()
		return
	}
	e.metrics.Attempted(d.Outcome.String())
	e.judge(now, d.Result)
}

// judge changes the state of the sink.
func (e *exporter) judge(now types.Instant, r export.Result) {
	s := &e.state
	if r.Reason != "" {
		s.Reason, s.At = r.Reason, time.Now().UTC()
	}
	switch r.Outcome {
	case export.Stopped:
		if !s.Stopped {
			e.log.Error("sink wants no more items: nothing is delivered until it is resumed", "reason", r.Reason)
		}
		s.Stopped = true
	case export.Retryable:
		s.Failures++
		s.Paused = max(s.Paused, now.Add(r.RetryAfter))
		if s.Failures >= failuresInRow && !s.Failing {
			s.Failing = true
			e.log.Warn("sink is failing: its items wait", "reason", r.Reason)
		}
	default: // it has answered
		if s.Failing {
			e.log.Info("sink takes items again")
		}
		s.Failures, s.Failing, s.Paused = 0, false, 0
	}
}

// settle gives the node a command of the machine.
func (e *exporter) settle(ctx context.Context, c lanes.Command) lanes.Answer {
	h := command.Header{Tenant: c.Lane.Tenant}
	var of command.Command
	switch c.Kind {
	case lanes.Settle:
		of = &plane.Settle{Header: h, Lane: c.Lane, From: c.From, To: c.To}
	case lanes.Quarantine:
		of = &plane.Quarantine{Header: h, Lane: c.Lane, Position: c.From, Reason: c.Reason, Status: c.Status}
	case lanes.Resolve:
		of = &plane.Resolve{Header: h, Lane: c.Lane, Position: c.From}
	}
	reply := e.of.execute(ctx, of)
	if c.Kind == lanes.Quarantine {
		e.setFull(&e.state.Stuck, &reply, "no room in the quarantine: the stream waits", "tenant", c.Lane.Tenant.Text())
	}
	switch reply.Problem {
	case event.None:
		return lanes.Done
	case event.LaneMoved, event.NotFound:
		return lanes.Moved
	case event.ExportCapacity:
		return lanes.Full
	default:
		return lanes.Retry
	}
}

// look offers to the machine what it does not have: all lanes at first and when the machine has lost some, else those whose streams
// have grown.
func (e *exporter) look(ctx context.Context) {
	streams := e.of.streams.known.Load()
	if streams == nil || e.draining { // what is new in a drain is delivered after the next start
		return
	}
	e.mu.Lock()
	all := e.again || e.machine.Again()
	if e.again = false; all {
		e.machine.BeginScan()
	}
	e.mu.Unlock()
	if all {
		clear(e.offered)
		e.offerRows()
	}
	after, recorded := e.begin(ctx)
	if e.missing = !recorded; e.missing {
		e.waitForRoom("no room for another sink: " + noRoomForSink)
		return
	}
	e.retryFull()
	opens, none := 0, false // none: no tenant gets a lane now
	without := 0            // streams without a lane
	for _, s := range *streams {
		if s.head == e.offered[s.Stream] || !e.settings.Delivers(s.Tenant, kindOf(s.Stream)) {
			continue
		}
		lane, err := plane.NewLane(e.settings.Name, s.Tenant, streamName(s.Stream))
		if err != nil {
			continue // the configuration was checked, and so was the dimension
		}
		is, known := e.of.streams.journal.readModel.Lane(lane.LaneID)
		if !known {
			if none || e.full[s.Tenant] {
				without++
				continue
			}
			if opens++; opens > opensOfLook {
				wake(e.news)
				return
			}
			var err error
			is.Cursor, err = e.of.streams.lastUpto(s, after)
			if err != nil || !e.open(ctx, lane, is.Cursor) {
				e.missing, none = true, !e.full[s.Tenant]
				without++
				continue
			}
		}
		e.mu.Lock()
		loaded := e.machine.Offer(lane.LaneID, is.Cursor, s.head)
		e.mu.Unlock()
		if loaded {
			e.offered[s.Stream] = s.head
		}
	}
	reason := ""
	if without > 0 {
		reason = fmt.Sprintf("no room for another lane, so streams without one wait, %d of them: raise exports.lanes or exports.max_lanes_per_tenant, or remove sinks that are not used any more", without)
	}
	e.waitForRoom(reason)
}

// kindOf returns the kind of a stream in the configuration.
func kindOf(s index.Stream) string {
	if s.Dimension == "" {
		return export.Wallet
	}
	return export.Usage
}

// offerRows offers the quarantined items that an operator wants to be delivered again.
func (e *exporter) offerRows() {
	var due []lanes.Send
	rows := e.of.streams.journal.readModel
	var with []types.LaneID
	rows.Lanes(func(l plane.LaneState) bool {
		if l.Due > 0 && string(l.Sink) == e.settings.Name {
			with = append(with, l.LaneID)
		}
		return true
	})
	for _, id := range with {
		rows.Quarantined(id, func(q plane.Quarantined) bool {
			if q.Due {
				due = append(due, lanes.Send{Lane: id, Position: q.Position})
			}
			return true
		})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range due {
		e.machine.OfferRow(s.Lane, s.Position)
	}
}

// lookAgain makes the exporter look at all lanes, because an operator has changed some.
func (e *exporter) lookAgain(changed ...types.LaneID) {
	e.mu.Lock()
	for _, id := range changed {
		e.machine.Reload(id)
	}
	maps.DeleteFunc(e.oldest, func(k laneKey, _ time.Time) bool { return !e.machine.Loaded(k.lane, k.row) })
	e.again = true
	e.mu.Unlock()
	wake(e.news)
}

// resume lets a sink go on that is stopped, or that its receiver has asked to wait. It reports whether the sink is one.
func (e *exporter) resume() (waited bool) {
	e.mu.Lock()
	waited = e.state.Stopped || e.state.Paused > hostclock.Mono()
	e.state.Stopped, e.state.Paused = false, 0
	e.mu.Unlock()
	wake(e.news)
	return waited
}
