package journalfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"macronode/adapters/fs"
)

// A pane is the part of a file that is in memory. When it moves, earlier results stay valid:
// their memory is never reused.
type pane struct {
	file  fs.File
	name  string
	size  int64
	block int64 // bytes per read
	off   int64 // offset of buf
	buf   []byte

	patches []patch // in the order of their offsets
	fsys    fs.FS   // nil, or that of the segments beside this one
	number  uint32
}

func openPane(fsys fs.FS, name string, block int64) (*pane, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("journal: open a segment: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal: size of %s: %w", name, err), f.Close())
	}
	return &pane{file: f, name: name, size: size, block: block}, nil
}

// look returns the n bytes at off, or fewer at the end of the file.
func (p *pane) look(off, n int64) ([]byte, error) {
	if n = min(n, p.size-off); n <= 0 {
		return nil, nil
	}
	if off < p.off || off+n > p.off+int64(len(p.buf)) {
		if err := p.move(off, n); err != nil {
			return nil, err
		}
		n = min(n, int64(len(p.buf)))
	}
	return p.buf[off-p.off : off-p.off+n], nil
}

// move loads the n bytes at off, more after them, and a lead before them.
func (p *pane) move(off, n int64) error {
	before := min(off, lead)
	off, n = off-before, n+before
	next := make([]byte, min(max(n, p.block), p.size-off))
	had := 0
	if at := off - p.off; at >= 0 && at < int64(len(p.buf)) {
		had = copy(next, p.buf[at:])
	}
	got, err := p.file.ReadAt(next[had:], off+int64(had))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("journal: read %s at %d: %w", p.name, off, err)
	}
	if had += got; had < len(next) {
		p.size = off + int64(had) // the size at that time
	}
	for _, r := range p.patches {
		r.onto(next[:had], off)
	}
	p.off, p.buf = off, next[:had]
	return nil
}

// item returns the item at off, if it is valid.
func (p *pane) item(off int64) (item, error) {
	prefix, err := p.look(off, prefixSize)
	if err != nil {
		return item{}, err
	}
	size := extent(prefix)
	if size == 0 || size > p.size-off {
		return item{}, nil
	}
	all, err := p.look(off, size)
	if err != nil || int64(len(all)) < size {
		return item{}, err
	}
	return take(all), nil
}

// search returns the first batch header at or after off that is wanted.
func (p *pane) search(off int64, wanted func(batch) bool) (found batch, ok bool, err error) {
	mark := binary.LittleEndian.AppendUint32(nil, uint32(batchMagic))
	for {
		chunk, err := p.look(off, p.block)
		if err != nil {
			return batch{}, false, err
		}
		for at := 0; ; at++ {
			next := bytes.Index(chunk[at:], mark)
			if at += next; next < 0 || at+batchItem > len(chunk) {
				break
			}
			if all := chunk[at : at+batchItem]; extent(all) == batchItem {
				if it := take(all); it.size > 0 && wanted(it.batch()) {
					return it.batch(), true, nil
				}
			}
		}
		if len(chunk) < batchItem || off+int64(len(chunk)) >= p.size {
			return batch{}, false, nil
		}
		off += int64(len(chunk)) - batchItem + 1 // an item may cross the end
	}
}

// spent returns the number of written bytes from off to the end: zeros at the end were only
// preallocated.
func (p *pane) spent(off int64) (bytes uint64, err error) {
	last := off
	for at := off; at < p.size; {
		chunk, err := p.look(at, p.block)
		if err != nil {
			return 0, err
		}
		for n := len(chunk); n > 0; n-- {
			if chunk[n-1] != 0 {
				last = at + int64(n)
				break
			}
		}
		if at += int64(len(chunk)); len(chunk) == 0 {
			break
		}
	}
	return uint64(last - off), nil
}
