package journalfile

import (
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
	others, err := foreign(fsys, row, r.Proof, r.Older)
	if err != nil {
		return n.found, err
	}
	for i, p := range row {
		n.foreign = others[i]
		end := types.LSN(unlimited)
		if n.last = i == len(row)-1; !n.last && row[i+1].first > 0 {
			end = row[i+1].first
		}
		n.most, n.beforeForeign = end, !n.last && others[i+1] != ""
		for next := i + 1; next < len(row) && others[next] != ""; next++ {
			if n.most = unlimited; next < len(row)-1 && row[next+1].first > 0 {
				n.most = row[next+1].first
			}
		}
		if n.most < end { // what a foreign segment begins with is lost only if no later one has it
			end = n.most
		}
		n.bound, n.gap = n.limit(row, i), gap(row, i)
		if err := n.segment(p, end); err != nil {
			return n.found, err
		}
		n.done += p.size
		n.tell(p.name, 0)
	}
	return n.found, err
}

// An inspection visits all segments. The last frame found was whole or is lost; the root there is
// known except after a loss.
type inspection struct {
	Reading
	fsys    fs.FS
	damaged func(*Damage) error

	found  Found
	rooted bool      // found.Root is that of the frame found.Last
	whole  bool      // the frame found.Last can be read
	last   bool      // this is the last segment
	bound  bound     // of the segment
	gap    string    // the segment that is missing after this one; empty: none is
	most   types.LSN // the begin of the next segment that is not foreign

	beforeForeign bool // the next segment is foreign: its begin proves nothing
	done          int64

	foreign string // why the segment does not lead to the end of the journal; empty: it does
}

// lost reports that frames up to a given one cannot be read.
func (n *inspection) lost(name string, off int64, to types.LSN, why string) error {
	f := &n.found
	d := &Damage{name, off, f.Last + 1, to, why}
	f.Damaged = true
	if to > f.Last {
		f.Last, n.rooted, n.whole = to, false, false
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
	case foul && n.most < unlimited:
		return n.lost(p.name, 0, max(f.Last, n.most-1), why)
	case foul && n.last:
		return n.lost(p.name, 0, max(f.Last, f.Known), why)
	case foul:
		return n.lost(p.name, 0, f.Last, why)
	case why != "":
		if err := n.lost(p.name, 0, max(f.Last+1, p.first)-1, why); err != nil {
			return err
		}
	}
	if p.whole {
		f.Journal, f.Root, f.Epoch, n.rooted = p.start.journal, p.start.prev, p.start.epoch, true
	}
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
	case n.foreign != "":
		return n.foreign, true, nil
	case !p.whole:
		return "its start is invalid", false, nil
	case h.first < f.Last+1 || n.rooted && h.first == f.Last+1 && h.prev != f.Root:
		return whyUnfit, true, nil
	case h.epoch < f.Epoch:
		return "its writer had been replaced by a later one", false, nil
	case h.first > f.Last+1:
		return missing, false, nil
	}
	return "", false, nil
}

// frames visits the items of a segment. If its end is unknown, frames behind damage count as far
// as they are known to be durable; so do those beyond its end, where a foreign segment begins.
func (n *inspection) frames(p *pane, end types.LSN) (err error) {
	f, off, reported, hole := &n.found, int64(startItem), int64(0), false
	for f.Last+1 < max(end, n.most) {
		l, ok, err := p.next(off, p.size, 0, f.Last+1, unlimited)
		if err != nil {
			return err
		}
		if broken := !ok || l.off > off || l.lsn > f.Last+1; broken && !hole {
			rebuilt, err := p.rebuilds(off, l, f.Last+1, n.bound)
			if err != nil {
				return err
			}
			if hole = !rebuilt; hole && (n.beforeForeign || end == unlimited) {
				proved, err := n.proved(p)
				if err != nil {
					return err
				}
				n.most, end = min(n.most, proved), min(end, proved)
			}
		}
		if !ok || l.lsn >= max(end, n.most) {
			break
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
	if f.Last >= end { // beyond it, the next segment of the journal need not go on
		n.rooted = false
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
	if !whole {
		if err := n.lost(p.name, l.off, l.lsn, "the root before the frame is lost, or it breaks the chain"); err != nil {
			return err
		}
	}
	if why := n.Proof.contradicts(l.lsn, types.Root(l.it.root)); why != "" && whole {
		if err := n.lost(p.name, l.off, l.lsn, why); err != nil {
			return err
		}
		whole = false
	}
	f.Last, f.Root, n.rooted, n.whole = l.lsn, types.Root(l.it.root), true, whole
	return nil
}
