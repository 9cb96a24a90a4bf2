package datadir

import (
	"errors"
	"fmt"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/record"
	"macronode/core/types"
)

// Segments are the segment files of a journal, including those in the archive.
type Segments struct {
	fs.FS
	Live    fs.Dir
	Archive *archive.Archive // nil: none is configured
}

// OpenSegments opens the segments of a directory and those in an archive. If archived is empty, there is no archive.
func OpenSegments(archived string, segments fs.Dir) (d Segments, err error) {
	d = Segments{FS: segments, Live: segments}
	if archived == "" {
		return d, nil
	}
	kept, err := fs.Make(archived)
	if err != nil {
		return d, fmt.Errorf("journal.archive: %w", err)
	}
	if d.Archive, err = archive.New(segments, kept); err == nil {
		d.FS = d.Archive
	}
	return d, err
}

// FramesAfter returns a function that reads the frames between a snapshot and an LSN. The journal may be
// written meanwhile.
func FramesAfter(dir fs.FS) func(snapshot.Head, types.LSN, func([]record.Sealed) error) error {
	return func(h snapshot.Head, upto types.LSN, each func([]record.Sealed) error) error {
		from := journalfile.From{LSN: h.LSN, Root: h.Root, Journal: h.Journal}
		_, err := journalfile.Reading{From: from, Upto: upto, Each: each}.Scan(dir)
		if errors.Is(err, journalfile.ErrApart) {
			err = errors.Join(snapshot.ErrApart, err)
		}
		return err
	}
}
