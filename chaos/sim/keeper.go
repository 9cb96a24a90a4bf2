package sim

import (
	"context"
	"errors"
	"time"

	"macronode/adapters/journalfile"
	"macronode/adapters/recovery"
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
	w.backedUp()
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
	made := false
	m := snapshot.New(snapshot.Config{Limits: w.limits, Seed: 3, Rest: func(context.Context, time.Duration) error { return nil },
		Doubt: func(err error) { w.fail("snapshot-doubted", "a snapshot that was made here: %v", err) },
		Made:  func(snapshot.Made) { w.Saw["snapshot written"]++; made = true }},
		w.kept, snapshot.Source{Durable: w.jour.Durable, Grown: w.jour.Grown, Read: recovery.FramesAfter(w.vault.segments)})
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
	if made {
		w.archived()
	}
}

// open recovers the journal as the product does: from the newest usable snapshot. It compares the state of the snapshot with the
// one at that time.
func (w *World) open(each func(*state.State, []record.Sealed) error) (recovery.Result, error) {
	w.mount()
	heads, err := recovery.Heads(w.vault.segments, w.kept, w.doubted)
	if err != nil {
		return recovery.Result{}, err
	}
	over := false
	r, err := recovery.Start{Segments: w.vault.segments, Snapshots: w.kept, Fresh: 9, Reading: journalfile.Reading{Known: max(w.known, heads[0].LSN)},
		Empty: func() state.State { return state.New(w.limits, types.Hash64(w.c.Choose("seed", 100))) },
		Fold: func(st *state.State) recovery.Fold {
			if st.Hash() != w.promise.hashes[st.LSN] {
				w.fail("snapshot-never-seen", "a snapshot of %v, but its hash was never seen", st.LSN)
			}
			over = st.Wallet.ExpireNextHold(st.At, new(record.Record))
			return replay{st, each}
		},
		Skipped: w.doubted}.Recover(heads)
	if err == nil {
		err = r.Damage
	}
	if w.jour = r.Journal; err == nil && r.Head.LSN > 0 {
		w.Saw["began behind a snapshot"]++
		w.note(over, "began behind a snapshot in which a hold is over")
		w.tell(journal, noLane, again, "begins behind a snapshot of %v", r.Head.LSN)
	}
	return r, err
}

// doubted counts a snapshot that is not used.
func (w *World) doubted(err error) {
	if errors.Is(err, journalfile.ErrApart) {
		w.Saw["journal does not go on from a snapshot"]++
		return
	}
	if !errors.Is(err, snapshot.ErrDoubt) {
		w.Saw["snapshot of the journal before"]++
		return
	}
	w.Saw["snapshot doubted"]++
}

// replay folds frames onto a state.
type replay struct {
	on   *state.State
	each func(*state.State, []record.Sealed) error
}

func (r replay) Add(frames []record.Sealed) error { return r.each(r.on, frames) }
func (replay) End() error                         { return nil }

// rotten flips a bit of a snapshot: it is skipped, and nothing is lost.
func (w *World) rotten() {
	w.kept.Rot(w.c)
	if _, err := w.recover(); err != nil {
		w.fail("rotten-snapshot", "a rotten snapshot: %v", err)
		return
	}
	w.promise.hold(w, w.node.LSN())
}
