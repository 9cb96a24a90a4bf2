package sigv4

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// growStep is the memory in bytes that is reserved before the data of a chunk arrives.
const growStep = 64 << 10

// chunked decodes a payload in the framing aws-chunked.
//
//	<size>[;chunk-signature=<signature>]\r\n <data> \r\n   for each chunk
//	0[;chunk-signature=<signature>]\r\n                    the last chunk
//	[<name>:<value>\r\n …] [x-amz-trailer-signature:<signature>\r\n]
//	\r\n
type chunked struct {
	in       *bufio.Reader
	body     *Body // receives the trailer
	payload  payload
	chain    *chain // nil: chunks are not signed
	maxChunk int

	announced int64  // data bytes of all chunk headers so far
	left      int64  // unread data bytes of the current chunk, if chunks are not signed
	ready     []byte // verified bytes that were not returned yet
	block     []byte // memory of ready
	open      bool   // the line end after the data of a chunk was not read yet
}

func newChunked(s *Signed, r io.Reader, b *Body) *chunked {
	c := &chunked{in: bufio.NewReaderSize(r, MaxChunkHeader), body: b, payload: s.payload, maxChunk: s.maxChunk}
	if s.payload.kind != unsignedTrailer {
		c.chain = newChain(s)
	}
	return c
}

// Read implements io.Reader. to is not empty.
func (c *chunked) Read(to []byte) (int, error) {
	for len(c.ready) == 0 && c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if len(c.ready) > 0 {
		n := copy(to, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	n, err := c.in.Read(to[:min(int64(len(to)), c.left)])
	c.left -= int64(n)
	if err != nil { // at the end of a chunk too: its line end is missing
		return n, readError(err)
	}
	return n, nil
}

// next reads up to the data of the next chunk, or to the end of the payload, which is io.EOF.
func (c *chunked) next() error {
	if c.open {
		if err := c.readLineEnd(); err != nil {
			return err
		}
		c.open = false
	}
	size, signature, err := c.readChunkHeader()
	if err != nil {
		return err
	}
	if size > c.payload.length-c.announced {
		return errWrongLength()
	}
	c.announced += size
	if c.chain != nil {
		if err := c.readSigned(size, signature); err != nil {
			return err
		}
	} else {
		c.left = size
	}
	if size > 0 {
		c.open = true
		return nil
	}
	if c.announced != c.payload.length {
		return errWrongLength()
	}
	if c.payload.hasTrailer() {
		return c.readTrailer()
	}
	if err := c.readLineEnd(); err != nil {
		return err
	}
	return c.readEnd()
}

// readSigned buffers the data of a chunk and verifies its signature.
func (c *chunked) readSigned(size int64, signature []byte) error {
	if size > int64(c.maxChunk) {
		return refuse(codeInvalidRequest, http.StatusBadRequest, "A signed chunk is larger than %d bytes", c.maxChunk)
	}
	c.block = c.block[:0]
	for have := 0; have < int(size); have = len(c.block) {
		step := min(int(size)-have, growStep)
		c.block = slices.Grow(c.block, step)[:have+step]
		if _, err := io.ReadFull(c.in, c.block[have:]); err != nil {
			return readError(err)
		}
	}
	sum := sha256.Sum256(c.block)
	if err := c.chain.verify(chunkAlgorithm, sum, signature); err != nil {
		return err
	}
	c.ready = c.block
	return nil
}

// readChunkHeader reads the line before the data. Without a chain, signature is nil.
func (c *chunked) readChunkHeader() (size int64, signature []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, nil, errFraming()
	}
	if err != nil {
		return 0, nil, readError(err)
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return 0, nil, errFraming()
	}
	if c.chain != nil {
		digits, text, ok := bytes.Cut(line, []byte(";chunk-signature="))
		signature = make([]byte, sha256.Size)
		if !ok || !parseSignature(signature, string(text)) {
			return 0, nil, errFraming()
		}
		line = digits
	}
	n, err := strconv.ParseUint(string(line), 16, 63)
	if err != nil {
		return 0, nil, errFraming()
	}
	return int64(n), signature, nil
}

// readLineEnd reads the line end after data.
func (c *chunked) readLineEnd() error {
	var end [2]byte
	if _, err := io.ReadFull(c.in, end[:]); err != nil {
		return readError(err)
	}
	if end != [2]byte{'\r', '\n'} {
		return errFraming()
	}
	return nil
}

// readEnd requires that nothing follows, and returns io.EOF.
func (c *chunked) readEnd() error {
	_, err := c.in.ReadByte()
	if err == nil {
		return errFraming()
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return readError(err)
}

func errFraming() error {
	return refuse(codeInvalidRequest, http.StatusBadRequest, "The framing of aws-chunked is malformed")
}

// The first lines of the strings to sign of a chunk and of a trailer.
const (
	chunkAlgorithm   = "AWS4-HMAC-SHA256-PAYLOAD"
	trailerAlgorithm = "AWS4-HMAC-SHA256-TRAILER"
)

// chain verifies signatures of which each covers the one before it. The first is that of the request.
type chain struct {
	mac      hash.Hash
	middle   string // time and scope
	previous [sha256.Size]byte
	text     []byte
}

func newChain(s *Signed) *chain {
	return &chain{mac: hmac.New(sha256.New, s.key), middle: "\n" + s.stamp + "\n" + s.scope.String() + "\n", previous: s.signature}
}

// verify compares the signature of a chunk or a trailer with the hash sum.
func (c *chain) verify(name string, sum [sha256.Size]byte, signature []byte) error {
	text := append(append(c.text[:0], name...), c.middle...)
	text = append(hex.AppendEncode(text, c.previous[:]), '\n')
	if name == chunkAlgorithm { // the hash of an empty string: chunks have no headers
		const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
		text = append(text, empty...)
	}
	c.text = hex.AppendEncode(text, sum[:])
	c.mac.Reset()
	c.mac.Write(c.text)
	c.mac.Sum(c.previous[:0])
	if !hmac.Equal(c.previous[:], signature) {
		return refuse(codeSignatureDoesNotMatch, http.StatusForbidden, "The signature of a chunk or of the trailer does not match")
	}
	return nil
}
