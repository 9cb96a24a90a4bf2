package journalfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/record"
	"macronode/core/types"
)

// A part is a segment as the directory and its start tell of it.
type part struct {
	number uint32
	name   string
	size   int64
	start  start
	whole  bool      // the start checks
	first  types.LSN // its first frame, where the start or what follows it tells; else 0
}

func segmentName(number uint32) string { return fmt.Sprintf("%08d%s", number, suffix) }

// list is the segments in order, by their names alone, and what is left of those that
// did not get one.
func list(fsys fs.FS) (row []part, leftovers []string, err error) {
	names, err := fsys.List()
	if err != nil {
		return nil, nil, fmt.Errorf("journal: list the segments: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, leftover) {
			leftovers = append(leftovers, name)
		}
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 32)
		p := part{name: name, number: uint32(number)}
		if err != nil || name != segmentName(p.number) {
			return nil, nil, fmt.Errorf("%w: %s is no segment's name", ErrFormat, name)
		}
		row = append(row, p)
	}
	slices.SortFunc(row, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return row, leftovers, nil
}

// survey reads a segment's start.
func (p *part) survey(fsys fs.FS) error {
	pane, err := openPane(fsys, p.name, startItem+batchItem)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	return p.look(pane)
}

func (p *part) look(pane *pane) error {
	it, err := pane.item(0)
	if err != nil {
		return err
	}
	p.size = pane.size
	if it.magic == startMagic {
		if format := u32(it.payload); format != version {
			return fmt.Errorf("%w: %s is of format %d", ErrFormat, p.name, format)
		}
		if len(it.payload) == startSize {
			p.start = it.start()
			p.first = p.start.first
			p.whole = p.start.journal != 0 // that is nobody's
		}
		if p.whole {
			return nil
		}
	}
	if it, err = pane.item(startItem); it.magic == batchMagic && it.batch().plausible() { // a batch follows at once
		p.first = it.batch().first
	}
	return err
}

// reborn reports that the first frame of a segment makes the journal another, from the
// frame and the root before it on.
func (p part) reborn(pane *pane) (bool, error) {
	first, err := pane.item(startItem + batchItem)
	if err != nil || first.magic != frameMagic {
		return false, err
	}
	var r record.Record
	if _, err := record.Read(first.payload, 0, &r); err != nil {
		return false, nil //nolint:nilerr // then it is none
	}
	return r.Kind == record.Restored && r.Journal == p.start.journal && r.Upto+1 == p.start.first && r.Root == p.start.prev, nil
}

// marks is what a segment knows durable.
func (p part) marks(pane *pane) (known types.LSN, err error) {
	if err = p.look(pane); err != nil {
		return 0, err
	}
	known = p.start.known
	_, _, err = pane.search(startItem, func(h batch) bool {
		if h.plausible() {
			known = max(known, h.known)
		}
		return false
	})
	return known, err
}

// ID is whose segments are in a directory; 0 where none says it.
func ID(fsys fs.FS) (types.JournalID, error) {
	row, _, err := list(fsys)
	for n := len(row) - 1; n >= 0 && err == nil; n-- {
		if err = row[n].survey(fsys); err == nil && row[n].whole {
			return row[n].start.journal, nil
		}
	}
	return 0, err
}

// Behind is the names of the segments in a directory all of whose frames are ≤ lsn, and
// which have a successor there: who has a state as of lsn needs none of them.
func Behind(fsys fs.FS, lsn types.LSN) (names []string, err error) {
	row, _, err := list(fsys)
	for n := 1; n < len(row) && err == nil; n++ {
		if err = row[n].survey(fsys); err != nil || !row[n].whole || row[n].start.first > lsn+1 {
			break
		}
		names = append(names, row[n-1].name)
	}
	return names, err
}
