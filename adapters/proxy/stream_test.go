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
	"net/textproto"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/proxy"
)

// Each part of a stream is forwarded at once, in both directions concurrently.
func TestStreamsBothWays(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		w.WriteHeader(200)
		_ = c.Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(w, "you said ", line)
			_ = c.Flush()
		}
	}))
	out, in := io.Pipe()
	res, err := h.http.Do(h.request("POST", "/", out))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 5 {
		_, _ = fmt.Fprintf(in, "%d\n", i)
		if got, err := lines.ReadString('\n'); got != fmt.Sprintf("you said %d\n", i) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	in.Close()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Fatalf("%q, %v", rest, err)
	}
}

// Events are flushed even if the response has a length.
func TestEventsAreFlushed(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "text/event-stream; charset=utf-8"} {
		go1 := make(chan struct{})
		h := newGateway(t, nil, servesRaw(t, func(c net.Conn, _ *bufio.Reader) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 20\r\n\r\ndata: one\n", kind)
			<-go1
			_, _ = fmt.Fprint(c, "\ndata: 2\n\n")
		}))
		res, err := h.http.Do(h.request("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(res.Body)
		if line, err := in.ReadString('\n'); line != "data: one\n" {
			t.Fatalf("%q, %v", line, err)
		}
		close(go1)
		if rest, err := io.ReadAll(in); string(rest) != "\ndata: 2\n\n" || err != nil {
			t.Fatalf("%q, %v", rest, err)
		}
		res.Body.Close()
	}
}

// A body is sent when the upstream asks for it, and not when it does not.
func TestExpectContinue(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(417)
			return
		}
		echo(w, r)
	}))
	h.http.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	for path, want := range map[string]string{"/no": "417 0", "/yes": "200 5"} {
		var read atomic.Int64
		body := reader(func(b []byte) (int, error) {
			n := copy(b, "hello"[read.Load():])
			read.Add(int64(n))
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		})
		r := h.request("PUT", path, body, "Expect", "100-continue")
		r.ContentLength = 5
		a := h.do(r)
		if got := fmt.Sprint(a.status, " ", read.Load()); got != want || a.err != nil {
			t.Errorf("%s: %s, %v, want %s", path, got, a.err, want)
		}
	}
}

// An upstream that ignores Expect gets the body all the same.
func TestIgnoredExpectContinue(t *testing.T) {
	t.Parallel()
	h := newGateway(t, nil, servesRaw(t, func(c net.Conn, r *bufio.Reader) {
		b := make([]byte, 5)
		_, _ = io.ReadFull(r, b)
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s", b)
	}))
	_, in := h.raw("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
	for _, want := range []int{100, 200} {
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != want {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// Trailers are forwarded in both directions.
func TestTrailers(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s and %v", body, r.Trailer)
		w.Header().Set("X-Sum", "7")
		if r.URL.Path == "/more" {
			w.Header().Set(http.TrailerPrefix+"X-More", "8")
		}
	}))
	for path, more := range map[string]string{"/": "", "/more": "8"} {
		r := h.request("POST", path, io.MultiReader(strings.NewReader("body")))
		r.Trailer = http.Header{"X-Mine": {"1"}}
		a := h.do(r)
		if a.body != "body and map[X-Mine:[1]]" || a.err != nil || a.res.Trailer.Get("X-Sum") != "7" || a.res.Trailer.Get("X-More") != more {
			t.Errorf("%s: %q, %v, trailers %v", path, a.body, a.err, a.res.Trailer)
		}
		if a := h.get(path); a.err != nil || a.res.Trailer.Get("X-Sum") != "7" || a.res.Trailer.Get("X-More") != more {
			t.Errorf("%s, read: %v, trailers %v", path, a.err, a.res.Trailer)
		}
	}
}

// TestHeaderOnlyTrailersAreRemoved: fields that are valid only in a header are removed from
// trailers in both directions, announced or not; so are those that Connection names.
func TestHeaderOnlyTrailersAreRemoved(t *testing.T) {
	fields := []string{"X-Sum", "7", "X-Named", "1", "Content-Length", "99", "Transfer-Encoding", "chunked", "Connection", "close", "Host", "evil", "Keep-Alive", "timeout=1", "Te", "trailers",
		"Trailer", "X-Y", "Upgrade", "h2c", "Set-Cookie", "a=b", "Content-Encoding", "gzip", "Authorization", "b", "X-Forwarded-For", "6.6.6.6", "Location", "/", "Access-Control-Allow-Origin", "*"}
	lines, low, names := "", []string{}, []string{}
	for i := 0; i < len(fields); i += 2 {
		lines += fields[i] + ": " + fields[i+1] + "\r\n"
		if fields[i] != "X-Named" { // HTTP/2 has no Connection
			low = append(low, strings.ToLower(fields[i]), fields[i+1])
		}
		if fields[i] != "Content-Length" && fields[i] != "Transfer-Encoding" && fields[i] != "Trailer" { // those are a bad request
			names = append(names, fields[i])
		}
	}
	announced := "Trailer: " + strings.Join(names, ", ") + "\r\n"
	first := "HTTP/1.1 200 OK\r\nConnection: x-named\r\nTransfer-Encoding: chunked\r\n"
	const body = "2\r\nok\r\n0\r\n"
	for what, origin := range map[string]string{
		"unannounced": respondsWith(t, first+"\r\n"+body+lines+"\r\n"),
		"announced":   respondsWith(t, first+announced+"\r\n"+body+lines+"\r\n"),
		"HTTP/2": startH2Server(t, func(_ int, c *rawH2Conn) {
			s := c.next()
			c.head(s, false, ":status", "200", "trailer", strings.Join(names, ", "))
			c.data(s, false, "ok")
			c.head(s, true, low...)
			c.drain()
		}).url,
	} {
		change := useHTTP2
		if what != "HTTP/2" {
			change = nil
		}
		h := newGateway(t, change, origin)
		conn, in := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(in)
		_ = conn.Close()
		head, rest, _ := strings.Cut(string(got), "\r\n\r\n")
		if err != nil || rest != "2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n" || what == "announced" && !strings.Contains(head, "\r\nTrailer: X-Sum\r\n") {
			t.Errorf("%s: %q\n%q, %v", what, head, rest, err)
		}
	}
	seen := make(chan http.Header, 2)
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Trailer
	}))
	for range 2 {
		_, in := h.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: x-named\r\n" + announced + "Transfer-Encoding: chunked\r\n\r\n" + body + lines + "\r\n")
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 200 {
			t.Fatalf("%+v, %v", res, err)
		}
		if got := <-seen; len(got) != 1 || got.Get("X-Sum") != "7" {
			t.Errorf("sent on: %v", got)
		}
		announced = "Trailer: X-Sum\r\n"
	}
}

// Interim responses are forwarded.
func TestEarlyHints(t *testing.T) {
	h := newGateway(t, nil, respondsWith(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
	var received []string
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		received = append(received, fmt.Sprint(code, h["Link"]))
		return nil
	}})
	for _, method := range []string{"GET", "POST"} {
		received = nil
		a := h.do(h.request(method, "/", nil).WithContext(ctx))
		if a.status != 200 || a.header.Get("Link") != "" || fmt.Sprint(received) != "[103 [</a>]]" {
			t.Errorf("%s: %d, %v, before it %q", method, a.status, a.header, received)
		}
	}
	// An HTTP/1.0 client would take it for the response.
	for _, method := range []string{"GET", "POST"} {
		_, in := h.raw(method + " / HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 200 {
			t.Errorf("%s of HTTP/1.0: %+v, %v", method, res, err)
		}
	}
	// Five are forwarded, and a sixth is a failure.
	for n, want := range map[int]int{5: 200, 6: 502} {
		overHTTP1 := respondsWith(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", n)+"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		overHTTP2 := startH2Upstream(t, func(w http.ResponseWriter, _ *http.Request) {
			for range n {
				w.WriteHeader(http.StatusEarlyHints)
			}
		})
		for protocol, h := range map[string]*gateway{"HTTP/1.1": newGateway(t, nil, overHTTP1), "HTTP/2": newGateway(t, useHTTP2, overHTTP2)} {
			for _, method := range []string{"GET", "POST"} {
				received = nil
				if a := h.do(h.request(method, "/", nil).WithContext(ctx)); a.status != want || len(received) != 5 {
					t.Errorf("%s over %s: %d after %d interim responses, %d were forwarded", method, protocol, a.status, n, len(received))
				}
			}
		}
	}
}

// A client that reads or sends nothing is cut off; so is an upstream that stalls within its
// response.
func TestStalls(t *testing.T) {
	quick := func(c *proxy.Config) {
		c.Grace, c.DefaultDeadline, c.MinBytesPerSecond = 50*time.Millisecond, time.Hour, 1<<20
	}
	endless := startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		buf := make([]byte, 64<<10)
		for {
			if _, err := w.Write(buf); err != nil {
				return
			}
		}
	})
	h := newGateway(t, quick, endless)
	h.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n") // and reads nothing
	h.port.waitUntil(t, "the client is given up", func() bool { return len(h.port.reported) == 2 })
	if got := h.port.results(); got != " answered abandoned" {
		t.Errorf("a client that takes nothing:%s", got)
	}

	h = newGateway(t, quick, startUpstream(t, echo))
	_, in := h.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhel")
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 400 || !res.Close {
		t.Errorf("a client that sends nothing: %v, %v", res, err)
	}
	if got := h.port.results(); got != " abandoned" {
		t.Errorf("a client that sends nothing:%s", got)
	}

	h = newGateway(t, func(c *proxy.Config) { c.StallTimeout = 500 * time.Millisecond }, servesRaw(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
		_, _ = r.ReadByte() // until the connection is closed
	}))
	if a := h.get("/"); a.status != 200 || a.body != "hello" || a.err == nil {
		t.Errorf("an upstream that stops: %d %q %v", a.status, a.body, a.err)
	}
	if got := h.port.results(); got != " answered truncated" {
		t.Errorf("an upstream that stops:%s", got)
	}

	// An upstream that reads nothing of a body exceeds the deadline.
	h = newGateway(t, func(c *proxy.Config) { c.DefaultDeadline = 100 * time.Millisecond }, servesRaw(t, func(c net.Conn, r *bufio.Reader) {
		<-t.Context().Done()
	}))
	a := h.do(h.request("POST", "/", io.LimitReader(zeros{}, 64<<20)))
	if got := h.port.results(); got != " timed_out" || a.err == nil && a.status != 504 {
		t.Errorf("an upstream that takes nothing: %d %v%s", a.status, a.err, got)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// A stream may last for ever while data moves: deadline and grace do not apply to it as a whole.
func TestLongStreamOutlivesDeadline(t *testing.T) {
	t.Parallel()
	const step, steps = 25 * time.Millisecond, 60
	h := newGateway(t, func(c *proxy.Config) {
		c.DefaultDeadline, c.Grace, c.StallTimeout = time.Second, time.Second, time.Second
		c.MinBytesPerSecond = 1
	}, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.Copy(io.Discard, r.Body)
		for range steps {
			_, _ = fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			pause(r.Context(), step)
		}
		_, _ = fmt.Fprint(w, got)
	}))
	left := steps
	a := h.do(h.request("POST", "/", reader(func(b []byte) (int, error) {
		if left--; left < 0 {
			return 0, io.EOF
		}
		pause(t.Context(), step)
		b[0] = 'x'
		return 1, nil
	})))
	if a.body != strings.Repeat("x", steps)+fmt.Sprint(steps) || a.err != nil {
		t.Errorf("%d %q %v%s", a.status, a.body, a.err, h.port.results())
	}
}

// A stream may pause for longer than the grace of a client and the deadline of a header, and
// complete.
func TestPausedStreamCompletes(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 4, 100 << 10} {
		h := newTimedGateway(t, 50*time.Millisecond, func(c *proxy.Config) { c.Grace, c.DefaultDeadline = time.Second, time.Second }, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if length > 0 {
				w.Header().Set("Content-Length", fmt.Sprint(length+1))
			}
			_, _ = w.Write(make([]byte, length))
			_ = http.NewResponseController(w).Flush()
			pause(r.Context(), 1500*time.Millisecond)
			_, _ = fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			if length == 0 {
				pause(r.Context(), 1500*time.Millisecond)
			}
		}))
		if a := h.get("/"); len(a.body) != length+1 || a.err != nil {
			t.Errorf("%d bytes, %v%s", len(a.body), a.err, h.port.results())
		}
	}
}

// A small response is forwarded although the server's time for it has passed. The time in which a
// client sends its body does not count against the endpoint.
func TestSmallResponseAfterLongUpload(t *testing.T) {
	t.Parallel()
	for status, to := range map[int]string{200: startUpstream(t, echo), 502: respondsWith(t, "no HTTP")} {
		h := newTimedGateway(t, 50*time.Millisecond, func(c *proxy.Config) { c.DefaultDeadline = time.Second }, to)
		left := 2
		a := h.do(h.request("POST", "/", reader(func(b []byte) (int, error) {
			if left--; left == 0 {
				return copy(b, "x"), nil
			}
			pause(t.Context(), 1500*time.Millisecond)
			return 0, io.EOF
		})))
		if a.status != status || a.err != nil {
			t.Errorf("%d, %v, want %d", a.status, a.err, status)
		}
	}
}

// pause lets time pass, which these tests are about.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A gigabyte is received, and a quarter of one sent, in constant memory. Over HTTP/2 it is a
// quarter, because net/http's own buffers vary.
func TestGigabyteNeedsConstantMemory(t *testing.T) {
	serve := func(all int64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if r.Method == "GET" {
				w.Header().Set("Content-Length", fmt.Sprint(all))
				_, _ = io.CopyN(w, zeros{}, all)
				return
			}
			_, _ = fmt.Fprint(w, n, err)
		}
	}
	all, some := int64(1<<30), int64(1<<28)
	if testing.Short() {
		all, some = all>>4, some>>2
	}
	for _, c := range []struct {
		h    *gateway
		all  int64
		most uint64
	}{{newGateway(t, nil, startUpstream(t, serve(all))), all, 16 << 20}, {newGateway(t, useHTTP2, startH2Upstream(t, serve(some))), some, uint64(some / 2)}} {
		var before, after runtime.MemStats
		for _, way := range []string{"GET", "PUT"} {
			runtime.GC()
			runtime.ReadMemStats(&before)
			var body io.Reader
			if way == "PUT" {
				body = io.LimitReader(zeros{}, c.all/4)
			}
			res, err := c.h.http.Do(c.h.request(way, "/", body))
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if way == "GET" && n != c.all || err != nil {
				t.Fatalf("%s: %d bytes, %v", way, n, err)
			}
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > c.most {
				t.Errorf("%s of %d: %d bytes were allocated on the way", way, c.all, taken)
			}
		}
	}
}

// The same over HTTP/2: a truncated stream is not complete, and the connection stays.
func TestHTTP2Clients(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = fmt.Fprint(w, "hello")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/chunk":
			_, _ = fmt.Fprint(w, "hello")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Trailer", "X-Sum")
		echo(w, r)
		w.Header().Set("X-Sum", "7"+r.Trailer.Get("X-Mine"))
	}))
	front := httptest.NewUnstartedServer(h.proxy)
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	ask := func(method, path, body string) clientResponse {
		r, err := http.NewRequestWithContext(t.Context(), method, front.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Te", "trailers")
		if body != "" {
			r.Trailer = http.Header{"X-Mine": {"1"}}
		}
		res, err := front.Client().Do(r)
		if err != nil {
			return clientResponse{err: err}
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return clientResponse{res.StatusCode, res.Header, string(text), err, res}
	}
	for range 2 {
		a := ask("POST", "/x", "body")
		if a.err != nil || a.res.ProtoMajor != 2 || a.body != "body" || a.res.Trailer.Get("X-Sum") != "71" {
			t.Fatalf("%+v", a)
		}
		if got := a.header.Get("Saw-X-Forwarded-Proto") + a.header.Get("Saw-Via"); got != "https2.0 macronode" {
			t.Error(got)
		}
		for _, path := range []string{"/cut", "/chunk"} {
			if a := ask("GET", path, ""); a.err == nil || errors.Is(a.err, context.Canceled) {
				t.Errorf("%s: %q, %v", path, a.body, a.err)
			}
		}
	}
	front.Client().CloseIdleConnections()
}

// TestTLSRootsOfConfig: the configured roots verify an https endpoint.
func TestTLSRootsOfConfig(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer s.Close()
	s.Config.ErrorLog = nil
	for trusts, want := range map[bool]int{true: 200, false: 502} {
		h := newGateway(t, func(c *proxy.Config) {
			if c.TLS = new(tls.Config); trusts {
				c.TLS.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			}
		}, s.URL)
		if a := h.get("/"); a.status != want {
			t.Errorf("trusts %v: %d", trusts, a.status)
		}
	}
}
