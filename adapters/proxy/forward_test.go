package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
)

// echo answers with the request that it received.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.Header().Set("X-Saw", fmt.Sprintf("%s %s %s %d %q %v", r.Method, r.Host, r.RequestURI, r.ContentLength, r.TransferEncoding, err))
	for name, values := range r.Header {
		w.Header()["Saw-"+name] = values
	}
	_, _ = w.Write(body)
}

func TestRequestIsForwarded(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/a/b?x=1;y=%zz", "", `GET HOST /a/b?x=1;y=%zz 0 [] <nil>`},
		{"POST", "/a%2fb//c%20d", "hello", `POST HOST /a%2fb//c%20d 5 [] <nil>`},
		{"DELETE", "/", "", `DELETE HOST / 0 [] <nil>`},
		{"PATCH", "/?", strings.Repeat("x", 1<<20), `PATCH HOST /? 1048576 [] <nil>`},
	} {
		r := h.request(c.method, c.path, strings.NewReader(c.body), "X-Mine", "1", "X-Mine", "2")
		a := h.do(r)
		want := strings.ReplaceAll(c.want, "HOST", r.URL.Host)
		if a.err != nil || a.status != 200 || a.header.Get("X-Saw") != want || a.body != c.body || strings.Join(a.header["Saw-X-Mine"], ",") != "1,2" {
			t.Errorf("%s %s: %d, %s, %d bytes, %v, want %s", c.method, c.path, a.status, a.header.Get("X-Saw"), len(a.body), a.err, want)
		}
	}
	// a body of unknown length stays one
	a := h.do(h.request("POST", "/", io.MultiReader(strings.NewReader("un"), strings.NewReader("known"))))
	if a.body != "unknown" || !strings.HasSuffix(a.header.Get("X-Saw"), ` -1 ["chunked"] <nil>`) {
		t.Errorf("%q, %s", a.body, a.header.Get("X-Saw"))
	}
	if got := h.port.results(); got != strings.Repeat(" answered completed", 5) {
		t.Error(got)
	}
}

// Responses without a body keep their fields.
func TestResponsesWithoutBody(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(304)
		default:
			w.Header().Set("Content-Length", "12345")
		}
	}))
	for path, want := range map[string]string{"/204": "204 ", "/304": "304 ", "/head": "200 12345"} {
		method := "GET"
		if path == "/head" {
			method = "HEAD"
		}
		a := h.do(h.request(method, path, nil))
		if got := fmt.Sprint(a.status, " ", a.header.Get("Content-Length")); got != want || a.body != "" || a.err != nil {
			t.Errorf("%s: %s %q %v, want %s", path, got, a.body, a.err, want)
		}
	}
}

// Hop-by-hop fields are removed in both directions, including those that Connection names.
func TestHopByHopFieldsAreRemoved(t *testing.T) {
	h := newGateway(t, nil, servesRaw(t, func(c net.Conn, _ *bufio.Reader) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Their-Own\r\nX-Their-Own: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n"+
			"Upgrade: h2c\r\nX-Goes: 1\r\nContent-Length: 2\r\n\r\nok")
	}))
	a := h.get("/")
	for name, want := range map[string]string{"X-Their-Own": "", "Keep-Alive": "", "Proxy-Authenticate": "", "Upgrade": "", "Connection": "", "X-Goes": "1"} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s came: %q", name, got)
		}
	}
	h = newGateway(t, nil, startUpstream(t, echo))
	_, in := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x-own , X-Forwarded-For, X-Request-Id\r\nX-Own: 1\r\nX-Request-Id: q-1\r\nX-Forwarded-For: 6.6.6.6\r\nTE: trailers, deflate\r\nProxy-Authorization: b\r\n" +
		"Proxy-Connection: c\r\nKeep-Alive: d\r\nTrailer: X-Sum\r\nX-Goes: 1\r\n\r\n")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Own": "", "Proxy-Authorization": "", "Proxy-Connection": "", "Keep-Alive": "", "Trailer": "", "Te": "trailers", "X-Goes": "1",
		"X-Forwarded-For": "127.0.0.1", "X-Request-Id": "q-1", "Connection": ""} {
		if got := strings.Join(res.Header["Saw-"+name], ","); got != want {
			t.Errorf("%s went: %q, want %q", name, got, want)
		}
	}
}

// TestConnectionFieldsOfLastResponse: a response with Connection: close may name other fields of
// the connection, however it arrives.
func TestConnectionFieldsOfLastResponse(t *testing.T) {
	const status, fields = "HTTP/1.1 200 OK\r\n", "Connection: close, X-Secret\r\nX-Secret: 1\r\nConnection: X-Other\r\nX-Other: 2\r\nX-Goes: 3\r\n"
	const end = "Content-Length: 2\r\n\r\nok"
	for name, parts := range map[string][]string{
		"at once":    {status + fields + end},
		"in parts":   {status[:5], status[5:] + fields[:9], fields[9:40], fields[40:] + end[:18], end[18:]},
		"by LF":      {strings.ReplaceAll(status+fields+end, "\r", "")},
		"long":       {status + "X-Long: " + strings.Repeat("x", 30<<10) + "\r\n" + fields + end},
		"behind 103": {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + status + fields + end},
	} {
		h := newGateway(t, nil, servesRaw(t, func(c net.Conn, _ *bufio.Reader) {
			for _, part := range parts {
				_, _ = io.WriteString(c, part)
			}
		}))
		a := h.get("/")
		if a.status != 200 || a.body != "ok" || a.header.Get("X-Secret") != "" || a.header.Get("X-Other") != "" || a.header.Get("X-Goes") != "3" {
			t.Errorf("%s: %d %q, %v", name, a.status, a.body, a.header)
		}
	}
}

// TestBlankBeforeColonIsRejected: a field name with a blank, which parsers read differently,
// makes the response invalid.
func TestBlankBeforeColonIsRejected(t *testing.T) {
	h := newGateway(t, nil, respondsWith(t, "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabcdef"))
	for _, method := range []string{"GET", "DELETE"} {
		if a := h.do(h.request(method, "/", nil)); a.status != 502 {
			t.Errorf("%s: %d %q, %v", method, a.status, a.body, a.header)
		}
	}
}

// TestHeaderWithBareLFIsRejected: LF in a value of a response, which net/http takes for the end of the
// line, does not become a field of its own, on whatever connection the response comes. A body may
// have LF.
func TestHeaderWithBareLFIsRejected(t *testing.T) {
	const good, bad = "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 4\r\n\r\na\nb\n", "HTTP/1.1 200 OK\r\nX-A: 1\nX-Secret: 2\r\nContent-Length: 4\r\n\r\na\nb\n"
	var requests atomic.Int64 // of one gateway
	plays := func(_ int, c net.Conn) {
		for in := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			answer := bad
			if requests.Add(1) == 1 {
				answer = good
			}
			for _, part := range []string{answer[:20], answer[20:26], answer[26:]} {
				_, _ = io.WriteString(c, part)
			}
		}
	}
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	secure := &tls.Config{Certificates: cert.TLS.Certificates}
	for scheme, by := range map[string]*tls.Config{"http": nil, "https": secure} {
		for _, method := range []string{"GET", "DELETE", "POST"} {
			h := newGateway(t, func(c *proxy.Config) { c.TLS = cert.Client().Transport.(*http.Transport).TLSClientConfig }, scheme+"://"+proxy.RawEndpoint(t, by, plays))
			requests.Store(0)
			ask := func() clientResponse {
				if method == "GET" { // it has a connection pool of its own
					return h.get("/")
				}
				return h.do(h.request(method, "/", strings.NewReader("x")))
			}
			first, second := ask(), ask()
			if first.status != 200 || first.body != "a\nb\n" {
				t.Errorf("%s %s: %d %q, %v", method, scheme, first.status, first.body, first.err)
			}
			if second.status != 502 || second.header.Get("X-Secret") != "" {
				t.Errorf("%s %s with LF: %d %q, %v, %v", method, scheme, second.status, second.body, second.header, second.err)
			}
		}
	}
}

// Fields that describe the client are set by the proxy alone, unless the peer is a trusted proxy.
func TestForwardedFieldsOfTrustedProxies(t *testing.T) {
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		want    map[string]string
	}{
		"a stranger": {nil, map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "HOST", "Forwarded": ""}},
		"a proxy": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, map[string]string{"X-Forwarded-For": "9.9.9.9, 8.8.8.8, 127.0.0.1",
			"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example", "Forwarded": `for=9.9.9.9, for=127.0.0.1;host="HOST";proto=https`}},
	} {
		h := newGateway(t, func(c2 *proxy.Config) { c2.TrustedProxies = c.trusted }, startUpstream(t, echo))
		r := h.request("GET", "/", nil, "X-Forwarded-For", "9.9.9.9", "X-Forwarded-For", "8.8.8.8", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop.example",
			"Forwarded", "for=9.9.9.9", "X-Real-Ip", "1.1.1.1", "X_Forwarded_For", "2.2.2.2", "X-Forwarded-Port", "1", "X_real_IP", "3.3.3.3", "Via", "1.1 other")
		a := h.do(r)
		for name2, want := range c.want {
			if got := strings.Join(a.header["Saw-"+name2], "|"); got != strings.ReplaceAll(want, "HOST", r.URL.Host) {
				t.Errorf("%s: %s is %q, want %q", name, name2, got, want)
			}
		}
		for header := range a.header {
			if low := strings.ToLower(strings.ReplaceAll(header, "_", "-")); low == "saw-x-real-ip" || low == "saw-x-forwarded-port" || strings.Contains(header, "_") {
				t.Errorf("%s: %s went on", name, header)
			}
		}
		if got := strings.Join(a.header["Saw-Via"], ","); got != "1.1 other, 1.1 macronode" {
			t.Errorf("via %q", got)
		}
	}
}

// TestFieldsThatNameAnotherMethodAreDropped: some servers serve the method that such a field names, which a route may not
// permit.
func TestFieldsThatNameAnotherMethodAreDropped(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	a := h.do(h.request("POST", "/", nil, "X-HTTP-Method-Override", "DELETE", "X-HTTP-Method", "DELETE", "X-Method-Override", "DELETE",
		"x_http_method_override", "DELETE", "X-Http_Method", "DELETE", "x_method_override", "DELETE", "X-Method", "kept"))
	for name, values := range a.header {
		if strings.HasPrefix(name, "Saw-") && slices.Contains(values, "DELETE") {
			t.Errorf("%s was forwarded", name)
		}
	}
	if a.header.Get("Saw-X-Method") != "kept" {
		t.Errorf("%v", a.header)
	}
}

// TestFieldsThatNameAnotherPathAreDropped: some servers serve the path of X-Original-URL or X-Rewrite-URL, which no route
// was matched with. Such a field is not forwarded, in any spelling.
func TestFieldsThatNameAnotherPathAreDropped(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	a := h.do(h.request("GET", "/", nil, "X-Original-URL", "/admin", "X-Rewrite-URL", "/admin", "x_original_url", "/admin", "X-Rewrite_Url", "/admin", "X-Original", "kept"))
	for name := range a.header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "saw-") && strings.HasSuffix(low, "url") {
			t.Errorf("%s was forwarded", name)
		}
	}
	if a.header.Get("Saw-X-Original") != "kept" {
		t.Errorf("%v", a.header)
	}
}

func TestTrace(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, goes := range map[string]string{
		"":                                                    "",
		"00-" + trace + "-" + span + "-01":                    "01",
		"00-" + trace + "-" + span + "-00":                    "00",
		"cc-" + trace + "-" + span + "-01-more":               "01",
		"00-" + trace + "-" + span + "-01-more":               "",
		"ff-" + trace + "-" + span + "-01":                    "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": "",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   "",
		"nonsense": "",
	} {
		a := h.get("/", "Traceparent", header, "Tracestate", "a=1")
		got := a.header["Saw-Traceparent"]
		if goes == "" {
			if got != nil || a.header["Saw-Tracestate"] != nil {
				t.Errorf("%q becomes %q, state %q: no trace is to be begun", header, got, a.header["Saw-Tracestate"])
			}
			continue
		}
		if len(got) != 1 || len(got[0]) != 55 || got[0][3:35] != trace || got[0][36:52] == span || got[0][53:] != goes || a.header.Get("Saw-Tracestate") != "a=1" {
			t.Errorf("%q becomes %q, state %q", header, got, a.header.Get("Saw-Tracestate"))
		}
	}
	if a := h.get("/", "Tracestate", "a=1"); a.header["Saw-Traceparent"] != nil || a.header["Saw-Tracestate"] != nil {
		t.Errorf("without a traceparent: %q, %q", a.header["Saw-Traceparent"], a.header["Saw-Tracestate"])
	}
}

// Only an idempotent and complete request is sent again, and never after a byte of its response.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name, method, body string
		first              string // what the first endpoint does
		status             int
		want               string
	}{
		{"refused", "GET", "", "refuse", 200, " unsent answered completed"},
		{"refused with a body", "PUT", "body", "refuse", 200, " unsent answered completed"},
		{"refused POST", "POST", "body", "refuse", 502, " unsent"},
		{"no answer", "GET", "", "hang up", 200, " failed answered completed"},
		{"no answer to a body", "PUT", "body", "hang up", 502, " failed"},
		{"no HTTP", "GET", "", "SSH-2.0-x\r\n\r\n", 200, " failed answered completed"},
		{"503", "GET", "", "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", 200, " answered_5xx answered completed"},
		{"503 to a POST", "POST", "", "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", 503, " answered_5xx completed"},
		{"500 is an answer", "GET", "", "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", 500, " answered completed"},
		{"a word before no answer", "GET", "", "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n", 502, " failed"},
		{"a status that is none", "GET", "", "HTTP/1.1 042 No\r\nContent-Length: 0\r\n\r\n", 502, " answered truncated"},
	} {
		var first string
		switch c.first {
		case "refuse":
			first = nettest.RefusingAddress(t)
		case "hang up":
			first = servesRaw(t, func(conn net.Conn, r *bufio.Reader) {
				if c.body != "" {
					_, _ = r.ReadByte()
				}
			})
		default:
			first = respondsWith(t, c.first)
		}
		h := newGateway(t, nil, first, startUpstream(t, echo))
		var body io.Reader
		if c.body != "" {
			body = strings.NewReader(c.body)
		}
		a := h.do(h.request(c.method, "/", body))
		h.port.requireIdle(t)
		if got := h.port.results(); a.status != c.status || got != c.want {
			t.Errorf("%s: %d %v,%s, want %d,%s", c.name, a.status, a.err, got, c.status, c.want)
		}
		if a.status == 200 && a.body != c.body {
			t.Errorf("%s: %q", c.name, a.body)
		}
	}
}

// A request that is not idempotent is sent once, even with an idempotency key, and even if a
// reused connection ends.
func TestIdempotencyKeyCausesNoRetry(t *testing.T) {
	var posts atomic.Int64
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && posts.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		echo(w, r)
	}))
	if a := h.do(h.request("POST", "/", nil, "Idempotency-Key", "1")); a.status != 200 || a.header.Get("Saw-Idempotency-Key") != "1" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		posts.Store(1)
		if a := h.do(h.request("POST", "/", nil, name, "1")); a.status != 502 || posts.Load() != 2 {
			t.Errorf("%s: %d, and it was sent %d times", name, a.status, posts.Load()-1)
		}
		posts.Store(0)
		h.do(h.request("POST", "/", nil)) // a connection that is kept
	}
}

// A truncated response is never complete for the client.
func TestTruncatedResponseAbortsConnection(t *testing.T) {
	big := strings.Repeat("x", 100<<10)
	for name, c := range map[string]string{
		"short":                 "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"short and long":        "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + big,
		"a chunk that ends":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"no last chunk":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"no chunk":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
		"no end of the trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n5\r\nhello\r\n0\r\nX-A: 1\r\n",
	} {
		h := newGateway(t, nil, respondsWith(t, c))
		a := h.get("/")
		if a.err == nil {
			t.Errorf("%s: %d, %d bytes, and no error", name, a.status, len(a.body))
		}
		if got := h.port.results(); got != " answered truncated" {
			t.Errorf("%s:%s", name, got)
		}
		// For an HTTP/1.0 client the end of the connection is the end of the response.
		_, in := h.raw("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err == nil {
			t.Errorf("%s: HTTP/1.0, and no error", name)
		}
	}
	// Data beyond the length of a response is dropped.
	h := newGateway(t, nil, respondsWith(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more: HTTP/1.1 200 OK\r\n\r\n"))
	if a := h.get("/"); a.body != "hello" || a.err != nil {
		t.Errorf("%q, %v", a.body, a.err)
	}
}

// An upstream that exceeds the deadline has failed. If the deadline is the client's, it has not.
func TestDeadlinesOfRouteAndClient(t *testing.T) {
	hangs := func() string {
		return servesRaw(t, func(c net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() }) // until the connection ends
	}
	h := newGateway(t, func(c *proxy.Config) { c.DefaultDeadline = 50 * time.Millisecond }, hangs())
	if a := h.get("/"); a.status != 504 || h.port.results() != " timed_out" {
		t.Errorf("%d %s", a.status, h.port.results())
	}
	h = newGateway(t, func(c *proxy.Config) {
		c.DefaultDeadline = time.Hour
		c.Routes[0].Deadline = 50 * time.Millisecond
	}, hangs())
	if a := h.get("/"); a.status != 504 || h.port.results() != " timed_out" {
		t.Errorf("route: %d %s", a.status, h.port.results())
	}
	h = newGateway(t, func(c *proxy.Config) { c.DefaultDeadline = time.Hour }, hangs())
	if a := h.get("/", proxy.DeadlineHeader, "50"); a.status != 504 || h.port.results() != " abandoned" {
		t.Errorf("client: %d %s", a.status, h.port.results())
	}
	h = newGateway(t, func(c *proxy.Config) { c.DefaultDeadline = time.Hour }, startUpstream(t, echo))
	for header, want := range map[string]func(string) bool{
		"":         func(s string) bool { return len(s) == 7 && s <= "3600000" },
		"10000":    func(s string) bool { return len(s) == 4 || s == "10000" },
		"99999999": func(s string) bool { return len(s) == 7 },
		"-1":       func(s string) bool { return len(s) == 7 },
		"soon":     func(s string) bool { return len(s) == 7 },
	} {
		if a := h.get("/", proxy.DeadlineHeader, header); !want(a.header.Get("Saw-" + proxy.DeadlineHeader)) {
			t.Errorf("%q becomes %q", header, a.header["Saw-"+proxy.DeadlineHeader])
		}
	}
}

// TestDeadlineHoldsUntilFirstByte: a service that sends the header of a response and nothing of its body gets no more time for it. The
// deadline does not hold for the rest of a body, nor for events, whose header is sent at once.
func TestDeadlineHoldsUntilFirstByte(t *testing.T) {
	const deadline = 400 * time.Millisecond
	rest := make(chan string)
	service := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		first := ""
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
		case "/begins":
			first = "first"
		}
		_, _ = io.WriteString(w, first)
		_ = http.NewResponseController(w).Flush()
		select {
		case text := <-rest:
			_, _ = io.WriteString(w, text[len(first):])
		case <-r.Context().Done():
		}
	}
	for name, c := range map[string]struct {
		to  string
		use func(*proxy.Config)
	}{
		"HTTP/1.1": {startUpstream(t, service), func(*proxy.Config) {}},
		"HTTP/2":   {startH2Upstream(t, service), useHTTP2},
	} {
		h := newGateway(t, func(p *proxy.Config) {
			c.use(p)
			p.DefaultDeadline = deadline
		}, c.to)
		if a := h.get("/"); a.status != 504 || h.port.results() != " answered truncated" {
			t.Errorf("%s, route: %d%s", name, a.status, h.port.results())
		}
		h = newGateway(t, c.use, c.to)
		if a := h.get("/", proxy.DeadlineHeader, "400"); a.status != 504 || h.port.results() != " answered abandoned" {
			t.Errorf("%s, client: %d%s", name, a.status, h.port.results())
		}
		h = newGateway(t, func(p *proxy.Config) {
			c.use(p)
			p.DefaultDeadline = deadline
		}, c.to)
		var open []*http.Response
		for _, path := range [...]string{"/events", "/begins"} {
			res, err := h.front.Client().Do(h.request("GET", path, nil))
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s%s: %v, %v", name, path, res, err)
			}
			open = append(open, res)
		}
		time.Sleep(deadline + deadline/4)
		for _, res := range open {
			rest <- "first,rest"
			defer res.Body.Close()
		}
		for _, res := range open {
			if text, err := io.ReadAll(res.Body); err != nil || string(text) != "first,rest" {
				t.Errorf("%s%s: %q, %v", name, res.Request.URL.Path, text, err)
			}
		}
	}
}

// A client that disconnects cancels its request.
func TestDisconnectedClientCancelsRequest(t *testing.T) {
	in, gone := make(chan struct{}), make(chan struct{})
	h := newGateway(t, func(c *proxy.Config) { c.DefaultDeadline = time.Hour }, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
		}
		in <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	for _, path := range []string{"/", "/stream"} {
		ctx, leave := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			res, err := h.http.Do(h.request("GET", path, nil).WithContext(ctx))
			if err == nil {
				leave() // after the header of a response
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			done <- err
		}()
		<-in
		if path == "/" {
			leave()
		}
		<-gone
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", path, err)
		}
		leave()
		h.port.requireIdle(t)
	}
	if got := h.port.results(); got != " abandoned answered abandoned" {
		t.Error(got)
	}
}

// TestUpstreamCannotOverrideIDs: responses have the ids of the gateway, and upstreams get none in
// another spelling.
func TestUpstreamCannotOverrideIDs(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "theirs")
		w.Header().Set("X-Decision-Id", "theirs")
		w.WriteHeader(http.StatusEarlyHints)
		echo(w, r)
	}))
	h.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "ours")
		w.Header().Set("X-Decision-Id", "d_ours")
		h.proxy.ServeHTTP(w, r)
	})
	interim := ""
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		interim = fmt.Sprint(h["X-Request-Id"], h["X-Decision-Id"])
		return nil
	}})
	a := h.do(h.request("GET", "/", nil, "X-Request-Id", "ours", "X_Request_Id", "other", "X_decision-ID", "other").WithContext(ctx))
	if interim != "[ours] [d_ours]" {
		t.Errorf("an interim response says %q", interim)
	}
	if fmt.Sprint(a.header["X-Request-Id"], a.header["X-Decision-Id"]) != "[ours] [d_ours]" {
		t.Errorf("the client is told %q, %q", a.header["X-Request-Id"], a.header["X-Decision-Id"])
	}
	for name := range a.header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "saw-x_") || low == "saw-x-decision-id" || low == "saw-x-request-id" && a.header.Get(name) != "ours" {
			t.Errorf("the upstream is sent %s: %q", name, a.header[name])
		}
	}
}
