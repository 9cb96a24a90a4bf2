package cli

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"macronode/cmd/macronode/internal/testkit"
)

// A malformedRequest is a request with one malformed part. Empty parts are valid.
type malformedRequest struct {
	part                 string
	method, target, host string // %s in target is the path of the route
	name, value          string
	body                 string // sent in frames of HTTP/2, and in one chunk of HTTP/1.1 unless the field has its length
	detail               string // of the problem, if the node responds itself and not net/http
	trims                bool   // a parser of HTTP/1.1 removes the malformed part, so the request is served
	splits               bool   // in HTTP/1.1 the data is another, malformed request
}

var malformedRequests = []malformedRequest{
	{part: "a method that is no token", method: "(", detail: "The method is not a token."},
	{part: "a method with a blank", method: "GET /"},
	{part: "a method with a byte outside ASCII", method: "G\xc3\x8bT"},
	{part: "a blank in a path", target: "%s/a b"},
	{part: "a blank in a query", target: "%s?a HTTP/1.1"},
	{part: "a fragment", target: "%s?a#b", detail: "The target is not a path, or contains a blank, a fragment, or a byte outside ASCII."},
	{part: "a byte outside ASCII in a query", target: "%s?a=\xc3\xa4", detail: "byte outside ASCII"},
	{part: "a byte outside ASCII in a path", target: "%s/\x85", detail: "byte outside ASCII"},
	{part: "an asterisk that is not of OPTIONS", target: "*"},
	{part: "a dot segment", target: "%s/..", detail: "The path is empty, or contains a dot segment"},
	{part: "a port that is no number", host: "a:abc", detail: "The Host is not a host name or address with an optional port."},
	{part: "a port beyond the last", host: "a:65536"},
	{part: "an empty label", host: "a..b", detail: "The Host is not a host name"},
	{part: "a host with a slash", host: "a/b"},
	{part: "a host with a comma", host: "a,b", detail: "The Host is not a host name"},
	{part: "a host that is a port", host: ":80"},
	{part: "an address of IPv6 without brackets", host: "::1"},
	{part: "a blank behind a value", name: "x-a", value: "b ", trims: true, detail: "The value of the header field X-A begins or ends with a blank."},
	{part: "a tab before a value", name: "x-a", value: "\tb", trims: true, detail: "begins or ends with a blank"},
	{part: "a name that is no token", name: "x(a", value: "b"},
	{part: "an empty name of a trailer", name: "trailer", value: ",", body: "x", trims: true, detail: "The name of a trailer field is not a token."},
	{part: "an empty Trailer", name: "trailer", value: "", body: "x", trims: true, detail: "The name of a trailer field is not a token."},
	{part: "a trailer that is no token", name: "trailer", value: "a b", body: "x", detail: "The name of a trailer field is not a token."},
	{part: "a length of 0 before data", name: "content-length", value: "0", body: "x", splits: true},
	{part: "a length that is no number", name: "content-length", value: "+1", body: "x"},
}

func (m *malformedRequest) fill(path string) malformedRequest {
	r := *m
	if r.method == "" {
		if r.method = "GET"; r.body != "" {
			r.method = "POST"
		}
	}
	if r.target == "" {
		r.target = "%s"
	}
	r.target = strings.Replace(r.target, "%s", path, 1)
	if r.host == "" {
		r.host = "node"
	}
	return r
}

// overHTTP1 sends a request over HTTP/1.1 and returns the status and the body of the response.
func (m *malformedRequest) overHTTP1(t *testing.T, to string, trust *tls.Config) (status int, body string) {
	t.Helper()
	c := trust.Clone()
	c.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", to, c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", m.method, m.target, m.host)
	if m.name != "" {
		text += m.name + ": " + m.value + "\r\n"
	}
	if !m.splits { // otherwise the connection ends at the malformed request
		text += "Connection: close\r\n"
	}
	switch {
	case m.body == "":
		text += "\r\n"
	case m.name == "content-length":
		text += "\r\n" + m.body + "\r\n\r\n"
	default:
		text += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(m.body), m.body)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil { // the last response is that of all bytes
			return status, body
		}
		all, _ := io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(all)
	}
}

// overHTTP2 sends a request over HTTP/2. A stream that is reset with a protocol error counts as status 400,
// because net/http rejects malformed requests that way.
func (m *malformedRequest) overHTTP2(t *testing.T, to string, trust *tls.Config) (status int, body string) {
	t.Helper()
	c := trust.Clone()
	c.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", to, c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	var block bytes.Buffer
	code := hpack.NewEncoder(&block)
	fields := []string{":method", m.method, ":scheme", "https", ":authority", m.host, ":path", m.target}
	if m.name != "" {
		fields = append(fields, m.name, m.value)
	}
	for i := 0; i < len(fields); i += 2 {
		if err := code.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	err = f.WriteSettings()
	if err == nil {
		err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: m.body == "", EndHeaders: true})
	}
	if err == nil && m.body != "" {
		err = f.WriteData(1, true, []byte(m.body))
	}
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			break
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			_, _ = fmt.Sscan(frame.PseudoValue("status"), &status)
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			body += string(frame.Data())
			ended = frame.StreamEnded()
		case *http2.RSTStreamFrame:
			if status == 0 && frame.ErrCode == http2.ErrCodeProtocol {
				status = http.StatusBadRequest
			}
			ended = true
		}
		if ended {
			return status, body
		}
	}
	t.Fatalf("%s: %v", m.part, err)
	return 0, ""
}

// TestMalformedRequestsAreRefusedAlike sends each malformed request over HTTP/1.1 and HTTP/2 to upstreams of both
// protocols. Each gets 400, no upstream receives one, and none counts as a failure of an upstream.
func TestMalformedRequestsAreRefusedAlike(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	serve := func(_ http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	}
	one := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(one.Close)
	dir := t.TempDir()
	trust := &tls.Config{RootCAs: testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour)), MinVersion: tls.VersionTLS13}
	p := startNode(t, append(testkit.TLSKeys(dir), `upstreams={"one":{"url":"`+one.URL+`","protocol":"http1"},"two":{"url":"`+http2Upstream(t, serve)+`","protocol":"http2"}}`,
		`routes=[{"path":"/one","upstream":"one","auth":"none"},{"path":"/two","upstream":"two","auth":"none"}]`)...)
	to := strings.TrimPrefix(p.HTTP, "https://")
	for _, path := range []string{"/one", "/two"} {
		for i := range malformedRequests {
			m := malformedRequests[i].fill(path)
			want, reach := http.StatusBadRequest, int64(0)
			if m.trims {
				want = http.StatusOK
			}
			if m.trims || m.splits {
				reach = 1
			}
			served.Store(0)
			if status, body := m.overHTTP1(t, to, trust); status != want || want == http.StatusBadRequest && !hasDetail(body, m.detail) {
				t.Errorf("%s to %s by HTTP/1.1: %d %s, want %d %s", m.part, path, status, body, want, m.detail)
			}
			if status, body := m.overHTTP2(t, to, trust); status != http.StatusBadRequest || !hasDetail(body, m.detail) {
				t.Errorf("%s to %s by HTTP/2: %d %s, want 400 %s", m.part, path, status, body, m.detail)
			}
			if n := served.Load(); n != reach {
				t.Errorf("%s to %s: the service was sent %d requests, want %d", m.part, path, n, reach)
			}
		}
	}
	own := malformedRequest{part: "a blank behind a value", method: "GET", target: "/openapi.json", host: "node", name: "x-a", value: "b "}
	if status, body := own.overHTTP2(t, to, trust); status != http.StatusBadRequest || !strings.Contains(body, "The value of the header field X-A") {
		t.Errorf("%s to the node's own API: %d %s", own.part, status, body)
	}
	// no circuit is open: a valid request is served
	wire := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
	defer wire.CloseIdleConnections()
	for _, path := range []string{"/one", "/two"} {
		if status := statusOf(t, wire, p.HTTP+path); status != http.StatusOK {
			t.Errorf("a good request to %s: %d", path, status)
		}
	}
	metrics := p.adminText(t, "/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "upstream_fail_total{") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("a failure was counted: %s", line)
		}
	}
}

// hasDetail reports whether a rejection has a detail. Responses of net/http have none.
func hasDetail(body, detail string) bool {
	if !strings.HasPrefix(body, "{") {
		return true
	}
	return strings.Contains(body, `"code":"bad_request"`) && strings.Contains(body, detail)
}

// statusOf returns the status of a valid request.
func statusOf(t *testing.T, wire *http.Transport, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := wire.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
