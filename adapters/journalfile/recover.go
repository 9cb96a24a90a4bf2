package journalfile

import (
	"errors"
	"fmt"

	"macronode/adapters/fs"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Recover reads the whole journal.
func Recover(fsys fs.FS, fresh types.JournalID, each func([]record.Sealed) error) (*Journal, Found, error) {
	return Reading{Each: each}.Recover(fsys, fresh)
}

// Recover reads the journal, makes frames durable again that are not proved durable, and opens
// the journal for writing. If there is none, it creates one with the ID fresh. Each gets all
// frames in order, in slices that it may keep, and then nil before anything is written: it may
// still return an error. An incomplete tail after the last frame known to be durable is cut, and
// counted in Found.
//
// With ErrDamaged, the disk is unchanged. The returned journal rejects writes, and Read finds the
// whole frames before and behind the damage. With ErrApart, the journal does not continue from
// the start of the reading, and the disk is unchanged too.
func (r Reading) Recover(fsys fs.FS, fresh types.JournalID) (*Journal, Found, error) {
	j := &Journal{fs: fsys, Roll: types.MaxSegment}
	r.Upto = 0
	s := scan{Reading: r, fsys: fsys, table: &j.table}
	if err := fsys.SyncDir(); err != nil { // the names read below are durable: a later name never survives without them
		return nil, s.found, failing(event.SyncFailed, "sync the directory", err)
	}
	leftovers, err := s.run()
	if s.found.Segments == 0 {
		s.found.Journal = fresh
	}
	j.id, j.epoch, j.number = s.found.Journal, s.found.Epoch+1, s.number
	j.last, j.root = s.found.Last, s.found.Root
	j.grown.Store(s.passed)
	if err == nil && r.Unsure != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, r.Unsure)
		s.found.Damaged = true
	}
	if errors.Is(err, ErrDamaged) {
		j.durable.Store(uint64(j.last))
		j.knownDurable, j.verdict = s.found.Known, r.Verdict
		return j, s.found, j.fail(err)
	}
	if err != nil {
		return nil, s.found, err
	}
	if r.Each != nil {
		if err := r.Each(nil); err != nil {
			return nil, s.found, err
		}
	}
	for _, name := range leftovers {
		if err := fsys.Remove(name); err != nil {
			return nil, s.found, failing(event.WriteFailed, "remove "+name, err)
		}
	}
	if r.Epoch != nil {
		if j.epoch, err = r.Epoch(s.found.Epoch); err != nil {
			return nil, s.found, failing(event.WriteFailed, "record the epoch", err)
		}
	}
	if err := j.begin(s.tail); err != nil {
		return nil, s.found, err
	}
	return j, s.found, nil
}
