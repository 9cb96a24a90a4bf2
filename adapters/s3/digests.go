package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"

	"macronode/adapters/checksum"
)

// parseMD5 reads an ETag that is an MD5 digest.
func parseMD5(tag string) (digest [md5.Size]byte, ok bool) {
	tag = unquote(strings.TrimSpace(tag))
	if len(tag) != hex.EncodedLen(md5.Size) {
		return digest, false
	}
	_, err := hex.Decode(digest[:], []byte(tag))
	return digest, err == nil
}

// A storedChecksum is that of an object. Its sum is empty in the record of an upload in parts: that has only what the
// parts have in common.
type storedChecksum struct {
	algorithm checksum.Algorithm
	kind      checksum.Type // with an algorithm, not NoType
	sum       string
}

// text returns the value of s in headers and documents. parts is how many an object has.
func (s storedChecksum) text(parts uint16) string {
	if s.kind == checksum.Composite {
		return checksum.EncodeComposite([]byte(s.sum), int(parts))
	}
	return checksum.Encode([]byte(s.sum))
}

// setHeaders adds the checksum to the headers of a response.
func (s storedChecksum) setHeaders(h http.Header, parts uint16) {
	if s.sum != "" {
		h.Set(s.algorithm.Header(), s.text(parts))
		h.Set(checksum.TypeHeader, s.kind.String())
	}
}

// checksumFields are the elements of a document with the checksum of an object.
type checksumFields struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// field returns the element for an algorithm; nil if there is none.
func (f *checksumFields) field(a checksum.Algorithm) *string {
	switch a {
	case checksum.CRC32:
		return &f.ChecksumCRC32
	case checksum.CRC32C:
		return &f.ChecksumCRC32C
	case checksum.CRC64NVME:
		return &f.ChecksumCRC64NVME
	case checksum.SHA1:
		return &f.ChecksumSHA1
	case checksum.SHA256:
		return &f.ChecksumSHA256
	case checksum.None:
	}
	return nil
}

// checksumFields returns the elements with the checksum of f.
func (f *found) checksumFields() (fields checksumFields) {
	if s := f.meta.checksum; s.sum != "" {
		*fields.field(s.algorithm) = s.text(f.details.ETag.Parts)
		fields.ChecksumType = s.kind.String()
	}
	return fields
}

// showChecksum adds the checksum of f to the response, if the request wants it.
func (c *call) showChecksum(f *found) {
	if strings.EqualFold(c.r.Header.Get(checksum.ModeHeader), "ENABLED") {
		f.meta.checksum.setHeaders(c.Header(), f.details.ETag.Parts)
	}
}

// A bodyCheck hashes a body and compares it with the digests that the client sent.
type bodyCheck struct {
	md5      hash.Hash
	wantMD5  []byte // nil: not sent
	expected checksum.Expected
	verifier *checksum.Verifier
}

// newBodyCheck reads the headers with digests.
func newBodyCheck(h http.Header) (*bodyCheck, error) {
	e, err := checksum.Parse(h)
	if err != nil {
		return nil, err
	}
	c := &bodyCheck{md5: md5.New(), wantMD5: e.MD5}
	e.MD5 = nil // it is computed anyway
	c.expected, c.verifier = e, checksum.NewVerifier(e)
	return c, nil
}

// isRequired reports whether the client sent a digest.
func (c *bodyCheck) isRequired() bool {
	return c.wantMD5 != nil || c.expected.Algorithm != checksum.None
}

// Write hashes p.
func (c *bodyCheck) Write(p []byte) (int, error) {
	_, _ = c.md5.Write(p) // hashes do not fail
	return c.verifier.Write(p)
}

// finish compares the digests after the body has ended.
func (c *bodyCheck) finish(trailer map[string]string) error {
	if c.wantMD5 != nil && !bytes.Equal(c.wantMD5, c.md5.Sum(nil)) {
		return errDigest
	}
	return c.verifier.Check(trailer)
}

// digest returns the MD5 digest of the body.
func (c *bodyCheck) digest() (digest [md5.Size]byte) {
	c.md5.Sum(digest[:0])
	return digest
}

// stored returns what is kept of the checksum.
func (c *bodyCheck) stored() storedChecksum {
	if c.expected.Algorithm == checksum.None {
		return storedChecksum{}
	}
	return storedChecksum{c.expected.Algorithm, checksum.FullObject, string(c.verifier.Sum())}
}
