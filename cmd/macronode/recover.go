package main

import (
	"errors"
	"fmt"
	"time"

	"macronode/adapters/follower"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	rendered "macronode/core/receipt"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// errEnded says that the node was told to end while it read its journal.
var errEnded = errors.New("told to end before it had begun")

// recover folds the journal into a state, reading on one core and folding on the
// other. A damaged journal is read as far as it is whole. Nothing is written to one
// that cannot be folded.
func (l *life) recover() (state.State, event.Recovery, error) {
	limits := stateLimits(l.config)
	st := state.New(limits, words.Hash64(random64()))
	l.follower = follower.New(state.New(limits, words.Hash64(random64())), recent, waiters, l.older)
	dir, err := fs.Make(l.segments())
	if err != nil {
		return st, event.Recovery{}, err
	}
	began, fold := time.Now(), l.beginFold(&st)
	journal, found, err := journalfile.Recover(dir, words.JournalID(random64()), func(all []record.Sealed) error {
		if l.ear.ends() {
			return errEnded
		}
		return fold.take(all)
	})
	if errors.Is(err, journalfile.ErrDamaged) {
		l.log.Error("the journal is damaged: what is whole is served for reading, nothing is written; macronode verify says more", "err", err)
		found.Damaged, err = true, nil
	}
	if err = errors.Join(err, fold.end()); err != nil {
		return st, found.Recovery, err
	}
	l.journal = journal
	l.follower.Begin(&st)
	l.log.Info("journal recovered", "frames", uint64(found.Last), "segments", found.Segments, "bytes", found.Bytes,
		"cut_bytes", found.Cut, "made_durable_again", found.Tail, "took", time.Since(began))
	return st, found.Recovery, nil
}

// older is a frame that the follower has no more at hand.
func (l *life) older(lsn words.LSN) (record.Sealed, error) {
	s, err := l.journal.Read(lsn)
	switch {
	case errors.Is(err, journalfile.ErrGone):
		err = rendered.ErrNone
	case err != nil:
		l.log.Error("an older frame cannot be read", "lsn", uint64(lsn), "err", err)
		l.metrics.Failed("journal")
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
	if errors.Is(err, state.ErrRoom) {
		err = fmt.Errorf("the journal holds more than the configuration has room for, raise wallet.limits, wallet.idempotency.keys or api_keys: %w", err)
	}
	return err
}
