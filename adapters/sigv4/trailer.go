package sigv4

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

const trailerSignature = "x-amz-trailer-signature"

// readTrailer reads the trailer and returns io.EOF. It must contain each announced name once, and
// nothing else. If chunks are signed, the last line is the signature of the lines before it.
//
// Clients differ in blank lines and line ends: a line may end with \n alone, and empty lines are
// skipped. The end of the body ends the trailer.
func (c *chunked) readTrailer() error {
	t := trailer{chain: c.chain, names: c.payload.trailers, values: make(map[string]string)}
	for size := 0; ; {
		line, err := c.in.ReadSlice('\n')
		size += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull), size > MaxTrailer:
			return errTrailer()
		case errors.Is(err, io.EOF) && len(line) == 0 && t.isComplete():
			c.body.trailer = t.values
			return io.EOF
		case errors.Is(err, io.EOF) && (len(line) == 0 || t.isComplete()):
			return errTrailer()
		case err != nil:
			return readError(err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if text == "" {
			continue
		}
		if err := t.add(text); err != nil {
			return err
		}
	}
}

// trailer collects the lines of a trailer.
type trailer struct {
	chain  *chain // nil: not signed
	names  []string
	values map[string]string
	signed bool   // the signature was verified
	text   []byte // the lines that the signature covers
}

// isComplete reports whether the trailer has everything that was announced.
func (t *trailer) isComplete() bool {
	return len(t.values) == len(t.names) && (t.chain == nil || t.signed)
}

// add reads one line.
func (t *trailer) add(line string) error {
	name, value, ok := strings.Cut(line, ":")
	name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
	if !ok {
		return errTrailer()
	}
	if name == trailerSignature && t.chain != nil {
		return t.verify(value)
	}
	if _, repeated := t.values[name]; repeated || !slices.Contains(t.names, name) {
		return errTrailer()
	}
	t.values[name] = value
	t.text = append(t.text, name+":"+value+"\n"...)
	return nil
}

// verify checks the signature of the lines.
func (t *trailer) verify(value string) error {
	var signature [sha256.Size]byte
	if len(t.values) != len(t.names) || !parseSignature(signature[:], value) {
		return errTrailer()
	}
	t.signed = true
	return t.chain.verify(trailerAlgorithm, sha256.Sum256(t.text), signature[:])
}

func errTrailer() error {
	return refuse(codeMalformedTrailer, http.StatusBadRequest, "The trailer is malformed, or differs from x-amz-trailer")
}
