package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/metrics"
	"macronode/adapters/objectstore"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/storage"
)

// objectFiles are the files of the objects whose rows the journal has.
type objectFiles struct {
	files   *objectstore.Store
	holder  string // the name of this process in locks
	dirs    int    // of providers, or spool directories
	repairs *repairs
	limits  objectstore.Limits
	collect time.Duration // between two collections

	uncollected string       // why the last collection failed; empty: it did not
	unremoved   atomic.Int64 // files that it could not remove

	journal *journalStore
	inbox   *eventInbox
	metrics *metrics.Metrics
	log     *slog.Logger
}

// newObjectFiles returns the files of a node. Before the journal is recovered nothing is read or made: the directory may be
// a backup.
func newObjectFiles(start settings.Start, journal *journalStore, inbox *eventInbox, m *metrics.Metrics, log *slog.Logger) *objectFiles {
	o := &objectFiles{files: objectstore.NewCopies(settings.OpenProviders(start.Providers), start.Copies, start.Objects), dirs: len(start.Providers), limits: start.Objects, collect: start.Collect,
		journal: journal, inbox: inbox, metrics: m, log: log}
	o.repairs = newRepairs(o.files, start.Repair, journal, inbox, m.Repairs(), log)
	return o
}

// recover makes the directories, checks that they belong to this node, and reads which files there are. A directory that cannot be
// made or read is used later, if there is another one. The only directory is used later if it is not there. If no provider can be
// used, all are used later.
func (o *objectFiles) recover() error {
	rows := o.journal.readModel
	for i := range o.dirs {
		if o.dirs == 1 && rows.HasObjects() && !o.files.Health()[i].Far {
			break // they are in a directory that exists
		}
		if err := o.files.Remake(i); err != nil {
			if o.dirs == 1 {
				return err
			}
			o.files.MarkFailed(i, err)
		}
	}
	err := o.files.Claim(objectstore.Owner{Journal: o.journal.journal.ID(), Rows: rows, Holder: o.holder})
	if errors.Is(err, objectstore.ErrAbsent) || errors.Is(err, objectstore.ErrNoProvider) {
		o.reserveRows(func(storage.Stored) {})
		return nil // the probe reports it
	}
	if err == nil {
		err = o.files.Recover()
	}
	if err == nil {
		err = o.check()
	}
	return err
}

// reserveRows reserves the numbers of all files that rows name, and passes the rows to each.
func (o *objectFiles) reserveRows(each func(storage.Stored)) {
	for from, done := uint32(0), false; !done; {
		var list []storage.Stored
		list, from, done = o.journal.readModel.Objects(from, datadir.ObjectBatch)
		for _, row := range list {
			o.files.Reserve(row.File)
			each(row)
		}
	}
}

// check reserves the numbers of all files that rows name, and logs how many of these files are missing.
func (o *objectFiles) check() error {
	files, err := o.files.Files()
	if err != nil {
		return err
	}
	missing := 0
	o.reserveRows(func(row storage.Stored) {
		if files.Has(row) {
			return
		}
		if missing++; missing <= maxMissingLogged {
			o.log.Error("file of an object is missing", "address", row.Address.String(), "size", row.Size)
		}
	})
	if missing > 0 {
		o.log.Error("objects without a file: reads of them fail until the files are put back", "objects", missing)
	}
	return nil
}

// maxMissingLogged is the number of missing files that have a line each in the log.
const maxMissingLogged = 10

// runCollector removes the files that no row names: soon after the start, at intervals, and when uploads use up the space.
// While the journal takes no writes or is damaged, nothing is removed: rows may be missing.
func (o *objectFiles) runCollector(ctx context.Context) {
	rest := min(time.Second, o.collect)
	for interval := rest; o.waitToCollect(ctx, rest, interval); interval = o.collect {
		if !o.inbox.status().Writes || o.journal.damaged.Load() {
			continue
		}
		began := time.Now()
		o.collectOnce()
		rest = max(min(time.Second, o.collect), collectorRest*time.Since(began))
	}
}

// collectorRest is how long the collector rests after a collection, in times of what that took.
const collectorRest = 4

// waitToCollect waits for the interval, or until the files use up the space, but not less than rest. It returns false if ctx ends.
func (o *objectFiles) waitToCollect(ctx context.Context, rest, interval time.Duration) bool {
	if hostclock.Sleep(ctx, rest) != nil {
		return false
	}
	t := time.NewTimer(interval - min(rest, interval))
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.files.Full():
	case <-ctx.Done():
		return false
	}
	return true
}

// collectOnce removes the files that no row names now, unless a backup copies the objects: it needs the files of the
// frame that it copies, also of objects that are deleted meanwhile.
func (o *objectFiles) collectOnce() {
	held, err := o.files.Unpinned()
	if errors.Is(err, fs.ErrHeld) {
		o.metrics.CollectionDeferred()
		return
	}
	if err != nil {
		o.noteCollection(err)
		return
	}
	defer held.Close() //nolint:errcheck // nothing was written
	began := time.Now()
	c, err := o.files.Collect(o.journal.readModel.HasFile)
	o.metrics.Collected(c.Files, c.Bytes)
	o.unremoved.Store(int64(c.Unremoved))
	o.noteCollection(err)
	if c.Files > 0 {
		o.log.Info("unused files of objects removed", "files", c.Files, "bytes", c.Bytes, "took", time.Since(began))
	}
}

// noteCollection logs when collections begin to fail, when they fail for another reason, and when that ends.
func (o *objectFiles) noteCollection(err error) {
	was := o.uncollected
	if o.uncollected = ""; err != nil {
		o.uncollected = err.Error()
	}
	switch {
	case o.uncollected == was:
	case err != nil:
		o.log.Error("unused files of objects not removed: the next collection tries again", "files", o.unremoved.Load(), "err", err)
	default:
		o.log.Info("unused files of objects are removed again")
	}
}

// addGauges reports the uploads and the stored objects.
func (o *objectFiles) addGauges(to *queueGauges) {
	to.add("uploads", func() (int, int) { return o.files.Uploads(), o.limits.Uploads })
	to.add("repairs", func() (int, int) { s := o.repairs.status(); return s.Waiting, o.repairs.settings.Limits.Queue })
	o.metrics.Sample("repair_skipped_total", func() float64 { return float64(o.repairs.status().Skipped) }, "full")
	o.metrics.Sample("storage_lost_objects", func() float64 { return float64(o.repairs.lostObjects()) })
	o.metrics.Sample("storage_unremoved_files", func() float64 { return float64(o.unremoved.Load()) })
	o.metrics.Sample("storage_failed_providers", func() float64 { return float64(o.files.Table().Len() - o.repairs.usable().Len()) })
}
