package checksum

import (
	"bytes"
	"crypto/md5"
	"hash"
)

// Verifier computes what a request announces while content is written to it. It is not safe for
// concurrent use.
type Verifier struct {
	expected Expected
	sum      hash.Hash // nil: none
	md5      hash.Hash // nil: none
}

// NewVerifier returns a verifier. It computes only what is expected.
func NewVerifier(e Expected) *Verifier {
	v := &Verifier{expected: e}
	if e.Algorithm != None {
		v.sum = New(e.Algorithm)
	}
	if e.MD5 != nil {
		v.md5 = md5.New()
	}
	return v
}

// Write adds content. It returns no error.
func (v *Verifier) Write(p []byte) (int, error) {
	if v.sum != nil {
		v.sum.Write(p)
	}
	if v.md5 != nil {
		v.md5.Write(p)
	}
	return len(p), nil
}

// Sum returns the checksum of the content so far; nil if none is expected.
func (v *Verifier) Sum() []byte {
	if v.sum == nil {
		return nil
	}
	return v.sum.Sum(nil)
}

// Check compares the content with what is expected. trailer has the values of the trailer by
// lower-case name; it may be nil if no checksum is expected there. The error is an *Error: BadDigest
// if the content differs, MalformedTrailerError if the trailer lacks the checksum, InvalidRequest if
// its value is malformed.
func (v *Verifier) Check(trailer map[string]string) error {
	a, want := v.expected.Algorithm, v.expected.Sum
	if v.expected.InTrailer() {
		text, ok := trailer[a.Header()]
		if !ok {
			return refuse("MalformedTrailerError", "The trailer lacks %s", a.Header())
		}
		if want, ok = Decode(a, text); !ok {
			return refuse(codeInvalidRequest, "The value of the trailer %s is not the base64 of %d bytes", a.Header(), a.Size())
		}
	}
	if v.sum != nil && !bytes.Equal(v.Sum(), want) {
		return refuse("BadDigest", "The %s of the request does not match the content", a)
	}
	if v.md5 != nil && !bytes.Equal(v.md5.Sum(nil), v.expected.MD5) {
		return refuse("BadDigest", "The Content-MD5 of the request does not match the content")
	}
	return nil
}
