package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"macronode/adapters/export"
	"macronode/adapters/hostclock"
	"macronode/adapters/index"
	"macronode/adapters/loop"
	"macronode/adapters/metrics"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// Limits and times of exports.
const (
	lookInterval   = 200 * time.Millisecond // between two looks for new items
	drainMargin    = 200 * time.Millisecond // of the drain, which exports leave for their last commands
	maxExportDrain = 5 * time.Second        // of the drain, at most

	exportCommands = 16 // commands of all sinks that are with the node at once
)

// exports delivers sealed slices and movements to the sinks. The rules are in core/lanes and core/export:
//
//	read model, index ─► streams ─► exporter of a sink ─► Machine ─► export.Sink
//	                                                         └─► commands ─► node: cursors, quarantine
type exports struct {
	streams    exportStreams
	dispatcher *loop.Dispatcher
	metrics    *metrics.Metrics
	log        *slog.Logger
	lanes      int // of all sinks
	drainTime  time.Duration
	commands   chan struct{} // one for each command that is with the node

	draining chan struct{} // closed when the drain begins
	gauges   sinkGauges
	finished chan struct{} // closed when all exporters have ended

	all atomic.Pointer[[]*exporter] // of the sinks of the configuration

	mu      sync.Mutex      // guards what follows, and changes of all
	ctx     context.Context // of Run; nil: not running
	ended   bool            // no exporter is started any more
	leaving []*exporter     // that a reload has stopped, and that have not ended
	running sync.WaitGroup  // exporters, also those that wait for another one to end
}

// newExports returns the exports of a node. Nothing is read or sent before Run.
func newExports(start settings.Start, sinks []settings.Sink, journal *journalStore, x *index.Indexer, k *loop.Dispatcher, m *metrics.Metrics, log *slog.Logger) (*exports, error) {
	e := &exports{streams: exportStreams{journal: journal, index: x}, dispatcher: k, metrics: m, log: log, lanes: start.Exports.Lanes, drainTime: min(maxExportDrain, max(0, start.Core.Drain.Drain-drainMargin)),
		commands: make(chan struct{}, exportCommands), draining: make(chan struct{}), finished: make(chan struct{})}
	e.gauges.status = exportsAdmin{e}.status
	e.all.Store(new([]*exporter))
	first, err := e.newChange(sinks)
	if err != nil {
		return nil, err
	}
	for _, at := range first.added {
		at.metrics = m.Exports(at.settings.Name)
	}
	e.all.Store(&first.next)
	return e, nil
}

// sinks returns the exporters of the sinks of the configuration.
func (e *exports) sinks() []*exporter { return *e.all.Load() }

// claim locks the directories of file sinks. It fails if one is not free: then none is locked.
func (e *exports) claim() error { return claimAll(e.sinks(), e.sinks()) }

// claimAll locks the directories of exporters. If that fails, it closes the sinks of all.
func claimAll(exporters, all []*exporter) error {
	for _, at := range exporters {
		if err := export.Claim(at.sink); err != nil {
			return errors.Join(fmt.Errorf("the directory of sink %s cannot be used: %w", at.settings.Name, err), closeAll(all))
		}
	}
	return nil
}

// closeAll closes the sinks of exporters that do not run.
func closeAll(all []*exporter) (err error) {
	for _, at := range all {
		err = errors.Join(err, at.sink.Close())
	}
	return err
}

// begins returns the commands that record the sinks that are seen for the first time. They are decided in the frame of the start: a sink
// gets all items that are acknowledged after the node is ready.
func (e *exports) begins() (all []command.Command) {
	for _, at := range e.sinks() {
		if _, recorded := e.streams.journal.readModel.Sink(at.settings.Name); !recorded {
			all = append(all, at.beginCommand())
		}
	}
	return all
}

// Run delivers until ctx ends, or a drain has ended the exporters. It returns when nothing is being delivered.
func (e *exports) Run(ctx context.Context) error {
	e.mu.Lock()
	e.ctx = ctx
	for _, at := range e.sinks() {
		e.launch(at, nil)
	}
	e.mu.Unlock()
	looking, stop := context.WithCancel(ctx)
	var look sync.WaitGroup
	look.Go(func() { e.look(looking) })
	select {
	case <-ctx.Done():
		e.end()
	case <-e.draining:
	}
	e.running.Wait()
	stop()
	look.Wait()
	close(e.finished)
	return ctx.Err()
}

// launch starts an exporter, when others have ended. The caller holds mu, and Run runs.
func (e *exports) launch(at *exporter, after []*exporter) {
	at.follow(after)
	e.running.Go(func() {
		defer close(at.done)
		at.await(after)
		at.run(e.ctx)
	})
}

// end stops all exporters, and starts no other one.
func (e *exports) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.ended = true
	close(e.draining)
	for _, at := range e.sinks() {
		at.stop()
	}
}

// look publishes the streams and their heads whenever they have changed.
func (e *exports) look(ctx context.Context) {
	var seen, upto types.LSN
	var next []streamHead
	for hostclock.Sleep(ctx, lookInterval) == nil {
		select {
		case <-e.draining: // no new items: what is left is exported after the next start
			return
		default:
		}
		if next == nil && e.streams.journal.readModel.Mark() != seen {
			seen = e.streams.journal.readModel.Mark()
			next = e.streams.heads()
			upto = e.streams.journal.readModel.Mark() // all heads are in these frames
		}
		if next != nil && e.streams.index.Mark().LSN >= upto {
			published := next
			if e.streams.known.Swap(&published) == nil {
				e.gauges.forget() // a scrape does not wait for what is known now
			}
			next = nil
			for _, at := range e.sinks() {
				wake(at.news)
			}
		}
	}
}

// execute gives the node a command, and waits for its outcome.
func (e *exports) execute(ctx context.Context, c command.Command) event.Reply {
	select {
	case e.commands <- struct{}{}:
	case <-ctx.Done():
		return event.Reply{Problem: event.Unavailable}
	}
	defer func() { <-e.commands }()
	r, ok := e.dispatcher.Execute(ctx, types.ClassInternal, c)
	if !ok {
		return event.Reply{Problem: event.Busy}
	}
	return r
}

// untilDrained is a part of the service that ends in a drain. So the node waits for the exports, as it waits for requests: for at most
// drainTime, in which items are delivered, and then until what sinks have acknowledged is recorded.
func (e *exports) untilDrained() []services.Run {
	return []services.Run{func(ctx context.Context, up func()) error {
		up()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), context.Canceled) { // a listener has failed: this is no drain
			return nil
		}
		e.end()
		select {
		case <-e.finished:
		case <-services.Hard(ctx).Done():
		}
		return nil
	}}
}
