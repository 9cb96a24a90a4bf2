package journalfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// Foreign is a segment that is not read.
type Foreign struct {
	Name    string
	Why     string
	IsEnd   bool // no segment of the journal is behind it: it may be in the place of one
	IsOther bool // another process wrote it

	number uint32
}

// Own returns a directory without the segments that are not of its journal, and those. Of the journal are the segments of its writers, whose
// epochs are listed; without a list, all. A copy of a journal that was started has the same journal ID, whole frames and right checksums,
// but another writer. Of two copies of one segment, the one in the wrong place is not of the journal.
//
// Own reads the start of each segment. What is renamed or begun later is of the journal.
func Own(fsys fs.FS, writers []types.Epoch) (fs.FS, []Foreign, error) {
	row, _, err := list(fsys)
	if err != nil {
		return nil, nil, err
	}
	listed := map[types.Epoch]bool{}
	for _, e := range writers {
		listed[e] = true
	}
	var all []Foreign
	own := row[:0:0]
	for _, p := range row {
		epoch, err := p.writer(fsys)
		switch {
		case errors.Is(err, os.ErrNotExist): // moved meanwhile
		case err != nil:
			return nil, nil, err
		case writers == nil || listed[epoch]:
			own = append(own, p)
		case epoch == 0:
			all = append(all, p.foreign("it is damaged, and nothing in it shows which process wrote it"))
		default:
			all = append(all, p.foreign("another process wrote it than those of this journal: it is of another node, or of a copy of the journal that was started, too"))
			all[len(all)-1].IsOther = true
		}
	}
	own, misplaced := inOrder(own)
	all = append(all, misplaced...)
	slices.SortFunc(all, func(a, b Foreign) int { return cmp.Compare(a.number, b.number) })
	for i := range all {
		all[i].IsEnd = len(own) == 0 || all[i].number > own[len(own)-1].number
	}
	return Hide(fsys, all), all, nil
}

// Hide returns a directory without some segments.
func Hide(fsys fs.FS, these []Foreign) fs.FS {
	if len(these) == 0 {
		return fsys
	}
	f := &filtered{FS: fsys, hidden: map[string]bool{}}
	for _, p := range these {
		f.hidden[p.Name] = true
	}
	return f
}

func (p part) foreign(why string) Foreign { return Foreign{Name: p.name, Why: why, number: p.number} }

// writer returns the epoch of the process that wrote a segment: of its start, or of its first whole batch; 0 if none is whole.
func (p *part) writer(fsys fs.FS) (types.Epoch, error) {
	pane, err := openPane(fsys, p.name, startItem+batchItem)
	if err != nil {
		return 0, err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	if err := p.look(pane); err != nil || p.whole {
		return p.start.epoch, err
	}
	pane.block = sparse
	h, _, err := pane.search(startItem, batch.plausible)
	p.start.epoch = h.epoch
	return h.epoch, err
}

// A position is where a segment is in a journal. The first one of a writer may be followed by one that begins with the same frame, a restore.
type position struct {
	writer types.Epoch
	first  types.LSN
	again  int
}

func (a position) compare(b position) int {
	return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.first, b.first), cmp.Compare(a.again, b.again))
}

// inOrder separates the segments that are not where they belong: copies of others, and those with the wrong number. The longest sequence in
// order is the journal. A segment whose first frame is unknown stays.
func inOrder(row []part) (own []part, others []Foreign) {
	at, begins := make([]position, len(row)), map[position]start{}
	for n, p := range row {
		at[n] = position{writer: p.start.epoch, first: p.first}
		if is, ok := begins[at[n]]; ok && p.whole && is != p.start {
			at[n].again = 1
		} else if p.whole {
			begins[at[n]] = p.start
		}
	}
	before, ends := make([]int, len(row)), []int(nil) // of the sequences of each length, the end that is first in the journal
	for n, p := range row {
		if p.first == 0 {
			continue
		}
		length, isTwice := slices.BinarySearchFunc(ends, at[n], func(m int, of position) int { return at[m].compare(of) })
		if before[n] = -1; length > 0 {
			before[n] = ends[length-1]
		}
		switch {
		case length == len(ends):
			ends = append(ends, n)
		case !isTwice:
			ends[length] = n
		}
	}
	keep := map[int]bool{}
	if len(ends) > 0 {
		for n := ends[len(ends)-1]; n >= 0; n = before[n] {
			keep[n] = true
		}
	}
	for n, p := range row {
		if keep[n] || p.first == 0 {
			own = append(own, p)
			continue
		}
		others = append(others, p.foreign("it is in the wrong place: it is a copy of another segment, or has another number than before"))
	}
	return own, others
}

// filtered is a directory without some files.
type filtered struct {
	fs.FS
	hidden map[string]bool
}

func (f *filtered) hides(name string) bool { return f.hidden[name] }

// List returns the names of the other files.
func (f *filtered) List() ([]string, error) {
	names, err := f.FS.List()
	return slices.DeleteFunc(names, f.hides), err
}

// Open opens one of the other files.
func (f *filtered) Open(name string) (fs.File, error) {
	if f.hides(name) {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return f.FS.Open(name)
}

// InRow are the segments that follow one another from the oldest one on.
type InRow struct {
	Writers []types.Epoch
	Lacks   bool // segments before the newest one are not there: they may have had other writers
	Breaks  bool // there is a gap or damage: nothing is known of what is behind it
}

// ReadInRow reads the segments that follow one another from the oldest one on.
func ReadInRow(fsys fs.FS) (is InRow, err error) {
	row, _, err := list(fsys)
	if err != nil || len(row) == 0 {
		return is, err
	}
	oldest, err := row[0].writer(fsys) // also of damage: it is not missing
	if err != nil {
		return is, err
	}
	is.Writers = append(is.Writers, oldest)
	r := Reading{Began: func(e types.Epoch) {
		if !slices.Contains(is.Writers, e) {
			is.Writers = append(is.Writers, e)
		}
	}}
	if h := row[0].start; h.first > 1 { // older segments are not there
		r.From = From{LSN: h.first - 1, Root: h.prev, Journal: h.journal}
	}
	found, err := r.Scan(fsys)
	is.Lacks, is.Breaks = found.Missing > 0, err != nil
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrApart) {
		return InRow{}, fmt.Errorf("journal: read the segments in a row: %w", err)
	}
	return is, nil
}
