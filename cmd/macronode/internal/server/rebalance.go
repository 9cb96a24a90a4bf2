package server

import (
	"context"
	"errors"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/hostclock"
	"macronode/adapters/objectstore"
	"macronode/core/repair"
	"macronode/core/storage"
)

// movesPollInterval is the time between two looks at the queue of repairs, of which a rebalance leaves half to repairs.
const movesPollInterval = 20 * time.Millisecond

// movesWait is how long a rebalance waits for a provider that failed meanwhile.
const movesWait = time.Minute

// runRebalance moves copies and shards when it is asked for: after a provider was added, or a weight was changed.
func (r *repairs) runRebalance(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.move:
		}
		began := time.Now()
		err := r.rebalance(ctx)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		is := &r.is.rebalance
		is.Running, is.Ended = false, time.Now().UTC()
		is.Number++
		if is.Failure = ""; err != nil {
			is.Failure = err.Error()
		}
		ended := *is
		r.mu.Unlock()
		if err != nil {
			r.log.Error("copies of objects not moved", "err", err)
			continue
		}
		r.log.Info("copies of objects moved to their providers", "objects", ended.Moved, "of", ended.Objects, "bytes", ended.Done, "took", time.Since(began).Round(time.Millisecond))
		wake(r.look) // what each provider has now
	}
}

// rebalance has the workers move the copies and shards that are elsewhere than an upload would write them. It looks again for those that were
// not moved, as core/repair says.
func (r *repairs) rebalance(ctx context.Context) error {
	passes := repair.Passes{}
	for {
		if err := r.refusal(); err != nil {
			return err
		}
		if r.usable() != r.files.Table().All() {
			return objectstore.ErrProviderFailed
		}
		if err := r.movePass(ctx); err != nil {
			return err
		}
		r.mu.Lock()
		again := passes.Again(r.is.rebalance.Moved, r.unmoved)
		r.mu.Unlock()
		if !again {
			return nil
		}
		if err := r.awaitProviders(ctx); err != nil {
			return err
		}
	}
}

// awaitProviders waits a moment, and until no provider has failed, but not longer than movesWait.
func (r *repairs) awaitProviders(ctx context.Context) error {
	moment := min(probeInterval, r.settings.Inventory)
	for waited := time.Duration(0); waited == 0 || r.usable() != r.files.Table().All() && waited < movesWait; waited += moment {
		if err := hostclock.Sleep(ctx, moment); err != nil {
			return err
		}
	}
	return nil
}

// movePass plans the move of each object that needs one, and waits until no move is left.
func (r *repairs) movePass(ctx context.Context) error {
	settled := r.files.Settled() // another upload may have no file in the list
	files, err := r.files.Files()
	if err != nil {
		return err
	}
	each := func(do func(storage.Stored, []objectstore.Part) error) error {
		return r.eachObject(ctx, func(o storage.Stored) error {
			has := files.Parts(o)
			if missing, isNeeded := r.files.ToMove(o, &has); isNeeded && settled(o.File) {
				return do(o, missing)
			}
			return nil
		})
	}
	objects, bytes := uint64(0), uint64(0)
	if err := each(func(o storage.Stored, missing []objectstore.Part) error {
		objects++
		for _, part := range missing {
			bytes += part.Size(o)
		}
		return nil
	}); err != nil {
		return err
	}
	r.mu.Lock()
	r.unmoved = 0
	is := &r.is.rebalance
	if !is.Running {
		*is = adminapi.Rebalance{Running: true, Number: is.Number}
	}
	is.Objects, is.Total = is.Moved+objects, is.Done+bytes
	r.mu.Unlock()
	err = each(func(o storage.Stored, _ []objectstore.Part) error { return r.planMove(ctx, o) })
	if errors.Is(err, objectstore.ErrProviderFailed) { // the next pass goes on
		r.mu.Lock()
		r.unmoved++
		r.mu.Unlock()
		err = nil
	}
	if err != nil {
		return err
	}
	return r.awaitQueue(ctx, func(m *repair.Machine) bool { return m.Moves() == 0 })
}

// planMove plans the move of an object when the queue is at most half full.
func (r *repairs) planMove(ctx context.Context, o storage.Stored) error {
	if r.usable() != r.files.Table().All() {
		return objectstore.ErrProviderFailed
	}
	t := taskOf(o)
	t.Move = true
	err := r.awaitQueue(ctx, func(m *repair.Machine) bool {
		return m.Waiting() < max(1, r.settings.Limits.Queue/2) && m.Plan(t) != repair.Running
	})
	wake(r.work)
	return err
}

// awaitQueue waits until the queue is as wanted.
func (r *repairs) awaitQueue(ctx context.Context, wanted func(*repair.Machine) bool) error {
	for {
		r.mu.Lock()
		ok := wanted(r.machine)
		r.mu.Unlock()
		if ok {
			return nil
		}
		if err := hostclock.Sleep(ctx, movesPollInterval); err != nil {
			return err
		}
	}
}

// moveParts moves the copies or shards of an object. It returns false if it is to be moved again.
func (r *repairs) moveParts(ctx context.Context, o storage.Stored) bool {
	if !r.journal.readModel.HasFile(o.Address, o.File) {
		r.mu.Lock()
		r.is.rebalance.Objects-- // it was deleted
		r.mu.Unlock()
		return true
	}
	is, err := r.files.Move(o, r.pace(ctx))
	if ctx.Err() != nil {
		return false
	}
	written := r.noteWritten(o, is.Written, is.Errs)
	switch {
	case is.IsHeld:
		r.log.Warn("copy of an object not removed", "address", o.Address.String(), "err", "a backup needs the files")
	case err != nil && !errors.Is(err, objectstore.ErrProviderFailed):
		r.log.Warn("copies of an object not moved", "address", o.Address.String(), "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.rebalance.Done += is.Bytes
	switch {
	case err == nil && is.IsDone:
		r.is.rebalance.Moved++
	case !is.IsHeld || !written:
		r.unmoved++
	}
	return err == nil && written
}
