package sigv4

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scope is the credential scope of a signature.
type scope struct{ date, region, service string }

func (s scope) String() string { return s.date + "/" + s.region + "/" + s.service + "/aws4_request" }

// fields are the parts that both forms of an authorization have.
type fields struct{ credential, signedHeaders, signature string }

// parseHeader reads the form in the header Authorization.
func parseHeader(r *http.Request, params []parameter, now time.Time, p Policy) (*Signed, error) {
	f, err := splitAuthorization(r.Header["Authorization"][0])
	if err != nil {
		return nil, err
	}
	s := &Signed{maxChunk: p.MaxChunk}
	signed, err := s.readFields(f, headerForm, p)
	if err != nil {
		return nil, err
	}
	at, err := requestTime(r)
	if err != nil {
		return nil, err
	}
	s.stamp = at.Format(longDate)
	if err := s.checkScopeDate(headerForm); err != nil {
		return nil, err
	}
	if now.Sub(at).Abs() > p.Skew {
		return nil, refuse(codeRequestTimeTooSkewed, http.StatusForbidden,
			"The difference between the request time %s and the server time %s is larger than %v",
			s.stamp, now.UTC().Format(longDate), p.Skew)
	}
	hash, err := singleHeader(r, "X-Amz-Content-Sha256")
	if err == nil && hash == "" {
		err = refuse(codeMissingSecurityHeader, http.StatusBadRequest, "The header x-amz-content-sha256 is missing")
	}
	if err != nil {
		return nil, err
	}
	return s, s.finish(r, params, signed, hash)
}

// finish reads the payload description and hashes the canonical request.
func (s *Signed) finish(r *http.Request, params []parameter, signed []string, hash string) error {
	if err := checkSigned(r, signed); err != nil {
		return err
	}
	var err error
	if s.payload, err = parsePayload(r, hash); err != nil {
		return err
	}
	if s.presigned && s.payload.isChunked() {
		return refuse(codeInvalidRequest, http.StatusBadRequest, "A presigned URL cannot have a streaming payload")
	}
	s.requests = hashRequests(r, params, signed, hash)
	return nil
}

// splitAuthorization reads the three fields of the header, in any order.
func splitAuthorization(value string) (f fields, err error) {
	for part := range strings.SplitSeq(strings.TrimPrefix(value, algorithm), ",") {
		name, text, ok := strings.Cut(strings.TrimSpace(part), "=")
		var to *string
		switch name {
		case "Credential":
			to = &f.credential
		case "SignedHeaders":
			to = &f.signedHeaders
		case "Signature":
			to = &f.signature
		}
		if !ok || to == nil || *to != "" {
			return f, headerForm.malformed("a field is unknown or repeated; the fields are Credential, SignedHeaders and Signature")
		}
		*to = text
	}
	return f, nil
}

// readFields checks the fields against the policy and returns the signed headers.
func (s *Signed) readFields(f fields, from form, p Policy) (signed []string, err error) {
	if s.accessKey, s.scope, err = parseCredential(f.credential, from); err != nil {
		return nil, err
	}
	switch {
	case s.scope.region != p.Region:
		e := from.malformed("the region '%.64s' is wrong; expecting '%s'", s.scope.region, p.Region)
		e.Region = p.Region
		return nil, e
	case s.scope.service != p.Service:
		return nil, from.malformed("the service '%.64s' is wrong; expecting '%s'", s.scope.service, p.Service)
	}
	if !parseSignature(s.signature[:], f.signature) {
		return nil, from.malformed("Signature must be 64 lower-case hexadecimal digits")
	}
	return parseSignedHeaders(f.signedHeaders, from)
}

// parseCredential splits access key, date, region, service and the constant "aws4_request".
func parseCredential(text string, from form) (accessKey string, to scope, err error) {
	parts := strings.SplitN(text, "/", 6)
	if len(parts) != 5 || parts[4] != "aws4_request" {
		return "", scope{}, from.malformed(`Credential must be "<access key>/YYYYMMDD/<region>/<service>/aws4_request"`)
	}
	if !isAccessKey(parts[0]) {
		return "", scope{}, from.malformed("the access key must have 1 to %d printable characters", MaxAccessKey)
	}
	if _, err := time.Parse(shortDate, parts[1]); err != nil {
		return "", scope{}, from.malformed("the date of the credential must have the form YYYYMMDD")
	}
	return parts[0], scope{parts[1], parts[2], parts[3]}, nil
}

func isAccessKey(key string) bool {
	isPrintable := func(b byte) bool { return b > ' ' && b < 0x7f }
	for i := range len(key) {
		if !isPrintable(key[i]) {
			return false
		}
	}
	return key != "" && len(key) <= MaxAccessKey
}

// parseSignature decodes 64 lower-case hexadecimal digits.
func parseSignature(to []byte, text string) bool {
	if len(text) != hex.EncodedLen(len(to)) || strings.ToLower(text) != text {
		return false
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// parseSignedHeaders splits the names, which must be in lower case, distinct, sorted and contain host.
func parseSignedHeaders(text string, from form) ([]string, error) {
	if strings.Count(text, ";") >= MaxSignedHeaders {
		return nil, from.malformed("SignedHeaders has more than %d names", MaxSignedHeaders)
	}
	names := strings.Split(text, ";")
	for i, name := range names {
		if !isToken(name) || i > 0 && names[i-1] >= name {
			return nil, from.malformed("SignedHeaders must list distinct lower-case names in ascending order")
		}
	}
	if _, ok := slices.BinarySearch(names, "host"); !ok {
		return nil, from.malformed("SignedHeaders must contain host")
	}
	return names, nil
}

// isToken reports whether a name is a lower-case name of a header.
func isToken(name string) bool {
	const others = "!#$%&'*+-.^_`|~"
	for i := range len(name) {
		b := name[i]
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') && strings.IndexByte(others, b) < 0 {
			return false
		}
	}
	return name != ""
}

// checkSigned requires that every x-amz-* header of the request is signed.
func checkSigned(r *http.Request, signed []string) error {
	for key := range r.Header {
		name := strings.ToLower(key)
		if !strings.HasPrefix(name, "x-amz-") {
			continue
		}
		if _, ok := slices.BinarySearch(signed, name); !ok {
			return refuse(codeAccessDenied, http.StatusForbidden, "The header %.64s is present but not signed", name)
		}
	}
	return nil
}

// checkScopeDate requires that the scope has the day of the request.
func (s *Signed) checkScopeDate(from form) error {
	if s.scope.date != s.stamp[:len(shortDate)] {
		return from.malformed("the date of the credential differs from the date of the request")
	}
	return nil
}

// requestTime reads x-amz-date, or Date if it is absent.
func requestTime(r *http.Request) (time.Time, error) {
	text, err := singleHeader(r, "X-Amz-Date")
	if err != nil {
		return time.Time{}, err
	}
	if text == "" {
		if text, err = singleHeader(r, "Date"); err != nil {
			return time.Time{}, err
		}
		if at, err := http.ParseTime(text); err == nil {
			return at.UTC(), nil
		}
	}
	at, err := time.Parse(longDate, text)
	if err != nil {
		return time.Time{}, refuse(codeAccessDenied, http.StatusForbidden, "A valid header x-amz-date or Date is required")
	}
	return at, nil
}

// singleHeader returns the value of a header that may occur once; an absent one is empty.
func singleHeader(r *http.Request, key string) (string, error) {
	values := r.Header[key]
	if len(values) > 1 {
		return "", refuse(codeInvalidRequest, http.StatusBadRequest, "The header %s is repeated", strings.ToLower(key))
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}

// parsePresigned reads the form in the query.
func parsePresigned(r *http.Request, params []parameter, now time.Time, p Policy) (*Signed, error) {
	var f fields
	var name, date, expires, hash string
	for _, field := range []struct {
		name     string
		to       *string
		required bool
	}{
		{"X-Amz-Algorithm", &name, true}, {"X-Amz-Credential", &f.credential, true}, {"X-Amz-Date", &date, true},
		{"X-Amz-Expires", &expires, true}, {"X-Amz-SignedHeaders", &f.signedHeaders, true},
		{"X-Amz-Signature", &f.signature, true}, {"X-Amz-Content-Sha256", &hash, false},
	} {
		value, count := findParameter(params, field.name)
		if count > 1 || field.required && value == "" {
			return nil, queryForm.malformed("%s is missing or repeated", field.name)
		}
		*field.to = value
	}
	if name != algorithm {
		return nil, queryForm.malformed("X-Amz-Algorithm must be %s", algorithm)
	}
	s := &Signed{maxChunk: p.MaxChunk, presigned: true, stamp: date}
	signed, err := s.readFields(f, queryForm, p)
	if err != nil {
		return nil, err
	}
	if err := s.checkExpiry(date, expires, now, p); err != nil {
		return nil, err
	}
	if hash, err = presignedHash(r, hash); err != nil {
		return nil, err
	}
	return s, s.finish(r, params, signed, hash)
}

// checkExpiry checks the period in which a presigned URL is valid.
func (s *Signed) checkExpiry(date, expires string, now time.Time, p Policy) error {
	at, err := time.Parse(longDate, date)
	if err != nil || at.Format(longDate) != date {
		return queryForm.malformed("X-Amz-Date must have the form YYYYMMDDTHHMMSSZ")
	}
	if err := s.checkScopeDate(queryForm); err != nil {
		return err
	}
	seconds, err := strconv.ParseUint(expires, 10, 32)
	if err != nil || seconds < 1 || seconds > MaxExpires {
		return queryForm.malformed("X-Amz-Expires must be a number of seconds from 1 to %d", MaxExpires)
	}
	switch {
	case at.Sub(now) > p.Skew:
		return refuse(codeAccessDenied, http.StatusForbidden, "Request is not valid yet")
	case now.After(at.Add(time.Duration(seconds) * time.Second)):
		return refuse(codeAccessDenied, http.StatusForbidden, "Request has expired")
	}
	return nil
}

// presignedHash returns the payload hash of a presigned URL: the parameter, the header, or
// UNSIGNED-PAYLOAD if neither is present.
func presignedHash(r *http.Request, parameter string) (string, error) {
	header, err := singleHeader(r, "X-Amz-Content-Sha256")
	switch {
	case err != nil:
		return "", err
	case header != "" && parameter != "" && header != parameter:
		return "", refuse(codeInvalidRequest, http.StatusBadRequest, "The header x-amz-content-sha256 differs from the query")
	case header != "":
		return header, nil
	case parameter != "":
		return parameter, nil
	}
	return unsignedPayload, nil
}
