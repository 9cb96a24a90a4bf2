package journalfile

import (
	"errors"
	"fmt"

	"macronode/adapters/fs"
	"macronode/core/record"
	"macronode/core/types"
)

// From is the start of a reading: after a frame with the given root. The zero value is before the
// first frame.
type From struct {
	LSN     types.LSN
	Root    types.Root
	Journal types.JournalID
}

// A Reading is the range of a journal to read, and its callbacks. The zero value reads all.
// Segments before From are not opened.
type Reading struct {
	From     From
	Known    types.LSN                   // all frames up to this one are known to be durable from elsewhere
	Evidence types.LSN                   // frames up to this one were durable; unlike with Known, it is no damage if they are missing
	Verdict  Verdict                     // see Judge; what it hides is damage
	Unsure   error                       // why it is unknown whether durable frames are missing at the end; Recover reports damage then
	Upto     types.LSN                   // the last frame to read, which is durable; 0: the end of the journal
	Each     func([]record.Sealed) error // gets the valid frames in order, in slices that it may keep
	Repaired func(*Damage)               // gets each damaged place that costs no frame
	Progress func(Progress)
	Began    func(types.Epoch) // gets the epoch of each segment that is read

	// Epoch, if not nil, returns the epoch of a new writer, which is higher than the last one, and records it before the writer begins. Without
	// it, the next number is taken, and nothing recorded.
	Epoch func(last types.Epoch) (types.Epoch, error)
}

// Scan reads and changes nothing. Damage ends it, with what was found before. It may run beside a
// writer if Upto is durable.
func (r Reading) Scan(fsys fs.FS) (Found, error) {
	s := scan{Reading: r, fsys: fsys, table: new(table)}
	_, err := s.run()
	return s.found, err
}

// survey reads the starts that are needed, and returns the segment in which the reading begins.
func (s *scan) survey(row []part) (at int, err error) {
	at = len(row)
	for n := len(row) - 1; n >= 0; n-- {
		p := &row[n]
		if err := p.survey(s.fsys); err != nil {
			return 0, err
		}
		s.found.Bytes += p.size
		if at = n; s.From.LSN > 0 && p.whole && p.start.first <= s.From.LSN+1 {
			return at, nil
		}
	}
	if s.From.LSN > 0 {
		return 0, fmt.Errorf("%w: no segment has frame %v", ErrApart, s.From.LSN)
	}
	return at, nil
}

// resume continues the chain after From, in the segment that has that frame or begins with the
// next one. off is the offset of the next item, 0 for the segment's start.
func (s *scan) resume(p part, end types.LSN) (off int64, err error) {
	from, h := s.From, p.start
	f := &s.found
	f.Last, f.Root, f.Journal, f.Epoch, s.on = from.LSN, from.Root, from.Journal, h.epoch, true
	ours, err := p.continues(s.fsys, from.Journal)
	switch why := s.Verdict.hides(from.LSN, false); {
	case err != nil:
		return 0, err
	case why != "":
		return 0, fmt.Errorf("%w: %s", ErrApart, why)
	case !ours || h.journal != from.Journal && h.first != from.LSN+1:
		return 0, fmt.Errorf("%w: %s is of another journal", ErrApart, p.name)
	case h.first == from.LSN+1 && h.prev != from.Root:
		return 0, fmt.Errorf("%w: %s begins behind another frame %v", ErrApart, p.name, from.LSN)
	case h.first == from.LSN+1:
		return 0, nil
	}
	pane, err := openRepaired(s.fsys, p.number, sparse)
	if err != nil {
		return 0, err
	}
	defer pane.file.Close() //nolint:errcheck // it was only read
	in, root, off, err := pane.behind(h.first, from.LSN, s.bound(end))
	if err != nil {
		return 0, err
	}
	if off == 0 || root != from.Root {
		return 0, fmt.Errorf("%w: %s does not have that frame %v", ErrApart, p.name, from.LSN)
	}
	s.number, s.open, f.Epoch = p.number, in, in.epoch
	s.began(h.epoch)
	s.prove(max(h.known, in.known))
	s.table.begin(p)
	return off, nil
}

// behind returns what follows a frame in a segment: the rest of its batch, the root, and the
// offset; 0 if the frame is missing. The frame and what precedes it are not checked against the
// chain.
func (p *pane) behind(first, lsn types.LSN, b bound) (left batch, root types.Root, off int64, err error) {
	at, err := p.seek(seeking{lo: startItem, first: first, lsn: lsn, only: batchMagic})
	if err != nil {
		return left, root, 0, err
	}
	for at.lsn <= lsn { // the last batch that begins before
		next, ok, err := p.next(at.end(), p.size, batchMagic, at.lsn+1, lsn+1)
		if err != nil {
			return left, root, 0, err
		}
		if !ok {
			break
		}
		at = next
	}
	if at.it.magic != batchMagic {
		return left, root, 0, nil
	}
	left, off = at.it.batch(), at.end()
	whole := left
	for n := left.first; n <= lsn; n++ {
		it, err := p.item(off)
		if err == nil && it.size == 0 && left.count == 0 { // an invalid batch header
			h, ok, bad := p.rebuild(off, n, b)
			if bad == nil && ok {
				h.known, h.epoch = left.known, left.epoch
				left, off = h, off+batchItem
				it, err = p.item(off)
			}
			err = errors.Join(err, bad)
		}
		if err != nil {
			return left, root, 0, err
		}
		head, _, bad := record.Open(it.payload)
		if it.magic != frameMagic || bad != nil || head.LSN != n || left.count == 0 || it.size > int64(left.bytes) {
			return p.within(at, whole, lsn)
		}
		left.count, left.bytes = left.count-1, left.bytes-uint32(it.size)
		off, root = off+it.size, types.Root(it.root)
	}
	return left, root, off, nil
}

// within is behind for a frame of a batch in which an earlier one is damaged.
func (p *pane) within(at landing, h batch, lsn types.LSN) (left batch, root types.Root, off int64, err error) {
	w, end := walk{off: at.end(), last: h.first - 1}, at.end()+int64(h.bytes)
	for w.last < lsn {
		l, err := w.step(p, end)
		if err != nil || l.it.size == 0 || l.it.magic != frameMagic {
			return left, root, 0, err
		}
		if left, root, off = h, types.Root(l.it.root), l.end(); off > end {
			return left, root, 0, nil
		}
	}
	if w.last != lsn || lsn-h.first >= types.LSN(h.count) {
		return left, root, 0, nil
	}
	left.count, left.bytes = uint32(h.first+types.LSN(h.count)-1-lsn), uint32(end-off)
	return left, root, off, nil
}
