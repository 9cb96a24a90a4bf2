package journalfile

import (
	"errors"

	"macronode/adapters/fs"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Recover is that of a Reading of all there is.
func Recover(fsys fs.FS, fresh types.JournalID, each func([]record.Sealed) error) (*Journal, Found, error) {
	return Reading{Each: each}.Recover(fsys, fresh)
}

// Recover reads the journal, makes durable again what nothing in it vouches for, and
// opens it for writing; where there is none, it begins one that is called fresh. Each
// gets all frames in order, in slices that are its own; and then none, before anything is
// written: it may still refuse. What is not whole after the
// last known durable frame is given up, and counted in what is found.
//
// With ErrDamaged nothing on the disk was changed: the journal that comes with it
// takes no frames, and Read finds what is whole, before the damage and behind it. With
// ErrApart the journal does not go on from where the reading was to begin, and nothing
// was changed either.
func (r Reading) Recover(fsys fs.FS, fresh types.JournalID) (*Journal, Found, error) {
	j := &Journal{fs: fsys, Roll: types.MaxSegment}
	r.Upto = 0
	s := scan{Reading: r, fsys: fsys, table: &j.table}
	if err := fsys.SyncDir(); err != nil { // the names that are read now are there for good: no later one survives without them
		return nil, s.found, failing(event.SyncFailed, "sync the directory", err)
	}
	leftovers, err := s.run()
	if s.found.Segments == 0 {
		s.found.Journal = fresh
	}
	j.id, j.epoch, j.number = s.found.Journal, s.found.Epoch+1, s.number
	j.last, j.root = s.found.Last, s.found.Root
	j.grown.Store(s.passed)
	if errors.Is(err, ErrDamaged) {
		j.durable.Store(uint64(j.last))
		j.beyond = s.found.Known
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
	if err := j.begin(s.tail); err != nil {
		return nil, s.found, err
	}
	return j, s.found, nil
}
