package journalfile

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/types"
)

// A patch has the bytes of a damaged start that is rebuilt, or of a damaged frame that a segment repeats.
type patch struct {
	off  int64
	text []byte
}

// onto replaces the bytes of a patch in text, which begins at off.
func (r patch) onto(text []byte, off int64) {
	switch at := r.off - off; {
	case at >= int64(len(text)):
	case at >= 0:
		copy(text[at:], r.text)
	case -at < int64(len(r.text)):
		copy(text, r.text[-at:])
	}
}

// whyRepeated is what a patch reports.
const whyRepeated = "the frame is damaged; it is read from the segment before, which has it too"

// isPatched reports whether the frame at off is read from the segment before.
func (p *pane) isPatched(off int64) bool {
	_, is := slices.BinarySearchFunc(p.patches, off, func(r patch, off int64) int { return cmp.Compare(r.off, off) })
	return is
}

// openRepaired opens a segment. A damaged start is rebuilt, if all of it is known from elsewhere. A recovery begins a segment with the frames of the one before that are not proved durable. A damaged
// one of these is read from the segment before.
func openRepaired(fsys fs.FS, number uint32, block int64) (*pane, error) {
	p, err := openPane(fsys, segmentName(number), startItem)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.patchStart(fsys, number), p.patch(fsys, number)); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	p.block, p.fsys, p.number = block, fsys, number
	return p, nil
}

// patch finds the damaged frames among those that the segment repeats. One is replaced only if it follows from the frame before, and if
// the next frame or what is left of itself shows that it was this one: the segment before may be foreign.
func (p *pane) patch(fsys fs.FS, number uint32) error {
	it, err := p.item(0)
	if err != nil || !it.isStart() {
		return err
	}
	h := it.start()
	if h.known < h.first || number <= 1 {
		return nil
	}
	p.block = sparse
	before := spare{fsys: fsys, part: part{number: number - 1, name: segmentName(number - 1)}}
	defer before.close()
	var all, unproved []patch
	off, root := int64(startItem+batchItem), h.prev
	for lsn := h.first; ; lsn++ {
		if lsn == h.known+1 { // of the next batch
			off += batchItem
		}
		it, err := p.item(off)
		if err != nil {
			return err
		}
		isNext := it.magic == frameMagic && it.follows(root)
		if isNext {
			all, unproved = append(all, unproved...), nil
		}
		if lsn > h.known || it.size > 0 && !isNext {
			break
		}
		if it.size == 0 {
			if it, err = before.frame(lsn); err != nil {
				return err
			}
			if it.size == 0 || !it.follows(root) {
				break
			}
			unproved = append(unproved, patch{off, it.text()})
			if left, err := p.look(off, it.size); err != nil {
				return err
			} else if it.isLeft(left) {
				all, unproved = append(all, unproved...), nil
			}
		}
		off, root = off+it.size, types.Root(it.root)
	}
	if len(all) > 0 {
		p.patches, p.buf = append(p.patches, all...), nil
	}
	return nil
}

// patchStart rebuilds the start of a segment.
func (p *pane) patchStart(fsys fs.FS, number uint32) error {
	at := part{number: number, name: p.name}
	if err := errors.Join(at.look(p), at.remake(fsys, p)); err != nil || !at.remade {
		return err
	}
	p.patches, p.buf = append(p.patches, patch{0, at.start.put(nil)}), nil
	return nil
}

// follows reports whether a frame follows from the root before it.
func (it item) follows(prev types.Root) bool {
	root, _ := digest.Chain(nil, prev, it.payload)
	return root == types.Root(it.root)
}

// text returns the bytes of a frame.
func (it item) text() []byte { return put(nil, frameMagic, it.payload, it.root) }

// isLeft reports whether damaged bytes still have the root or the checksum of a frame.
func (it item) isLeft(damaged []byte) bool {
	end := len(damaged) - sumSize
	if int64(len(damaged)) < it.size {
		return false
	}
	return bytes.Equal(damaged[end-rootSize:end], it.root) || bytes.Equal(damaged[end:], it.text()[end:])
}

// A spare is the segment before one, opened when it is needed.
type spare struct {
	fsys fs.FS
	part
	pane *pane
}

// frame returns a whole frame; size 0: the segment does not have it.
func (s *spare) frame(lsn types.LSN) (item, error) {
	if s.pane == nil {
		pane, err := openPane(s.fsys, s.name, sparse)
		if err == nil {
			s.pane, err = pane, s.look(pane)
		}
		if err != nil {
			return item{}, unlessGone(err)
		}
	}
	l, err := s.pane.frame(place{first: s.first}, lsn)
	if errors.Is(err, ErrDamaged) {
		return item{}, nil
	}
	return l.it, err
}

func (s *spare) close() {
	if s.pane != nil {
		_ = s.pane.file.Close() // it was only read
	}
}
