// Package inflate decompresses with limits against decompression bombs.
//
//	compressed ──► Reader ──► plain: at most 10 × the bytes read + 64 KiB, and at most Most
//	                  ├── more: ErrLarge, before it is decompressed
//	                  └── truncated or damaged: ErrBroken, never a false end
package inflate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Limits that no configuration changes.
const (
	Ratio = 10       // most output bytes per input byte
	Free  = 64 << 10 // additional output bytes, for small inputs
	Most  = 32 << 20 // most output bytes
)

// Why reading ends. An error of the source is returned unchanged.
var (
	ErrCoding = errors.New("inflate: neither gzip nor zstd, or several encodings") // send it plain
	ErrLarge  = errors.New("inflate: the decompressed body is too large")          // send it plain, or in parts
	ErrBroken = errors.New("inflate: invalid or truncated compressed data")        // send it again
)

// Limits are the limits of a Reader.
type Limits struct {
	Most   int64  // most output bytes; 0 or more than Most means Most
	Window uint64 // largest zstd window in bytes, which is memory; a larger one is ErrLarge
}

// Describe says in a sentence what ErrLarge means, with a most of output bytes and MaxWindow.
func Describe(most int) string {
	return fmt.Sprintf("A body with a Content-Encoding has at most %d times the compressed bytes and %d more, at most %d, and a zstd window of at most %d bytes.", Ratio, Free, most, MaxWindow)
}

// A Coding is the compression of a body.
type Coding uint8

const (
	Plain Coding = iota
	Gzip
	Zstd
)

// Of returns the coding of the values of Content-Encoding. Several codings are an error.
func Of(values []string) (Coding, error) {
	switch {
	case len(values) == 0:
		return Plain, nil
	case len(values) > 1:
		return Plain, ErrCoding
	case strings.EqualFold(values[0], "gzip"), strings.EqualFold(values[0], "x-gzip"):
		return Gzip, nil
	case strings.EqualFold(values[0], "zstd"):
		return Zstd, nil
	}
	return Plain, ErrCoding
}

// A Reader decompresses. It starts no goroutine. Close frees its memory.
type Reader struct {
	from  source
	coder io.Reader // nil: not started
	of    Coding
	limit Limits
	out   int64 // output bytes
	err   error // permanent
}

// source counts the bytes read, and keeps the error of the source.
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

// New returns a Reader of from, whose coding is not Plain. It does not read.
func New(from io.Reader, of Coding, l Limits) *Reader {
	if l.Most <= 0 || l.Most > Most {
		l.Most = Most
	}
	return &Reader{from: source{Reader: from}, of: of, limit: l}
}

// FromMemory returns a Reader of data that is in memory, with at most most output bytes: a power of two from 128 KiB. It accepts zstd
// windows up to MaxWindow, and uses no more memory for one than most. It may change packed.
func FromMemory(packed []byte, of Coding, most uint64) *Reader {
	if of == Zstd {
		lowerWindows(packed, most)
	}
	return New(bytes.NewReader(packed), of, Limits{Most: int64(most), Window: most})
}

// Read returns decompressed bytes, within the limits.
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
		var one [1]byte // a byte to detect more output when the limit is reached
		n, err := r.coder.Read(one[:])
		switch {
		case n > 0 && r.left() <= 0:
			r.err = ErrLarge
			return 0, r.err
		case n > 0: // reading that byte raised the limit
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

// left returns how much may still be output for the bytes read so far.
func (r *Reader) left() int64 { return min(Ratio*r.from.read+Free, r.limit.Most) - r.out }

// open starts the decompressor.
func (r *Reader) open() error {
	if r.of == Gzip {
		z := gzips.Get().(*gzip.Reader)
		if err := z.Reset(&r.from); err != nil {
			gzips.Put(z)
			if errors.Is(err, io.EOF) { // an empty input is not valid gzip
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

// why returns the error to report.
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

// Close frees the decompressor. Later reads fail.
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
