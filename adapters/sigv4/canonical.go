package sigv4

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parameter is one parameter of a query, decoded and in canonical encoding.
type parameter struct{ name, value, encodedName, encodedValue string }

// parseQuery decodes a query and sorts it by encoded name and value. A query that url.ParseQuery
// does not read completely is rejected: its readers would see another query than the signature covers.
func parseQuery(raw string) ([]parameter, error) {
	if strings.Count(raw, "&") >= MaxQueryParameters {
		return nil, refuse(codeInvalidURI, http.StatusBadRequest, "The query has more than %d parameters", MaxQueryParameters)
	}
	var params []parameter
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		left, right, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(left)
		value, other := url.QueryUnescape(right)
		if err != nil || other != nil || strings.Contains(pair, ";") {
			return nil, refuse(codeInvalidURI, http.StatusBadRequest, "The query is not encoded correctly")
		}
		params = append(params, parameter{name, value, encode(name), encode(value)})
	}
	slices.SortFunc(params, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.encodedName, b.encodedName), cmp.Compare(a.encodedValue, b.encodedValue))
	})
	return params, nil
}

// findParameter returns the last value of a parameter and how often it occurs.
func findParameter(params []parameter, name string) (value string, count int) {
	for i := range params {
		if params[i].name == name {
			value = params[i].value
			count++
		}
	}
	return value, count
}

// hashRequests hashes the canonical request for each accepted form of the path. If the authorization
// is in the query, the signature itself is left out.
func hashRequests(r *http.Request, params []parameter, signed []string, hash string) [][sha256.Size]byte {
	rest := make([]byte, 0, 1024)
	rest = append(appendQuery(append(rest, '\n'), params), '\n')
	rest = appendHeaders(rest, r, signed)
	rest = append(rest, '\n')
	for i, name := range signed {
		if i > 0 {
			rest = append(rest, ';')
		}
		rest = append(rest, name...)
	}
	rest = append(append(rest, '\n'), hash...)

	sent := sentPath(r)
	paths := []string{sent}
	if encoded, ok := encodePath(sent); ok && encoded != sent {
		paths = append(paths, encoded)
	}
	hashes := make([][sha256.Size]byte, 0, len(paths))
	for _, path := range paths {
		digest := sha256.New()
		digest.Write([]byte(r.Method + "\n" + path))
		digest.Write(rest)
		hashes = append(hashes, [sha256.Size]byte(digest.Sum(nil)))
	}
	return hashes
}

// sentPath returns the path as the client sent it, still encoded.
func sentPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ = strings.Cut(r.RequestURI, "?")
	}
	if path == "" {
		return "/"
	}
	return path
}

// encodePath decodes each segment of a path and encodes it as AWS does.
func encodePath(path string) (encoded string, ok bool) {
	to := make([]byte, 0, len(path)+16)
	for i := 0; ; i++ {
		segment, rest, more := strings.Cut(path, "/")
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return "", false
		}
		if i > 0 {
			to = append(to, '/')
		}
		to = appendEncoded(to, plain)
		if path = rest; !more {
			return string(to), true
		}
	}
}

func appendQuery(to []byte, params []parameter) []byte {
	first := true
	for i := range params {
		if params[i].name == "X-Amz-Signature" {
			continue
		}
		if !first {
			to = append(to, '&')
		}
		first = false
		to = append(to, params[i].encodedName...)
		to = append(to, '=')
		to = append(to, params[i].encodedValue...)
	}
	return to
}

// appendHeaders appends a line for each signed header. A header that the request lacks is empty.
func appendHeaders(to []byte, r *http.Request, signed []string) []byte {
	for _, name := range signed {
		to = append(append(to, name...), ':')
		for i, value := range headerValues(r, name) {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendTrimmed(to, value)
		}
		to = append(to, '\n')
	}
	return to
}

// headerValues returns the values of a header, including those that net/http moves out of Header.
func headerValues(r *http.Request, name string) []string {
	switch name {
	case "host":
		return []string{r.Host}
	case "content-length":
		if r.ContentLength < 0 {
			return nil
		}
		return []string{strconv.FormatInt(r.ContentLength, 10)}
	case "transfer-encoding":
		return r.TransferEncoding
	}
	values := r.Header[textproto.CanonicalMIMEHeaderKey(name)]
	if name == "expect" && len(values) == 0 {
		return []string{"100-continue"} // a proxy removes it; it has only this value
	}
	return values
}

// appendTrimmed appends a value without outer blanks, and with one blank for each inner run of spaces.
func appendTrimmed(to []byte, value string) []byte {
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if value[i] == ' ' && value[i-1] == ' ' { // the first byte is no blank
			continue
		}
		to = append(to, value[i])
	}
	return to
}

func encode(text string) string { return string(appendEncoded(make([]byte, 0, len(text)+16), text)) }

// appendEncoded appends the percent-encoding of AWS: only letters, digits and -._~ stay.
func appendEncoded(to []byte, text string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		b := text[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-', b == '.', b == '_', b == '~':
			to = append(to, b)
		default:
			to = append(to, '%', digits[b>>4], digits[b&15])
		}
	}
	return to
}
