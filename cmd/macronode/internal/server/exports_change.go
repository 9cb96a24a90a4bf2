package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"macronode/adapters/export"
	"macronode/adapters/hostclock"
	"macronode/cmd/macronode/internal/settings"
	plane "macronode/core/export"
)

// A sinkChange replaces the sinks of a running node. Sinks that stay as they are keep their exporters.
//
//	newChange ─► claim their directories ─► apply: stop the old ones ─► start each new one when the old one has ended
//	                     └─► fails: nothing is changed
//
// The positions of a sink are in the journal, under its name, so the new exporter goes on where the old one has ended.
type sinkChange struct {
	next  []*exporter // of all sinks
	added []*exporter // of next: those that are new
}

// newChange makes the exporters that a configuration adds or changes. Nothing that runs is changed.
func (e *exports) newChange(sinks []settings.Sink) (c sinkChange, err error) {
	for _, s := range sinks {
		at := e.exporter(s.Name)
		if at == nil || !reflect.DeepEqual(at.settings, s) {
			if at, err = newExporter(e, s); err != nil {
				return c, errors.Join(err, closeAll(c.added))
			}
			c.added = append(c.added, at)
		}
		c.next = append(c.next, at)
	}
	return c, nil
}

// prepare is newChange for a running node. It locks the directories of new file sinks, but for one that a sink has now, or that one of
// before an earlier change has still: that one is locked when the sink has ended. If a directory is not free, or is that of another
// sink, it fails.
func (e *exports) prepare(sinks []settings.Sink) (c sinkChange, err error) {
	if c, err = e.newChange(sinks); err != nil {
		return c, err
	}
	e.mu.Lock()
	have := slices.Concat(e.sinks(), slices.DeleteFunc(slices.Clone(e.leaving), (*exporter).hasEnded))
	e.mu.Unlock()
	free := slices.DeleteFunc(slices.Clone(c.added), func(at *exporter) bool { return slices.ContainsFunc(have, at.followsDir) })
	if err := claimAll(free, c.added); err != nil {
		return c, err
	}
	if err := errors.Join(c.checkApart(have), e.checkRoom(&c)); err != nil {
		return c, errors.Join(err, closeAll(c.added))
	}
	return c, nil
}

// checkRoom fails if there is no room to record the sinks that a change adds: they would get nothing.
func (e *exports) checkRoom(c *sinkChange) error {
	rows, added := e.streams.journal.readModel, 0
	for _, at := range c.added {
		if _, recorded := rows.Sink(at.settings.Name); !recorded {
			added++
		}
	}
	if room := rows.SinkRoom(); added > room {
		return fmt.Errorf("exports.sinks has %d new sinks, and there is room for %d: the node knows %d, also those that were removed from the configuration; %s", added, room, plane.MaxSinks, noRoomForSink)
	}
	return nil
}

// noRoomForSink says what makes room for another sink.
const noRoomForSink = "remove one that is not used any more, with macronode exports remove"

// checkApart fails if a new file sink leads to the directory of another one, as the next start would. The lock does not show it: a sink
// that fails may have none.
func (c *sinkChange) checkApart(have []*exporter) error {
	directory := func(at *exporter) os.FileInfo {
		is := export.Directory(at.sink)
		for _, old := range have {
			if is == nil && at.followsDir(old) {
				is = export.Directory(old.sink)
			}
		}
		return is
	}
	for _, at := range c.added {
		for _, other := range c.next {
			is, its := directory(at), directory(other)
			if at != other && is != nil && its != nil && os.SameFile(is, its) {
				return fmt.Errorf("the directory of sink %s cannot be used: %w: %s is %s, that of sink %s", at.settings.Name, export.ErrDirectory,
					at.settings.Dir, other.settings.Dir, other.settings.Name)
			}
		}
	}
	return nil
}

// follows reports whether e begins only when another exporter has ended: it has the same lanes, or the same directory.
func (e *exporter) follows(old *exporter) bool {
	return old.settings.Name == e.settings.Name || e.followsDir(old)
}

func (e *exporter) followsDir(old *exporter) bool {
	return e.settings.Dir != "" && old.settings.Dir == e.settings.Dir
}

// apply makes a change. It waits for nothing: an exporter that is stopped ends when nothing is being delivered, at the latest after
// drainTime, or when the operating system returns from a call.
func (e *exports) apply(c sinkChange) {
	defer e.gauges.forget()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended { // the node ends: the next start has the new configuration
		_ = closeAll(c.added) // nothing was written
		return
	}
	e.leaving = slices.DeleteFunc(e.leaving, (*exporter).hasEnded)
	for _, old := range e.sinks() {
		if slices.Contains(c.next, old) {
			continue
		}
		e.leave(old)
		if !slices.ContainsFunc(c.next, func(at *exporter) bool { return at.settings.Name == old.settings.Name }) {
			e.metrics.ForgetSink(old.settings.Name)
		}
	}
	for _, at := range c.added {
		name := at.settings.Name
		at.metrics = e.metrics.Exports(name)
		if e.exporter(name) == nil {
			e.addGaugesOf(name)
		}
		if e.ctx == nil { // Run starts it
			continue
		}
		var after []*exporter
		for _, old := range e.leaving {
			if at.follows(old) {
				after = append(after, old)
			}
		}
		e.launch(at, after)
	}
	e.all.Store(&c.next)
}

// recordTimeout is how long a reload waits until the sinks are recorded that it adds.
const recordTimeout = 2 * time.Second

// record records the sinks that a change has added, before the reload is answered: they get all items that are acknowledged after it.
// If the node does not take that in time, each exporter records its sink later, and the log says so. In a drain, the next start does.
func (e *exports) record(ctx context.Context, c sinkChange) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	for _, at := range c.added {
		for !e.hasEnded() {
			if _, recorded := at.begin(ctx); recorded || at.isFull() {
				break
			}
			if hostclock.Sleep(ctx, refusedPause) != nil {
				at.log.Warn("new sink cannot be recorded now: it is when the journal takes writes, and with from now it begins then")
				break
			}
		}
	}
}

// isFull reports whether there is no room for the sink or a lane.
func (e *exporter) isFull() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Full
}

// hasEnded reports whether no exporter is started any more.
func (e *exports) hasEnded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// leave ends the exporter of a sink that is changed or removed. The caller holds mu.
func (e *exports) leave(old *exporter) {
	if e.ctx == nil { // it has not begun
		_ = old.sink.Close() // it has written nothing
		return
	}
	old.leave()
	e.leaving = append(e.leaving, old)
}

// hasEnded reports whether an exporter has ended.
func (e *exporter) hasEnded() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
