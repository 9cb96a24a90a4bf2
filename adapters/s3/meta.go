package s3

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"macronode/adapters/checksum"
	"macronode/core/storage"
)

// metaVersion is the first byte of metadata.
const metaVersion = 1

// The tags of the fields of metadata, in the order in which they are encoded. Their numbers are permanent.
const (
	tagContentType uint8 = iota + 1
	tagContentEncoding
	tagContentDisposition
	tagContentLanguage
	tagCacheControl
	tagExpires
	tagChecksum
	tagPartSize
	tagUser // repeated, by name
)

// storedHeaders are the headers of an object that are stored as they are, by tag.
var storedHeaders = [...]string{tagContentType: "Content-Type", tagContentEncoding: "Content-Encoding", tagContentDisposition: "Content-Disposition",
	tagContentLanguage: "Content-Language", tagCacheControl: "Cache-Control", tagExpires: "Expires"}

// Errors of metadata.
var (
	errMetaForm = errors.New("s3: the metadata of the object is malformed")
	errMetaSize = errors.New("s3: the metadata of the object is too long")
)

// A userField is one header x-amz-meta-NAME. Its name has lowercase letters.
type userField struct{ name, value string }

// Meta is the metadata of an object, beside its row.
//
//	metadata: version 1 · fields              empty: nothing
//	field:    tag 1 · length uvarint · value  tags ascend; a user field is name length uvarint · name · value
//	checksum: algorithm 1 · type 1 · sum
type Meta struct {
	headers  [len(storedHeaders)]string // by tag
	checksum storedChecksum
	partSize uint64 // of each part but the last one; 0: not known
	user     []userField
}

// encode returns the form of m in a record. Its error is errMetaSize.
func (m *Meta) encode() ([]byte, error) {
	b := []byte{metaVersion}
	for tag, value := range m.headers {
		if value != "" {
			b = appendField(b, uint8(tag), value)
		}
	}
	if c := m.checksum; c.algorithm != checksum.None {
		b = appendField(b, tagChecksum, string([]byte{byte(c.algorithm), byte(c.kind)})+c.sum)
	}
	if m.partSize > 0 {
		b = appendField(b, tagPartSize, string(binary.AppendUvarint(nil, m.partSize)))
	}
	for _, f := range m.user {
		b = appendField(b, tagUser, string(binary.AppendUvarint(nil, uint64(len(f.name))))+f.name+f.value)
	}
	switch {
	case len(b) == 1:
		return nil, nil
	case len(b) > storage.MaxMeta:
		return nil, errMetaSize
	}
	return b, nil
}

func appendField(b []byte, tag uint8, value string) []byte {
	return append(binary.AppendUvarint(append(b, tag), uint64(len(value))), value...)
}

// decodeMeta reads metadata. Every text that it accepts is the one that encode returns.
func decodeMeta(b []byte) (m Meta, err error) {
	if len(b) == 0 {
		return m, nil
	}
	if b[0] != metaVersion || len(b) == 1 || len(b) > storage.MaxMeta {
		return m, errMetaForm
	}
	for last, rest := uint8(0), b[1:]; len(rest) > 0; {
		tag := rest[0]
		n, value, ok := takeUvarint(rest[1:])
		if !ok || n > uint64(len(value)) || tag < last || tag == last && tag != tagUser || !m.decodeField(tag, value[:n]) {
			return Meta{}, errMetaForm
		}
		last, rest = tag, value[n:]
	}
	return m, nil
}

// decodeField reads one field.
func (m *Meta) decodeField(tag uint8, value []byte) bool {
	switch tag {
	case tagChecksum:
		if len(value) < 2 || value[0] == 0 || int(value[0]) > len(checksum.Algorithms) {
			return false
		}
		c := storedChecksum{checksum.Algorithm(value[0]), checksum.Type(value[1]), string(value[2:])}
		m.checksum = c
		whole := c.kind == checksum.FullObject && len(c.sum) == c.algorithm.Size() // of an object in one piece
		return whole || c.isPossible() && (c.sum == "" || len(c.sum) == c.algorithm.Size())
	case tagPartSize:
		n, rest, ok := takeUvarint(value)
		m.partSize = n
		return ok && len(rest) == 0 && n > 0
	case tagUser:
		n, rest, ok := takeUvarint(value)
		if !ok || n == 0 || n > uint64(len(rest)) {
			return false
		}
		f := userField{string(rest[:n]), string(rest[n:])}
		if last := len(m.user) - 1; last >= 0 && m.user[last].name >= f.name {
			return false
		}
		m.user = append(m.user, f)
		return true
	}
	if tag == 0 || int(tag) >= len(storedHeaders) || len(value) == 0 {
		return false
	}
	m.headers[tag] = string(value)
	return true
}

// takeUvarint reads a number in its shortest form.
func takeUvarint(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 1 && b[size-1] == 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

const (
	userPrefix = "X-Amz-Meta-"
	maxUser    = 2 << 10 // bytes of the names and the values of user metadata
)

// readMeta reads the metadata of an object from the headers of a request.
func readMeta(header map[string][]string) (m Meta, err error) {
	size := 0
	for tag, name := range storedHeaders {
		if values := header[name]; name != "" && len(values) > 0 {
			m.headers[tag] = strings.Join(values, ",")
		}
	}
	m.headers[tagContentEncoding] = withoutChunked(m.headers[tagContentEncoding])
	for name, values := range header {
		short, is := strings.CutPrefix(name, userPrefix)
		if !is || short == "" {
			continue
		}
		f := userField{strings.ToLower(short), strings.Join(values, ",")}
		size += len(f.name) + len(f.value)
		m.user = append(m.user, f)
	}
	if size > maxUser {
		return m, errMetadata
	}
	slices.SortFunc(m.user, func(a, b userField) int { return strings.Compare(a.name, b.name) })
	return m, nil
}

// withoutChunked removes aws-chunked, which is the framing of the request and not of the object.
func withoutChunked(encodings string) string {
	var kept []string
	for e := range strings.SplitSeq(encodings, ",") {
		if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "aws-chunked") {
			kept = append(kept, e)
		}
	}
	return strings.Join(kept, ", ")
}

// encodeMeta returns the form of m in a record, or the error of the protocol.
func encodeMeta(m *Meta) ([]byte, error) {
	b, err := m.encode()
	if err != nil {
		return nil, errMetadata
	}
	return b, nil
}

// setHeaders adds the metadata to the headers of a response.
func (m *Meta) setHeaders(h map[string][]string) {
	for tag, value := range m.headers {
		if value != "" {
			h[storedHeaders[tag]] = []string{value}
		}
	}
	if m.headers[tagContentType] == "" {
		h["Content-Type"] = bytesType
	}
	for _, f := range m.user {
		h[userPrefix+f.name] = []string{f.value}
	}
}

var bytesType = []string{"binary/octet-stream"}
