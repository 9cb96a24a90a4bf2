package s3

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/storage"
)

// overrides are the parameters of a query that replace a header of the response.
var overrides = map[string]string{"response-content-type": "Content-Type", "response-content-language": "Content-Language", "response-expires": "Expires",
	"response-cache-control": "Cache-Control", "response-content-disposition": "Content-Disposition", "response-content-encoding": "Content-Encoding"}

var (
	acceptsBytes = []string{"bytes"}
	noSniff      = []string{"nosniff"}
)

// getObject sends an object or a part of it. HEAD sends the headers alone.
func getObject(c *call) error {
	var f found
	var content *objectstore.Object
	var err error
	if c.r.Method == http.MethodHead {
		f, err = c.find(c.target)
	} else if f, content, err = c.open(c.target); err == nil {
		defer content.Close()
	}
	if err != nil {
		return err
	}
	h := c.Header()
	q := readConditions(c.r.Header, "")
	if err := q.check(&f); err != nil {
		if errors.Is(err, errNotModified) {
			c.identify(&f)
		}
		return err
	}
	part, err := c.part(&f)
	if err != nil {
		if errors.Is(err, errRange) {
			h["Content-Range"] = []string{"bytes */" + strconv.FormatUint(f.row.Size, 10)}
		}
		return err
	}
	f.meta.setHeaders(h)
	c.identify(&f)
	if err := c.override(); err != nil {
		clearHeaders(h)
		return err
	}
	h["Accept-Ranges"], h["X-Content-Type-Options"] = acceptsBytes, noSniff
	h["Content-Length"] = []string{strconv.FormatUint(part.Length, 10)}
	status := http.StatusOK
	if part.Partial {
		status = http.StatusPartialContent
		h["Content-Range"] = []string{part.ContentRange(f.row.Size)}
	}
	if !part.Partial || part.Length == f.row.Size {
		c.showChecksum(&f)
	}
	if c.r.Method == http.MethodHead {
		c.start(status)
		return nil
	}
	return c.sendContent(f.entry.Address, content, part, status)
}

// identify adds the headers that a response without a body has too.
func (c *call) identify(f *found) {
	h := c.Header()
	h["Etag"] = []string{f.etag()}
	h["Last-Modified"] = []string{httpTime(int64(f.details.At))}
}

// clearHeaders removes the headers of an object before an error is sent.
func clearHeaders(h http.Header) {
	for name := range h {
		if name != "X-Amz-Request-Id" {
			delete(h, name)
		}
	}
}

// override replaces headers as the query wants.
func (c *call) override() error {
	for name, header := range overrides {
		values, is := c.query[name]
		if !is {
			continue
		}
		if strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errArgument.with("ArgumentName", name)
		}
		c.Header()[header] = []string{values[0]}
	}
	return nil
}

// part returns the part of an object that a request names by a range or by the number of a part.
func (c *call) part(f *found) (objectio.Range, error) {
	number, is := c.query["partNumber"]
	if !is {
		tag := f.etag()
		r, err := objectio.RequestedRange(c.r.Header, f.row.Size, func(t string) bool { return t == tag })
		if err != nil {
			return r, errRange.with("RangeRequested", first(c.r.Header["Range"])).with("ActualObjectSize", strconv.FormatUint(f.row.Size, 10))
		}
		return r, nil
	}
	n, err := strconv.Atoi(number[0])
	switch {
	case err != nil || n < 1 || n > storage.MaxPart:
		return objectio.Range{}, errPartNumber
	case len(c.r.Header["Range"]) > 0:
		return objectio.Range{}, errRequest.saying("A request names a range or the number of a part.")
	}
	return c.numberedPart(f, uint64(n))
}

// numberedPart returns where the n-th part of an object is.
func (c *call) numberedPart(f *found, n uint64) (objectio.Range, error) {
	parts, size := uint64(max(f.details.ETag.Parts, 1)), f.meta.partSize
	switch {
	case n > parts:
		return objectio.Range{}, errNoPart
	case parts == 1:
		size = f.row.Size
	case size == 0:
		return objectio.Range{}, errNotImplemented.saying("The parts of the object have different sizes. Use a range.")
	}
	if f.details.ETag.Parts > 0 {
		c.Header()["X-Amz-Mp-Parts-Count"] = []string{strconv.FormatUint(parts, 10)}
	}
	if f.row.Size == 0 {
		return objectio.Range{}, nil
	}
	off := (n - 1) * size
	return objectio.Range{Off: off, Length: min(size, f.row.Size-off), Partial: true}, nil
}

// sendContent sends a part of an object. Each group of bytes is verified before it is sent.
func (c *call) sendContent(a storage.Address, content *objectstore.Object, part objectio.Range, status int) error {
	if err := c.ReserveResponse(part.Length); err != nil {
		clearHeaders(c.Header())
		return err
	}
	err := content.WriteRange(part.Off, part.Length, func(b []byte) error {
		if !c.begun {
			c.start(status) // the first group was verified: until here a failure has an answer
		}
		if _, err := c.Write(b); err != nil {
			return errors.Join(errLeft, err)
		}
		c.Transfers.Sent(uint64(len(b)))
		return nil
	})
	switch {
	case err == nil && !c.begun:
		c.start(status)
		return nil
	case err != nil && !errors.Is(err, errLeft):
		if !c.begun {
			clearHeaders(c.Header())
		}
		return c.damaged(a, err)
	}
	return err
}
