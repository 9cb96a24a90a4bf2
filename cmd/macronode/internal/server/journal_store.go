package server

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/metrics"
	"macronode/adapters/readmodel"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	rendered "macronode/core/wallet/receipt"
)

// journalStore is the journal of a node with its read model. Before recover has returned, there is no journal.
type journalStore struct {
	dir     fs.Dir   // of the node
	lock    *fs.Held // of dir
	start   settings.Start
	inbox   *eventInbox
	metrics *metrics.Metrics
	log     *slog.Logger

	segments  datadir.Segments
	journal   *journalfile.Journal
	readModel *readmodel.Follower
	known     datadir.Evidence // frames that were durable, at the start
	mark      durableMark

	damaged    atomic.Bool // the journal has lost durable frames
	unreadable atomic.Bool // a reader found a damaged frame that the sampler has not reported yet
}

// newJournalStore returns the store of a directory. Its read model is empty: recover fills it.
func newJournalStore(dir fs.Dir, lock *fs.Held, start settings.Start, inbox *eventInbox, m *metrics.Metrics, log *slog.Logger) *journalStore {
	s := &journalStore{dir: dir, lock: lock, start: start, inbox: inbox, metrics: m, log: log}
	s.readModel = readmodel.New(state.New(start.Core.State, types.Hash64(datadir.Random64())), settings.RecentFrames, start.Waiters, s.readFrame)
	s.mark.dir, s.mark.lock, s.mark.readModel, s.mark.damaged, s.mark.log = dir, lock, s.readModel, &s.damaged, log
	return s
}

// segmentsDir is the directory of the segments, snapshotsDir that of the snapshots.
func (s *journalStore) segmentsDir() string  { return filepath.Join(string(s.dir), datadir.Journal) }
func (s *journalStore) snapshotsDir() string { return filepath.Join(string(s.dir), datadir.Snapshots) }

// readFrame reads a frame that the read model does not keep in memory. A durable frame has a record: if its segment is missing, for example
// because the disk of the archive is not mounted, it is unreadable.
func (s *journalStore) readFrame(lsn types.LSN) (record.Sealed, error) {
	isDurable := lsn > 0 && lsn <= s.journal.Durable() // before the read: a frame may become durable meanwhile
	f, err := s.journal.Read(lsn)
	isGone := errors.Is(err, journalfile.ErrGone)
	switch {
	case isGone && !isDurable:
		err = rendered.ErrNoAnswer
	case err != nil:
		s.log.Error("frame not readable", "lsn", uint64(lsn), "err", err)
		s.metrics.Failed("journal")
		if isGone || errors.Is(err, journalfile.ErrDamaged) {
			err = fmt.Errorf("%w: %w", rendered.ErrUnreadable, err)
			s.unreadable.Store(true)
		}
	}
	return f, err
}

// fault logs and counts a failure of the journal, and returns its kind.
func (s *journalStore) fault(err error) event.Fault {
	f := journalfile.FaultOf(err)
	s.log.Error("journal failed: writes are rejected until a restart", "fault", f, "err", err)
	s.metrics.Failed("journal")
	return f
}

// Chain and Range are the journal as the index reads it. The index exists before the journal is open.
func (s *journalStore) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	return s.journal.Chain(lsn)
}

func (s *journalStore) Range(from types.LSN, each func(record.Sealed) error) error {
	return s.journal.Range(from, each)
}

// close closes the journal and updates the mark of durable frames.
func (s *journalStore) close() error {
	if err := s.journal.Close(); err != nil {
		return err
	}
	s.mark.write()
	return nil
}

// indexUsable reports whether the index may be served. If it contains frames that the damaged journal has lost, it is kept and not used.
func (s *journalStore) indexUsable() bool {
	if s.known.Index > s.readModel.Mark() && s.damaged.Load() {
		s.log.Error("index kept but not served: it contains frames lost from the damaged journal", "index_lsn", uint64(s.known.Index))
		return false
	}
	return true
}

// sample returns the free space of the disk of the segments. It also updates the mark of durable frames, and checks that the directory and the
// open segment are still in place.
func (s *journalStore) sample() diskSample {
	s.mark.write()
	free, err := fs.Dir(s.segmentsDir()).Free()
	return diskSample{free, err, errors.Join(s.lock.Check(), s.journal.Intact())}
}
