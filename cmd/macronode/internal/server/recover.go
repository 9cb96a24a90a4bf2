package server

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
	"macronode/adapters/nodedir"
	"macronode/adapters/snapshot"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// errEndRequested reports that a drain or an abort was requested during the recovery.
var errEndRequested = errors.New("shut down before the start was complete")

// recover opens the journal and returns the state: that of the newest usable snapshot with the frames after it, or that of all frames. It reads and
// folds in parallel. A damaged journal is read up to the damage. If the frames cannot be folded, nothing is written.
func (s *journalStore) recover() (state.State, event.Recovery, error) {
	limits, began := s.start.Core.State, time.Now()
	live, err := fs.Make(s.segmentsDir())
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if s.segments, err = datadir.OpenSegments(s.start.Archive, live); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if err := errors.Join(s.checkNotEmptied(), s.checkNoBackup(), s.checkFirstKey()); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	kept, err := fs.Make(s.snapshotsDir())
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	heads, err := snapshotHeads(s.segments, kept, s.logSkippedSnapshot)
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if s.known, err = datadir.ReadEvidence(string(s.dir), s.segments, func(err error) { s.log.Warn("index watermark not readable", "err", err) }); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	s.known.Note(heads[0].LSN, datadir.Snapshots)
	s.mark.lsn = s.known.LSN
	for _, h := range heads {
		st := state.New(limits, types.Hash64(random64()))
		found, err := s.recoverFrom(kept, &st, h, s.known.LSN)
		if errors.Is(err, snapshot.ErrDoubt) || errors.Is(err, journalfile.ErrApart) && h.LSN > 0 {
			s.logSkippedSnapshot(err)
			continue
		}
		if err != nil {
			return st, found.Recovery, explainRoom(err)
		}
		s.warnNoMark(found.Last)
		s.readModel.Begin(&st)
		s.log.Info("journal recovered", "frames", uint64(found.Last), "snapshot", uint64(h.LSN), "segments", found.Segments, "bytes", found.Bytes,
			"cut_bytes", found.CutBytes, "made_durable_again", found.TailFrames, "took", time.Since(began))
		return st, found.Recovery, nil
	}
	types.Assert(false, "recover: no beginning")
	return state.State{}, event.Recovery{}, nil
}

// warnNoMark logs that the mark of durable frames is missing, unless the journal has no frames.
func (s *journalStore) warnNoMark(last types.LSN) {
	if s.known.NoMark && last > 0 {
		s.log.Warn("mark of durable frames missing: a loss at the end of the journal cannot be detected; compare the newest receipts or a backup",
			"path", filepath.Join(string(s.dir), durable.Name), "last_lsn", uint64(last))
	}
}

// checkNotEmptied returns an error if there is no segment, but other files show that there was a journal. A new
// journal would lose its money.
func (s *journalStore) checkNotEmptied() error {
	names, err := s.segments.List()
	if err != nil || len(names) > 0 {
		return err
	}
	for _, trace := range [...]string{durable.Name, datadir.Index, datadir.Objects} {
		if _, err := os.Stat(filepath.Join(string(s.dir), trace)); err == nil {
			return fmt.Errorf("%s has no segment, but %s shows that there was a journal: mount its disk or restore it (macronode restore); a new node needs a new directory",
				s.segmentsDir(), trace)
		}
	}
	return nil
}

// checkFirstKey returns an error if there is no segment, and a file in place of the first API key that is none.
// The node would never become ready. A journal that has its keys is served without the file.
func (s *journalStore) checkFirstKey() error {
	names, err := s.segments.List()
	if err != nil || len(names) > 0 {
		return err
	}
	if _, err := nodedir.ReadKey(string(s.dir)); !errors.Is(err, nodedir.ErrNoKey) {
		return err
	}
	return nil
}

// checkNoBackup returns an error if the directory is a backup. A node that served from it would continue the
// journal under the same ID with other frames. A backup's journal that was put into the directory of
// its node is accepted: that directory has a mark of durable frames.
func (s *journalStore) checkNoBackup() error {
	cut, err := backup.CutOf(s.segments)
	if err == nil && cut.LSN == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, durable.ErrFormat) {
		return err
	}
	_, err = os.Stat(filepath.Join(string(s.dir), durable.Name))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is a backup: restore it with macronode restore %s --data DIR and serve DIR", s.dir, s.dir)
	}
	return err
}

// snapshotHeads returns where a recovery may begin, in the order of preference: at each snapshot of the journal, the newest
// first, and at the first frame. Snapshots that are not usable are passed to skipped.
func snapshotHeads(dir, kept fs.FS, skipped func(error)) (all []snapshot.Head, err error) {
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
			skipped(err)
		case id != 0 && h.Journal != id:
			skipped(fmt.Errorf("%s belongs to journal %016x, the segments to %016x", snapshot.Name(lsn), uint64(h.Journal), uint64(id)))
		default:
			all = append(all, h)
		}
	}
	return append(all, snapshot.Head{}), nil
}

// logSkippedSnapshot logs a snapshot that cannot be used.
func (s *journalStore) logSkippedSnapshot(err error) {
	s.log.Warn("snapshot skipped: the journal is replayed instead", "err", err)
}

// recoverFrom reads the journal after a snapshot, or from its first frame. Known is the last frame that is known to
// have been durable.
func (s *journalStore) recoverFrom(kept fs.FS, st *state.State, h snapshot.Head, known types.LSN) (journalfile.Found, error) {
	if h.LSN > 0 {
		if _, err := snapshot.Load(kept, h.LSN, st, s.checkEnd); err != nil {
			return journalfile.Found{}, err
		}
	}
	fold := s.startReplay(st)
	journal, found, err := journalfile.Reading{From: journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}, Known: known, Unsure: s.known.Unsure,
		Rebuilt: s.logRebuiltHeader,
		Each: func(all []record.Sealed) error {
			if err := s.checkEnd(); err != nil {
				return err
			}
			return fold.add(all)
		}}.Recover(s.segments, datadir.NewJournalID())
	if errors.Is(err, journalfile.ErrDamaged) {
		s.log.Error("journal damaged: serving reads of the intact part only; run macronode verify",
			"durable_lsn", uint64(max(found.Known, known)), "last_lsn", uint64(found.Last), "known_from", s.known.Source, "err", err)
		found.Damaged, err = true, nil
		s.damaged.Store(true)
	}
	if err = errors.Join(err, fold.wait()); err == nil {
		s.journal = journal
	}
	return found, err
}

// logRebuiltHeader logs an invalid header of a frame group. No frame is lost.
func (s *journalStore) logRebuiltHeader(d *journalfile.Damage) {
	s.log.Warn("journal header damaged: rebuilt from its frames, none is lost; check the disk, and run macronode verify",
		"segment", d.Segment, "offset", d.Offset, "first_lsn", uint64(d.From))
}

// checkEnd returns an error if an end was requested. It interrupts the recovery.
func (s *journalStore) checkEnd() error {
	if s.inbox.endRequested() {
		return errEndRequested
	}
	return nil
}

// replay folds frames while a recovery reads the next ones.
type replay struct {
	read chan []record.Sealed
	done chan error
	over bool
	err  error
}

func (s *journalStore) startReplay(st *state.State) *replay {
	f := &replay{read: make(chan []record.Sealed, 4), done: make(chan error, 1)}
	go func() { f.done <- s.replayAll(st, f.read) }()
	return f
}

// add passes frames on. No frames mean the end: add then waits for the fold of all frames.
func (f *replay) add(all []record.Sealed) error {
	if len(all) == 0 {
		return f.wait()
	}
	f.read <- all
	return nil
}

// wait waits for the fold of all frames.
func (f *replay) wait() error {
	if !f.over {
		close(f.read)
		f.over, f.err = true, <-f.done
	}
	return f.err
}

// replayAll folds frames. After an error it discards them, so that the reader does not block.
func (s *journalStore) replayAll(st *state.State, read <-chan []record.Sealed) (err error) {
	for all := range read {
		for i := range all {
			if err == nil {
				err = st.Fold(all[i].Body, nil)
				s.readModel.Keep(all[i])
			}
		}
	}
	return err
}

// explainRoom adds to an error which limits are too low for the journal.
func explainRoom(err error) error {
	if errors.Is(err, state.ErrRoom) {
		err = fmt.Errorf("the journal contains more than the configured limits: raise wallet.limits, wallet.idempotency.keys, storage, accounting or api_keys: %w", err)
	}
	return err
}
