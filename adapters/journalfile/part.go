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

// A part is a segment as known from the directory and its start.
type part struct {
	number  uint32
	name    string
	size    int64
	start   start
	whole   bool      // the start is valid, or rebuilt
	remade  bool      // the start is rebuilt
	isThere bool      // the file was opened by peek
	first   types.LSN // its first frame, from the start or from what follows it; else 0
}

func segmentName(number uint32) string { return fmt.Sprintf("%08d%s", number, suffix) }

// gap returns the name of the segment that is missing after the n-th; empty if none is.
func gap(row []part, n int) string {
	if n+1 < len(row) && row[n+1].number > row[n].number+1 {
		return segmentName(row[n].number + 1)
	}
	return ""
}

// lacking returns how many segments before the last one are not there, and the name of the first of them. Segments
// are numbered from 1 without gaps.
func lacking(row []part) (n int, first string) {
	next := uint32(1)
	for _, p := range row {
		if p.number > next {
			if n == 0 {
				first = segmentName(next)
			}
			n += int(p.number - next)
		}
		next = p.number + 1
	}
	return n, first
}

// list returns the segments in order, by name only, and the segments without a name that are left
// over. It returns ErrFormat if another file has the suffix of a segment, such as a copy under number 0.
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
		if err != nil || p.number == 0 || name != segmentName(p.number) {
			return nil, nil, fmt.Errorf("%w: %s is not the name of a segment, the first one is %s: move that file out of the directory of the journal, or out of journal.archive if it is there",
				ErrFormat, name, segmentName(1))
		}
		row = append(row, p)
	}
	slices.SortFunc(row, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return row, leftovers, nil
}

// survey reads the start of a segment.
func (p *part) survey(fsys fs.FS) error {
	pane, err := openPane(fsys, p.name, startItem+batchItem)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	if err := p.look(pane); err != nil {
		return err
	}
	return p.remake(fsys, pane)
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
			p.whole = p.start.journal != 0 // 0 is not a journal
		}
		if p.whole {
			return nil
		}
	}
	if it, err = pane.item(startItem); it.magic == batchMagic && it.batch().plausible() { // a batch follows directly
		p.first = it.batch().first
	}
	return err
}

// continues reports whether a segment is of a journal, or begins with a restore of it.
func (p part) continues(fsys fs.FS, of types.JournalID) (bool, error) {
	if !p.whole || p.start.journal == of {
		return p.whole, nil
	}
	return p.reborn(fsys)
}

// reborn reports whether the first frame of a segment gives the journal another ID after the
// frame and the root before it.
func (p part) reborn(fsys fs.FS) (bool, error) {
	pane, err := openPane(fsys, p.name, sparse)
	if err != nil {
		return false, err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	first, err := pane.item(startItem + batchItem)
	if err != nil || first.magic != frameMagic {
		return false, err
	}
	var r record.Record
	if _, err := record.Read(first.payload, 0, &r); err != nil {
		return false, nil //nolint:nilerr // then it is not
	}
	return r.Kind == record.Restored && r.Journal == p.start.journal && r.Upto+1 == p.start.first && r.Root == p.start.prev, nil
}

// named returns the journal that the first frame of a segment names: the first one of a run or of a restore does. Inside reports
// that the frame is whole and names none.
func (p part) named(fsys fs.FS) (whose types.JournalID, inside bool, err error) {
	pane, err := openPane(fsys, p.name, sparse)
	if err != nil {
		return 0, false, err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	first, err := pane.item(startItem + batchItem)
	if err != nil || first.magic != frameMagic {
		return 0, false, err
	}
	var r record.Record
	if _, bad := record.Read(first.payload, 0, &r); bad != nil {
		return 0, false, nil //nolint:nilerr // then it names none
	}
	if r.Kind == record.Started || r.Kind == record.Restored {
		return r.Journal, false, nil
	}
	return 0, true, nil
}

// marks returns the last frame that a segment proves durable.
func (p part) marks(pane *pane) (known types.LSN, err error) {
	if err = p.look(pane); err != nil {
		return 0, err
	}
	known = p.start.known
	_, _, err = pane.search(startItem, func(h batch) bool {
		if h.plausible() && (p.start.epoch == 0 || p.start.epoch == h.epoch) {
			known = max(known, h.known)
		}
		return false
	})
	return known, err
}

// ID returns the journal ID of the segments in a directory; 0 if none has a valid start.
func ID(fsys fs.FS) (types.JournalID, error) {
	row, _, err := list(fsys)
	if err != nil {
		return 0, err
	}
	p, err := newestWhole(row, fsys)
	if err != nil || p == nil {
		return 0, err
	}
	return p.start.journal, nil
}

// IsEmpty reports whether a directory has no segment.
func IsEmpty(fsys fs.FS) (bool, error) {
	row, _, err := list(fsys)
	return len(row) == 0, err
}

// Behind returns the names of the segments in a directory whose frames are all ≤ lsn and which
// have a successor there: a state at lsn needs none of them.
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
