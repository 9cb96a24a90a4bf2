package httpapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"macronode/core/event"
	"macronode/core/words"
)

const (
	maxRatio = 10       // a body may inflate to so many times its length
	keepable = 64 << 10 // bytes of a buffer that is worth keeping
)

// Buffers and inflaters are kept for the next request. Nothing that outlives a
// request points into one.
var (
	buffers   = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}
	inflaters = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

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
func read(r *http.Request, to *[]byte) error {
	coding := r.Header["Content-Encoding"]
	squeezed := len(coding) == 1 && strings.EqualFold(coding[0], "gzip")
	switch {
	case len(coding) > 0 && !squeezed:
		return because(event.UnsupportedMedia, "The body is not plain and not compressed by gzip.")
	case r.ContentLength > words.MaxBody:
		return problem(event.PayloadTooLarge)
	case !squeezed:
		return fill(to, r.Body, words.MaxBody)
	}
	packed := takeBuffer()
	defer giveBuffer(packed)
	if err := fill(packed, r.Body, words.MaxBody); err != nil {
		return err
	}
	return inflate(to, *packed)
}

func inflate(to *[]byte, packed []byte) error {
	z := inflaters.Get().(*gzip.Reader)
	defer inflaters.Put(z)
	if z.Reset(bytes.NewReader(packed)) != nil {
		return errGzip
	}
	return fill(to, z, min(words.MaxBody, maxRatio*len(packed)))
}

var (
	errGzip = because(event.BadRequest, "The body is not what gzip writes.")
	errBody = because(event.BadRequest, "The body did not arrive whole in time.")
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
		case err != nil:
			if _, ok := from.(*gzip.Reader); ok {
				return errGzip
			}
			return errBody
		}
	}
}
