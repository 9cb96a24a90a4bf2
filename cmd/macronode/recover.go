package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/readmodel"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// errEnded says that the node was told to end while it read its journal.
var errEnded = errors.New("shut down before the start was complete")

// newFollower answers from nothing: recover gives it the state.
func (l *life) newFollower() *readmodel.Follower {
	return readmodel.New(state.New(l.settings().core.State, types.Hash64(random64())), recent, l.settings().waiters, l.older)
}

// recover makes the state: from the newest snapshot that is to be believed and the frames
// behind it, or from all frames, reading on one core and folding on the other. A damaged
// journal is read as far as it is whole. Nothing is written to one that cannot be folded.
func (l *life) recover() (state.State, event.Recovery, error) {
	limits, began := l.settings().core.State, time.Now()
	live, err := fs.Make(l.segments())
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if l.disk, err = openDisk(l.settings().archive, live); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if err := errors.Join(l.whole(), l.original()); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	kept, err := fs.Make(l.snapshots())
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	heads, err := beginnings(l.disk, kept, l.doubt)
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if l.known, err = evidenceIn(string(l.dir), l.disk, func(err error) { l.log.Warn("durable mark not readable", "err", err) }); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	l.known.note(heads[0].LSN, snapshotsName)
	l.marked = l.known.LSN
	for _, h := range heads {
		st := state.New(limits, types.Hash64(random64()))
		found, err := l.recoverFrom(kept, &st, h, l.known.LSN)
		if errors.Is(err, snapshot.ErrDoubt) || errors.Is(err, journalfile.ErrApart) && h.LSN > 0 {
			l.doubt(err)
			continue
		}
		if err != nil {
			return st, found.Recovery, roomier(err)
		}
		l.follower.Begin(&st)
		l.log.Info("journal recovered", "frames", uint64(found.Last), "snapshot", uint64(h.LSN), "segments", found.Segments, "bytes", found.Bytes,
			"cut_bytes", found.CutBytes, "made_durable_again", found.TailFrames, "took", time.Since(began))
		return st, found.Recovery, nil
	}
	types.Assert(false, "recover: no beginning")
	return state.State{}, event.Recovery{}, nil
}

// whole says why a directory without a segment is not one of a node that begins: another
// journal was here, and to begin anew would be to forget its money.
func (l *life) whole() error {
	names, err := l.disk.List()
	if err != nil || len(names) > 0 {
		return err
	}
	for _, trace := range [...]string{durable.Name, indexName, objectsName} {
		if _, err := os.Stat(filepath.Join(string(l.dir), trace)); err == nil {
			return fmt.Errorf("%s has no segment, but %s shows that there was a journal: mount its disk or restore it (macronode restore); a new node needs a new directory",
				l.segments(), trace)
		}
	}
	return nil
}

// original returns an error if the directory is a backup. A node that served from it would continue the
// journal under the same ID with other frames. A backup's journal that was put into the directory of
// its node is accepted: that directory has a mark of durable frames.
func (l *life) original() error {
	cut, err := backup.CutOf(l.disk)
	if err == nil && cut.LSN == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, durable.ErrFormat) {
		return err
	}
	_, err = os.Stat(filepath.Join(string(l.dir), durable.Name))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is a backup: restore it with macronode restore %s --data DIR and serve DIR", l.dir, l.dir)
	}
	return err
}

// beginnings are where a start may begin, the likeliest first: what each snapshot says
// that it is of, and at the end the first frame.
func beginnings(dir, kept fs.FS, doubt func(error)) (all []snapshot.Head, err error) {
	id, err := journalfile.ID(dir)
	if err != nil {
		return nil, err
	}
	names, err := snapshot.List(kept)
	if err != nil {
		return nil, err
	}
	for _, lsn := range names {
		switch h, err := snapshot.Look(kept, lsn); {
		case err != nil:
			doubt(err)
		case id != 0 && h.Journal != id:
			doubt(fmt.Errorf("%s belongs to journal %016x, the segments to %016x", snapshot.Name(lsn), uint64(h.Journal), uint64(id)))
		default:
			all = append(all, h)
		}
	}
	return append(all, snapshot.Head{}), nil
}

// doubt says which snapshot is passed over.
func (l *life) doubt(err error) {
	l.log.Warn("snapshot skipped: the journal is replayed instead", "err", err)
}

// recoverFrom reads a journal behind a snapshot, or from its beginning. Known is the last frame
// that is known to have been durable.
func (l *life) recoverFrom(kept fs.FS, st *state.State, h snapshot.Head, known types.LSN) (journalfile.Found, error) {
	if h.LSN > 0 {
		if _, err := snapshot.Load(kept, h.LSN, st, l.goesOn); err != nil {
			return journalfile.Found{}, err
		}
	}
	fold := l.beginFold(st)
	journal, found, err := journalfile.Reading{From: journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}, Known: known,
		Each: func(all []record.Sealed) error {
			if err := l.goesOn(); err != nil {
				return err
			}
			return fold.take(all)
		}}.Recover(l.disk, types.JournalID(random64()))
	if errors.Is(err, journalfile.ErrDamaged) {
		l.log.Error("journal damaged: serving reads of the intact part only; run macronode verify",
			"durable_lsn", uint64(max(found.Known, known)), "last_lsn", uint64(found.Last), "known_from", l.known.Source, "err", err)
		found.Damaged, err = true, nil
		l.damaged.Store(true)
	}
	if err = errors.Join(err, fold.end()); err == nil {
		l.journal = journal
	}
	return found, err
}

// goesOn ends what is done while the node recovers, once it was told to end.
func (l *life) goesOn() error {
	if l.ear.ends() {
		return errEnded
	}
	return nil
}

// older is a frame that the follower has no more at hand.
func (l *life) older(lsn types.LSN) (record.Sealed, error) {
	s, err := l.journal.Read(lsn)
	switch {
	case errors.Is(err, journalfile.ErrGone):
		err = rendered.ErrNoAnswer
	case err != nil:
		l.log.Error("frame not readable", "lsn", uint64(lsn), "err", err)
		l.metrics.Failed("journal")
		if errors.Is(err, journalfile.ErrDamaged) {
			err = fmt.Errorf("%w: %w", rendered.ErrUnreadable, err)
			l.unreadable.Store(true)
		}
	}
	return s, err
}

// fold is the other core's part of a recovery.
type fold struct {
	read chan []record.Sealed
	done chan error
	over bool
	err  error
}

func (l *life) beginFold(st *state.State) *fold {
	f := &fold{read: make(chan []record.Sealed, 4), done: make(chan error, 1)}
	go func() { f.done <- l.foldAll(st, f.read) }()
	return f
}

// take hands on what was read; nothing, at the end, waits for all that was.
func (f *fold) take(all []record.Sealed) error {
	if len(all) == 0 {
		return f.end()
	}
	f.read <- all
	return nil
}

// end waits for all that was taken.
func (f *fold) end() error {
	if !f.over {
		close(f.read)
		f.over, f.err = true, <-f.done
	}
	return f.err
}

// foldAll takes all there is, so that the reader never waits for nobody.
func (l *life) foldAll(st *state.State, read <-chan []record.Sealed) (err error) {
	for all := range read {
		for i := range all {
			if err == nil {
				err = st.Fold(all[i].Body, nil)
				l.follower.Keep(all[i])
			}
		}
	}
	return err
}

// roomier says what to do about a state that is too small.
func roomier(err error) error {
	if errors.Is(err, state.ErrRoom) {
		err = fmt.Errorf("the journal contains more than the configured limits: raise wallet.limits, wallet.idempotency.keys or api_keys: %w", err)
	}
	return err
}
