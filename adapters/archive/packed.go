package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"macronode/adapters/fs"
)

// block is the number of bytes that are compressed together: the cost of one read.
const block = 256 << 10

// The table after the frames is a skippable frame of zstd: magic 4 · length 4 · (compressed 4 ·
// decompressed 4)… · blocks 4 · descriptor 1 · magic 4, little-endian.
const (
	tableMagic = 0x184d2a5e
	endMagic   = 0x8f92eab1
	frameMagic = 0xfd2fb528
	entrySize  = 4 + 4
	footSize   = 4 + 1 + 4
	frameSize  = 4 + 4 // of the table as a frame
	mostBlocks = 1 << 16
	mostPacked = block + block/8 + 1024 // largest compressed block
)

// write compresses a file: a frame per block, and the table.
func (a *Archive) write(from fs.File, size int64, to fs.File, step func() error) error {
	text, packed, off, unsaved := make([]byte, block), []byte(nil), int64(0), 0
	var table []byte
	put := func(b []byte) error {
		_, err := to.WriteAt(b, off)
		off, unsaved = off+int64(len(b)), unsaved+len(b)
		if err == nil && unsaved >= dirty {
			err, unsaved = to.Sync(), 0
		}
		return err
	}
	for at := int64(0); at < size; at += block {
		n, err := from.ReadAt(text[:min(block, size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if int64(n) != min(block, size-at) {
			return fmt.Errorf("it has become shorter: %w", io.ErrUnexpectedEOF)
		}
		packed = a.pack.EncodeAll(text[:n], packed[:0])
		table = binary.LittleEndian.AppendUint32(table, uint32(len(packed)))
		table = binary.LittleEndian.AppendUint32(table, uint32(n))
		if err := errors.Join(put(packed), step()); err != nil {
			return err
		}
	}
	if len(table)/entrySize > mostBlocks {
		return errors.New("it is too long")
	}
	foot := binary.LittleEndian.AppendUint32(nil, tableMagic)
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(table)+footSize))
	foot = binary.LittleEndian.AppendUint32(append(foot, table...), uint32(len(table)/entrySize))
	if err := put(binary.LittleEndian.AppendUint32(append(foot, 0), endMagic)); err != nil {
		return err
	}
	return to.Sync()
}

// A span is the position of a compressed block.
type span struct {
	off, size int64
}

// packedFile reads a kept file. A block that does not decompress is read as zeros: its content
// has its own checksums, by which the reader finds the damage.
type packedFile struct {
	a      *Archive
	f      fs.File
	name   string
	size   int64 // decompressed size
	packed int64
	spans  []span
	closed atomic.Bool
	alone  bool // read once by one goroutine for comparison: does not use the cache
	torn   bool // the table is invalid; if alone, also that a block did not decompress
}

func (a *Archive) open(name, as string) (*packedFile, error) {
	f, err := a.kept.Open(as)
	if err != nil {
		return nil, fmt.Errorf("archive: open %s: %w", as, err)
	}
	p := &packedFile{a: a, f: f, name: name}
	p.packed, err = f.Size()
	if err == nil {
		err = p.find()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive: open %s: %w", as, err), f.Close())
	}
	return p, nil
}

// find finds the blocks by the table; if that is invalid, one after the other until the first
// invalid one.
func (p *packedFile) find() error {
	ok, err := p.table()
	if ok || err != nil {
		return err
	}
	p.spans, p.size, p.torn = nil, 0, true
	for off := int64(0); ; {
		packed, text, err := p.frame(off)
		if err != nil || packed == 0 {
			return err
		}
		p.spans = append(p.spans, span{off, packed})
		p.size += text
		if off += packed; text < block {
			return nil
		}
	}
}

// at reads up to n bytes.
func (p *packedFile) at(off, n int64) ([]byte, error) {
	b := make([]byte, max(0, min(n, p.packed-off)))
	got, err := p.f.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:got], err
}

func (p *packedFile) table() (ok bool, err error) {
	foot, err := p.at(max(0, p.packed-footSize), footSize)
	if err != nil || len(foot) < footSize || binary.LittleEndian.Uint32(foot[5:]) != endMagic || foot[4] != 0 {
		return false, err
	}
	blocks := int64(binary.LittleEndian.Uint32(foot))
	begin := p.packed - frameSize - footSize - blocks*entrySize
	if blocks > mostBlocks || begin < 0 {
		return false, nil
	}
	all, err := p.at(begin, p.packed-begin)
	if err != nil || int64(len(all)) != p.packed-begin || binary.LittleEndian.Uint32(all) != tableMagic ||
		int64(binary.LittleEndian.Uint32(all[4:])) != int64(len(all))-frameSize {
		return false, err
	}
	off := int64(0)
	for n := range blocks {
		e := all[frameSize+n*entrySize:]
		packed, text := int64(binary.LittleEndian.Uint32(e)), int64(binary.LittleEndian.Uint32(e[4:]))
		if packed == 0 || packed > mostPacked || text == 0 || text > block || text < block && n < blocks-1 {
			return false, nil
		}
		p.spans = append(p.spans, span{off, packed})
		off, p.size = off+packed, p.size+text
	}
	if off != begin || blocks == 0 {
		return off == begin, nil
	}
	return true, p.last()
}

// last decompresses the last block for its size, which proves the table.
func (p *packedFile) last() error {
	n := len(p.spans) - 1
	text, ok, err := p.unpack(n)
	if ok && len(text) > 0 {
		p.size = int64(n)*block + int64(len(text))
	}
	return err
}

// frame returns the compressed and decompressed size of the frame at off, from its header and the
// headers of its blocks; 0 if it is invalid.
func (p *packedFile) frame(off int64) (packed, text int64, err error) {
	const most = 4 + 1 + 4
	head, err := p.at(off, most)
	if err != nil || len(head) < most || binary.LittleEndian.Uint32(head) != frameMagic || head[4]&0x23 != 0x20 { // single segment, no dictionary
		return 0, 0, err
	}
	var at int64
	switch head[4] >> 6 {
	case 0:
		text, at = int64(head[5]), off+6
	case 1:
		text, at = int64(binary.LittleEndian.Uint16(head[5:]))+256, off+7
	case 2:
		text, at = int64(binary.LittleEndian.Uint32(head[5:])), off+9
	default:
		return 0, 0, nil
	}
	for last := false; !last && at-off <= mostPacked; {
		b, err := p.at(at, 3)
		if err != nil || len(b) < 3 {
			return 0, 0, err
		}
		n := int64(b[0])>>3 | int64(b[1])<<5 | int64(b[2])<<13
		if last = b[0]&1 == 1; b[0]>>1&3 == 1 { // one byte, repeated
			n = 1
		}
		at += 3 + n
	}
	summed := int64(head[4]>>2&1) * 4
	if packed = at + summed - off; text == 0 || text > block || packed > mostPacked || off+packed > p.packed {
		return 0, 0, nil
	}
	return packed, text, nil
}

func (p *packedFile) Size() (int64, error) {
	if p.closed.Load() {
		return 0, os.ErrClosed
	}
	return p.size, nil
}

func (p *packedFile) ReadAt(to []byte, off int64) (n int, err error) {
	switch {
	case p.closed.Load():
		return 0, os.ErrClosed
	case off < 0:
		return 0, fmt.Errorf("archive: read %s at %d: %w", p.name, off, os.ErrInvalid)
	}
	for n < len(to) && off+int64(n) < p.size {
		at := off + int64(n)
		text, err := p.block(int(at / block))
		if err != nil {
			return n, err
		}
		n += copy(to[n:], text[at%block:])
	}
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// block returns the n-th block, decompressed.
func (p *packedFile) block(n int) ([]byte, error) {
	if text, ok := p.a.want(p.name, n); ok && !p.alone {
		return text, nil
	}
	text, whole, err := p.unpack(n)
	if err != nil {
		return nil, err
	}
	size := min(block, p.size-int64(n)*block)
	if whole = whole && int64(len(text)) == size; !whole {
		text = make([]byte, size)
	}
	if p.alone {
		p.torn = p.torn || !whole
		return text, nil
	}
	p.a.keep(held{p.name, n, text})
	return text, nil
}

// unpack decompresses the n-th block.
func (p *packedFile) unpack(n int) (text []byte, ok bool, err error) {
	packed, err := p.at(p.spans[n].off, p.spans[n].size)
	if err != nil {
		return nil, false, fmt.Errorf("archive: read %s: %w", p.name, err)
	}
	text, bad := p.a.read.DecodeAll(packed, make([]byte, 0, block))
	return text, bad == nil && len(text) <= block, nil
}

func (p *packedFile) WriteAt([]byte, int64) (int, error) { return 0, errRead }
func (p *packedFile) Sync() error                        { return errRead }

func (p *packedFile) Close() error {
	if p.closed.Swap(true) {
		return os.ErrClosed
	}
	return p.f.Close()
}
