package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
)

// archiveName is a file in an archive and in a data directory. In an archive it names the journal, in a data directory the archive that has the
// other file. So a mount point without its disk is not taken for an archive that is still empty. Segments in an archive prove more than
// the file, which is then not read.
const archiveName = "archive.id"

// ErrNotMounted reports that an archive without segments is not the directory that the node used before.
var ErrNotMounted = errors.New("journal.archive is not the directory that this node used before")

// claimArchive makes an archive without segments that of the journal, if the data directory names no archive at its path. If it names that
// one, the archive must have the file of the journal. A restore of a backup has another journal, and takes the archive over.
func (s Segments) claimArchive(data fs.Dir) error {
	archived, err := journalfile.Newest(s.Archive.Kept())
	if err != nil || archived > 0 {
		return err
	}
	id, err := journalfile.ID(s.Live)
	if err != nil || id == 0 {
		return err
	}
	journal := fmt.Sprintf("journal %016x\n", uint64(id))
	owner, used := "macronode archive\n"+journal, journal+"archive "+s.Path+"\n"
	is, err := readText(fs.Dir(s.Path), archiveName)
	if err != nil {
		return err
	}
	was, err := readText(data, archiveName)
	if err != nil {
		return err
	}
	note := filepath.Join(string(data), archiveName)
	switch {
	case is == owner && was == used:
		return nil
	case was != used:
		if err := fs.Replace(fs.Dir(s.Path), archiveName, owner); err != nil { // first: if only the data directory had it, the archive would be refused
			return err
		}
		return fs.Replace(data, archiveName, used)
	case is == "":
		return fmt.Errorf("%w: %s has no file %s: mount its disk; if this is the right directory, remove %s", ErrNotMounted, s.Path, archiveName, note)
	default:
		return fmt.Errorf("%w: the file %s in %s names another journal: give this node its own journal.archive; if this is the right directory, remove %s",
			ErrNotMounted, archiveName, s.Path, note)
	}
}

// readText returns the content of a small file; empty if there is none.
func readText(from fs.Dir, name string) (string, error) {
	text, err := fs.ReadAll(from, name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}
