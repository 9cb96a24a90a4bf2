package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
)

// Header values of objects. An object never changes, so it may be cached for ever, but not by shared caches, which
// do not check API keys.
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
func (o *objectCall) send(row storage.Object, part objectio.Range) error {
	h := o.Header()
	if o.r.Method != http.MethodHead {
		if err := o.reserveResponse(part.Length); err != nil {
			delete(h, "Etag")
			return err
		}
	}
	status := http.StatusOK
	if part.Partial {
		status = http.StatusPartialContent
		h["Content-Range"] = []string{part.ContentRange(row.Size)}
	}
	content, err := o.open(row)
	if err != nil {
		delete(h, "Content-Range")
		return err
	}
	defer content.Close()
	o.identify()
	began := false
	begin := func() {
		h["Content-Length"] = []string{strconv.FormatUint(part.Length, 10)}
		o.start(status, bytesType, immutable)
		began = true
	}
	if o.r.Method == http.MethodHead {
		begin()
		return nil
	}
	err = content.WriteRange(part.Off, part.Length, func(b []byte) error {
		if !began {
			begin() // the first part was verified: a failure before it gets a problem
		}
		if _, err := o.writeMetered(b); err != nil {
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

// open opens an object. If it was deleted and put again meanwhile, it has another file.
func (o *objectCall) open(row storage.Object) (*objectstore.Object, error) {
	content, err := objectio.Open(o.Contents, o.address, row, func() (storage.Object, bool) { return o.Rows.Object(o.key.Tenant, o.bucket.ID, o.address) })
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, objectio.ErrNoObject):
		return nil, problem(event.NotFound)
	case errors.Is(err, objectio.ErrMoving):
		return nil, problem(event.Unavailable)
	case errors.Is(err, objectstore.ErrAbsent):
		return nil, errAbsent
	}
	return nil, o.unreadable(err)
}

// unreadable reports an object that the disk has lost or changed, or that cannot be reached now.
func (o *objectCall) unreadable(err error) error {
	p := objectio.ReadProblem(err)
	is := problem(p)
	switch {
	case p == event.ObjectUnreadable:
		o.Transfers.Damaged()
	case objectstore.IsShortage(err):
		is = errShortage
	}
	o.Log.Error("object unreadable", "address", o.address.String(), "err", err)
	if o.status > 0 {
		return errors.Join(is, errCut)
	}
	h := o.Header()
	delete(h, "Content-Range")
	delete(h, "Etag")
	return is
}

// A condition is the result of If-Match and If-None-Match.
type condition uint8

const (
	satisfied condition = iota
	failed
	notModified
)

// precondition evaluates If-Match and If-None-Match (RFC 9110, 13.2.2).
func (k *call) precondition(exists bool, a storage.Address) condition {
	if header := k.r.Header["If-Match"]; len(header) > 0 && !(exists && hasTag(header, a, false)) {
		return failed
	}
	if header := k.r.Header["If-None-Match"]; len(header) > 0 && exists && hasTag(header, a, true) {
		if k.r.Method == http.MethodGet || k.r.Method == http.MethodHead {
			return notModified
		}
		return failed
	}
	return satisfied
}

// hasTag reports whether a list of entity tags contains that of an object, or *. A weak tag matches only if weak
// comparison is allowed.
func hasTag(header []string, a storage.Address, weak bool) bool {
	for _, line := range header {
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

// requestedRange returns the requested range (RFC 9110, 14.2). Only GET has one.
func (k *call) requestedRange(size uint64, a storage.Address) (objectio.Range, error) {
	if k.r.Method != http.MethodGet {
		return objectio.Range{Length: size}, nil
	}
	part, err := objectio.RequestedRange(k.r.Header, size, func(tag string) bool { return tag == etag(a) })
	if err != nil {
		return part, problem(event.RangeNotSatisfiable)
	}
	return part, nil
}
