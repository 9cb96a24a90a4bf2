package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"macronode/adapters/archive"
	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
)

// ErrNoEnd reports that the end of a journal is missing: the archive has newer segments than the data directory. The newest one is never moved there.
var ErrNoEnd = errors.New("the archive has newer segments than the data directory, so those at the end of the journal are missing")

// Segments are the segment files of a journal, including those in the archive.
type Segments struct {
	fs.FS
	Live    fs.Dir
	Archive *archive.Archive // nil: none is configured
	Path    string           // of the archive
	Foreign error            // the archive has segments of another journal: it is not read

	Others   []journalfile.Foreign // of Live and the archive, that are not of the journal: FS does not have them
	Writers  epochs.List           // of the journal
	ListPath string                // the file that records Writers
	NoList   error                 // why Writers is also made from the segments that follow one another; nil: all were recorded, or there are none
	Doubt    journalfile.Doubt     // why segments that are read may be of another journal

	isBrought bool // the segments of a backup were put into the data directory of a node
}

// String returns the directory of the segments that are not archived.
func (s Segments) String() string { return string(s.Live) }

// CheckEnd returns ErrNoEnd if the end of the journal is missing, as far as the names of the segments show.
func (s Segments) CheckEnd() error {
	if s.Archive == nil || s.Foreign != nil {
		return nil
	}
	archived, err := journalfile.Newest(s.Archive.Kept()) // first: segments are moved while a node runs
	if err != nil || archived == 0 {
		return err
	}
	live, err := journalfile.Newest(s.Live)
	if err == nil && live <= archived {
		err = fmt.Errorf("%w: the newest segment in %s is %d, in %s %d", ErrNoEnd, s.Path, archived, s.Live, live)
	}
	return err
}

// CheckArchive returns journalfile.ErrOther if the archive has segments of another journal, and journalfile.ErrNotMounted if it lacks the one
// before those in the data directory: what is moved to another disk is hidden when the right one is mounted again. An archive without segments is
// claimed for the data directory, or is ErrNotMounted.
func (s Segments) CheckArchive(data fs.Dir) error {
	if err := s.checkForeign(); err != nil {
		return err
	}
	err := journalfile.CheckFollows(s.Archive.Kept(), s.Live)
	if errors.Is(err, journalfile.ErrNotMounted) {
		err = fmt.Errorf("%w in %s: mount its disk, or bring the segment back", err, s.Path)
	}
	if err != nil {
		return err
	}
	return s.claimArchive(data)
}

// checkForeign returns journalfile.ErrOther if the archive has segments of another journal.
func (s Segments) checkForeign() error {
	err := journalfile.CheckKept(s.Archive.Kept(), s.Live)
	if errors.Is(err, journalfile.ErrOther) {
		err = fmt.Errorf("%w: %s belongs to another node or to a restore; give this node its own journal.archive", err, s.Path)
	}
	return err
}

// IsLost reports whether the data directory has no segment, although the archive has some.
func (s Segments) IsLost() (bool, error) {
	if s.Archive == nil {
		return false, nil
	}
	archived, err := journalfile.Newest(s.Archive.Kept())
	if err != nil || archived == 0 {
		return false, err
	}
	isEmpty, err := journalfile.IsEmpty(s.Live)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return isEmpty, err
}

// OpenSegments opens the segments of a data directory or a backup, and those in an archive. If archived is empty, there is no archive. Its error
// is journalfile.ErrOther if the directory has segments of two journals: they would be read as one.
func OpenSegments(data fs.Dir, archived string) (d Segments, err error) {
	if d, err = OpenFiles(fs.Dir(filepath.Join(string(data), Journal)), archived); err != nil {
		return d, err
	}
	return d, d.own(data)
}

// OpenFiles opens the files of all segments, also of those that are not of the journal.
func OpenFiles(segments fs.Dir, archived string) (d Segments, err error) {
	d = Segments{FS: segments, Live: segments, Path: archived}
	if err := journalfile.CheckOne(segments); errors.Is(err, journalfile.ErrOther) {
		return d, fmt.Errorf("%w in %s: move the one away that does not belong there, and bring the right one back", err, segments)
	}
	if archived == "" {
		return d, nil
	}
	kept, err := fs.Make(archived)
	if err != nil {
		return d, fmt.Errorf("journal.archive: %w", err)
	}
	if d.Archive, err = archive.New(segments, kept); err != nil {
		return d, err
	}
	if id, err := journalfile.ID(segments); err == nil && id != 0 {
		if err := d.checkForeign(); errors.Is(err, journalfile.ErrOther) {
			d.Foreign = err
			return d, nil
		}
	}
	d.FS = d.Archive
	return d, nil
}
