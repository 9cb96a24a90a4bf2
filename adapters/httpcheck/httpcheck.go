// Package httpcheck decides whether a request is well-formed enough to be sent on, and (Unswitched)
// whether a response is one of the requested protocol. Of requests, it applies
// one rule to HTTP/1.1 and HTTP/2: what net/http refuses in one protocol and takes in the
// other is refused in both. A request that passes can be written by every client of this
// program without an error.
package httpcheck

import (
	"net/http"
	"strings"
)

// An Error says which part of a request is malformed.
type Error struct {
	Part   string // "method", "target", "Host", or a header or trailer field
	Reason string // completes the sentence that begins with the part
}

// Error is a sentence in plain ASCII, without quotes. Of the request it contains at most the
// name of a field, and only if that is a token.
func (e *Error) Error() string { return "The " + e.Part + " " + e.Reason + "." }

// maxNameShown is the number of bytes of a field name up to which an Error contains it.
const maxNameShown = 64

// Request returns an *Error if the method, the target, the host, or the name or value of a
// field of r is malformed. It does not read the body: the values of trailer fields are
// checked by the server that reads them. It is safe for concurrent use.
func Request(r *http.Request) error {
	switch {
	case !isToken(r.Method):
		return &Error{"method", "is not a token"}
	case !isTarget(r):
		return &Error{"target", "is not a path, or contains a blank, a fragment, or a byte outside ASCII"}
	case r.Host == "" && r.ProtoAtLeast(1, 1):
		return &Error{"Host", "is missing"}
	}
	if _, ok := Host(r.Host); !ok {
		return &Error{"Host", "is not a host name or address with an optional port"}
	}
	for name, values := range r.Header {
		if !isToken(name) {
			return &Error{"name of a header field", "is not a token"}
		}
		for _, value := range values {
			if reason := valueFault(name, value); reason != "" {
				return &Error{"value of " + field(name), reason}
			}
		}
	}
	for name := range r.Trailer {
		if !isToken(name) {
			return &Error{"name of a trailer field", "is not a token"}
		}
	}
	return nil
}

// field names a header field whose name is a token.
func field(name string) string {
	if len(name) > maxNameShown {
		return "a header field"
	}
	return "the header field " + name
}

// isTarget reports whether the target of r is in origin form, in absolute form (HTTP/1.x
// only), or an asterisk (OPTIONS only), and consists of visible ASCII without a fragment.
// net/http takes more: a blank in a query would end the request line of HTTP/1.1, and an
// origin server may cut the query at a number sign.
func isTarget(r *http.Request) bool {
	target := r.RequestURI
	if target == "" && r.URL != nil { // the request did not come from a server
		target = r.URL.RequestURI()
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	switch {
	case target == "":
		return false
	case r.Method == http.MethodConnect: // its target is an authority
		return true
	case target[0] == '/':
		return true
	case target == "*":
		return r.Method == http.MethodOptions
	}
	return r.ProtoMajor < 2 && (hasPrefixFold(target, "http://") || hasPrefixFold(target, "https://"))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// valueFault returns what is wrong with the value of a header field, or "". A parser of
// HTTP/1.1 removes blanks at the ends of a value; in HTTP/2 they make the request malformed
// (RFC 9113, 8.2.1).
func valueFault(name, value string) string {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "contains a control character"
		}
	}
	if name == "Cookie" { // net/http joins the fields of HTTP/2 with "; ": the last may be empty
		value = strings.TrimSuffix(value, "; ")
	}
	if n := len(value); n > 0 && (isBlank(value[0]) || isBlank(value[n-1])) {
		return "begins or ends with a blank"
	}
	return ""
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isToken reports whether s is a token of RFC 9110, 5.6.2, which is not empty.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenBytes = func() (is [256]bool) {
	for c := byte('!'); c < 0x7f; c++ {
		is[c] = strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) < 0
	}
	return is
}()
