package journalfile

import (
	"bytes"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

const (
	bodyHead = 1 + 2 + 8 + 8                  // of a body: what record.Open reads
	lead     = batchItem + rootSize + sumSize // of a frame: the root before it is there
)

// A landing is a valid item, found by scanning. Its lsn is that of a frame, or of the first frame
// of a batch. The zero value is none.
type landing struct {
	off int64
	it  item
	lsn types.LSN
}

func (l landing) end() int64 { return l.off + l.it.size }

// land returns the item at off, if it is a frame with from ≤ lsn < to, or a batch that begins
// with one. The checksum is computed only for plausible items, so that scanning is cheap.
func (p *pane) land(off int64, only magic, from, to types.LSN) (l landing, err error) {
	head, err := p.look(off, prefixSize+bodyHead)
	size := extent(head)
	if err != nil || size == 0 || size > p.size-off {
		return l, err
	}
	is := magic(u32(head))
	if is == startMagic || only != 0 && is != only {
		return l, nil
	}
	if h, _, bad := record.Open(head[prefixSize:]); is == frameMagic && (bad != nil || h.LSN < from || h.LSN >= to) {
		return l, nil
	}
	it, err := p.item(off)
	if err != nil || it.size == 0 {
		return l, err
	}
	if lsn, ok := it.first(); ok && from <= lsn && lsn < to {
		l = landing{off, it, lsn}
	}
	return l, nil
}

// first returns the frame that an item is, or that follows a batch header.
func (it item) first() (lsn types.LSN, ok bool) {
	if it.magic == batchMagic {
		return it.batch().first, it.batch().plausible()
	}
	h, _, err := record.Open(it.payload)
	return h.LSN, err == nil
}

// shown returns the bytes in memory from off on.
func (p *pane) shown(off int64) []byte { return p.buf[min(off-p.off, int64(len(p.buf))):] }

// next returns the first such item that begins in [off, limit).
func (p *pane) next(off, limit int64, only magic, from, to types.LSN) (l landing, ok bool, err error) {
	for off < limit {
		if _, err := p.look(off, prefixSize); err != nil {
			return l, false, err
		}
		chunk := p.shown(off)
		for at := 0; ; at++ {
			next := bytes.Index(chunk[at:], []byte("MN"))
			if at += next; next < 0 || at+prefixSize > len(chunk) || off+int64(at) >= limit {
				break
			}
			if l, err = p.land(off+int64(at), only, from, to); err != nil || l.it.size > 0 {
				return l, err == nil, err
			}
		}
		if len(chunk) < prefixSize {
			break
		}
		off += int64(len(chunk)) - prefixSize + 1 // an item may cross the end
	}
	return landing{}, false, nil
}

// A seeking searches a frame in a segment whose frames begin with first. Whole frames are in
// order whatever is damaged between them, so bisection works.
type seeking struct {
	lo    int64
	first types.LSN
	lsn   types.LSN
	only  magic // 0: frames and batches
}

// seek returns an item shortly before a frame, or that frame. If there is none, it returns a zero
// landing at lo.
func (p *pane) seek(s seeking) (landing, error) {
	at := landing{off: s.lo}
	for lo, hi := s.lo, p.size; hi-lo > sparse; {
		mid := lo + (hi-lo)/2
		switch l, ok, err := p.next(mid, hi, s.only, s.first, unlimited); {
		case err != nil:
			return at, err
		case ok && l.lsn <= s.lsn:
			at, lo = l, l.off
		default:
			hi = mid
		}
	}
	return at, nil
}

// before returns the root before the frame at off. It precedes the checksum of the item before, a
// frame or the segment's start, perhaps with a batch header in between. That the frame follows
// from the root proves it, even if that item is damaged.
func (p *pane) before(off int64, it item) (prev types.Root, ok bool, err error) {
	from := max(0, off-lead)
	b, err := p.look(from, off-from)
	if err != nil {
		return prev, false, err
	}
	for _, between := range [...]int{0, batchItem} {
		end := len(b) - between - sumSize
		if end < rootSize {
			continue
		}
		prev = types.Root(b[end-rootSize : end])
		if root, _ := digest.Chain(nil, prev, it.payload); root == types.Root(it.root) {
			return prev, true, nil
		}
	}
	return types.Root{}, false, nil
}
