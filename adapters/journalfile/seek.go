package journalfile

import (
	"bytes"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

const (
	bodyHead = 1 + 2 + 8 + 8                  // of a body: what record.Open looks at
	lead     = batchItem + rootSize + sumSize // of a frame: there is the root before it
)

// A landing is an item that checks, wherever it was come upon. Its lsn is that of a
// frame, or of the first one of a batch. The zero value is none.
type landing struct {
	off int64
	it  item
	lsn types.LSN
}

func (l landing) end() int64 { return l.off + l.it.size }

// land is what begins at off, if it is a frame from ≤ lsn < to, or a batch that begins
// with one. What is no frame of ours is not summed: whatever lies there, this is cheap.
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

// first is the frame that an item is, or that it begins a batch with.
func (it item) first() (lsn types.LSN, ok bool) {
	if it.magic == batchMagic {
		return it.batch().first, it.batch().plausible()
	}
	h, _, err := record.Open(it.payload)
	return h.LSN, err == nil
}

// shown is what is in memory from off on.
func (p *pane) shown(off int64) []byte { return p.buf[min(off-p.off, int64(len(p.buf))):] }

// next is the first such item that begins in [off, limit).
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
		off += int64(len(chunk)) - prefixSize + 1 // one may straddle the end
	}
	return landing{}, false, nil
}

// A seeking is for a frame in a segment whose frames run from first on. Whole frames
// stand there in order, whatever is damaged between them, so that half of what is left
// can be ruled out at a time.
type seeking struct {
	lo    int64
	first types.LSN
	lsn   types.LSN
	only  magic // 0: frames and batches
}

// seek is an item before a frame, or that frame, with little between the two. Where
// there is none it is at lo, and nothing.
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

// before is the root before the frame at off: it stands before the sum of whatever comes
// before, a frame or the segment's start, with perhaps a batch's head between. That the
// frame follows from it proves it, even where that item is damaged.
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
