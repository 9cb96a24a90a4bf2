package cli

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
)

// http2Upstream is an upstream that only speaks HTTP/2.
func http2Upstream(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// echoLines answers each line, writes a first line before, and ends with the trailer that it was sent.
func echoLines(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Link", "</a>")
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Set("X-Proto", r.Proto)
	c := http.NewResponseController(w)
	_ = c.Flush()
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		_, _ = io.WriteString(w, "you said "+line)
		_ = c.Flush()
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	w.Header().Set(http.TrailerPrefix+"X-Mine", r.Trailer.Get("X-Mine"))
}

// TestHTTP2StreamsBothWays: between a client and an upstream of HTTP/2 both directions stream at the same time,
// informational responses come first and trailers last. A shutdown waits until they have finished.
func TestHTTP2StreamsBothWays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour))
	p := startNode(t, append(testkit.TLSKeys(dir), "node.drain=5s", `upstreams={"app":{"url":"`+http2Upstream(t, echoLines)+`","protocol":"http2"}}`, `routes=[{"upstream":"app","auth":"none"}]`)...)
	wire := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer wire.CloseIdleConnections()
	hints := ""
	out, in := io.Pipe()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints += fmt.Sprint(code, h["Link"])
		return nil
	}}), http.MethodPost, p.HTTP+"/service/method", out)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Te", "trailers")
	req.Trailer = http.Header{"X-Mine": {"1"}}
	resp, err := wire.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Proto != "HTTP/2.0" || resp.Header.Get("X-Proto") != "HTTP/2.0" || hints != "103 [</a>]" {
		t.Errorf("%s, %v, before it %s", resp.Proto, resp.Header, hints)
	}
	lines := bufio.NewReader(resp.Body)
	writeLine := func(what string) {
		_, _ = io.WriteString(in, what+"\n")
		if got, err := lines.ReadString('\n'); got != "you said "+what+"\n" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	writeLine("one")
	over := make(chan struct{})
	go func() { p.end(); close(over) }()
	for writeLine("two"); p.ready(t); writeLine("and so on") {
	}
	writeLine("three")
	in.Close()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil || resp.Trailer.Get("Grpc-Status") != "0" || resp.Trailer.Get("X-Mine") != "1" {
		t.Errorf("%q, %v, %v", rest, err, resp.Trailer)
	}
	<-over
}

// ready reports whether a node accepts requests.
func (p process) ready(t *testing.T) bool {
	t.Helper()
	resp, err := http.Get(p.Admin + "/readyz") //nolint:noctx // it ends
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// TestProtocolChangeByReload: while the node runs, without cutting requests.
func TestProtocolChangeByReload(t *testing.T) {
	t.Parallel()
	to := http2Upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	by := func(protocol string) string {
		return strings.Replace(before(to, ""), "}", ", protocol: "+protocol+" }", 1)
	}
	c := startWithFile(t, by("http1"))
	if status, _, _ := c.get("/app"); status != http.StatusBadGateway {
		t.Errorf("by HTTP/1.1: %d", status)
	}
	if is, status := c.reload(by("http2")); status != http.StatusOK || is.Changes != 1 {
		t.Fatalf("%d %+v", status, is.Last)
	}
	if status, body, _ := c.get("/app"); status != http.StatusOK || body != "HTTP/2.0" {
		t.Errorf("%d %q", status, body)
	}
	if is, status := c.reload(by("h2c")); status != http.StatusUnprocessableEntity || !strings.Contains(is.Last.Why[0], "one of auto, http1, http2") {
		t.Errorf("%d %+v", status, is.Last)
	}
	if status, body, _ := c.get("/app"); status != http.StatusOK || body != "HTTP/2.0" {
		t.Errorf("%d %q", status, body)
	}
}

// refusingUpstream is an HTTP/2 upstream that refuses all streams with GOAWAY and sends unsolicited frames.
func refusingUpstream(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
					return
				}
				f := http2.NewFramer(conn, conn)
				for err = f.WriteSettings(); err == nil; {
					var got http2.Frame
					if got, err = f.ReadFrame(); err == nil && got.Header().Type == http2.FrameHeaders {
						_ = f.WriteRawFrame(0x77, 0, 0, []byte("what is that?"))
						err = f.WriteRSTStream(got.Header().StreamID, http2.ErrCodeRefusedStream)
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String()
}

// TestExplainShowsHTTP2Errors: explain shows the protocol of an upstream and why there is no response. The log has
// only lines of the node.
func TestExplainShowsHTTP2Errors(t *testing.T) {
	t.Parallel()
	well, bad := http2Upstream(t, func(http.ResponseWriter, *http.Request) {}), refusingUpstream(t)
	p := startNode(t, fmt.Sprintf(`upstreams={"well":{"url":%q,"protocol":"http2"},"bad":{"url":%q,"protocol":"http2","max_attempts":2}}`, well, bad),
		`routes=[{"upstream":"well","auth":"none"},{"path":"/bad","upstream":"bad","auth":"none"}]`)
	for _, c := range []struct {
		method, path string
		status       int
		writeLine    []string
	}{
		{"GET", "/", 200, []string{"1: " + well + " by HTTP/2, ok after", "with status 200"}},
		{"GET", "/bad", 502, []string{"2 attempts", "1: " + bad + " by HTTP/2, stream_refused", explain.Symptoms[proxy.StreamRefused], explain.NoRetry[event.NoRetryAttempts]}},
		{"POST", "/bad", 502, []string{"1 attempt", explain.Symptoms[proxy.StreamRefused], explain.NoRetry[event.NoRetryMethod]}},
	} {
		status, id := p.requestID(t, c.method, c.path)
		if got := p.explainText(t, id); status != c.status || !testkit.ContainsAll(got, c.writeLine) {
			t.Errorf("%s %s: %d\n%s\nwants %d, %q", c.method, c.path, status, got, c.status, c.writeLine)
		}
	}
	for _, series := range []string{`upstream_fail_total{symptom="stream_refused",upstream="bad"} 3`, `upstream_requests_total{outcome="stream_refused",upstream="bad"} 2`} {
		if text := p.adminText(t, "/metrics"); !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("it is not so that %s", series)
		}
	}
	p.end()
	for line := range strings.Lines(p.log.String()) {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("the log says %s", line)
		}
	}
}
