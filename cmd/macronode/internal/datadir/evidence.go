package datadir

import (
	"errors"
	"fmt"
	"path/filepath"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/index"
	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// Evidence is the last frame that a data directory records as durable, outside of the segments. If the
// segments end before it, frames are lost.
type Evidence struct {
	LSN    types.LSN
	Source string              // the file or directory that records it; empty: none does
	Index  types.LSN           // the last frame that the index contains
	NoMark bool                // there are segments and no mark: durable frames may be missing at the end without evidence
	Proofs []journalfile.Proof // of the mark of durable frames and of the index
	Doubt  journalfile.Doubt   // as in Segments
	Unsure error               // the mark is damaged, so that it is unknown whether durable frames are missing; or ErrNoEnd, or ErrOtherEnd
}

// Note adds a frame that a source records.
func (e *Evidence) Note(lsn types.LSN, source string) {
	if lsn > e.LSN {
		e.LSN, e.Source = lsn, source
	}
}

// errForeign reports that the segments are of another journal than the rest of the data directory.
var errForeign = errors.New("the segments belong to another journal than the data directory")

// ReadEvidence reads the mark of durable frames, the end of a copy and the watermark of the index. If the segments name
// no journal, marks of any journal count. A watermark of the index that cannot be read is passed to
// unreadable and does not count.
func ReadEvidence(data string, journal Segments, unreadable func(error)) (e Evidence, err error) {
	noEnd := journal.CheckEnd()
	if noEnd != nil && !errors.Is(noEnd, ErrNoEnd) {
		return e, noEnd
	}
	e.Doubt = journal.Doubt
	if noEnd == nil {
		noEnd = journal.checkOthers()
	}
	id, err := journalfile.ID(journal)
	if err != nil {
		return e, err
	}
	mark, err := durable.Read(fs.Dir(data), durable.Name)
	switch {
	case errors.Is(err, durable.ErrFormat):
		e.Unsure = fmt.Errorf("%s: %w: it may name frames that are lost", filepath.Join(data, durable.Name), err)
	case err != nil:
		return e, err
	case mark.LSN > 0 && id != 0 && mark.Journal != id:
		return e, fmt.Errorf("%w: the segments belong to %016x, %s to %016x up to frame %v; mount the right disk, or remove that file if the segments were replaced intentionally",
			errForeign, uint64(id), filepath.Join(data, durable.Name), uint64(mark.Journal), mark.LSN)
	default:
		e.Unsure, e.NoMark = noEnd, id != 0 && mark.LSN == 0
		e.Note(mark.LSN, durable.Name)
		if (mark.Root != types.Root{}) { // a copy that lacks frames does not know it
			e.Proofs = append(e.Proofs, journalfile.Proof{LSN: mark.LSN, Root: mark.Root, Source: durable.Name})
		}
	}
	of, lsn, root, err := index.Watermark(filepath.Join(data, Index))
	if err != nil {
		unreadable(err)
	}
	if id == 0 || of == id {
		e.Index = lsn
		e.Note(lsn, Index)
		if lsn > 0 {
			e.Proofs = append(e.Proofs, journalfile.Proof{LSN: lsn, Root: root, Source: Index})
		}
	}
	return e, e.noteCut(journal, id)
}

// noteCut adds the last frame of a copy: its segments may have been put into the data directory.
func (e *Evidence) noteCut(journal Segments, id types.JournalID) error {
	cut, err := backup.CutOf(journal)
	switch {
	case errors.Is(err, durable.ErrFormat):
		if e.Unsure == nil {
			e.Unsure = err
		}
	case err != nil:
		return err
	case cut.LSN > 0 && (id == 0 || cut.Journal == id):
		e.Note(cut.LSN, backup.CutName)
		e.Proofs = append(e.Proofs, journalfile.Proof{LSN: cut.LSN, Root: cut.Root, Source: backup.CutName, IsWeak: journal.isBrought})
	}
	return nil
}
