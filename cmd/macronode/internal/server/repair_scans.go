package server

import (
	"context"
	"errors"
	"os"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/hostclock"
	"macronode/adapters/objectstore"
	"macronode/core/placement"
	"macronode/core/storage"
)

// againInterval is the time between two inventories that tasks were skipped for, or failed.
const againInterval = 10 * time.Second

// runInventory compares names of files with rows: at the start, at intervals, when it is asked for, and when a task was skipped or failed.
func (r *repairs) runInventory(ctx context.Context) {
	for {
		if r.allowed() {
			if err := r.takeInventory(ctx); err != nil && ctx.Err() == nil {
				r.log.Error("copies of objects not counted", "err", err)
			}
		}
		if !r.awaitInventory(ctx) {
			return
		}
	}
}

// awaitInventory waits until the next inventory is due.
func (r *repairs) awaitInventory(ctx context.Context) bool {
	due := time.NewTimer(r.settings.Inventory)
	defer due.Stop()
	soon := time.NewTicker(min(againInterval, r.settings.Inventory))
	defer soon.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-r.look:
			return true
		case <-soon.C:
			r.mu.Lock()
			again := r.machine.Again() && r.machine.Waiting() == 0
			r.mu.Unlock()
			if again || !r.counted() {
				return true
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

// takeInventory plans the repair of every object that lacks a copy.
func (r *repairs) takeInventory(ctx context.Context) error {
	r.mu.Lock()
	r.machine.BeginInventory()
	r.mu.Unlock()
	newest := r.files.Newest() // a later upload may have no file in the list
	files, err := r.files.Files()
	if err != nil {
		return err
	}
	table, count := r.files.Table(), r.files.Copies().Count
	all, found := r.providers(), adminapi.Inventory{}
	usable := r.usable()
	err = r.eachObject(ctx, func(o storage.Stored) error {
		has := files.Of(o)
		for i := range all {
			if has.Has(i) {
				all[i].Objects++
				all[i].Bytes += o.Size
			}
		}
		if o.File > newest || table.Spread(has&usable) >= count {
			return nil
		}
		found.Objects++
		missing := table.Choose(uint64(o.File), count-table.Spread(has&usable), table.All()&^(has&usable), has&usable)
		for i := range missing.Len() {
			p := &all[missing.At(i)]
			p.Missing++
			p.MissingBytes += o.Size
			found.Bytes += o.Size
		}
		if has&usable == 0 {
			found.Lost++
		}
		r.plan(o, table.Spread(has&usable) <= 1, false)
		return nil
	})
	if err != nil {
		return err
	}
	found.At = time.Now().UTC()
	r.mu.Lock()
	r.is.inventory, r.is.providers = found, all
	r.mu.Unlock()
	if found.Objects > 0 {
		r.log.Warn("copies of objects are missing", "objects", found.Objects, "bytes", found.Bytes, "without_copy", found.Lost)
	}
	return nil
}

// providers returns the providers without counts.
func (r *repairs) providers() []adminapi.Provider {
	all := make([]adminapi.Provider, r.files.Table().Len())
	for i, h := range r.files.Health() {
		all[i] = adminapi.Provider{Name: h.Name, Domain: h.Domain, Bucket: h.Far}
	}
	return all
}

// runScrub reads all copies at intervals, and when it is asked for.
func (r *repairs) runScrub(ctx context.Context) {
	for {
		due := time.NewTimer(r.settings.Scrub)
		select {
		case <-ctx.Done():
			due.Stop()
			return
		case <-due.C:
		case <-r.read:
			due.Stop()
		}
		if !r.allowed() {
			hostclock.Sleep(ctx, probeInterval) //nolint:errcheck // the loop ends with ctx
			wake(r.read)
			continue
		}
		if err := r.scrub(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("scrub of objects not finished", "err", err)
		}
	}
}

// setScrub changes what is reported of the scrub.
func (r *repairs) setScrub(change func(*adminapi.Scrub)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.is.scrub)
}

// scrub reads and verifies every copy, and plans the repair of objects with a bad one.
func (r *repairs) scrub(ctx context.Context) error {
	files, err := r.files.Files()
	if err != nil {
		return err
	}
	usable, began := r.usable(), time.Now()
	total := uint64(0)
	if err := r.eachObject(ctx, func(o storage.Stored) error {
		total += o.Size * uint64((files.Of(o) & usable).Len())
		return nil
	}); err != nil {
		return err
	}
	r.setScrub(func(s *adminapi.Scrub) { *s = adminapi.Scrub{Running: true, Number: s.Number, Total: total} })
	defer r.setScrub(func(s *adminapi.Scrub) { s.Running = false })
	damaged := make([]uint64, len(files))
	if err := r.eachObject(ctx, func(o storage.Stored) error { return r.scrubObject(ctx, o, files.Of(o)&usable, damaged) }); err != nil {
		return err
	}
	sum := uint64(0)
	for _, n := range damaged {
		sum += n
	}
	r.setScrub(func(s *adminapi.Scrub) {
		s.Number++
		s.Ended, s.ByProvider = time.Now().UTC(), damaged
	})
	r.log.Info("copies of objects verified", "bytes", total, "damaged_copies", sum, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// scrubObject verifies the copies of one object in some providers.
func (r *repairs) scrubObject(ctx context.Context, o storage.Stored, in placement.Set, damaged []uint64) error {
	good, bad := 0, 0
	for i := range r.files.Table().Len() {
		if !in.Has(i) {
			continue
		}
		err := r.files.VerifyCopy(o, i, r.pace(ctx))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		gone, forbidden := errors.Is(err, objectstore.ErrGone), errors.Is(err, os.ErrPermission)
		switch {
		case forbidden: // nothing is known of the copy
		case err == nil:
			good++
		case !gone || r.journal.readModel.HasFile(o.Address, o.File):
			bad++
			damaged[i]++
		}
		r.setScrub(func(s *adminapi.Scrub) {
			s.Done += o.Size
			if err != nil && !gone && !forbidden {
				s.Damaged++
			}
		})
	}
	if bad > 0 {
		r.plan(o, good <= 1, true)
	}
	return nil
}

// status returns what is known of the copies.
func (r *repairs) status() adminapi.Storage {
	health := r.files.Health()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := adminapi.Storage{Copies: r.files.Copies().Count, Required: r.files.Copies().Required, Inventory: r.is.inventory, Scrub: r.is.scrub,
		Waiting: r.machine.Waiting(), Running: r.machine.Running(), Skipped: r.machine.Skipped(), Rate: r.settings.Limits.Rate}
	s.Providers = append(s.Providers, r.is.providers...)
	if s.Providers == nil {
		s.Providers = r.providers()
	}
	for i := range s.Providers {
		s.Providers[i].Failed, s.Providers[i].Errors = health[i].Failed, health[i].Errors
		if i < len(r.is.scrub.ByProvider) {
			s.Providers[i].Damaged = r.is.scrub.ByProvider[i]
		}
	}
	if s.Inventory.Bytes > 0 { // each byte is read from another copy, and read back
		s.ETA = 2 * s.Inventory.Bytes / s.Rate
	}
	return s
}
