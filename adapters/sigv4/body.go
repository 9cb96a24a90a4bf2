package sigv4

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"
)

// Body reads the payload of a request, decoded and verified. Content must not be published before
// Read returns io.EOF. Only signed chunks are verified before their bytes are returned; a payload
// with one hash for all of it, or with an unsigned trailer, is verified at its end.
type Body struct {
	from    io.Reader // plain or chunked
	err     error     // final
	length  int64     // -1: unknown
	trailer map[string]string
}

// Body returns the payload that r contains in the form that the request announces. It reads r to
// its end and does not close it. Before Verify succeeds, each Read fails.
//
// Memory: a signed chunk is buffered, up to about twice Policy.MaxChunk; otherwise 4 KiB.
func (s *Signed) Body(r io.Reader) *Body {
	b := &Body{length: s.payload.length}
	switch {
	case !s.verified:
		b.err = errUnverified
	case s.payload.isChunked():
		b.from = newChunked(s, r, b)
	default:
		p := &plain{from: r, length: s.payload.length, sum: s.payload.sum}
		if s.payload.kind == hashedPayload {
			p.hash = sha256.New()
		}
		b.from = p
	}
	return b
}

// Read returns decoded bytes. At the end it returns io.EOF only if content, signatures, trailer and
// length are right. Otherwise it returns an *Error, or the error of the reader unchanged. Every later
// Read returns the same error.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	b.err = err
	return n, err
}

// Trailer returns the values of the trailer by lower-case name. Before io.EOF, and for a payload
// without a trailer, it is empty.
func (b *Body) Trailer() map[string]string {
	if !errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.trailer
}

// Length returns the bytes of the decoded payload, as the request announces them. ok is false if it
// announces none.
func (b *Body) Length() (n int64, ok bool) { return max(b.length, 0), b.length >= 0 }

// plain reads a payload without framing.
type plain struct {
	from   io.Reader
	length int64     // -1: unknown
	hash   hash.Hash // nil: not verified
	sum    [sha256.Size]byte
	read   int64
}

// Read implements io.Reader.
func (p *plain) Read(to []byte) (int, error) {
	n, err := p.from.Read(to)
	p.read += int64(n)
	if p.hash != nil {
		p.hash.Write(to[:n])
	}
	switch {
	case p.length >= 0 && p.read > p.length:
		return 0, errWrongLength()
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF) || p.length >= 0 && p.read < p.length:
		return n, readError(err)
	case p.hash != nil && !bytes.Equal(p.hash.Sum(nil), p.sum[:]):
		return n, refuse(codeSHA256Mismatch, http.StatusBadRequest, "x-amz-content-sha256 does not match the content")
	}
	return n, io.EOF
}

// readError returns the error for a payload that ends early. An error of the connection, a timeout
// or a limit of the caller stays as it is.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(codeIncompleteBody, http.StatusBadRequest, "The body ended before the announced length")
	}
	return err
}

func errWrongLength() error {
	return refuse(codeIncompleteBody, http.StatusBadRequest, "The body does not have the announced length")
}
