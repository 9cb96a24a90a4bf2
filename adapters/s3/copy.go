package s3

import (
	"encoding/xml"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"macronode/core/event"
	"macronode/core/storage"
)

// copySource returns the object that x-amz-copy-source names: [/]BUCKET/KEY, percent-encoded.
func copySource(header string) (t target, err error) {
	header, version, _ := strings.Cut(header, "?versionId=")
	path, err := url.PathUnescape(header)
	if err != nil || version != "" && version != "null" {
		return t, errArgument.with("ArgumentName", "x-amz-copy-source")
	}
	t.bucket, t.key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if storage.CheckBucket(t.bucket) != nil || t.key == "" || len(t.key) > storage.MaxName || !utf8.ValidString(t.key) {
		return t, errArgument.with("ArgumentName", "x-amz-copy-source")
	}
	return t, nil
}

// checkSource returns an error if a condition on the source of a copy does not hold.
func (c *call) checkSource(f *found) error {
	q := readConditions(c.r.Header, "X-Amz-Copy-Source-")
	err := q.check(f)
	if errors.Is(err, errNotModified) {
		return errPrecondition
	}
	return err
}

type copyResult struct {
	XMLName      xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CopyObjectResult"`
	LastModified string
	ETag         string
	checksumFields
}

// copyObject gives the content of an object another name. The content itself is not copied.
func copyObject(c *call) error {
	source, err := copySource(c.r.Header["X-Amz-Copy-Source"][0])
	if err != nil {
		return err
	}
	replace, err := replacesMetadata(c.r.Header)
	if err != nil {
		return err
	}
	if source == c.target && !replace {
		return errCopySelf
	}
	if err := c.requireBucket(); err != nil {
		return err
	}
	match, _, err := c.match()
	if err != nil {
		return err
	}
	for range lookups {
		f, err := c.find(source)
		if err != nil {
			return err
		}
		if err := c.checkSource(&f); err != nil {
			return err
		}
		meta := f.meta
		if replace {
			if meta, err = readMeta(c.r.Header); err != nil {
				return err
			}
			meta.checksum, meta.partSize = f.meta.checksum, f.meta.partSize
		}
		encoded, err := encodeMeta(&meta)
		if err != nil {
			return err
		}
		if err := c.reserve(f.row.Size); err != nil {
			return err
		}
		reply, err := c.execute(&storage.Put{Header: c.Head(), Bucket: c.bucket, Name: c.name, Address: f.entry.Address, Size: f.row.Size,
			ETag: f.details.ETag, Meta: encoded, Match: match})
		if err != nil {
			return err
		}
		if reply.Problem == event.NotFound && c.Rows.HasBucket(c.tenant(), c.bucket.ID) {
			continue // the source was deleted or replaced meanwhile
		}
		if err := c.answer(reply, errInternal); err != nil {
			return err
		}
		return c.send(copyResult{LastModified: stamp(c.storedAt(reply)), ETag: f.etag(), checksumFields: f.checksumFields()})
	}
	return errUnavailable
}

// replacesMetadata reads the metadata directive.
func replacesMetadata(h map[string][]string) (bool, error) {
	switch first(h["X-Amz-Metadata-Directive"]) {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	}
	return false, errArgument.with("ArgumentName", "x-amz-metadata-directive")
}
