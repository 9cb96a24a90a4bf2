package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/adapters/index"
	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// evidence is what a data directory knows, outside of the segments, of frames that were durable.
type evidence struct {
	LSN    types.LSN
	Source string // the file or directory that knows it; empty: nothing does
	index  types.LSN
}

// note takes in what a source knows.
func (e *evidence) note(lsn types.LSN, source string) {
	if lsn > e.LSN {
		e.LSN, e.Source = lsn, source
	}
}

// errForeign says that a directory was of another journal than the one whose segments it has.
var errForeign = errors.New("the segments belong to another journal than the data directory")

// evidenceIn reads what a data directory knows: its mark of durable frames and its index. Where
// the segments name no journal, the marks of any are taken. Doubts is what cannot be read: it
// is told, and is no evidence.
func evidenceIn(data string, journal fs.FS, doubts func(error)) (e evidence, err error) {
	id, err := journalfile.ID(journal)
	if err != nil {
		return e, err
	}
	mark, err := durable.Read(fs.Dir(data), durable.Name)
	switch {
	case errors.Is(err, durable.ErrFormat):
		doubts(fmt.Errorf("%s: %w", filepath.Join(data, durable.Name), err))
	case err != nil:
		return e, err
	case mark.LSN > 0 && id != 0 && mark.Journal != id:
		return e, fmt.Errorf("%w: the segments belong to %016x, %s to %016x up to frame %v; mount the right disk, or remove that file if the segments were replaced intentionally",
			errForeign, uint64(id), filepath.Join(data, durable.Name), uint64(mark.Journal), mark.LSN)
	default:
		e.note(mark.LSN, durable.Name)
	}
	of, lsn, err := index.Watermark(filepath.Join(data, indexName))
	if err != nil {
		doubts(err)
	}
	if id == 0 || of == id {
		e.index = lsn
		e.note(lsn, indexName)
	}
	return e, nil
}

// keepDurable writes down how far the journal is durable now, if that is further than before.
// What it fails to write is told once: the journal itself has its own faults.
func (l *life) keepDurable() {
	l.marking.Lock()
	defer l.marking.Unlock()
	last, at := l.follower.Last()
	if last.LSN <= l.marked || l.lock.Check() != nil { // or another node's directory would have it
		return
	}
	err := durable.Mark{Journal: last.Journal, LSN: last.LSN, Root: last.Root, At: at}.Write(l.dir, durable.Name)
	switch {
	case err == nil:
		l.marked, l.unmarked = last.LSN, false
	case !l.unmarked:
		l.unmarked = true
		l.log.Warn("durable mark not written: a lost journal tail written since the last mark would not be detected", "last", uint64(l.marked), "err", err)
	}
}
