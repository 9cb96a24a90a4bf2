package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"macronode/adapters/inflate"
	"macronode/core/event"
	"macronode/core/types"
)

const maxPooledBuffer = 64 << 10 // bytes; larger buffers are not pooled

// buffers are reused by later requests. Nothing that outlives a request may point into one.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

func takeBuffer() *[]byte { return buffers.Get().(*[]byte) }

func giveBuffer(b *[]byte) {
	if cap(*b) <= maxPooledBuffer {
		buffers.Put(b)
	}
}

// SmallBody is the size of a body that needs no slot, in bytes. All operations but batches fit into it. Larger
// bodies, and those of unknown length, need one of MaxLargeBodies slots, which limits the memory for bodies and
// for what is built from them.
const SmallBody = 4 << 10

func hasSmallBody(r *http.Request) bool {
	return 0 <= r.ContentLength && r.ContentLength <= SmallBody && len(r.Header["Content-Encoding"]) == 0
}

// checkJSON returns an error unless the media type of the body is JSON.
func checkJSON(r *http.Request) error {
	header := r.Header["Content-Type"]
	if len(header) == 1 && header[0] == jsonType[0] {
		return nil
	}
	if len(header) != 1 {
		return problem(event.UnsupportedMedia)
	}
	kind, params, err := mime.ParseMediaType(header[0])
	if err != nil || kind != jsonType[0] || !isUTF8(params) {
		return problem(event.UnsupportedMedia)
	}
	return nil
}

// isUTF8 reports whether the parameters of a media type are none, or say UTF-8.
func isUTF8(params map[string]string) bool {
	charset, named := params["charset"]
	return len(params) == 0 || len(params) == 1 && named && strings.EqualFold(charset, "utf-8")
}

// readBody reads and decompresses the whole body. Both sizes are limited before anything is stored.
func readBody(r *http.Request, body io.Reader, to *[]byte) error {
	of, err := inflate.Of(r.Header["Content-Encoding"])
	switch {
	case err != nil:
		return problemDetail(event.UnsupportedMedia, "The body must be uncompressed, gzip or zstd.")
	case r.ContentLength > types.MaxBody:
		return problem(event.PayloadTooLarge)
	case of == inflate.Plain:
		return readAll(to, body, types.MaxBody)
	}
	packed := takeBuffer()
	defer giveBuffer(packed)
	if err := readAll(packed, body, types.MaxBody); err != nil {
		return err
	}
	z := inflate.FromMemory(*packed, of, types.MaxBody)
	defer z.Close() //nolint:errcheck // Close never fails
	return readAll(to, z, types.MaxBody)
}

var (
	errInflated = problemDetail(event.PayloadTooLarge, inflate.Describe(types.MaxBody))
	errPacked   = problemDetail(event.BadRequest, "The body does not match its Content-Encoding.")
	errBody     = problemDetail(event.BadRequest, "The body is malformed, or did not arrive completely in time.")
)

// readAll reads all of from, at most limit bytes. The buffer grows with the bytes that arrived, not with the
// announced length.
func readAll(to *[]byte, from io.Reader, limit int) error {
	b := (*to)[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := from.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		*to = b
		switch {
		case len(b) > limit:
			return problem(event.PayloadTooLarge)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, inflate.ErrLarge):
			return errInflated
		case errors.Is(err, inflate.ErrBroken):
			return errPacked
		case err != nil:
			var rejected *refusal
			if errors.As(err, &rejected) {
				return rejected
			}
			return errBody
		}
	}
}
