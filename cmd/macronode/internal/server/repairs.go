package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

// repairs restores the copies and the shards of objects. The rules are in core/repair; this type gives them what they need:
//
//	inventory ──┐
//	scrub ──────┤
//	reads ──────┼──► Machine ──► workers ──► objectstore.Repair
//	rebalance ──┘                   └──────► objectstore.Move
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
	move     chan struct{} // a rebalance is wanted
	refused  refusedUpload // of the probes

	mu       sync.Mutex
	machine  *repair.Machine
	lost     *repair.Lost
	scrubs   repair.Scrubs
	is       repairState
	returned uint64 // how many times a failed provider was used again
	restored bool   // a copy was written since the last inventory began
	written  uint64 // bytes of copies and shards that were written since the start
	unmoved  uint64 // objects that the last pass of a rebalance did not move, and the next one may
}

// repairState is what the last inventory and scrub found.
type repairState struct {
	inventory adminapi.Inventory
	returned  uint64 // repairs.returned when the inventory began
	providers []adminapi.Provider
	scrub     adminapi.Scrub
	scrubs    []adminapi.Scrub           // the last ones that have ended, the oldest first; at most repair.MaxScrubResults
	verified  []adminapi.ScrubOfProvider // what the last one that has read all copies found
	rebalance adminapi.Rebalance
	refused   []string // of each provider: why the last part could not be written into it
}

func newRepairs(files *objectstore.Store, s settings.Repair, journal *journalStore, inbox *eventInbox, m *metrics.Repairs, log *slog.Logger) *repairs {
	r := &repairs{files: files, journal: journal, inbox: inbox, settings: s, metrics: m, log: log,
		machine: repair.New(hostclock.Mono(), s.Limits), lost: repair.NewLost(repair.MaxLost), work: make(chan struct{}, 1), look: make(chan struct{}, 1), read: make(chan struct{}, 1), move: make(chan struct{}, 1)}
	r.is.refused = make([]string, files.Table().Len())
	files.OnDefect(func(o storage.Stored) { r.plan(o, files.Margin(o) <= 1 && !r.isLost(o), true) }) // a lost object takes no place of others
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
	all.Go(func() { r.runRebalance(ctx) })
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
	t := taskOf(o)
	t.Urgent, t.Verify = urgent, verify
	r.enqueue(t)
}

// taskOf returns the task for an object.
func taskOf(o storage.Stored) repair.Task {
	return repair.Task{File: uint64(o.File), Address: digest.Value(o.Address), Size: o.Size}
}

// enqueue plans a task, and wakes the workers.
func (r *repairs) enqueue(t repair.Task) {
	r.mu.Lock()
	r.machine.Plan(t)
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
		failed := false
		if t.Move {
			failed = !r.moveParts(ctx, o)
		}
		failed = r.restore(ctx, o, t.Verify) || failed
		r.mu.Lock()
		r.machine.Done(t.File, failed)
		r.mu.Unlock()
	}
}

// restore writes the copies or shards that an object lacks. It reports whether one could not be written, or the repair waits for a provider:
// the next inventory plans it again.
func (r *repairs) restore(ctx context.Context, o storage.Stored, verify bool) (failed bool) {
	if !r.journal.readModel.HasFile(o.Address, o.File) {
		return false // deleted, or the content was there already
	}
	is, err := r.files.Restore(o, verify || r.isLost(o), r.pace(ctx))
	if ctx.Err() != nil {
		return true
	}
	if verify {
		r.noteUnrestored(&is, err)
	}
	if err != nil {
		return true
	}
	r.noteWritten(o, is.Written, is.Errs)
	switch {
	case is.IsHopeless():
		r.noteLost(o)
		r.reportLost(o, &is.Good)
	case is.Waits():
		r.metrics.Waiting()
	case is.Readable:
		r.noteReadable(o)
	}
	return is.Lacks || is.Waits()
}

// noteUnrestored notes why a copy could not be restored, if one could not: a scrub may have found that it is damaged.
func (r *repairs) noteUnrestored(is *objectstore.Restored, err error) {
	why := ""
	switch at := slices.IndexFunc(is.Errs, func(err error) bool { return err != nil }); {
	case err != nil:
		why = err.Error()
	case is.Waits():
		why = "a provider has failed"
	case at >= 0:
		why = fmt.Sprintf("provider %s: %v", r.files.Health()[is.Written[at].Provider].Name, is.Errs[at])
	case is.Lacks:
		why = "too few providers can be used"
	default:
		return
	}
	r.setScrub(func(s *adminapi.Scrub) {
		s.Unrestored = why
		for i := range r.is.scrubs { // it was found damaged since each of them began
			r.is.scrubs[i].Unrestored = why
		}
	})
}

// reportLost reports an object that cannot be read, unless it was deleted meanwhile.
func (r *repairs) reportLost(o storage.Stored, good *objectstore.Parts) {
	if r.journal.readModel.HasFile(o.Address, o.File) {
		r.metrics.Lost()
		r.log.Error("object has no good copy", "address", o.Address.String(), "size", o.Size, "file", uint64(o.File), "good_shards", good.Count(), "needed", good.Needed())
	}
}

// noteWritten counts and logs parts that were written. It returns false if one could not be written.
func (r *repairs) noteWritten(o storage.Stored, parts []objectstore.Part, errs []error) bool {
	all := true
	for i, err := range errs {
		what, name := "copy", r.files.Health()[parts[i].Provider].Name
		if scheme := parts[i].Scheme; scheme.IsSet() {
			what = fmt.Sprintf("shard %d of %v", parts[i].Shard, scheme)
		}
		r.metrics.Repaired(err == nil)
		r.noteRefusal(parts[i].Provider, err)
		if err != nil {
			all = false
			r.log.Warn("copy of an object not restored", "address", o.Address.String(), "part", what, "provider", name, "err", err)
			continue
		}
		r.mu.Lock()
		r.restored = true
		r.written += parts[i].Size(o)
		r.mu.Unlock()
		r.log.Info("copy of an object restored", "address", o.Address.String(), "size", o.Size, "part", what, "provider", name)
	}
	return all
}

// noteRefusal notes why a part could not be written into a provider, or that one was.
func (r *repairs) noteRefusal(provider int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.is.refused[provider] = ""; err != nil {
		r.is.refused[provider] = err.Error()
	}
}

// usable returns the providers that have not failed.
func (r *repairs) usable() placement.Set { return r.files.Usable() }

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

// refusal returns why copies may not be counted and restored now: while the journal is damaged, rows may be missing, and while no provider
// can be used, there are no files.
func (r *repairs) refusal() error {
	switch {
	case r.usable() == 0:
		return errors.New("every provider has failed")
	case r.journal.damaged.Load():
		return errors.New("the journal is damaged")
	case !r.inbox.status().Writes:
		return errors.New("the node takes no writes now")
	}
	return nil
}
