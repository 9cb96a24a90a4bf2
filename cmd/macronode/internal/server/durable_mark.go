package server

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/readmodel"
	"macronode/core/types"
)

// durableMark is a file that records up to which frame the journal is durable. If the journal ends before that
// frame at the next start, frames are lost.
type durableMark struct {
	dir       fs.Dir
	lock      *fs.Held // of dir
	readModel *readmodel.Follower
	damaged   *atomic.Bool // the journal has lost durable frames
	log       *slog.Logger

	mu     sync.Mutex // held while the file is written
	lsn    types.LSN  // that the file contains
	failed bool       // the last write failed, and that was logged
}

// write updates the file if the journal has more durable frames than it records. A failure is logged once. The mark of a damaged journal stays:
// it is the evidence of lost frames. Another node's directory is not written to.
func (m *durableMark) write() {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, at := m.readModel.Last()
	if last.LSN <= m.lsn || m.damaged.Load() || m.lock.Check() != nil {
		return
	}
	err := durable.Mark{Journal: last.Journal, LSN: last.LSN, Root: last.Root, At: at}.Write(m.dir, durable.Name)
	switch {
	case err == nil:
		m.lsn, m.failed = last.LSN, false
	case !m.failed:
		m.failed = true
		m.log.Warn("durable mark not written: a lost journal tail written since the last mark would not be detected", "last", uint64(m.lsn), "err", err)
	}
}
