package s3

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

// lookups is how often an object is looked up that other requests replace meanwhile.
const lookups = 3

// A found object is one that a name had at one time.
type found struct {
	entry   storage.Entry
	row     storage.Object
	details storage.Details
	meta    Meta
}

// find returns the object that t names.
func (c *call) find(t target) (f found, err error) {
	bucket, name := storage.Bucket(t.bucket), storage.ObjectName(t.key)
	for range lookups {
		e, ok := c.Rows.Entry(c.tenant(), bucket.ID, name.ID)
		if !ok {
			if !c.Rows.HasBucket(c.tenant(), bucket.ID) {
				return f, errNoBucket.with("BucketName", t.bucket)
			}
			return f, errNoKey.with("Key", t.key)
		}
		row, ok := c.Rows.StoredAs(e.Address)
		if !ok {
			continue // it was replaced or deleted meanwhile
		}
		f = found{entry: e, row: row}
		if e.At.LSN > 0 { // else an old snapshot has it without its record: it was stored under its address
			if f.details, err = c.Rows.Details(e.At); err != nil {
				return f, errors.Join(errInternal, err)
			}
		}
		f.meta, err = decodeMeta(f.details.Meta)
		return f, err
	}
	return f, errUnavailable
}

// open opens the object that t names.
func (c *call) open(t target) (found, *objectstore.Object, error) {
	for range lookups {
		f, err := c.find(t)
		if err != nil {
			return f, nil, err
		}
		content, err := c.openContent(f.entry.Address, f.row)
		if !errors.Is(err, objectio.ErrNoObject) {
			return f, content, err
		}
	}
	return found{}, nil, errUnavailable
}

// openContent opens the content with an address.
func (c *call) openContent(a storage.Address, row storage.Object) (*objectstore.Object, error) {
	content, err := objectio.Open(c.Contents, a, row, func() (storage.Object, bool) { return c.Rows.StoredAs(a) })
	if err == nil || errors.Is(err, objectio.ErrNoObject) {
		return content, err
	}
	if errors.Is(err, objectio.ErrMoving) {
		return nil, errUnavailable
	}
	if errors.Is(err, objectstore.ErrAbsent) {
		return nil, errAbsent
	}
	return nil, c.damaged(a, err)
}

// damaged reports an object that the disk has lost or changed, or that cannot be reached now.
func (c *call) damaged(a storage.Address, err error) error {
	p := objectio.ReadProblem(err)
	if p == event.ObjectUnreadable {
		c.Transfers.Damaged()
	}
	c.Log.Error("object unreadable", "address", a.String(), "err", err)
	if objectstore.IsShortage(err) {
		return errShortage
	}
	return problemError(p)
}

// etag returns the entity tag of f, with its quotes.
func (f *found) etag() string { return quote(etagText(f.details.ETag, f.entry.Address)) }

// modified returns when f was stored.
func (f *found) modified() time.Time { return unix(int64(f.details.At)) }

func quote(tag string) string { return `"` + tag + `"` }

// etagText returns the entity tag of an object, without quotes. An object that was stored under its address has the
// begin of that, and no parts: clients do not take it for an MD5 digest.
func etagText(e storage.ETag, a storage.Address) string {
	if e == (storage.ETag{}) {
		return hex.EncodeToString(a[:16]) + "-0"
	}
	text := hex.EncodeToString(e.MD5[:])
	if e.Parts > 0 {
		text += "-" + strconv.Itoa(int(e.Parts))
	}
	return text
}

// conditions are those of a request on an object that is read (RFC 9110, 13).
type conditions struct {
	match, noneMatch  []string
	since, unmodified string
}

// readConditions reads the conditions whose headers begin with a prefix.
func readConditions(h map[string][]string, prefix string) conditions {
	return conditions{h[prefix+"If-Match"], h[prefix+"If-None-Match"], first(h[prefix+"If-Modified-Since"]), first(h[prefix+"If-Unmodified-Since"])}
}

// check returns errPrecondition or errNotModified if a condition does not hold for an object.
func (q *conditions) check(f *found) error {
	tag, modified := f.etag(), f.modified().Truncate(time.Second)
	if len(q.match) > 0 {
		if !hasTag(q.match, tag, false) {
			return errPrecondition.with("Condition", "If-Match")
		}
	} else if t, err := parseTime(q.unmodified); err == nil && modified.After(t) {
		return errPrecondition.with("Condition", "If-Unmodified-Since")
	}
	if len(q.noneMatch) > 0 {
		if hasTag(q.noneMatch, tag, true) {
			return errNotModified
		}
	} else if t, err := parseTime(q.since); err == nil && !modified.After(t) {
		return errNotModified
	}
	return nil
}

// hasTag reports whether lists of entity tags contain tag, or are *. Tags may lack their quotes, as clients of S3 send
// them. A weak tag counts only where weak comparison is enough.
func hasTag(lines []string, tag string, weak bool) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			t = strings.TrimSpace(t)
			if weak {
				t = strings.TrimPrefix(t, "W/")
			}
			if t == "*" || quote(unquote(t)) == tag {
				return true
			}
		}
	}
	return false
}

// unquote removes the quotes of an entity tag.
func unquote(tag string) string {
	if n := len(tag); n >= 2 && tag[0] == '"' && tag[n-1] == '"' {
		return tag[1 : n-1]
	}
	return tag
}

// parseTime reads the date of a condition. One that is malformed is an error: the condition is ignored.
func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, errArgument
	}
	return http.ParseTime(text)
}

// match returns the condition of a request on the object that it replaces. replaces reports that there is one.
func (c *call) match() (m storage.Match, replaces bool, err error) {
	h := c.r.Header
	e, held := c.Rows.Entry(c.tenant(), c.bucket.ID, c.name.ID)
	none, want := h["If-None-Match"], h["If-Match"]
	switch {
	case len(none) > 0 && len(want) > 0, len(none) > 1, len(none) == 1 && none[0] != "*":
		return m, held, errNotImplemented.with("Header", "if-none-match")
	case len(h["If-Modified-Since"]) > 0:
		return m, held, errNotImplemented.with("Header", "if-modified-since")
	case len(h["If-Unmodified-Since"]) > 0:
		return m, held, errNotImplemented.with("Header", "if-unmodified-since")
	case len(none) == 1:
		m.Absent = true
		if held {
			return m, held, errPrecondition.with("Condition", "If-None-Match")
		}
	case len(want) > 0:
		f, err := c.find(c.target)
		if err != nil {
			return m, held, err
		}
		if !hasTag(want, f.etag(), false) {
			return m, held, errPrecondition.with("Condition", "If-Match")
		}
		e = f.entry
		m.At = e.At // an entry without a record has the name of its content, which does not change
	}
	return m, held, nil
}

// storedAt returns the time of the record of a reply.
func (c *call) storedAt(reply event.Reply) types.Time {
	d, err := c.Rows.Details(reply.Position)
	if err != nil {
		return types.Time(c.Now().UnixMilli())
	}
	return d.At
}
