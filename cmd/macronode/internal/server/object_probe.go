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
	health                 event.ProviderHealth
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
		if len(was) == 1 {
			now.health.Failed = 0 // the conditions of the files report it
		}
		now.health.Lost = r.lostObjects() > 0
		if now.health.Lacking = r.lacking(); now.health != last.health {
			r.inbox.send(ctx, now.health)
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

// lacking reports whether objects lack copies: by the last inventory, or possibly, since a provider is used again and its
// copies are not counted yet.
func (r *repairs) lacking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is.inventory.Objects > 0 || r.returned != r.is.returned
}

// probe tries all providers. Objects are unreadable if all copies of one, or too many of its shards, may be in directories that cannot be
// read. Uploads fail if fewer failure domains can be written than copies or shards are required, or if one was refused a short time ago: it was
// larger than the space.
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
	p.files = event.ObjectFiles{Unreadable: table.Spread(unreadable) > copies.Losses(), Unwritable: table.Spread(writable) < copies.Domains()}
	if err := r.refused.after(r.files.Refused()); err != nil {
		p.files.Unwritable, p.unwritable = true, errors.Join(p.unwritable, err)
	}
	p.health.Failed = table.Len() - r.usable().Len()
	return p
}

// refusalProbes is for how many probes a refused upload is reported: about 30 s, so that what samples the status sees it.
const refusalProbes = 15

// A refusedUpload is an upload that was refused a short time ago, for lack of space.
type refusedUpload struct {
	why  error
	left int // probes
}

// after returns why an upload was refused a short time ago, and counts a probe. now is why one was refused since the last probe; nil: none was.
func (f *refusedUpload) after(now error) error {
	if now != nil {
		*f = refusedUpload{now, refusalProbes}
	}
	if f.left == 0 {
		return nil
	}
	f.left--
	return f.why
}

// probeProvider tries one provider. A directory that is missing is made again, as on a new disk, if objects have other copies.
func (r *repairs) probeProvider(i int, h objectstore.Health) (unreadable, unwritable error) {
	if copies := r.files.Copies(); h.Failed != "" && copies.Losses() > 0 {
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
		r.mu.Lock()
		r.returned++
		r.mu.Unlock()
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
