package journalfile

import (
	"macronode/core/record"
	"macronode/core/types"
)

// A bound is what is known about the frames of a segment from outside of it.
type bound struct {
	end   types.LSN // the first frame of the next segment; unlimited if unknown
	known types.LSN // of the last segment: frames up to this one were durable; else 0
}

// rebuild returns the header of a batch whose own header at off is invalid, from its frames. They
// begin with the given one, directly behind the header, and must be proved durable by the same
// segment or by its bound. Whether they follow the chain is for the caller to check.
//
// A frame that recovery discarded is never taken: recovery continues in a new segment, so nothing
// in this one or at its end proves that frame.
func (p *pane) rebuild(off int64, first types.LSN, b bound) (h batch, ok bool, err error) {
	h.first = first
	at := off + batchItem
	for next := first; next < b.end; next++ {
		it, err := p.item(at)
		if err != nil {
			return h, false, err
		}
		head, _, bad := record.Open(it.payload)
		if it.magic != frameMagic || bad != nil || head.LSN != next {
			break
		}
		at, h.count, h.bytes = at+it.size, h.count+1, h.bytes+uint32(it.size)
	}
	last := first + types.LSN(h.count) - 1
	switch {
	case h.count == 0:
		return h, false, nil
	case last+1 == b.end, last <= b.known:
		return h, true, nil
	}
	_, ok, err = p.search(at, func(later batch) bool { return later.plausible() && later.known >= last })
	return h, ok, err
}

// rebuilds reports whether the frame next was found behind off with nothing but the header of a batch
// in between, and whether that header can be rebuilt.
func (p *pane) rebuilds(off int64, l landing, next types.LSN, b bound) (ok bool, err error) {
	if l.it.magic != frameMagic || l.off != off+batchItem || l.lsn != next {
		return false, nil
	}
	_, ok, err = p.rebuild(off, next, b)
	return ok, err
}
