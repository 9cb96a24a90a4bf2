package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"macronode/adapters/hostclock"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/placement"
)

// probeInterval is the time between two probes of each provider of objects.
const probeInterval = 2 * time.Second

// probeResult is what a probe of all providers found.
type probeResult struct {
	files                  event.ObjectFiles
	failed                 int   // providers that cannot be used
	unreadable, unwritable error // why directories cannot be read, and written
}

// runProbe tells the core, and logs, when objects become unreadable or uploads fail, when a provider fails, and when that
// ends.
func (r *repairs) runProbe(ctx context.Context) {
	was, last := make([]string, r.files.Table().Len()), probeResult{}
	for {
		now := r.probe()
		for i, h := range r.files.Health() {
			r.noteHealth(&was[i], h)
		}
		if now.failed != last.failed && len(was) > 1 { // with one provider, the conditions of the files report it
			r.inbox.send(ctx, event.ProviderHealth{Failed: now.failed})
		}
		if now.files != last.files {
			r.inbox.send(ctx, now.files)
			r.logFiles(&last, &now)
		}
		last = now
		if hostclock.Sleep(ctx, min(probeInterval, r.settings.Inventory)) != nil {
			return
		}
	}
}

// probe tries all providers. Objects are unreadable if all copies of one may be in directories that cannot be read. Uploads
// fail if fewer failure domains can be written than copies are required.
func (r *repairs) probe() (p probeResult) {
	var unreadable, writable placement.Set
	for i, h := range r.files.Health() {
		read, write := r.probeProvider(i, h)
		if read != nil {
			unreadable = unreadable.With(i)
			p.unreadable = errors.Join(p.unreadable, fmt.Errorf("provider %s: %w", h.Name, read))
		}
		if write != nil {
			p.unwritable = errors.Join(p.unwritable, fmt.Errorf("provider %s: %w", h.Name, write))
		} else {
			writable = writable.With(i)
		}
	}
	table, copies := r.files.Table(), r.files.Copies()
	p.files = event.ObjectFiles{Unreadable: table.Spread(unreadable) >= copies.Count, Unwritable: table.Spread(writable) < copies.Required}
	p.failed = table.Len() - r.usable().Len()
	return p
}

// probeProvider tries one provider. A directory that is missing is made again, as on a new disk, if objects have other copies.
func (r *repairs) probeProvider(i int, h objectstore.Health) (unreadable, unwritable error) {
	if h.Failed != "" && r.files.Copies().Count > 1 {
		if err := r.files.Remake(i); err != nil {
			return err, err
		}
	}
	return r.files.Probe(i)
}

// noteHealth logs a change of the health of a provider, and has its copies counted when it is used again.
func (r *repairs) noteHealth(was *string, is objectstore.Health) {
	several := r.files.Table().Len() > 1
	switch {
	case *was == "" && is.Failed != "" && several:
		r.log.Error("provider of objects has failed: its copies are read from other providers", "provider", is.Name, "err", is.Failed)
	case *was != "" && is.Failed == "":
		if several {
			r.log.Info("provider of objects is used again", "provider", is.Name)
		}
		wake(r.look)
	}
	*was = is.Failed
}

// logFiles logs a change of what can be done with objects.
func (r *repairs) logFiles(last, now *probeResult) {
	if now.files.Unreadable && !last.files.Unreadable {
		r.log.Error("directory of objects cannot be read: reads of objects fail", "err", now.unreadable)
	}
	if now.files.Unwritable && !last.files.Unwritable {
		r.log.Error("directory of objects cannot be written: uploads of objects fail", "err", now.unwritable)
	}
	if now.files == (event.ObjectFiles{}) {
		r.log.Info("directory of objects can be read and written again")
	}
}
