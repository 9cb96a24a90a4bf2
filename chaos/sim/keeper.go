package sim

import (
	"context"
	"errors"
	"time"

	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// summed makes a snapshot, unless a disk fails, and checks every existing snapshot.
func (w *World) summed() {
	if w.odds.snapshot > 0 && w.c.Choose("snapshot/now", 3) == 1 { // some runs have none
		w.snapshot()
	}
}

// snapshot makes a snapshot.
func (w *World) snapshot() {
	if w.odd("snapshot/crash", 3, w.odds.snapshot) {
		w.kept.Fuse = w.c.Choose("snapshot/fuse", 30)
	}
	if w.odd("snapshot/fault", 12, w.odds.snapshot) {
		switch w.c.Choose("snapshot/how", 4) {
		case 0:
			w.kept.FailSync = true
		case 1:
			w.kept.FailWrite = true
		case 2:
			w.kept.FailDir = true
		case 3:
			w.kept.FailRead = true
		}
	}
	m := snapshot.New(snapshot.Config{Limits: w.limits, Seed: 3, Rest: func(context.Context, time.Duration) error { return nil },
		Doubt: func(err error) { w.fail("snapshot-doubted", "a snapshot that was made here: %v", err) },
		Made:  func(snapshot.Made) { w.Saw["snapshot written"]++ }},
		w.kept, snapshot.Source{Durable: w.jour.Durable, Grown: w.jour.Grown, Read: w.behind})
	err := m.Make(context.Background())
	switch {
	case err == nil:
	case errors.Is(err, world.ErrDead), errors.Is(err, world.ErrSync), errors.Is(err, world.ErrFull), errors.Is(err, world.ErrRead), errors.Is(err, world.ErrWrite):
		w.Saw["snapshot failed"]++
		w.tell(disk, noLane, trouble, "snapshot: %v", err)
	default:
		w.fail("snapshot", "snapshot: %v", err)
	}
	if w.kept.Dead() {
		w.kept.Crash(w.c)
	}
	w.kept.Fuse, w.kept.FailSync, w.kept.FailWrite, w.kept.FailDir, w.kept.FailRead = -1, false, false, false, false
}

// behind reads the journal beside the node.
func (w *World) behind(h snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
	_, err := journalfile.Reading{From: place(h), Upto: upto, Each: each}.Scan(w.disk)
	if errors.Is(err, journalfile.ErrApart) {
		err = errors.Join(snapshot.ErrApart, err)
	}
	return err
}

func place(h snapshot.Head) journalfile.From {
	return journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}
}

// open recovers the journal from the newest usable snapshot, and compares the state with the one
// at that time.
func (w *World) open(st *state.State, each func([]record.Sealed) error) (from types.LSN, found journalfile.Found, err error) {
	all, err := snapshot.List(w.kept)
	if err != nil {
		return 0, found, err
	}
	known := w.known
	for _, lsn := range append(all, 0) {
		h, over := snapshot.Head{}, false
		*st = state.New(w.limits, types.Hash64(w.c.Choose("seed", 100)))
		if lsn > 0 {
			if h, err = snapshot.Load(w.kept, lsn, st, nil); err != nil {
				w.Saw["snapshot doubted"]++
				continue
			}
			if known = max(known, lsn); st.Hash() != w.promise.hashes[lsn] {
				w.fail("snapshot-never-seen", "a snapshot of %v, but its hash was never seen", lsn)
			}
			over = st.Wallet.ExpireNextHold(st.At, new(record.Record))
		}
		w.jour, found, err = journalfile.Reading{From: place(h), Known: known, Each: each}.Recover(w.disk, 9)
		if lsn > 0 && errors.Is(err, journalfile.ErrApart) {
			w.Saw["journal does not go on from a snapshot"]++
			continue
		}
		if lsn > 0 && err == nil {
			w.Saw["began behind a snapshot"]++
			w.note(over, "began behind a snapshot in which a hold is over")
			w.tell(journal, noLane, again, "begins behind a snapshot of %v", lsn)
		}
		return lsn, found, err
	}
	return 0, found, err
}

// rotten flips a bit of a snapshot: it is skipped, and nothing is lost.
func (w *World) rotten() {
	w.kept.Rot(w.c)
	if _, err := w.recover(); err != nil {
		w.fail("rotten-snapshot", "a rotten snapshot: %v", err)
		return
	}
	w.promise.hold(w, w.node.LSN())
}
