package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Limits of XML bodies.
const (
	maxXML       = 1 << 20 // bytes
	maxDeleteXML = 2 << 20 // of DeleteObjects: 1000 keys
	maxPartsXML  = 4 << 20 // of CompleteMultipartUpload: 10000 parts with checksums
	maxDepth     = 8       // of elements
	maxFields    = 16      // of an item
)

var xmlType = []string{"application/xml"}

// writeXML answers with a document.
func writeXML(s Session, status int, document any) error {
	b, err := marshal(document)
	if err != nil {
		return err
	}
	return writeBody(s, status, b)
}

// writeBody answers with the text of a document.
func writeBody(s Session, status int, text []byte) error {
	h := s.Header()
	h["Content-Type"] = xmlType
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	s.WriteHeader(status)
	_, err := s.Write(text)
	return err
}

// marshal returns a document with its declaration.
func marshal(document any) ([]byte, error) {
	b := bytes.NewBufferString(xml.Header)
	err := xml.NewEncoder(b).Encode(document)
	return b.Bytes(), err
}

// decodeXML reads one document whose root element has a name. Deep documents, directives and anything after
// the root are malformed.
func decodeXML(b []byte, root string, to any) error {
	if err := checkXML(b, root); err != nil {
		return err
	}
	if xml.Unmarshal(b, to) != nil {
		return errMalformedXML
	}
	return nil
}

// checkXML checks the form of a document.
func checkXML(b []byte, root string) error {
	d := xml.NewDecoder(bytes.NewReader(b))
	depth, roots := 0, 0
	var fields []string // of the item
	for {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			if depth != 0 || roots != 1 {
				return errMalformedXML
			}
			return nil
		}
		if err != nil {
			return errMalformedXML
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch depth {
			case 0:
				if roots++; roots > 1 || t.Name.Local != root {
					return errMalformedXML
				}
			case 1:
				fields = fields[:0]
			case 2: // a field that occurs twice has no value
				if slices.Contains(fields, t.Name.Local) || len(fields) == maxFields {
					return errMalformedXML
				}
				fields = append(fields, t.Name.Local)
			}
			if depth++; depth > maxDepth {
				return errMalformedXML
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errMalformedXML
			}
		case xml.Directive: // a document type could define entities
			return errMalformedXML
		}
	}
}

// readXML reads the body of a request, verifies it and decodes it. An empty body leaves to as it is and returns false.
func (c *call) readXML(limit int64, root string, to any) (found bool, err error) {
	b, err := c.readBody(limit, optionalCheck)
	if err != nil || len(b) == 0 {
		return false, err
	}
	return true, decodeXML(b, root, to)
}

// A bodyRule is what a body is compared with, beside its signature.
type bodyRule uint8

const (
	optionalCheck bodyRule = iota // the digests that the client sends
	requiredCheck                 // the client must send one
	uncheckedBody
)

// readBody reads a short body and verifies its signature and its digests.
func (c *call) readBody(limit int64, rule bodyRule) ([]byte, error) {
	var check *bodyCheck
	if rule != uncheckedBody {
		var err error
		if check, err = newBodyCheck(c.r.Header); err != nil {
			return nil, err
		}
		if rule == requiredCheck && !check.isRequired() {
			return nil, errNoDigest
		}
	}
	body := c.auth.signed.Body(c.Body())
	if n, ok := body.Length(); ok && n > limit {
		return nil, errXMLTooLong
	}
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, bodyError(err)
	case int64(len(b)) > limit:
		return nil, errXMLTooLong
	}
	if check == nil {
		return b, nil
	}
	_, _ = check.Write(b)
	return b, check.finish(body.Trailer())
}

// A text is a text of a document as an encoding-type wants it.
type encoder func(string) string

// encoding returns the encoding that a list wants for names.
func encoding(kind string) (encoder, error) {
	switch kind {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return escapeKey, nil
	}
	return nil, errArgument.saying("The encoding-type is url.")
}

// escapeKey percent-encodes a key and keeps its slashes.
func escapeKey(key string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// xmlTime is a time as documents have it.
const xmlTime = "2006-01-02T15:04:05.000Z"

func httpTime(ms int64) string { return unix(ms).Format(http.TimeFormat) }
