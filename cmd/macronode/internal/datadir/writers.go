package datadir

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
)

// ErrOtherEnd reports that the newest segments are not of the journal. They may be in the place of segments of it.
var ErrOtherEnd = errors.New("the newest segments are not of this journal")

// Why the recorded writers of a journal are not all of them.
var (
	errNoList  = errors.New("it is missing")
	errPartial = errors.New("it was made while segments were missing or damaged, and may lack processes")
)

// Why segments that are read may be of another journal.
const (
	noList   = "nothing records which segments are of this journal, and some are missing or damaged, or the latest frame that is recorded is missing"
	ofBackup = "a backup has brought its list of writers, and the latest frame that the data directory records is missing"
)

// Writers returns the writers of a journal that is new in a data directory.
func Writers(data fs.FS) epochs.List { return epochs.List{Dir: data, Random: Random64} }

// own hides the segments that are not of the journal. Where no complete list of its writers is recorded, they are also those of the segments
// that follow one another from the oldest one on: what is behind a gap is not read. That list is partial if segments are missing.
func (s *Segments) own(data fs.Dir) error {
	s.Writers = Writers(data)
	lacks, err := s.recorded(data)
	if err != nil {
		return err
	}
	if lacks != nil {
		is, err := journalfile.ReadInRow(s.FS)
		if err != nil {
			return err
		}
		s.Writers.All, s.Writers.Partial = append(s.Writers.All, is.Writers...), is.Lacks || is.Breaks
		s.Doubt = journalfile.Doubt{Why: noList, IsGap: is.Breaks}
	}
	if len(s.Writers.All) > 0 { // else there are no segments
		s.NoList = lacks
	}
	if s.FS, s.Others, err = journalfile.Own(s.FS, s.Writers.All); err != nil {
		return err
	}
	isEmpty, err := journalfile.IsEmpty(s.FS)
	if isEmpty && len(s.Others) > 0 && !slices.ContainsFunc(s.Others, func(o journalfile.Foreign) bool { return !o.IsOther }) {
		err = fmt.Errorf("%w: no segment in %s was written by a process that %s records; mount the right disk, or remove that file if the segments were replaced intentionally",
			errForeign, s.Live, s.ListPath)
	}
	return err
}

// recorded reads which writers are recorded. A backup has the list beside its segments, so that its directory of segments can be put into the
// data directory: if that list is there, it decides. Lacks is why there may be other writers.
func (s *Segments) recorded(data fs.Dir) (lacks, err error) {
	s.ListPath = filepath.Join(string(data), epochs.Name)
	path, found, lists := s.ListPath, errNoList, 0
	for _, dir := range [...]fs.Dir{data, s.Live} {
		l, err := epochs.Load(dir)
		switch {
		case errors.Is(err, epochs.ErrFormat):
			found = err
		case err != nil:
			return nil, err
		case l.All == nil: // there is no file
			continue
		case l.Partial:
			found = errPartial
		default:
			found = nil
		}
		path = filepath.Join(string(dir), epochs.Name)
		lists++
		s.Writers.All = append(s.Writers.All, l.All...)
	}
	if _, err := os.Stat(s.ListPath); errors.Is(err, os.ErrNotExist) {
		s.ListPath = path
	}
	if s.isBrought = lists == 2; s.isBrought {
		s.Doubt = journalfile.Doubt{Why: ofBackup}
	}
	if found != nil {
		found = fmt.Errorf("%s: %w", path, found)
	}
	return found, nil
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
