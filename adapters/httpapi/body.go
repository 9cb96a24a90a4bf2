package httpapi

import (
	"bytes"
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

const keepable = 64 << 10 // bytes of a buffer that is worth keeping

// Buffers are kept for the next request. Nothing that outlives a request points into one.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

func takeBuffer() *[]byte { return buffers.Get().(*[]byte) }

func giveBuffer(b *[]byte) {
	if cap(*b) <= keepable {
		buffers.Put(b)
	}
}

// Small is what every honest body but a batch's fits in. Only so many that are larger, or
// do not say, are in at a time: that bounds what bodies take, and what is made of them.
const Small = 4 << 10

func small(r *http.Request) bool {
	return 0 <= r.ContentLength && r.ContentLength <= Small && len(r.Header["Content-Encoding"]) == 0
}

// isJSON says why a body is of no kind that is taken.
func isJSON(r *http.Request) error {
	said := r.Header["Content-Type"]
	if len(said) == 1 && said[0] == jsonType[0] {
		return nil
	}
	if len(said) != 1 {
		return problem(event.UnsupportedMedia)
	}
	kind, params, err := mime.ParseMediaType(said[0])
	charset, named := params["charset"]
	plain := len(params) == 0 || len(params) == 1 && named && strings.EqualFold(charset, "utf-8")
	if err != nil || kind != jsonType[0] || !plain {
		return problem(event.UnsupportedMedia)
	}
	return nil
}

// read takes in the whole body, inflated. What comes over the wire is bounded, and so
// is what it inflates to, before any of it is stored.
func read(r *http.Request, body io.Reader, to *[]byte) error {
	of, err := inflate.Of(r.Header["Content-Encoding"])
	switch {
	case err != nil:
		return because(event.UnsupportedMedia, "The body must be uncompressed, gzip or zstd.")
	case r.ContentLength > types.MaxBody:
		return problem(event.PayloadTooLarge)
	case of == inflate.Plain:
		return fill(to, body, types.MaxBody)
	}
	packed := takeBuffer()
	defer giveBuffer(packed)
	if err := fill(packed, body, types.MaxBody); err != nil {
		return err
	}
	z := inflate.New(bytes.NewReader(*packed), of, inflate.Limits{Most: types.MaxBody, Window: types.MaxBody})
	defer z.Close() //nolint:errcheck // it has none
	return fill(to, z, types.MaxBody)
}

var (
	errPacked = because(event.BadRequest, "The body does not match its Content-Encoding.")
	errBody   = because(event.BadRequest, "The body did not arrive completely in time.")
)

// fill reads all of from, which is at most so many bytes, growing by what has
// arrived and never by what was announced.
func fill(to *[]byte, from io.Reader, most int) error {
	b := (*to)[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := from.Read(b[len(b):min(cap(b), most+1)])
		b = b[:len(b)+n]
		*to = b
		switch {
		case len(b) > most:
			return problem(event.PayloadTooLarge)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, inflate.ErrLarge):
			return problem(event.PayloadTooLarge)
		case errors.Is(err, inflate.ErrBroken):
			return errPacked
		case err != nil:
			var no *refusal
			if errors.As(err, &no) {
				return no
			}
			return errBody
		}
	}
}
