package server

import (
	"context"
	"log/slog"
	"time"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/hostclock"
	"macronode/adapters/journalfile"
	"macronode/adapters/recovery"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/types"
)

// snapshotKeeper writes snapshots as the journal grows, so that the next start reads few frames. It moves segments that no start
// needs into the archive.
type snapshotKeeper struct {
	store *journalStore
	start settings.Start
	inbox *eventInbox
	log   *slog.Logger
}

// run is the work of the service.
func (k snapshotKeeper) run(ctx context.Context, up func()) error {
	up()
	k.archive(ctx)
	return k.maker(ctx).Run(ctx)
}

// maker returns what writes the snapshots.
func (k snapshotKeeper) maker(ctx context.Context) *snapshot.Maker {
	c := snapshot.Config{Every: k.start.Snapshot, Limits: k.start.Core.State, Seed: types.Hash64(datadir.Random64()), Tick: time.Second,
		Doubt: k.store.logSkippedSnapshot,
		Made: func(m snapshot.Made) {
			k.log.Info("snapshot written", "lsn", uint64(m.LSN), "frames", m.Frames, "bytes", m.Bytes, "took", m.Took)
			k.archive(ctx)
		}}
	journal := k.store.journal
	return snapshot.New(c, fs.Dir(k.store.snapshotsDir()), snapshot.Source{Durable: journal.Durable, Grown: journal.Grown, Read: recovery.FramesAfter(k.store.segments)})
}

// archive moves the segments that no start needs into the archive. A segment that cannot be moved stays
// where it is, until the next snapshot, and the node is degraded until then.
func (k snapshotKeeper) archive(ctx context.Context) {
	segments := k.store.segments
	if segments.Archive == nil {
		return
	}
	names, err := recovery.Unneeded(journalfile.Hide(segments.Live, segments.Others), fs.Dir(k.store.snapshotsDir()))
	if err == nil {
		err = segments.CheckArchive(k.store.dir)
	}
	if err == nil {
		err = segments.Archive.Move(names, halfSpeed(ctx), func(m archive.Moved) {
			k.log.Info("segment archived", "segment", m.Name, "bytes", m.Bytes, "compressed", m.Kept)
		})
	}
	if ctx.Err() != nil {
		return
	}
	k.inbox.send(ctx, event.SegmentsArchived{Failed: err != nil})
	if err != nil {
		k.log.Error("segment archiving failed: segments stay in the data directory", "archive", k.start.Archive, "err", err)
	}
}

// halfSpeed returns a function that pauses for as long as the work since its last call took.
func halfSpeed(ctx context.Context) func() error {
	began := time.Now()
	return func() error {
		err := hostclock.Sleep(ctx, time.Since(began))
		began = time.Now()
		return err
	}
}
