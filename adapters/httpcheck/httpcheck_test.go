package httpcheck

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHost covers every form of a host, and those that only look like one.
func TestHost(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "a": "a", "A.Example": "a.example", "a.example.": "a.example", "a:80": "a", "a.:80": "a", "a:": "a", "a:65535": "a",
		"my_service": "my_service", "127.0.0.1:8080": "127.0.0.1", "[::1]": "[::1]", "[::1]:80": "[::1]", "[FE80::1]": "[fe80::1]",
		strings.Repeat("a", 63) + ".b": strings.Repeat("a", 63) + ".b",
	} {
		if name, ok := Host(value); !ok || name != want {
			t.Errorf("%q is %q, %v", value, name, ok)
		}
	}
	for _, value := range []string{
		":80", ".", "..", "a..b", ".a", "a..", "a:abc", "a:-1", "a:65536", "a:999999999999999999999", "a:80:80", "::1", "[::1", "::1]", "[::1]x", "[::1]:x",
		"[1.2.3.4]", "[a]", "[fe80::1%25eth0]", "a b", " a", "a/b", "a@b", "a,b", "a%41", "a\\b", "a\r\nb", "a\x00", "\xc3\xa4", "a?b", "a#b",
		strings.Repeat("a", 64), strings.Repeat("a.", 128) + "a",
	} {
		if name, ok := Host(value); ok {
			t.Errorf("%q is %q", value, name)
		}
	}
}

// TestRequest changes one part of a good request at a time.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		change func(*http.Request)
		want   string // part of the sentence; empty: the request is good
	}{
		{func(*http.Request) {}, ""},
		{func(r *http.Request) { r.Method = "PROPFIND" }, ""},
		{func(r *http.Request) { r.Method = "" }, "The method is"},
		{func(r *http.Request) { r.Method = "(" }, "The method is"},
		{func(r *http.Request) { r.Method = "GET /" }, "The method is"},
		{func(r *http.Request) { r.RequestURI = "" }, ""}, // that of the URL
		{func(r *http.Request) { r.RequestURI = "/a?b={c}|d[]" }, ""},
		{func(r *http.Request) { r.RequestURI = "/a b" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "/a?b c" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "/a#b" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "/a\x7f" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "/a\x80" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "a" }, "The target"},
		{func(r *http.Request) { r.RequestURI = "*" }, "The target"},
		{func(r *http.Request) { r.Method, r.RequestURI = "OPTIONS", "*" }, ""},
		{func(r *http.Request) { r.Method, r.RequestURI = "CONNECT", "a:80" }, ""},
		{func(r *http.Request) { r.RequestURI = "HTTP://a/b" }, ""},
		{func(r *http.Request) { r.RequestURI, r.ProtoMajor = "http://a/b", 2 }, "The target"},
		{func(r *http.Request) { r.RequestURI = "ftp://a/b" }, "The target"},
		{func(r *http.Request) { r.Host = "" }, "The Host is missing"},
		{func(r *http.Request) { r.Host, r.ProtoMinor = "", 0 }, ""},
		{func(r *http.Request) { r.Host = "a..b" }, "The Host is not"},
		{func(r *http.Request) { r.Header["X-A"] = []string{"", "b\tc \x80"} }, ""},
		{func(r *http.Request) { r.Header["X-A"] = []string{"b", "c "} }, "The value of the header field X-A begins or ends"},
		{func(r *http.Request) { r.Header["X-A"] = []string{"\tc"} }, "The value of the header field X-A begins or ends"},
		{func(r *http.Request) { r.Header["X-A"] = []string{" "} }, "The value of the header field X-A begins or ends"},
		{func(r *http.Request) { r.Header["X-A"] = []string{"b\r\nX-B: c"} }, "The value of the header field X-A contains a control"},
		{func(r *http.Request) { r.Header[strings.Repeat("A", 65)] = []string{"\x00"} }, "The value of a header field contains a control"},
		{func(r *http.Request) { r.Header["Cookie"] = []string{"a=1; "} }, ""},
		{func(r *http.Request) { r.Header["Cookie"] = []string{"a=1;  "} }, "begins or ends"},
		{func(r *http.Request) { r.Header[""] = nil }, "The name of a header field"},
		{func(r *http.Request) { r.Header["A b"] = nil }, "The name of a header field"},
		{func(r *http.Request) { r.Trailer = http.Header{"X-A": nil} }, ""},
		{func(r *http.Request) { r.Trailer = http.Header{"": nil} }, "The name of a trailer field"},
		{func(r *http.Request) { r.Trailer = http.Header{"X-A:": nil} }, "The name of a trailer field"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/a?b", nil)
		c.change(r)
		err := Request(r)
		var as *Error
		if (err == nil) != (c.want == "") || err != nil && (!errors.As(err, &as) || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\"\\")) {
			t.Errorf("%s %q %q %v %v: %v, want %q", r.Method, r.RequestURI, r.Host, r.Header, r.Trailer, err, c.want)
		}
	}
}

// TestRequestDoesNotAllocate keeps the check off the heap for a good request.
func TestRequestDoesNotAllocate(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/a?b", nil)
	r.Header.Set("Accept", "text/html")
	if n := testing.AllocsPerRun(100, func() { _ = Request(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	r := httptest.NewRequestWithContext(b.Context(), "GET", "/api/v1/things?limit=10", nil)
	for name, value := range map[string]string{"Accept": "application/json", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
		"Accept-Encoding": "gzip, deflate, br", "Authorization": "Bearer 0123456789012345678901234567890123456789012345", "Cookie": "session=0123456789; theme=dark"} {
		r.Header.Set(name, value)
	}
	for b.Loop() {
		if Request(r) != nil {
			b.Fatal("refused")
		}
	}
}
