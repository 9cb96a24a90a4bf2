package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/record"
	"macronode/core/types"
)

// snapshotsName is the directory of the snapshots, in that of the node.
const snapshotsName = "snapshots"

func (l *life) snapshots() string { return filepath.Join(string(l.dir), snapshotsName) }

// disk is where the journal is: all of its segments, those in the archive as well.
type disk struct {
	fs.FS
	live   fs.Dir
	packed *archive.Archive // nil: nothing is moved
}

// openDisk shows the archive, whose directory it is given, behind the segments; empty: there is none.
func openDisk(archived string, segments fs.Dir) (d disk, err error) {
	d = disk{FS: segments, live: segments}
	if archived == "" {
		return d, nil
	}
	kept, err := fs.Make(archived)
	if err != nil {
		return d, fmt.Errorf("journal.archive: %w", err)
	}
	if d.packed, err = archive.New(segments, kept); err == nil {
		d.FS = d.packed
	}
	return d, err
}

// keep sums the journal up as it grows, so that the next start need not read it, and
// moves segments away that no start needs.
func (l *life) keep(ctx context.Context, up func()) error {
	up()
	l.pack(ctx)
	return l.maker(ctx).Run(ctx)
}

// maker makes the snapshots.
func (l *life) maker(ctx context.Context) *snapshot.Maker {
	is := l.settings()
	c := snapshot.Config{Every: is.snapshot, Limits: is.core.State, Seed: types.Hash64(random64()), Tick: time.Second,
		Doubt: l.doubt,
		Made: func(m snapshot.Made) {
			l.log.Info("snapshot written", "lsn", uint64(m.LSN), "frames", m.Frames, "bytes", m.Bytes, "took", m.Took)
			l.pack(ctx)
		}}
	return snapshot.New(c, fs.Dir(l.snapshots()), snapshot.Source{Durable: l.journal.Durable, Grown: l.journal.Grown, Read: behind(l.disk)})
}

// pack moves the segments to the archive that come before both snapshots. What cannot be
// moved stays where it is: it is tried again when there is another snapshot.
func (l *life) pack(ctx context.Context) {
	if l.disk.packed == nil {
		return
	}
	all, err := snapshot.List(fs.Dir(l.snapshots()))
	if err != nil || len(all) < 2 {
		return
	}
	names, err := journalfile.Behind(l.disk.live, all[1])
	if err == nil {
		err = l.disk.packed.Move(names, pace(ctx), func(m archive.Moved) {
			l.log.Info("segment archived", "segment", m.Name, "bytes", m.Bytes, "compressed", m.Kept)
		})
	}
	if err != nil && ctx.Err() == nil {
		l.log.Error("segment archiving failed: segments stay in the data directory", "archive", l.settings().archive, "err", err)
	}
}

// pace lets the others have the machine for as long as was worked.
func pace(ctx context.Context) func() error {
	began := time.Now()
	return func() error {
		err := sleep(ctx, time.Since(began))
		began = time.Now()
		return err
	}
}

// behind reads a journal beside its writer.
func behind(dir fs.FS) func(snapshot.Head, types.LSN, func([]record.Sealed) error) error {
	return func(h snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
		from := journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}
		_, err := journalfile.Reading{From: from, Upto: upto, Each: each}.Scan(dir)
		if errors.Is(err, journalfile.ErrApart) {
			err = errors.Join(snapshot.ErrApart, err)
		}
		return err
	}
}
