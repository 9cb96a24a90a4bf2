package journalfile

import (
	"errors"
	"os"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// A linkage says whether a segment leads to the next one.
type linkage uint8

const (
	unseen linkage = iota // the end of the one or the begin of the other is damaged or missing
	linked                // the next one begins with the root with which it ends
	apart                 // it ends with another root, or has frames behind it that the next one lacks: one of them is foreign
	short                 // it ends before: it is foreign, or an older copy
	same                  // both begin with the same frame and root, and the next one has all frames of the first
	twice                 // so do they, and the starts are the same: one of them is a copy of the other
)

// link compares the end of a segment with the begin of the next one, or of a later one whose frames it may have, too. It surveys that.
func (p part) link(fsys fs.FS, next *part) (linkage, error) {
	if err := next.survey(fsys); err != nil || next.first == 0 {
		return unseen, unlessGone(err)
	}
	if p.first >= next.first {
		return p.begins(fsys, next)
	}
	prev, isKnown, err := next.before(fsys)
	if err != nil {
		return unseen, err
	}
	pane, err := openRepaired(fsys, p.number, sparse)
	if err != nil {
		return unseen, unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	upto := next.first - 1
	w := walk{off: startItem, last: max(p.first, 1) - 1}
	root, is, err := pane.rootAt(&w, upto)
	switch {
	case is == short && next.number != p.number+1, // what is between may have the frames
		is == short && w.off == startItem: // a segment without any frame is no other past
		return unseen, err
	case err != nil || is != linked:
		return is, err
	case !isKnown:
		return unseen, nil
	case root != prev:
		return apart, nil
	}
	in, _, off, err := pane.behind(p.first, upto, bound{})
	if err != nil || off == 0 {
		return linked, err
	}
	is, err = next.repeats(fsys, pane, Found{Last: upto, Root: root, Epoch: in.epoch}, in, off, linked)
	if it, bad := pane.item(0); err == nil && is == apart && it.isStart() { // what was found may be no part of the journal: see from the begin
		is, err = next.repeats(fsys, pane, it.start().before(), batch{}, startItem, linked)
		err = errors.Join(err, bad)
	}
	return is, err
}

// repeats returns apart if a segment lacks frames that the one before has, and is otherwise. A recovery writes all whole frames at the end of a
// segment again that are not proved durable, into the next one. It has read the one before up to at, where the rest of a batch goes on at off.
func (p part) repeats(fsys fs.FS, before *pane, at Found, rest batch, off int64, is linkage) (linkage, error) {
	end, err := before.end(at, rest, off)
	if err != nil || end.Last < p.first {
		return is, err
	}
	pane, err := openRepaired(fsys, p.number, sparse)
	if err != nil {
		return is, unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	root, has, err := pane.rootAt(&walk{off: startItem, last: p.first - 1}, end.Last)
	if has == short || has == linked && root != end.Root {
		is = apart
	}
	return is, err
}

// end reads on to what a recovery takes for the end of the journal.
func (p *pane) end(at Found, rest batch, off int64) (Found, error) {
	s := scan{found: at, open: rest, table: new(table)}
	s.found.Known = types.MaxLSN
	s.table.list(make([]part, 1))
	for {
		it, err := p.item(off)
		if err != nil || s.take(it, off) != "" {
			return s.found, err
		}
		off, s.ready = off+it.size, s.ready[:0]
	}
}

// begins is link of a segment without frames before those of the next one.
func (p part) begins(fsys fs.FS, next *part) (linkage, error) {
	err := p.survey(fsys)
	switch {
	case err != nil || !p.whole || !next.whole:
		return unseen, unlessGone(err)
	case p.start.first != next.start.first || p.start.prev != next.start.prev:
		return apart, nil
	}
	pane, err := openRepaired(fsys, p.number, sparse)
	if err != nil {
		return unseen, unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	is := same
	if p.start == next.start {
		is = twice
	}
	return next.repeats(fsys, pane, p.start.before(), batch{}, startItem, is)
}

// unlessGone returns an error unless it says that a file is not there.
func unlessGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// rootAt returns the root after a frame of a segment, and linked if the frame is whole, short if the segment ends before it. w begins with the
// segment, and ends behind the frame.
func (p *pane) rootAt(w *walk, lsn types.LSN) (root types.Root, is linkage, err error) {
	near, err := p.seekLate(seeking{lo: startItem, first: w.last + 1, lsn: lsn})
	if err != nil {
		return root, unseen, err
	}
	if w.off = near.off; near.lsn > 0 {
		w.last = near.lsn - 1
	}
	l, err := w.to(p, lsn, p.size)
	switch {
	case errors.Is(err, ErrDamaged):
		return root, unseen, nil
	case err != nil:
		return root, unseen, err
	case l.it.size > 0:
		_, ok, err := p.before(l.off, l.it)
		if ok {
			is = linked
		}
		return types.Root(l.it.root), is, err
	}
	spent, err := p.spent(w.off)
	if err == nil && spent == 0 {
		is = short
	}
	return root, is, err
}

// Why the frames of a segment are not read.
const (
	whyApart = "the segments after it do not continue it: it, or one of them, is of a copy of the journal that went on otherwise"
	whyShort = "it ends before the next segment begins: it has lost its end, or is of a copy of the journal that went on otherwise"
	whyUnfit = "it does not follow the segment before it"
)

// Unproven is why the frames of a segment are not read that leads to one which those after it do not continue.
const Unproven = "it leads to a segment that those after it do not continue: nothing shows that it is of this journal"

// of returns linked if the frame of p, with its root, is one that the writer of a segment has added, and apart if the segment has it with
// another root. Frames that the next segment repeats are of this one, and those that it repeats itself are not: a copy of the journal repeats
// frames of the journal, too.
func (p Proof) of(fsys fs.FS, segment, next part) (linkage, error) {
	if p.LSN == 0 || p.LSN < segment.first {
		return unseen, nil
	}
	for _, s := range []*part{&segment, &next} {
		if s.number == 0 || s.whole {
			continue
		}
		if err := s.survey(fsys); unlessGone(err) != nil {
			return unseen, err
		}
	}
	if segment.first == 0 || p.LSN < segment.first || next.first > 0 && p.LSN >= next.added() {
		return unseen, nil
	}
	pane, err := openRepaired(fsys, segment.number, sparse)
	if err != nil {
		return unseen, unlessGone(err)
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	root, is, err := pane.rootAt(&walk{off: startItem, last: segment.first - 1}, p.LSN)
	switch {
	case err != nil || is != linked:
		return unseen, err
	case root != p.Root:
		return apart, nil
	case p.LSN < segment.added():
		return unseen, nil
	default:
		return linked, nil
	}
}

// Reached returns the proof of the latest frame that a journal has, and the older ones. A later one says only that frames are missing. An older
// one says nothing where the segments lead to the latest: each root follows from all frames before it. The proofs are in ascending order.
func Reached(fsys fs.FS, proofs []Proof) (latest Proof, older []Proof, err error) {
	row, _, err := list(fsys)
	if err != nil {
		return latest, nil, err
	}
	for n, p := range slices.Backward(proofs) {
		next := part{}
		for m, at := range slices.Backward(row) {
			if err := at.survey(fsys); unlessGone(err) != nil {
				return latest, nil, err
			}
			if m == len(row)-2 && next.first <= p.LSN && next.first <= at.first { // the last one begins at an earlier frame: it does not end this one
				next = part{}
			}
			switch is, err := p.of(fsys, at, next); {
			case err != nil:
				return latest, nil, err
			case is != unseen:
				return p, proofs[:n:n], nil
			}
			if next = at; at.first > 0 && at.added() <= p.LSN && m < len(row)-1 { // the last one may not be of the journal
				break
			}
		}
	}
	return latest, nil, nil
}

// surveyed are all segments of a journal, with what was decided about those behind one.
type surveyed struct {
	claims []claim
	ours   []bool
}

func (s *surveyed) known(n int) (c claim, exists bool, err error) {
	if n >= len(s.claims) {
		return c, false, nil
	}
	return s.claims[n], true, nil
}

func (s *surveyed) owns(n int, _ types.JournalID) (bool, error) { return s.ours[n], nil }

// foreign returns why segments do not lead to the end of a journal, or nothing for those that do: see lineage. If only the last one does not
// fit, it is not the others, unless the proof says so.
func foreign(fsys fs.FS, row []part, proof Proof, older []Proof) ([]string, error) {
	all, decided := make([]string, len(row)), surveyed{make([]claim, len(row)), make([]bool, len(row))}
	for n, p := range row {
		c := claim{part: p, whose: p.start.journal}
		if !p.whole {
			var err error
			if c.whose, c.inside, err = p.named(fsys); err != nil {
				return nil, err
			}
		}
		decided.claims[n] = c
	}
	l := lineage{fs: fsys, row: &decided, proof: proof, older: older}
	for n := len(row) - 1; n >= 0; n-- {
		whose := decided.claims[n].whose
		var err error
		if whose == 0 {
			if whose, err = l.owner(n); err != nil {
				return nil, err
			}
		}
		if l.id == 0 { // behind it are only such as do not name their journal, or one that does not fit
			if decided.ours[n], all[n], err = l.fits(row, n); err != nil {
				return nil, err
			}
			if decided.ours[n] {
				l.id = whose
			}
			continue
		}
		if decided.ours[n], all[n], err = l.leads(n, whose); err != nil {
			return nil, err
		}
		if whose == 0 {
			all[n] = ""
		}
	}
	return all, nil
}

// fits reports whether the n-th segment can be the end of a journal, or why it is not read. The last one does not fit if it does not continue the
// others, which do so among themselves, and does not have the frame of the proof.
func (l lineage) fits(row []part, n int) (ours bool, why string, err error) {
	switch is, err := l.proof.of(l.fs, row[n], part{}); {
	case err != nil || is == linked:
		return is == linked, "", err
	case is == apart:
		return false, l.proof.contradiction(), nil
	}
	if why, err := l.strays(n); why != "" || err != nil {
		return false, why, err
	}
	if n == 0 || n < len(row)-1 {
		return true, "", nil
	}
	last, but := row[n], row[n-1]
	if ours, err := last.continues(l.fs, but.start.journal); err != nil || last.whole && but.whole && !ours {
		return false, whyUnfit, err
	}
	switch is, err := but.link(l.fs, &last); {
	case err != nil || is != apart:
		return true, "", err
	case n == 1:
		return false, whyUnfit, nil
	}
	before, err := row[n-2].link(l.fs, &but)
	if err != nil || before == apart {
		return err == nil, "", err
	}
	return false, whyUnfit, nil
}
