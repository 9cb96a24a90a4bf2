package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/hostclock"
	"macronode/adapters/metrics"
	"macronode/adapters/objectstore"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
)

// repairs restores the copies of objects. The rules are in core/repair; this type gives them what they need:
//
//	inventory ──┐
//	scrub ──────┼──► Machine ──► workers ──► objectstore.Repair
//	reads ──────┘
type repairs struct {
	files    *objectstore.Store
	journal  *journalStore
	inbox    *eventInbox
	settings settings.Repair
	metrics  *metrics.Repairs
	log      *slog.Logger
	work     chan struct{} // a task waits
	look     chan struct{} // an inventory is wanted
	read     chan struct{} // a scrub is wanted

	mu      sync.Mutex
	machine *repair.Machine
	is      repairState
}

// repairState is what the last inventory and scrub found.
type repairState struct {
	inventory adminapi.Inventory
	providers []adminapi.Provider
	scrub     adminapi.Scrub
}

func newRepairs(files *objectstore.Store, s settings.Repair, journal *journalStore, inbox *eventInbox, m *metrics.Repairs, log *slog.Logger) *repairs {
	r := &repairs{files: files, journal: journal, inbox: inbox, settings: s, metrics: m, log: log,
		machine: repair.New(hostclock.Mono(), s.Limits), work: make(chan struct{}, 1), look: make(chan struct{}, 1), read: make(chan struct{}, 1)}
	if files.Table().Len() > 1 {
		files.OnDefect(func(o storage.Stored) { r.plan(o, files.Copies().Count <= 2, true) })
	}
	return r
}

// wake wakes the receiver of c, if it does not run anyway.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run restores copies until ctx ends. It returns when nothing is being written.
func (r *repairs) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { r.runProbe(ctx) })
	all.Go(func() { r.runInventory(ctx) })
	all.Go(func() { r.runScrub(ctx) })
	for range r.settings.Limits.Workers {
		all.Go(func() { r.runWorker(ctx) })
	}
	<-ctx.Done()
	r.mu.Lock()
	r.machine.Stop()
	r.mu.Unlock()
	all.Wait()
	return ctx.Err()
}

// plan adds an object whose copies may be missing, or damaged.
func (r *repairs) plan(o storage.Stored, urgent, verify bool) {
	r.mu.Lock()
	r.machine.Plan(repair.Task{File: uint64(o.File), Address: digest.Value(o.Address), Size: o.Size, Urgent: urgent, Verify: verify})
	r.mu.Unlock()
	wake(r.work)
}

// pace waits until some bytes may be read.
func (r *repairs) pace(ctx context.Context) func(int) error {
	return func(bytes int) error {
		waited := time.Duration(0)
		for {
			r.mu.Lock()
			wait := r.machine.Take(hostclock.Mono(), bytes)
			r.mu.Unlock()
			if wait == 0 {
				r.metrics.Waited(waited)
				return ctx.Err()
			}
			if err := hostclock.Sleep(ctx, time.Duration(wait)); err != nil {
				return err
			}
			waited += time.Duration(wait)
		}
	}
}

// runWorker repairs one object after the other.
func (r *repairs) runWorker(ctx context.Context) {
	for {
		r.mu.Lock()
		t, ok := r.machine.Next()
		r.mu.Unlock()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-r.work:
			}
			continue
		}
		wake(r.work) // for the next worker
		o := storage.Stored{Address: storage.Address(t.Address), Object: storage.Object{Size: t.Size, File: storage.File(t.File)}}
		failed := r.restore(ctx, o, t.Verify)
		r.mu.Lock()
		r.machine.Done(t.File, failed)
		r.mu.Unlock()
	}
}

// copiesOf returns the good copies of an object, and the damaged ones. Those of failed providers, and those that this process may
// not read, are neither.
func (r *repairs) copiesOf(ctx context.Context, o storage.Stored, verify bool) (good, bad placement.Set) {
	for i, h := range r.files.Health() {
		if h.Failed != "" {
			continue
		}
		err := r.files.CheckCopy(o, i)
		if err == nil && verify {
			err = r.files.VerifyCopy(o, i, r.pace(ctx))
		}
		if err == nil {
			good = good.With(i)
		} else if !errors.Is(err, objectstore.ErrGone) && !errors.Is(err, os.ErrPermission) && ctx.Err() == nil {
			bad = bad.With(i)
		}
	}
	return good, bad
}

// restore writes the copies that an object lacks. It reports whether one could not be written.
func (r *repairs) restore(ctx context.Context, o storage.Stored, verify bool) (failed bool) {
	if !r.journal.readModel.HasFile(o.Address, o.File) {
		return false // deleted, or the content was there already
	}
	good, bad := r.copiesOf(ctx, o, verify)
	if ctx.Err() != nil {
		return true
	}
	table := r.files.Table()
	if good == 0 {
		if r.journal.readModel.HasFile(o.Address, o.File) {
			r.metrics.Lost()
			r.log.Error("object has no good copy", "address", o.Address.String(), "size", o.Size, "file", uint64(o.File))
		}
		return false
	}
	usable := r.usable()
	targets := bad & usable
	missing := table.Choose(uint64(o.File), max(0, r.files.Copies().Count-table.Spread(good|targets)), usable&^good, good|targets)
	for i := range missing.Len() {
		targets = targets.With(missing.At(i))
	}
	failed = table.Spread(good|targets) < r.files.Copies().Count
	for i := range table.Len() {
		if targets.Has(i) {
			failed = !r.write(ctx, o, i) || failed
		}
	}
	return failed
}

// write writes one copy.
func (r *repairs) write(ctx context.Context, o storage.Stored, i int) bool {
	name := r.files.Health()[i].Name
	err := r.files.Repair(o, i, r.pace(ctx))
	if ctx.Err() != nil {
		return false
	}
	r.metrics.Repaired(err == nil)
	if err != nil {
		r.log.Warn("copy of an object not restored", "address", o.Address.String(), "provider", name, "err", err)
		return false
	}
	r.log.Info("copy of an object restored", "address", o.Address.String(), "size", o.Size, "provider", name)
	return true
}

// usable returns the providers that have not failed.
func (r *repairs) usable() (set placement.Set) {
	for i, h := range r.files.Health() {
		if h.Failed == "" {
			set = set.With(i)
		}
	}
	return set
}

// eachObject calls each with every object of the state.
func (r *repairs) eachObject(ctx context.Context, each func(storage.Stored) error) error {
	for from, done := uint32(0), false; !done; {
		var list []storage.Stored
		list, from, done = r.journal.readModel.Objects(from, datadir.ObjectBatch)
		for _, o := range list {
			if err := each(o); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// allowed reports whether copies may be counted and restored: while the journal is damaged, rows may be missing, and while no provider can
// be used, there are no files.
func (r *repairs) allowed() bool {
	return r.inbox.status().Writes && !r.journal.damaged.Load() && r.usable() != 0
}
