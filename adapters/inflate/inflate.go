// Package inflate reads what is compressed, and stops before a bomb goes off.
//
//	compressed ──► Reader ──► plain: at most 10 × what was read + 64 KiB, and Most
//	                  ├── more: ErrLarge, before it is there
//	                  └── cut short, broken: ErrBroken; never an end that is none
package inflate

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// What no configuration moves.
const (
	Ratio = 10       // times what was read may come out
	Free  = 64 << 10 // bytes more, for what is small and even
	Most  = 32 << 20 // bytes that come out at all
)

// Why there is no more to read. What the source fails with is told as it is.
var (
	ErrCoding = errors.New("inflate: neither gzip nor zstd, or one in the other") // send it plain
	ErrLarge  = errors.New("inflate: more than it may become")                    // send it plain, or in parts
	ErrBroken = errors.New("inflate: not what its coding writes, or cut short")   // send it again
)

// Limits are those of one Reader.
type Limits struct {
	Most   int64  // bytes that come out; 0, and more than that: Most
	Window uint64 // bytes that zstd may look back, which is memory; one that wants more is ErrLarge
}

// A Coding is how a body is compressed.
type Coding uint8

const (
	Plain Coding = iota
	Gzip
	Zstd
)

// Of is what the values of Content-Encoding say. One coding within another is none.
func Of(said []string) (Coding, error) {
	switch {
	case len(said) == 0:
		return Plain, nil
	case len(said) > 1:
		return Plain, ErrCoding
	case strings.EqualFold(said[0], "gzip"), strings.EqualFold(said[0], "x-gzip"):
		return Gzip, nil
	case strings.EqualFold(said[0], "zstd"):
		return Zstd, nil
	}
	return Plain, ErrCoding
}

// A Reader inflates. It starts no goroutine, and is closed when it is of no use any more.
type Reader struct {
	from  source
	coder io.Reader // nil: nothing was read yet
	of    Coding
	limit Limits
	out   int64 // bytes that came out
	err   error // for good
}

// source counts what is read, and keeps what it failed with.
type source struct {
	io.Reader
	read int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

var gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// New reads from, which is of a coding that is not Plain. Nothing is read before Read.
func New(from io.Reader, of Coding, l Limits) *Reader {
	if l.Most <= 0 || l.Most > Most {
		l.Most = Most
	}
	return &Reader{from: source{Reader: from}, of: of, limit: l}
}

// Read gives what comes out, and no more than may be there by then.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	if r.coder == nil {
		if r.err = r.open(); r.err != nil {
			return 0, r.err
		}
	}
	for {
		if left := r.left(); left > 0 {
			n, err := r.coder.Read(p[:min(int64(len(p)), left)])
			r.out += int64(n)
			if err != nil {
				r.err = r.why(err)
			}
			if n > 0 || err != nil {
				return n, r.err
			}
			continue
		}
		var one [1]byte // all that may be there is: whether there is more is seen by a byte of it
		n, err := r.coder.Read(one[:])
		switch {
		case n > 0 && r.left() <= 0:
			r.err = ErrLarge
			return 0, r.err
		case n > 0: // what it took to find out lets more come
			r.out++
			p[0] = one[0]
			if err != nil {
				r.err = r.why(err)
			}
			return 1, r.err
		case err != nil:
			r.err = r.why(err)
			return 0, r.err
		}
	}
}

// left is how much may come out by what was read so far.
func (r *Reader) left() int64 { return min(Ratio*r.from.read+Free, r.limit.Most) - r.out }

// open makes ready what inflates.
func (r *Reader) open() error {
	if r.of == Gzip {
		z := gzips.Get().(*gzip.Reader)
		if err := z.Reset(&r.from); err != nil {
			gzips.Put(z)
			if errors.Is(err, io.EOF) { // nothing at all is not what gzip writes
				return r.why(io.ErrUnexpectedEOF)
			}
			return r.why(err)
		}
		r.coder = z
		return nil
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(r.limit.Window),
		zstd.WithDecoderMaxMemory(Most))
	if err == nil {
		err = z.Reset(&r.from)
	}
	if err != nil {
		return fmt.Errorf("inflate: %w", err)
	}
	r.coder = z
	return nil
}

// why is what an error comes to.
func (r *Reader) why(err error) error {
	switch {
	case r.from.err != nil:
		return r.from.err
	case errors.Is(err, io.EOF) && r.from.read > 0:
		return io.EOF
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return ErrLarge
	}
	return ErrBroken
}

// Close gives back what inflates. A Read that comes later fails.
func (r *Reader) Close() error {
	switch z := r.coder.(type) {
	case *gzip.Reader:
		gzips.Put(z)
	case *zstd.Decoder:
		z.Close()
	}
	if r.coder = nil; r.err == nil {
		r.err = ErrBroken
	}
	return nil
}
