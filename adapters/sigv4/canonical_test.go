package sigv4_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"macronode/adapters/sigv4"
)

// readRequest reads a request head. Host, date and payload hash are added.
func readRequest(t *testing.T, head ...string) *http.Request {
	t.Helper()
	head = append(head, "Host: s3.example.com", "X-Amz-Date: "+stamp, "X-Amz-Content-Sha256: "+unsigned)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Join(head, "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// accepts reports whether a request verifies if the client signed the path and the header names.
func accepts(t *testing.T, r *http.Request, path, names string) bool {
	t.Helper()
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+accessKey+"/20260504/"+region+"/s3/aws4_request,SignedHeaders="+names+
		",Signature="+simpleSignature(r, path, names, unsigned, stamp, secret))
	s, err := sigv4.Parse(r, at, policy)
	if err != nil {
		t.Fatal(err)
	}
	return s.Verify(secret, nil) == nil
}

const names = "host;x-amz-content-sha256;x-amz-date"

// TestPathForms: a client signs the path as it sends it, or in the encoding of AWS. A path that
// decodes to another one, or that is encoded twice or normalised, does not verify.
func TestPathForms(t *testing.T) {
	for _, c := range []struct {
		sent, signed string
		want         bool
	}{
		{"/bucket/key", "/bucket/key", true},
		{"/a+b", "/a+b", true},
		{"/a+b", "/a%2Bb", true},
		{"/a+b", "/a%20b", false},
		{"/a%2bb", "/a%2bb", true},
		{"/a%2bb", "/a%2Bb", true},
		{"/a%20b", "/a%20b", true},
		{"/a%20b", "/a%2520b", false},
		{"/a\"b", "/a\"b", true},
		{"/a\"b", "/a%22b", true},
		{"/ä", "/%C3%A4", true},
		{"/%61", "/a", true},
		{"/a", "/%61", false},
		{"/a%2Fb", "/a%2Fb", true},
		{"/a%2fb", "/a%2Fb", true},
		{"/a%2Fb", "/a/b", false},
		{"/a/b", "/a%2Fb", false},
		{"/a//b", "/a//b", true},
		{"/a//b", "/a/b", false},
		{"/a/../b", "/a/../b", true},
		{"/a/../b", "/b", false},
		{"//a", "//a", true},
		{"http://s3.example.com", "/", true},
		{"http://s3.example.com/a%20b", "/a%20b", true},
	} {
		if got := accepts(t, readRequest(t, "GET "+c.sent+" HTTP/1.1"), c.signed, names); got != c.want {
			t.Errorf("sent %s, signed %s: %v", c.sent, c.signed, got)
		}
	}
	r := readRequest(t, "GET /a+b?x HTTP/1.1") // a request that was not read from a connection
	r.RequestURI = ""
	if !accepts(t, r, "/a+b", names) {
		t.Error("without RequestURI, the URL is not used")
	}
}

// TestQueryForms: all encodings of a query that url.ParseQuery reads alike verify alike.
func TestQueryForms(t *testing.T) {
	for _, query := range []string{"", "acl", "acl=", "b=2&a=1", "a=2&a=1&a", "a=+", "a=%20", "a=%2B", "a=b=c", "a%3Db=c", "&&a=1&", "ä=ö", "a-=1&a=2", "A=%2f/-"} {
		if !accepts(t, readRequest(t, "GET /?"+query+" HTTP/1.1"), "/", names) {
			t.Errorf("%q does not verify", query)
		}
	}
}

// TestHeaderForms: values are trimmed and joined, and headers that net/http moves are found.
func TestHeaderForms(t *testing.T) {
	for names, head := range map[string][]string{
		"host;x-amz-content-sha256;x-amz-date;x-amz-meta-a":      {"x-amz-meta-a:   a  b   c ", "X-AMZ-META-A: d"},
		"host;x-amz-content-sha256;x-amz-date;x-amz-meta-b":      {"x-amz-meta-b:"},
		"host;range;x-amz-content-sha256;x-amz-date":             nil, // absent
		"content-length;host;x-amz-content-sha256;x-amz-date":    {"Content-Length: 7"},
		"host;transfer-encoding;x-amz-content-sha256;x-amz-date": {"Transfer-Encoding: chunked"},
		"expect;host;x-amz-content-sha256;x-amz-date":            nil, // removed by a proxy
	} {
		if !accepts(t, readRequest(t, append([]string{"PUT / HTTP/1.1"}, head...)...), "/", names) {
			t.Errorf("%s does not verify", names)
		}
	}
	r := readRequest(t, "GET / HTTP/1.1")
	r.Header["X-Amz-Meta-A"] = []string{" \t a  b \t"} // as middleware may leave it
	if !accepts(t, r, "/", "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a") {
		t.Error("a value with outer blanks does not verify")
	}
}

// TestDateHeader: without x-amz-date, the header Date has the time, in either format.
func TestDateHeader(t *testing.T) {
	for _, date := range []string{"Mon, 04 May 2026 12:00:00 GMT", stamp} {
		r := readRequest(t, "GET / HTTP/1.1", "Date: "+date)
		r.Header.Del("X-Amz-Date")
		if !accepts(t, r, "/", "date;host;x-amz-content-sha256") {
			t.Errorf("%s does not verify", date)
		}
	}
}
