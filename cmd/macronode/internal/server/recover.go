package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/nodedir"
	"macronode/adapters/recovery"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
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
	if err := s.checkNotRestoring(); err != nil { // before the directory is made: a restore refuses one that has a journal
		return state.State{}, event.Recovery{}, err
	}
	if _, err := fs.Make(s.segmentsDir()); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	var err error
	if s.segments, err = datadir.OpenSegments(s.dir, s.start.Archive); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if s.segments.Foreign != nil {
		s.log.Error("journal.archive is not read: receipts of older frames cannot be read", "err", s.segments.Foreign)
	}
	s.logOthers()
	if err := errors.Join(s.checkNotEmptied(), s.checkNotLost(), s.checkNoBackup(), s.checkFirstKey()); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	kept, err := fs.Make(s.snapshotsDir())
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	heads, err := recovery.Heads(s.segments, kept, s.logSkippedSnapshot)
	if err != nil {
		return state.State{}, event.Recovery{}, err
	}
	if s.known, err = datadir.ReadEvidence(string(s.dir), s.segments, func(err error) { s.log.Warn("index watermark not readable", "err", err) }); err != nil {
		return state.State{}, event.Recovery{}, err
	}
	s.known.Note(heads[0].LSN, datadir.Snapshots)
	s.mark.lsn = s.known.LSN
	r, err := recovery.Start{Segments: s.segments, Snapshots: kept, Fresh: datadir.NewJournalID(),
		Reading: journalfile.Reading{Known: s.known.LSN, Unsure: s.known.Unsure, Repaired: s.logRepaired, Epoch: s.segments.Writers.Next}, Proofs: s.known.Proofs, Doubt: s.known.Doubt,
		Empty: func() state.State { return state.New(limits, types.Hash64(datadir.Random64())) },
		Fold:  s.startReplay, Step: s.checkEnd, Skipped: s.logSkippedSnapshot}.Recover(heads)
	if err != nil {
		return state.State{}, r.Found.Recovery, settings.ExplainRoom(err)
	}
	s.journal = r.Journal
	if err := s.checkFirstTime(&r, began); err != nil {
		return state.State{}, r.Found.Recovery, err
	}
	s.noteDamage(&r)
	s.adoptBackup(&r)
	s.warnNoMark(r.Found.Last)
	s.warnMissing(&r.Found)
	s.readModel.Begin(r.State)
	s.log.Info("journal recovered", "frames", uint64(r.Found.Last), "snapshot", uint64(r.Head.LSN), "segments", r.Found.Segments, "bytes", r.Found.Bytes,
		"cut_bytes", r.Found.CutBytes, "made_durable_again", r.Found.TailFrames, "took", time.Since(began))
	return *r.State, r.Found.Recovery, nil
}

// noteDamage logs the damage of the journal, and records it.
func (s *journalStore) noteDamage(r *recovery.Result) {
	if r.Damage == nil {
		return
	}
	s.log.Error("journal damaged: serving reads of the intact part only; run macronode verify",
		"durable_lsn", uint64(max(r.Found.Known, s.known.LSN)), "last_lsn", uint64(r.Found.Last), "known_from", s.known.Source, "err", r.Damage)
	r.Found.Damaged = true
	s.damaged.Store(true)
}

// warnNoMark logs that the mark of durable frames is missing, unless the journal has no frames.
func (s *journalStore) warnNoMark(last types.LSN) {
	if s.known.NoMark && last > 0 {
		s.log.Warn("mark of durable frames missing: a loss at the end of the journal cannot be detected; compare the newest receipts or a backup",
			"path", filepath.Join(string(s.dir), durable.Name), "last_lsn", uint64(last))
	}
}

// warnMissing logs that segments are missing. If the start does not need them, this is the only sign of it.
func (s *journalStore) warnMissing(f *journalfile.Found) {
	if f.Missing > 0 {
		s.log.Warn("journal segments missing, here and in the archive: their frames, such as receipts, cannot be read; bring the segments back, and run macronode verify",
			"first_segment", f.FirstMissing, "segments", f.Missing)
	}
}

// logOthers logs the segments that are not of the journal, and that nothing records which are.
func (s *journalStore) logOthers() {
	for _, o := range s.segments.Others {
		s.log.Error("segment is not of this journal: it is not read; run macronode verify", "segment", o.Name, "why", o.Why)
	}
	if s.segments.NoList != nil {
		s.log.Warn("the writers of the journal are not recorded: what follows a missing or damaged segment is not read", "err", s.segments.NoList)
	}
}

// checkNotRestoring returns an error if the directory has an incomplete restore and no journal. A new journal would have none of the money of the
// backup.
func (s *journalStore) checkNotRestoring() error {
	if _, err := os.Stat(filepath.Join(string(s.dir), datadir.Restoring)); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	switch names, err := fs.Dir(s.segmentsDir()).List(); {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case len(names) > 0:
		return nil
	}
	return fmt.Errorf("%s has %s and no journal: a restore into it is not complete; repeat it (macronode restore BACKUP --data DIR) into an empty directory",
		s.dir, datadir.Restoring)
}

// checkNotEmptied returns an error if there is no segment, but other files show that there was a journal. A new
// journal would lose its money.
func (s *journalStore) checkNotEmptied() error {
	names, err := s.segments.List()
	if err != nil || len(names) > 0 {
		return err
	}
	for _, trace := range [...]string{durable.Name, datadir.Index, datadir.Objects} {
		path := filepath.Join(string(s.dir), trace)
		if _, err := os.Stat(path); err == nil && (trace != datadir.Objects || holdsFile(path)) {
			return fmt.Errorf("%s has no segment, but %s shows that there was a journal: mount its disk or restore it (macronode restore); a new node needs a new directory",
				s.segmentsDir(), trace)
		}
	}
	return nil
}

// checkNotLost returns an error if only the archive has segments. The node would continue its older part under the same ID, with other frames than
// those that were acknowledged. If the directory records durable frames, their absence is damage, and what the archive has is served for reading.
func (s *journalStore) checkNotLost() error {
	if lost, err := s.segments.IsLost(); err != nil || !lost {
		return err
	}
	for _, record := range [...]string{durable.Name, datadir.Snapshots, datadir.Index} {
		path := filepath.Join(string(s.dir), record)
		if _, err := os.Stat(path); err == nil && (record != datadir.Snapshots || holdsFile(path)) {
			return nil
		}
	}
	return fmt.Errorf("%s has no segment, but journal.archive (%s) has older segments of a journal: mount the disk of %s, or restore a backup into another directory; another node needs another journal.archive. "+
		"To give up all that the archive lacks, if there is no backup: macronode backup COPY --data %s, then macronode restore COPY --accept-loss --data NEW with another journal.archive",
		s.segmentsDir(), s.start.Archive, s.dir, s.dir)
}

// holdsFile reports whether a directory has a file. That of the objects of a new node is an empty disk, or one with a directory such
// as lost+found.
func holdsFile(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return true // it may hold one
	}
	defer d.Close() //nolint:errcheck // nothing was written
	for {
		entries, err := d.ReadDir(64)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }) {
			return true
		}
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
	}
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
// its node is accepted: that directory has a mark of durable frames. The start makes it that of the node.
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

// logSkippedSnapshot logs a snapshot that cannot be used.
func (s *journalStore) logSkippedSnapshot(err error) {
	s.log.Warn("snapshot skipped: the journal is replayed instead", "err", err)
}

// logRepaired logs a damaged place that costs no frame.
func (s *journalStore) logRepaired(d *journalfile.Damage) {
	s.log.Warn("journal damaged where it costs no frame; check the disk, and run macronode verify",
		"segment", d.Segment, "offset", d.Offset, "lsn", uint64(d.From), "why", d.Why)
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

func (s *journalStore) startReplay(st *state.State) recovery.Fold {
	f := &replay{read: make(chan []record.Sealed, 4), done: make(chan error, 1)}
	go func() { f.done <- s.replayAll(st, f.read) }()
	return f
}

// Add passes frames on. No frames mean the end: Add then waits for the fold of all frames.
func (f *replay) Add(all []record.Sealed) error {
	if len(all) == 0 {
		return f.End()
	}
	f.read <- all
	return nil
}

// End waits for the fold of all frames.
func (f *replay) End() error {
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
