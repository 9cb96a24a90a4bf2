package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
)

// Values of headers of objects. An object never changes, so it may be cached for ever; not by shared
// caches, because they do not know who may read it.
var (
	bytesType = []string{"application/octet-stream"}
	immutable = []string{"private, max-age=31536000, immutable"}
	acceptsBy = []string{"bytes"}
	noSniff   = []string{"nosniff"}
	encodings = []string{"Accept-Encoding"}
)

// getObject sends an object or a range of it. HEAD sends the header alone.
func getObject(k *call) error {
	o, err := k.object(event.ScopeRead)
	if err != nil {
		return err
	}
	row, held := k.Rows.Object(k.key.Tenant, o.bucket.ID, o.address)
	if !held {
		return problem(event.NotFound)
	}
	h := k.Header()
	h["Etag"] = []string{etag(o.address)}
	h["Accept-Ranges"], h["X-Content-Type-Options"], h["Vary"] = acceptsBy, noSniff, encodings
	switch k.precondition(true, o.address) {
	case failed:
		return problem(event.PreconditionFailed)
	case notModified:
		k.identify()
		k.start(http.StatusNotModified, nil, immutable)
		return nil
	case satisfied:
	}
	part, err := k.requestedRange(row.Size, o.address)
	if err != nil {
		h["Content-Range"] = []string{"bytes */" + strconv.FormatUint(row.Size, 10)}
		return err
	}
	return o.send(row, part)
}

// send answers with a part of an object.
func (o *objectCall) send(row storage.Object, part byteRange) error {
	status := http.StatusOK
	h := o.Header()
	if part.partial {
		status = http.StatusPartialContent
		h["Content-Range"] = []string{"bytes " + strconv.FormatUint(part.off, 10) + "-" + strconv.FormatUint(part.off+part.length-1, 10) + "/" + strconv.FormatUint(row.Size, 10)}
	}
	content, err := o.open(row)
	if err != nil {
		delete(h, "Content-Range")
		return err
	}
	defer content.Close()
	o.identify()
	conn := http.NewResponseController(o.ResponseWriter)
	began := false
	begin := func() {
		h["Content-Length"] = []string{strconv.FormatUint(part.length, 10)}
		o.start(status, bytesType, immutable)
		began = true
	}
	if o.r.Method == http.MethodHead {
		begin()
		return nil
	}
	err = content.WriteRange(part.off, part.length, func(b []byte) error {
		if !began {
			begin() // the first part was verified: until here a failure has an answer
		}
		if why := o.Pass(len(b)); why != event.None {
			return errCut
		}
		_ = conn.SetWriteDeadline(time.Now().Add(o.Patience)) // where there is none, the connection bounds it
		if _, err := o.Write(b); err != nil {
			return errCut
		}
		o.Transfers.Sent(uint64(len(b)))
		return nil
	})
	if err != nil && !errors.Is(err, errCut) {
		return o.unreadable(err)
	}
	if err == nil && !began {
		begin()
	}
	return err
}

// open opens an object. One that was deleted and put again meanwhile has another file.
func (o *objectCall) open(row storage.Object) (*objectstore.Object, error) {
	for range 2 {
		content, err := o.Contents.Get(o.address, row)
		if err == nil {
			return content, nil
		}
		again, held := o.Rows.Object(o.key.Tenant, o.bucket.ID, o.address)
		if !held {
			return nil, problem(event.NotFound)
		}
		if !errors.Is(err, objectstore.ErrGone) || again == row {
			return nil, o.unreadable(err)
		}
		row = again
	}
	return nil, problem(event.Unavailable)
}

// unreadable tells of an object that the disk has lost or changed.
func (o *objectCall) unreadable(err error) error {
	o.Transfers.Damaged()
	o.Log.Error("object unreadable", "address", o.address.String(), "err", err)
	if o.status > 0 {
		return errors.Join(problem(event.ObjectUnreadable), errCut)
	}
	h := o.Header()
	delete(h, "Content-Range")
	delete(h, "Etag")
	return problem(event.ObjectUnreadable)
}

// A condition is what became of If-Match and If-None-Match.
type condition uint8

const (
	satisfied condition = iota
	failed
	notModified
)

// precondition evaluates If-Match and If-None-Match (RFC 9110, 13.2.2) for an object that there is, or not.
func (k *call) precondition(exists bool, a storage.Address) condition {
	if said := k.r.Header["If-Match"]; len(said) > 0 && !(exists && names(said, a, false)) {
		return failed
	}
	if said := k.r.Header["If-None-Match"]; len(said) > 0 && exists && names(said, a, true) {
		if k.r.Method == http.MethodGet || k.r.Method == http.MethodHead {
			return notModified
		}
		return failed
	}
	return satisfied
}

// names reports whether a list of entity tags has that of an object, or is *. A weak tag counts only where weak
// comparison is enough.
func names(said []string, a storage.Address, weak bool) bool {
	for _, line := range said {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimSpace(tag)
			if weak {
				tag = strings.TrimPrefix(tag, "W/")
			}
			if tag == "*" || tag == etag(a) {
				return true
			}
		}
	}
	return false
}

// A byteRange is what is sent of an object.
type byteRange struct {
	off, length uint64
	partial     bool
}

// requestedRange returns the range that a request wants (RFC 9110, 14.2). A range that is malformed, more than one
// range, and one with an If-Range that does not hold are ignored.
func (k *call) requestedRange(size uint64, a storage.Address) (byteRange, error) {
	whole := byteRange{length: size}
	said := k.r.Header["Range"]
	if len(said) != 1 || k.r.Method != http.MethodGet {
		return whole, nil
	}
	if when := k.r.Header["If-Range"]; len(when) > 0 && (len(when) != 1 || when[0] != etag(a)) {
		return whole, nil
	}
	first, last, ok := parseRange(said[0], size)
	switch {
	case !ok:
		return whole, nil
	case first >= size || first > last:
		return byteRange{}, problem(event.RangeNotSatisfiable)
	}
	return byteRange{off: first, length: min(last, size-1) - first + 1, partial: true}, nil
}

// parseRange reads bytes=a-b, bytes=a- and bytes=-n. The range of a last byte that is missing ends with the object; one
// that names no byte begins behind it.
func parseRange(said string, size uint64) (first, last uint64, ok bool) {
	unit, set, ok := strings.Cut(said, "=")
	from, to, ranged := strings.Cut(strings.TrimSpace(set), "-")
	if !ok || !ranged || !strings.EqualFold(unit, "bytes") {
		return 0, 0, false
	}
	a, isA := digits(from)
	b, isB := digits(to)
	switch {
	case from == "" && isB:
		if b == 0 {
			return size, size, true
		}
		return size - min(b, size), 1<<64 - 1, true
	case isA && to == "":
		return a, 1<<64 - 1, true
	case isA && isB && a <= b:
		return a, b, true
	}
	return 0, 0, false
}

// digits reads a number of decimal digits. One that is too large for 64 bits is the largest.
func digits(s string) (n uint64, ok bool) {
	if s == "" {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		n = 1<<64 - 1
	}
	return n, true
}
