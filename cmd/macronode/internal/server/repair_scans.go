package server

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/objectstore"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
)

// againInterval is the time between two inventories that tasks were skipped for, or failed.
const againInterval = 10 * time.Second

// runInventory compares names of files with rows: at the start, at intervals, when it is asked for, when a task was
// skipped or failed, and when the copies that were missing are restored.
func (r *repairs) runInventory(ctx context.Context) {
	for asked := false; ; {
		err := r.refusal()
		if err == nil {
			if err = r.takeInventory(ctx, asked); err != nil && ctx.Err() == nil {
				r.log.Error("copies of objects not counted", "err", err)
			}
		}
		if err != nil && asked {
			r.failInventory(err)
		}
		if asked = r.awaitInventory(ctx); ctx.Err() != nil {
			return
		}
	}
}

// failInventory notes that an inventory failed: the command that asked for it waits for its outcome.
func (r *repairs) failInventory(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.inventory.Number++
	r.is.inventory.Failure = err.Error()
}

// awaitInventory waits until the next inventory is due or asked for, or ctx ends.
func (r *repairs) awaitInventory(ctx context.Context) (asked bool) {
	due := time.NewTimer(r.settings.Inventory)
	defer due.Stop()
	soon := time.NewTicker(min(againInterval, r.settings.Inventory))
	defer soon.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return false
		case <-r.look:
			return true
		case <-soon.C:
			r.mu.Lock()
			recount := r.restored && r.is.inventory.Objects > 0 && r.machine.Running() == 0 // the condition ends when nothing is missing
			again := (r.machine.Again() || recount) && r.machine.Waiting() == 0
			r.mu.Unlock()
			if again || !r.counted() {
				return false
			}
		}
	}
}

// counted reports whether there was an inventory since the start.
func (r *repairs) counted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.is.inventory.At.IsZero()
}

// takeInventory plans the repair of every object that lacks a copy. One that was asked for has lost objects read again.
func (r *repairs) takeInventory(ctx context.Context, asked bool) error {
	r.mu.Lock()
	r.machine.BeginInventory()
	returned := r.returned
	r.restored = false
	r.mu.Unlock()
	files, err := r.list()
	if err != nil {
		return err
	}
	all, found := r.providers(), adminapi.Inventory{}
	order := repair.InventoryOrder{Limit: r.settings.Limits.Queue, Plan: r.enqueue}
	err = r.eachObject(ctx, func(o storage.Stored) error {
		has := files.Parts(o)
		for _, part := range has.List() {
			all[part.Provider].Objects++
			all[part.Provider].Bytes += part.Size(o)
		}
		if has.Scheme.IsSet() {
			found.Coded++
		}
		is := has.Within(files.usable)
		if !files.settled(o.File) || is.Count() >= r.files.Wanted(&is) {
			return nil
		}
		found.Objects++
		found.Bytes += r.countMissing(o, &is, files.known(), all)
		if !is.AreEnough() {
			found.Lost++
			r.noteMissing(o, &files)
		}
		order.Add(taskOf(o), is.Count(), is.Needed())
		return nil
	})
	if err != nil {
		return err
	}
	order.Close()
	if asked {
		r.verifyLost()
	}
	if files.known() != r.files.Table().All() {
		found.Unreached, found.Lost = found.Lost, 0
		for i := range all {
			all[i].Unknown = !files.Listed.Has(i)
		}
	}
	found.At = time.Now().UTC()
	r.mu.Lock()
	found.Number = r.is.inventory.Number + 1
	r.is.inventory, r.is.providers, r.is.returned = found, all, returned
	if found.Objects == 0 {
		clear(r.is.refused) // the objects may be deleted
	}
	r.mu.Unlock()
	if found.Objects > 0 {
		r.log.Warn("copies of objects are missing", "objects", found.Objects, "bytes", found.Bytes, "without_copy", found.Lost, "unreached", found.Unreached)
	}
	return nil
}

// listing is what the names of files say.
type listing struct {
	objectstore.Files
	settled func(storage.File) bool // false: another upload may have no file in the list
	moved   uint64                  // what Moved returned before
	usable  placement.Set           // the providers that have not failed
}

// list lists the files of all providers.
func (r *repairs) list() (l listing, err error) {
	l.settled, l.moved = r.files.Settled(), r.files.Moved()
	l.Files, err = r.files.Files()
	l.usable = r.usable()
	return l, err
}

// known returns the providers of which all files are known.
func (l *listing) known() placement.Set { return l.Listed & l.usable }

// noteMissing notes an object of which too little is there, if the list has the files of all providers, and none was moved meanwhile.
func (r *repairs) noteMissing(o storage.Stored, files *listing) {
	if files.known() == r.files.Table().All() && r.files.Moved() == files.moved {
		r.noteLost(o)
	}
}

// countMissing counts the copies or shards that an object lacks which has is, and returns their bytes. Of a provider that is not known, it
// may have them.
func (r *repairs) countMissing(o storage.Stored, is *objectstore.Parts, known placement.Set, all []adminapi.Provider) (bytes uint64) {
	for _, part := range r.files.Missing(o, is, r.files.Table().All()) {
		bytes += part.Size(o)
		p := &all[part.Provider]
		if !known.Has(part.Provider) {
			p.Unreached++
			continue
		}
		p.Missing++
		p.MissingBytes += part.Size(o)
	}
	return bytes
}

// providers returns the providers without counts.
func (r *repairs) providers() []adminapi.Provider {
	all := make([]adminapi.Provider, r.files.Table().Len())
	for i, h := range r.files.Health() {
		all[i] = adminapi.Provider{Name: h.Name, Domain: h.Domain, Bucket: h.Far}
	}
	return all
}

// runScrub reads all copies at intervals, and when it is asked for. One that is due waits until it is possible; one that was asked for fails.
func (r *repairs) runScrub(ctx context.Context) {
	due := time.NewTimer(r.settings.Scrub)
	defer due.Stop()
	for {
		isDue := false
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			isDue = true
		case <-r.read:
		}
		isWanted := r.isScrubWanted()
		err := r.refusal()
		switch {
		case !isDue && !isWanted: // the last one has begun after the request
			continue
		case err != nil && !isWanted:
			due.Reset(probeInterval)
			continue
		}
		r.beginScrub()
		var found []adminapi.ScrubOfProvider
		if err == nil {
			found, err = r.scrub(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.log.Error("scrub of objects not finished", "err", err)
		}
		r.endScrub(found, err)
		due.Reset(r.settings.Scrub)
	}
}

// requestScrub requests a scrub that reads all copies, and returns its number.
func (r *repairs) requestScrub() (number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number = r.scrubs.Request()
	wake(r.read)
	return number
}

func (r *repairs) isScrubWanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scrubs.IsWanted()
}

// beginScrub begins a scrub: it is the result of what was requested so far.
func (r *repairs) beginScrub() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.scrub = adminapi.Scrub{Running: true, Number: r.is.scrub.Number, Before: r.scrubs.Begin()}
}

// endScrub keeps the result of the scrub that runs.
func (r *repairs) endScrub(found []adminapi.ScrubOfProvider, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.is.scrub
	s.Running, s.Number, s.Ended = false, r.scrubs.End(), time.Now().UTC()
	if s.ByProvider = found; err != nil {
		s.Failure = err.Error()
	} else {
		r.lost.EndScrub()
		r.is.verified = found
	}
	r.is.scrubs = append(r.is.scrubs[max(0, len(r.is.scrubs)+1-repair.MaxScrubResults):], *s)
}

// setScrub changes what is reported of the scrub.
func (r *repairs) setScrub(change func(*adminapi.Scrub)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.is.scrub)
}

// scrub reads and verifies every copy and shard, and plans the repair of objects with a bad one. The copies of failed
// providers are counted, not read.
func (r *repairs) scrub(ctx context.Context) (found []adminapi.ScrubOfProvider, err error) {
	r.mu.Lock()
	r.lost.BeginScrub()
	r.mu.Unlock()
	files, err := r.list()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	found = make([]adminapi.ScrubOfProvider, r.files.Table().Len())
	total := uint64(0)
	if err := r.eachObject(ctx, func(o storage.Stored) error {
		has := files.Parts(o)
		is := has.Within(files.usable)
		for _, part := range is.List() {
			total += part.Size(o)
		}
		if failed := r.files.Table().All() &^ files.usable; failed != 0 && files.settled(o.File) && is.Count() < r.files.Wanted(&is) {
			r.countUnread(o, &has, failed, found)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	r.setScrub(func(s *adminapi.Scrub) {
		s.Total = total
		for _, p := range found {
			s.Unread, s.UnreadBytes = s.Unread+p.Unread, s.UnreadBytes+p.UnreadBytes
		}
	})
	if err := r.eachObject(ctx, func(o storage.Stored) error {
		has := files.Parts(o)
		is := has.Within(files.usable)
		if files.settled(o.File) && !is.AreEnough() {
			r.noteMissing(o, &files)
		}
		return r.scrubObject(ctx, o, is, files.moved, found)
	}); err != nil {
		return nil, err
	}
	damaged, unread := uint64(0), uint64(0)
	for _, p := range found {
		damaged, unread = damaged+p.Damaged, unread+p.Unread
	}
	r.log.Info("copies of objects verified", "bytes", total, "damaged_copies", damaged, "unread_copies", unread, "took", time.Since(began).Round(time.Millisecond))
	return found, nil
}

// countUnread counts the copies or shards of one object in failed providers. If the files of a provider could not be
// listed, it is assumed to have what the object lacks.
func (r *repairs) countUnread(o storage.Stored, has *objectstore.Parts, failed placement.Set, found []adminapi.ScrubOfProvider) {
	is := has.Within(failed)
	for _, part := range append(is.List(), r.files.Missing(o, has, failed)...) {
		p := &found[part.Provider]
		p.Unread++
		p.UnreadBytes += part.Size(o)
	}
}

// scrubObject verifies some copies or shards of one object. moved is what Moved returned before they were listed.
func (r *repairs) scrubObject(ctx context.Context, o storage.Stored, is objectstore.Parts, moved uint64, found []adminapi.ScrubOfProvider) error {
	good, bad := r.files.NewParts(is.Scheme), 0
	for _, part := range is.List() {
		err := r.files.VerifyPart(o, part, r.pace(ctx))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		gone, unread := errors.Is(err, objectstore.ErrGone), errors.Is(err, os.ErrPermission) || objectstore.IsShortage(err)
		p, was := &found[part.Provider], bad
		switch {
		case unread: // nothing is known of the copy
			p.Unread++
			p.UnreadBytes += part.Size(o)
		case err == nil:
			good.Add(part)
		case gone && r.files.Moved() != moved: // it may be elsewhere; an inventory finds what is missing
		case !gone || r.journal.readModel.HasFile(o.Address, o.File):
			bad++
			p.Damaged++
		}
		r.setScrub(func(s *adminapi.Scrub) {
			s.Done += part.Size(o)
			switch {
			case unread:
				s.Unread++
				s.UnreadBytes += part.Size(o)
			case bad > was:
				s.Damaged++
				r.scrubs.Found()
			}
		})
	}
	if good.AreEnough() {
		r.noteReadable(o)
	}
	if bad == 0 {
		return nil
	}
	t := taskOf(o)
	t.Urgent, t.Verify = good.Count() <= good.Needed() && !r.isLost(o), true
	return r.planWhenRoom(ctx, t)
}

// planWhenRoom plans a task that no inventory would find: the names of its files are there. It waits until the queue has room.
func (r *repairs) planWhenRoom(ctx context.Context, t repair.Task) error {
	err := r.awaitQueue(ctx, func(m *repair.Machine) bool {
		return m.Waiting() < r.settings.Limits.Queue && m.Plan(t) != repair.Running
	})
	wake(r.work)
	return err
}

// status returns what is known of the copies.
func (r *repairs) status() adminapi.Storage {
	health := r.files.Health()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := adminapi.Storage{Copies: r.files.Copies().Count, Required: r.files.Copies().Required, Inventory: r.is.inventory, Scrub: r.is.scrub, Rebalance: r.is.rebalance,
		Waiting: r.machine.Waiting(), Running: r.machine.Running(), Skipped: r.machine.Skipped(), Restored: r.written,
		Rate: r.settings.Limits.Rate}
	r.forgetDeleted()
	s.Lost, s.OtherLost = r.listLost(), r.lost.Others()
	s.Providers = append(s.Providers, r.is.providers...)
	if s.Providers == nil {
		s.Providers = r.providers()
	}
	for i := range s.Providers {
		p, h := &s.Providers[i], health[i]
		p.Failed, p.Full, p.Errors = h.Failed, h.Full, h.Errors
		p.Refused = r.is.refused[i]
	}
	s.Scrubs = slices.Clone(r.is.scrubs)
	s.SetFound(r.is.verified)
	if scheme := r.files.Copies().Coding; scheme.IsSet() {
		s.Coding, s.CodedAbove = scheme.String(), scheme.Stripe()
	}
	if s.Inventory.Bytes > 0 { // each byte is read from another copy, and read back
		s.ETA = 2 * s.Inventory.Bytes / s.Rate
	}
	return s
}
