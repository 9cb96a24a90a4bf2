package datadir

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
)

// ErrOtherEnd reports that the newest segments are not of the journal. They may be in the place of segments of it.
var ErrOtherEnd = errors.New("the newest segments are not of this journal")

// errNoList reports that a data directory does not record the writers of its journal.
var errNoList = errors.New("it is missing")

// Writers returns the writers of a journal that is new in a data directory.
func Writers(data fs.FS) epochs.List { return epochs.List{Dir: data, Random: Random64} }

// own hides the segments that are not of the journal. A backup has the list of its writers beside the segments, so that its directory of segments
// can be put into the data directory. Where no list is recorded, the writers are those of the segments that follow one another from the oldest
// one on: what is behind a gap is not read.
func (s *Segments) own(data fs.Dir) error {
	s.Writers = Writers(data)
	recorded, err := epochs.Read(data)
	ofBackup, bad := epochs.Read(s.Live)
	if err = errors.Join(err, bad); err != nil && !errors.Is(err, epochs.ErrFormat) {
		return err
	}
	s.Writers.All = append(recorded, ofBackup...)
	if err == nil && len(s.Writers.All) == 0 {
		err = errNoList
	}
	if err != nil {
		s.NoList = fmt.Errorf("%s: %w", filepath.Join(string(data), epochs.Name), err)
		is, err := journalfile.ReadInRow(s.FS)
		if err != nil {
			return err
		}
		s.Writers.All = append(s.Writers.All, is.Writers...)
	}
	if len(s.Writers.All) == 0 {
		s.NoList = nil // there are no segments
	}
	if s.FS, s.Others, err = journalfile.Own(s.FS, s.Writers.All); err != nil {
		return err
	}
	isEmpty, err := journalfile.IsEmpty(s.FS)
	if isEmpty && len(s.Others) > 0 && !slices.ContainsFunc(s.Others, func(o journalfile.Foreign) bool { return !o.IsOther }) {
		err = fmt.Errorf("%w: no segment in %s was written by a process that %s records; mount the right disk, or remove that file if the segments were replaced intentionally",
			errForeign, s.Live, filepath.Join(string(data), epochs.Name))
	}
	return err
}

// checkOthers returns ErrOtherEnd if the newest segments are not of the journal.
func (s *Segments) checkOthers() error {
	for _, o := range s.Others {
		if o.IsEnd {
			return fmt.Errorf("%w: %s", ErrOtherEnd, o.Name)
		}
	}
	return nil
}

// Random64 returns a random number.
func Random64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails; it ends the process
	return binary.LittleEndian.Uint64(b[:])
}
