package journalfile

import (
	"cmp"
	"errors"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/types"
)

// Inspect reads a damaged journal to its end. It passes every damaged place to damaged, in order,
// with the frames that cannot be read because of it; if To is before From, all can be read. Read
// finds all other frames. Inspect changes nothing.
func (r Reading) Inspect(fsys fs.FS, damaged func(*Damage) error) (Found, error) {
	n := inspection{Reading: r, fsys: fsys, damaged: damaged}
	row, _, err := list(fsys)
	if err != nil {
		return n.found, err
	}
	n.found.Segments, n.found.Known = len(row), r.Known
	for i := range row {
		if err := row[i].survey(fsys); err != nil {
			return n.found, err
		}
		n.found.Bytes += row[i].size
		n.found.Known = max(n.found.Known, row[i].start.known)
		if row[i].whole && n.found.Journal == 0 {
			n.found.Journal = row[i].start.journal
		}
	}
	if len(row) == 0 && n.found.Known > 0 {
		return n.found, n.lost(segmentName(1), 0, n.found.Known, "no segment is there")
	}
	if len(row) > 0 && n.found.Journal == 0 {
		if isNamed, err := anyNamed(fsys, row); !isNamed || err != nil {
			return n.found, errors.Join(err, n.hide(row, "the starts of all segments are damaged: their journal is unknown"))
		}
	}
	for i, p := range row {
		n.last = i == len(row)-1
		end := seemsToEnd(row, i)
		n.bound, n.gap = n.limit(row, i), gap(row, i)
		err := n.segment(p, end)
		if hidden, is := errors.AsType[*hiddenError](err); is {
			return n.found, n.hide(row[i:], hidden.why)
		}
		if err != nil {
			return n.found, err
		}
		n.done += p.size
		n.tell(p.name, 0)
	}
	return n.found, err
}

// anyNamed reports whether the first frame of a segment names its journal.
func anyNamed(fsys fs.FS, row []part) (bool, error) {
	for _, p := range row {
		if id, _, err := p.named(fsys); id != 0 || err != nil {
			return id != 0, err
		}
	}
	return false, nil
}

// seemsToEnd is ends, also by what follows a damaged start.
func seemsToEnd(row []part, n int) types.LSN {
	for _, next := range row[n+1:] {
		if next.first == 0 || next.first >= row[n].first {
			return cmp.Or(next.first, unlimited)
		}
	}
	return unlimited
}

// hide reports that nothing is read of what segments have behind the last frame found.
func (n *inspection) hide(rest []part, why string) error {
	last := rest[len(rest)-1]
	pane, err := openPane(n.fsys, last.name, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	known, err := last.marks(pane)
	if err != nil {
		return err
	}
	n.found.Known = max(n.found.Known, known)
	return n.lost(rest[0].name, 0, max(n.found.Known, n.Verdict.Against.LSN), why)
}

// A hiddenError ends an inspection where nothing is read from then on.
type hiddenError struct{ why string }

func (e *hiddenError) Error() string { return e.why }

// An inspection visits all segments. The last frame found was whole or is lost; the root there is
// known except after a loss.
type inspection struct {
	Reading
	fsys    fs.FS
	damaged func(*Damage) error

	found  Found
	rooted bool   // found.Root is that of the frame found.Last
	whole  bool   // the frame found.Last can be read
	last   bool   // this is the last segment
	bound  bound  // of the segment
	gap    string // the segment that is missing after this one; empty: none is
	done   int64

	isBehind bool        // of damage that ends a start
	writer   types.Epoch // of the segment
	first    types.LSN   // of the segment
	isLinked bool        // what follows the last frame found, or the start of the segment, is of the writer
}

// lost reports that frames up to a given one cannot be read.
func (n *inspection) lost(name string, off int64, to types.LSN, why string) error {
	f := &n.found
	d := &Damage{name, off, f.Last + 1, to, why}
	f.Damaged = true
	n.isBehind = n.isBehind || why != whyRemade && why != whyRepeated
	if to > f.Last {
		f.Last, n.rooted, n.whole, n.isLinked = to, false, false, false
	}
	return n.damaged(d)
}

func (n *inspection) tell(name string, off int64) {
	if n.Progress != nil {
		n.Progress(Progress{name, n.done + off, n.found.Bytes, n.found.Last})
	}
}

// limit returns what is known from outside about the i-th segment. If the segment does not show its
// first frame, no header in it is rebuilt.
func (n *inspection) limit(row []part, i int) (b bound) {
	if row[i].first == 0 {
		return b
	}
	if b.end = ends(row, i); n.last {
		b.known = max(n.found.Known, n.Evidence)
	}
	return b
}

// segment reads one segment up to end, where the next one begins.
func (n *inspection) segment(p part, end types.LSN) error {
	f := &n.found
	why, foul, err := n.follows(p)
	switch {
	case err != nil:
		return err
	case foul && end < unlimited:
		return n.lost(p.name, 0, max(f.Last, end-1), why)
	case foul && n.last:
		return n.lost(p.name, 0, max(f.Last, f.Known), why)
	case foul:
		return n.lost(p.name, 0, f.Last, why)
	case why != "":
		if err := n.lost(p.name, 0, max(f.Last+1, p.first)-1, why); err != nil {
			return err
		}
	}
	if p.remade {
		if err := n.lost(p.name, 0, f.Last, whyRemade); err != nil {
			return err
		}
	}
	if p.whole {
		f.Journal, f.Root, f.Epoch, n.rooted = p.start.journal, p.start.prev, p.start.epoch, true
	}
	if n.writer, err = p.writer(n.fsys); err != nil {
		return err
	}
	n.first, n.isLinked = max(p.first, 1), p.whole
	pane, err := openRepaired(n.fsys, p.number, block)
	if err != nil {
		return err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	return n.frames(pane, end)
}

// follows returns why p does not follow what was read; foul means that it belongs to another
// history.
func (n *inspection) follows(p part) (why string, foul bool, err error) {
	h, f := p.start, &n.found
	ours, err := p.continues(n.fsys, f.Journal)
	switch {
	case err != nil:
		return "", false, err
	case p.whole && !ours:
		return "it is of another journal", true, nil
	case !p.whole:
		return "its start is invalid", false, nil
	case h.first < f.Last+1 || n.rooted && h.first == f.Last+1 && h.prev != f.Root:
		return unfit, true, nil
	case h.epoch < f.Epoch:
		return "its writer had been replaced by a later one", false, nil
	case h.first > f.Last+1:
		return missing, false, nil
	}
	return "", false, nil
}

// frames visits the items of a segment. If its end is unknown, frames behind damage count as far
// as they are known to be durable.
func (n *inspection) frames(p *pane, end types.LSN) (err error) {
	f, off, reported, hole := &n.found, int64(startItem), int64(0), false
	for f.Last+1 < end {
		l, ok, err := p.next(off, p.size, 0, f.Last+1, unlimited)
		if err != nil {
			return err
		}
		if broken := !ok || l.off > off || l.lsn > f.Last+1; broken && !hole {
			rebuilt, err := p.rebuilds(off, l, f.Last+1, n.bound)
			if err != nil {
				return err
			}
			if hole = !rebuilt; hole && end == unlimited {
				if end, err = n.proved(p); err != nil {
					return err
				}
			}
		}
		if !ok || l.lsn >= end {
			break
		}
		if why := n.Verdict.hides(l.lsn, n.isBehind || l.lsn > f.Last+1); why != "" {
			return &hiddenError{why}
		}
		if err := n.item(p, off, l); err != nil {
			return err
		}
		if off = l.end(); off-reported > block {
			reported = off
			n.tell(p.name, off)
		}
	}
	spent, err := p.spent(off)
	if err != nil {
		return err
	}
	if f.Last+1 < end && end != unlimited {
		d := Damage{Segment: p.name, Offset: off, Why: "invalid checksum or structure"}
		if spent == 0 {
			d.endsEarly(n.gap, n.last)
		}
		return n.lost(d.Segment, d.Offset, end-1, d.Why)
	}
	if n.last {
		f.CutBytes = spent
	}
	return nil
}

// proved returns the end of a segment as proved by its batches; for the last one, by everything
// that is known.
func (n *inspection) proved(p *pane) (end types.LSN, err error) {
	known, err := part{name: p.name}.marks(p)
	if n.last {
		n.found.Known = max(n.found.Known, known)
		known = n.found.Known
	}
	return max(known, n.found.Last) + 1, err
}

// item handles the item that was found from off on.
func (n *inspection) item(p *pane, off int64, l landing) error {
	f, why := &n.found, "invalid checksum or structure"
	if l.off > off || l.lsn > f.Last+1 {
		if err := n.lost(p.name, off, l.lsn-1, why); err != nil {
			return err
		}
	}
	if l.it.magic == batchMagic {
		n.isLinked = n.isLinked && (n.writer == 0 || l.it.batch().epoch == n.writer)
		return nil
	}
	if p.isPatched(l.off) {
		if err := n.lost(p.name, l.off, f.Last, whyRepeated); err != nil {
			return err
		}
	}
	prev, ok, err := p.before(l.off, l.it)
	if err != nil {
		return err
	}
	if !ok && n.whole && l.lsn == f.Last+1 { // the start of its segment lost it
		root, _ := digest.Chain(nil, f.Root, l.it.payload)
		prev, ok = f.Root, root == types.Root(l.it.root)
	}
	whole := ok && (!n.rooted || prev == f.Root)
	isOurs := n.isLinked && n.rooted && ok && prev == f.Root && l.off == off
	if !isOurs && whole {
		if isOurs, err = p.isOf(n.writer, n.first, l); err != nil {
			return err
		}
	}
	switch {
	case !whole:
		err = n.lost(p.name, l.off, l.lsn, "the root before the frame is lost, or it breaks the chain")
	case !isOurs:
		whole, err = false, n.lost(p.name, l.off, l.lsn, unwritten)
	}
	if err != nil {
		return err
	}
	f.Last, f.Root, n.rooted, n.whole, n.isLinked = l.lsn, types.Root(l.it.root), true, whole, isOurs
	return nil
}
