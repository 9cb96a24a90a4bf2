package journalfile

import (
	"macronode/core/record"
	"macronode/core/types"
)

// isOf reports whether a frame was written by the writer of its segment. A part of another segment has whole frames with the right numbers,
// too. The last header before the frame is of that writer, and the frames from the begin of the batch lead to it, or it leads to what that
// writer wrote behind it. A writer of 0 is unknown.
func (p *pane) isOf(writer types.Epoch, first types.LSN, l landing) (bool, error) {
	at, err := p.seek(seeking{lo: startItem, first: first, lsn: l.lsn, only: batchMagic})
	for err == nil {
		next, ok, bad := p.next(at.end(), l.off, batchMagic, at.lsn+1, l.lsn+1)
		if bad != nil || !ok {
			err = bad
			break
		}
		at = next
	}
	if err != nil {
		return false, err
	}
	c := chain{off: startItem, next: first}
	if at.it.magic == batchMagic {
		h := at.it.batch()
		if writer != 0 && h.epoch != writer {
			return false, nil
		}
		c = chain{off: at.end(), next: h.first}
	}
	it, err := p.item(c.off)
	if err == nil && at.it.magic != batchMagic && it.size == 0 { // its header is damaged
		it, err = p.item(c.off + batchItem)
	}
	if err != nil {
		return false, err
	}
	if it.magic == frameMagic {
		_, isLinked, err := p.before(c.off, it)
		if err != nil {
			return false, err
		}
		if isLinked {
			is, isGuessed, err := c.reaches(p, l)
			if is && isGuessed {
				return p.leadsOn(writer, l, true)
			}
			if is || err != nil {
				return is, err
			}
		}
	}
	return p.leadsOn(writer, l, false)
}

// leadsOn reports whether a frame leads to what a writer wrote behind it. isEnd is returned if nothing is behind it.
func (p *pane) leadsOn(writer types.Epoch, l landing, isEnd bool) (bool, error) {
	return chain{off: l.end(), next: l.lsn + 1, root: types.Root(l.it.root), isRooted: true}.goesOn(p, writer, isEnd)
}

// A chain visits frames that follow one another, with nothing but the headers of batches between them, which may be damaged.
type chain struct {
	off       int64
	next      types.LSN
	root      types.Root // before it
	isRooted  bool       // root is known
	isGuessed bool       // a header before it is damaged: its writer is not known
}

// step visits the next frame; size 0: none follows. It returns the header before it, if there is a whole one, and notes a damaged one.
func (c *chain) step(p *pane) (header, frame item, err error) {
	it, err := p.item(c.off)
	isGuessed := c.isGuessed
	if err == nil && it.magic != frameMagic {
		if isGuessed = isGuessed || it.size == 0; it.magic == batchMagic {
			header = it
		}
		c.off += batchItem
		it, err = p.item(c.off)
	}
	if err != nil || it.magic != frameMagic {
		return header, item{}, err
	}
	head, _, bad := record.Open(it.payload)
	if bad != nil || head.LSN != c.next || c.isRooted && !it.follows(c.root) {
		return header, item{}, nil
	}
	*c = chain{c.off + it.size, c.next + 1, types.Root(it.root), true, isGuessed}
	return header, it, nil
}

// reaches reports whether the chain leads to a frame, and whether over a damaged header.
func (c chain) reaches(p *pane, l landing) (is, isGuessed bool, err error) {
	for c.off <= l.off {
		_, it, err := c.step(p)
		if err != nil || it.size == 0 {
			return false, false, err
		}
		if c.off == l.end() {
			return true, c.isGuessed, nil
		}
	}
	return false, false, nil
}

// goesOn reports whether the chain leads to a frame behind a header of a writer, or to the begin of the next segment. isEnd is returned if there
// is neither.
func (c chain) goesOn(p *pane, writer types.Epoch, isEnd bool) (bool, error) {
	following := part{name: segmentName(p.number + 1)}
	if err := following.peek(p.fsys); err != nil {
		return false, err
	}
	for {
		if following.whole && following.first == c.next {
			return following.start.prev == c.root, nil
		}
		switch header, it, err := c.step(p); {
		case err != nil:
			return false, err
		case it.size == 0:
			return isEnd && !following.isThere, nil
		case header.size > 0:
			return writer == 0 || header.batch().epoch == writer, nil
		}
	}
}
