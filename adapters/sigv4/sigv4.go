// Package sigv4 verifies AWS Signature Version 4 on the server side, in the form that S3 uses.
//
//	request ─► Parse ─► Signed ─► Verify(secret) ─► Body(reader) ─► payload, decoded and verified
//	             │                  │                 └── io.EOF: the whole payload was verified
//	             └──────────────────┴── *Error: code, status and message of S3
//
// Parse checks everything that needs no secret: form, date, scope, expiry and the list of signed
// headers. Verify computes one signature. Both need only the head of the request, no body.
//
// The path is signed as it was sent, or with the encoding of AWS; both decode to the same path.
// A slash and its escape %2F stay distinct. In the query, "+" is a space, as in url.ParseQuery.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"
)

// Limits of one request. The size of the head is limited by the HTTP server.
const (
	MaxSignedHeaders   = 256      // names in SignedHeaders
	MaxQueryParameters = 128      // parameters of a query
	MaxAccessKey       = 128      // bytes of an access key
	MaxExpires         = 604800   // seconds that a presigned URL is valid: a week
	MaxChunkHeader     = 4 << 10  // bytes of the header line of a chunk, and of one line of the trailer
	MaxTrailer         = 8 << 10  // bytes of the trailer
	MaxTrailers        = 16       // names in x-amz-trailer
	MaxChunk           = 64 << 20 // upper bound of Policy.MaxChunk
	DefaultMaxChunk    = 1 << 20  // Policy.MaxChunk if it is 0
	longDate           = "20060102T150405Z"
	shortDate          = "20060102"
)

// DefaultSkew is Policy.Skew if it is 0.
const DefaultSkew = 15 * time.Minute

// Policy is what a server accepts.
type Policy struct {
	Region   string        // region of the credential scope
	Service  string        // service of the credential scope: "s3"
	Skew     time.Duration // difference between the clocks of client and server; 0: DefaultSkew
	MaxChunk int           // bytes of one signed chunk, which is buffered; 0: DefaultMaxChunk; at most MaxChunk
}

// normalize returns the policy with its defaults.
func (p Policy) normalize() Policy {
	if p.Skew <= 0 {
		p.Skew = DefaultSkew
	}
	if p.MaxChunk <= 0 {
		p.MaxChunk = DefaultMaxChunk
	}
	p.MaxChunk = min(p.MaxChunk, MaxChunk)
	return p
}

// Signed is the authorization of one request. It keeps no reference to the request. It is not
// safe for concurrent use.
type Signed struct {
	accessKey string
	scope     scope
	stamp     string // time of the signature in the format longDate
	presigned bool
	signature [sha256.Size]byte
	requests  [][sha256.Size]byte // hashes of the accepted canonical requests: one, or two if the path has two forms
	payload   payload
	maxChunk  int

	key      []byte // signing key, set by Verify
	verified bool
}

// AccessKey returns the access key that the request names. It is not verified before Verify succeeds.
func (s *Signed) AccessKey() string { return s.accessKey }

// Presigned reports whether the query contains the signature.
func (s *Signed) Presigned() bool { return s.presigned }

// IsSigned reports whether the request carries an AWS signature, of any version and in any form.
// It looks at names only and allocates nothing.
func IsSigned(r *http.Request) bool {
	for _, value := range r.Header["Authorization"] {
		if schemeOf(value) != schemeOther {
			return true
		}
	}
	return querySchemeOf(r.URL.RawQuery) != schemeOther
}

// Parse reads the authorization of a request from the header Authorization or from the query of a
// presigned URL. It checks form, date, scope and expiry, and that host and every x-amz-* header are
// signed. Without an AWS signature it returns ErrMissing; every other error is an *Error. It does not
// read the body.
func Parse(r *http.Request, now time.Time, p Policy) (*Signed, error) {
	p = p.normalize()
	header, query := r.Header["Authorization"], querySchemeOf(r.URL.RawQuery)
	if !IsSigned(r) {
		return nil, ErrMissing
	}
	switch {
	case query != schemeOther && len(header) > 0:
		return nil, refuse(codeInvalidArgument, http.StatusBadRequest,
			"Only one authorization is allowed: the header Authorization or the query")
	case len(header) > 1:
		return nil, refuse(codeInvalidRequest, http.StatusBadRequest, "The header Authorization is repeated")
	case query == schemeUnsupported, query == schemeOther && schemeOf(header[0]) == schemeUnsupported:
		return nil, refuse(codeInvalidRequest, http.StatusBadRequest,
			"The authorization mechanism is not supported; use AWS4-HMAC-SHA256")
	}
	params, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	if query == schemeV4 {
		return parsePresigned(r, params, now, p)
	}
	return parseHeader(r, params, now, p)
}

// Verify computes the signature with the secret of the access key and compares it in constant time.
// cache may be nil; it keeps the signing key after success. An empty secret verifies nothing. The
// error is an *Error with code SignatureDoesNotMatch.
func (s *Signed) Verify(secret string, cache *KeyCache) error {
	id := keyID{s.accessKey, s.scope, secret}
	key, cached := cache.find(id)
	if !cached {
		key = deriveKey(secret, s.scope)
	}
	match := false
	for _, request := range s.requests {
		mac := sign(key, stringToSign(s.stamp, s.scope, request))
		match = hmac.Equal(mac, s.signature[:]) || match
	}
	if !match || secret == "" {
		return refuse(codeSignatureDoesNotMatch, http.StatusForbidden,
			"The request signature does not match the signature that was computed; check the secret key and the signing method")
	}
	if !cached {
		cache.add(id, key)
	}
	s.key, s.verified = key, true
	return nil
}

// scheme is the kind of an authorization.
type scheme uint8

const (
	schemeOther       scheme = iota // none, or not of AWS
	schemeV4                        // AWS4-HMAC-SHA256
	schemeUnsupported               // signature version 2, or 4A
)

const algorithm = "AWS4-HMAC-SHA256"

// schemeOf returns the scheme of a value of the header Authorization.
func schemeOf(value string) scheme {
	name, _, _ := strings.Cut(value, " ")
	switch {
	case name == algorithm:
		return schemeV4
	case name == "AWS", strings.HasPrefix(name, "AWS4-"):
		return schemeUnsupported
	}
	return schemeOther
}

// querySchemeOf returns the scheme of a query.
func querySchemeOf(raw string) scheme {
	found := schemeOther
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "X-Amz-Algorithm" && strings.HasPrefix(value, "AWS4-ECDSA"), name == "AWSAccessKeyId":
			return schemeUnsupported
		case name == "X-Amz-Algorithm", name == "X-Amz-Credential", name == "X-Amz-Signature":
			found = schemeV4
		}
	}
	return found
}
