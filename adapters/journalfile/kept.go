package journalfile

import (
	"errors"
	"fmt"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// ErrOther reports that kept segments are of another journal.
var ErrOther = errors.New("journal: segments of another journal")

// Newest returns the number of the newest segment in a directory; 0 if it has none.
func Newest(fsys fs.FS) (number uint32, err error) {
	row, _, err := list(fsys)
	if n := len(row); n > 0 {
		number = row[n-1].number
	}
	return number, err
}

// ErrNotMounted reports that the segment before the oldest live one is not kept.
var ErrNotMounted = errors.New("journal: a segment is missing")

// CheckFollows returns ErrNotMounted unless the oldest segment in one directory is the first of its journal, or the one before it is kept
// in another. A disk without it is not that on which older segments were kept.
func CheckFollows(kept, live fs.FS) error {
	row, _, err := list(live)
	if err != nil || len(row) == 0 || row[0].number <= 1 {
		return err
	}
	old, _, err := list(kept)
	before := row[0].number - 1
	if err == nil && !slices.ContainsFunc(old, func(p part) bool { return p.number == before }) {
		err = fmt.Errorf("%w: %s", ErrNotMounted, segmentName(before))
	}
	return err
}

// CheckOne returns ErrOther if a segment in a directory is of another journal than the one behind it, and that does not begin with a
// restore. A segment with a damaged begin is no evidence.
func CheckOne(fsys fs.FS) error {
	row, _, err := list(fsys)
	if err != nil {
		return err
	}
	for n := range row {
		p := &row[n]
		if err := p.survey(fsys); err != nil {
			return err
		}
		if n == 0 || !p.whole || !row[n-1].whole || p.start.journal == row[n-1].start.journal {
			continue
		}
		follows, err := p.reborn(fsys)
		if err != nil || follows {
			continue
		}
		if names, inside, err := p.named(fsys); err == nil && (names != 0 || inside) {
			return fmt.Errorf("%w: %s is of journal %016x, %s of journal %016x", ErrOther, row[n-1].name, uint64(row[n-1].start.journal), p.name, uint64(p.start.journal))
		}
	}
	return nil
}

// CheckKept returns ErrOther unless the segments in one directory can be the older ones of the journal in another: the newest of them that
// can be read names a journal that a live segment names too, or the oldest live segment follows it and begins with a restore.
func CheckKept(kept, live fs.FS) error {
	old, _, err := list(kept)
	if err != nil {
		return err
	}
	last, err := newestWhole(old, kept)
	if err != nil || last == nil {
		return err
	}
	row, _, err := list(live)
	if err != nil {
		return err
	}
	is := types.JournalID(0)
	for n := range row {
		p := &row[n]
		if err := p.survey(live); err != nil {
			return err
		}
		if !p.whole {
			continue
		}
		if is = p.start.journal; is == last.start.journal {
			return nil
		}
		if n > 0 || p.number != last.number+1 {
			continue
		}
		if follows, err := p.reborn(live); err != nil || follows {
			return err
		}
	}
	return fmt.Errorf("%w: %s is of journal %016x, this is journal %016x", ErrOther, last.name, uint64(last.start.journal), uint64(is))
}

// newestWhole returns the newest segment with a valid start; nil if there is none.
func newestWhole(row []part, fsys fs.FS) (*part, error) {
	for n := len(row) - 1; n >= 0; n-- {
		if err := row[n].survey(fsys); err != nil || row[n].whole {
			return &row[n], err
		}
	}
	return nil, nil
}
