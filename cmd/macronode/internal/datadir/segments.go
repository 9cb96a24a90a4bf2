package datadir

import (
	"fmt"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
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
