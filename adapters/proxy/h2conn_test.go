package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"macronode/adapters/proxy"
)

// heard waits until the other end has read everything that was written to it.
func (c *rawH2Conn) heard() {
	_ = c.WritePing(false, [8]byte{1})
	for {
		if f, err := c.ReadFrame(); err != nil || f.Header().Type == http2.FramePing && f.Header().Flags.Has(http2.FlagPingAck) {
			return
		}
	}
}

// TestEndedH2ConnIsReplaced: an endpoint that ends a reused connection during a request has not
// failed. A repeatable request is repeated at once and once; any other is not. If nothing was
// sent, another connection is used in any case.
func TestEndedH2ConnIsReplaced(t *testing.T) {
	away := func(c *rawH2Conn) {
		stream := c.next()
		_ = c.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		c.drain()
	}
	later := func(c *rawH2Conn) { // when a part of the body has arrived
		stream := c.next()
		_, _ = c.frame()
		_ = c.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		c.drain()
	}
	for _, k := range []struct {
		what, method, body string
		ends               func(c *rawH2Conn) // after the first response of the first connection
		second             bool               // so does the second, which has answered nothing
		status             int
		want               string
		times              int // how often it was sent
	}{
		{"goes away", "GET", "", away, false, 200, "completed  200, ", 2},
		{"goes away", "DELETE", "", away, false, 200, "completed  200, ", 2},
		{"goes away", "POST", "", away, false, 502, "abandoned stream_refused 0, ", 1},
		{"goes away", "PUT", "body", later, false, 502, "abandoned stream_refused 0, ", 1},
		{"goes away twice", "GET", "", away, true, 200, "unsent stream_refused 0, completed  200, ", 3},
		{"closes", "GET", "", func(c *rawH2Conn) { c.next() }, false, 200, "completed  200, ", 2},
		{"closes", "POST", "", func(c *rawH2Conn) { c.next() }, false, 502, "failed connection_reset 0, method_not_idempotent", 1},
		{"closes twice", "GET", "", func(c *rawH2Conn) { c.next() }, true, 200, "failed connection_reset 0, completed  200, ", 3},
		{"resets", "GET", "", func(c *rawH2Conn) { _ = c.WriteRSTStream(c.next(), http2.ErrCodeInternal); c.serveAll() }, false, 200, "failed connection_reset 0, completed  200, ", 2},
		{"refuses", "GET", "", func(c *rawH2Conn) { _ = c.WriteRSTStream(c.next(), http2.ErrCodeRefusedStream); c.serveAll() }, false, 200, "unsent stream_refused 0, completed  200, ", 2},
		{"has gone away before", "POST", "body", func(c *rawH2Conn) {
			_ = c.WriteGoAway(1, http2.ErrCodeNo, nil)
			c.heard()
			c.of.ready <- true
			c.drain()
		}, false, 200, "completed  200, ", 1},
	} {
		peer := startH2Server(t, func(n int, c *rawH2Conn) {
			if n == 0 {
				c.respondOK(c.next())
			}
			if n == 0 || n == 1 && k.second {
				k.ends(c)
				return
			}
			c.serveAll()
		})
		h, traces := newTracedGateway(t, useHTTP2, peer.url)
		if a := h.do(h.request("OPTIONS", "/", nil)); a.status != 200 || traceLine(&(<-traces).Upstreams[0]) != "completed  200, " {
			t.Fatal(a)
		}
		if strings.HasPrefix(k.what, "has gone") {
			<-peer.ready
		}
		var body io.Reader
		if k.body != "" {
			body = strings.NewReader(k.body)
		}
		a := h.do(h.request(k.method, "/", body))
		if got := traceLine(&(<-traces).Upstreams[0]); a.status != k.status || got != k.want || peer.count(k.method) != k.times {
			t.Errorf("%s, %s: %d %v, %q, wants %q; sent %d times", k.what, k.method, a.status, a.err, got, k.want, peer.count(k.method))
		}
	}
}

// TestGoAwayFinishesOpenRequests: requests on a connection with GOAWAY complete, and new ones use
// another.
func TestGoAwayFinishesOpenRequests(t *testing.T) {
	let := make(chan struct{})
	peer := startH2Server(t, func(n int, c *rawH2Conn) {
		if n > 0 {
			c.serveAll()
			return
		}
		stream := c.next()
		c.head(stream, false, ":status", "200")
		_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
		c.data(stream, false, "first, ")
		<-let
		c.data(stream, true, "and last")
		c.drain()
	})
	h := newGateway(t, useHTTP2, peer.url)
	res, err := h.http.Do(h.request("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 7)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	if a := h.do(h.request("POST", "/", nil)); a.status != 200 || peer.conns.Load() != 2 {
		t.Errorf("%d, over %d connections", a.status, peer.conns.Load())
	}
	close(let)
	if rest, err := io.ReadAll(res.Body); string(rest) != "and last" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestH2ConnAnnouncesLimits: an endpoint cannot send more than the windows, longer frames or a
// longer header.
func TestH2ConnAnnouncesLimits(t *testing.T) {
	settings := make(map[http2.SettingID]uint32)
	more := uint32(0)
	peer := startH2Server(t, func(_ int, c *rawH2Conn) {
		for {
			f, err := c.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				_ = f.ForeachSetting(func(s http2.Setting) error { settings[s.ID] = s.Val; return nil })
			case *http2.WindowUpdateFrame:
				more += f.Increment
			case *http2.HeadersFrame:
				c.respondOK(f.StreamID)
			}
		}
	})
	h := newGateway(t, useHTTP2, peer.url)
	h.get("/")
	const window = 128 << 10
	if settings[http2.SettingInitialWindowSize] != window || settings[http2.SettingMaxFrameSize] != 16<<10 || settings[http2.SettingEnablePush] != 0 ||
		settings[http2.SettingMaxHeaderListSize] > 65<<10 || more != 2*(proxy.MaxStreams+100)*window {
		t.Errorf("%v, and %d", settings, more)
	}
}

// TestSlowClientDoesNotDelayOthers: a client that does not read its response, or the interim
// ones, fills only its own window.
func TestSlowClientDoesNotDelayOthers(t *testing.T) {
	const window = 128 << 10
	full := make(chan struct{})
	h := newGateway(t, useHTTP2, startH2Upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-From", r.RemoteAddr)
		w.Header().Set("Link", "</a>")
		switch r.URL.Path {
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
		case "/full":
			_, _ = w.Write(make([]byte, window)) // read when all of it was sent
			full <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "here")
	}))
	from := h.get("/").header.Get("X-From")
	ctx, leave := context.WithCancel(t.Context())
	let := make(chan struct{})
	var all sync.WaitGroup
	for _, path := range []string{"/full", "/full", "/early"} {
		w := &stalledClient{header: make(http.Header), started: make(chan struct{}, 1), let: let}
		all.Go(func() {
			defer func() { _ = recover() }() // a truncated response ends like this
			h.proxy.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://front"+path, nil))
		})
		for _, is := range []chan struct{}{w.started, full} {
			if path == "/early" && is == full {
				continue
			}
			select {
			case <-is:
			case <-time.After(time.Minute):
				t.Fatalf("%s waits for another", path)
			}
		}
	}
	for range 3 {
		if a := h.get("/"); a.status != 200 || a.body != "here" || a.header.Get("X-From") != from {
			t.Errorf("%d %q %v, from %s, not %s", a.status, a.body, a.err, a.header.Get("X-From"), from)
		}
	}
	leave()
	close(let)
	all.Wait()
}

// stalledClient reads nothing until it is resumed.
type stalledClient struct {
	header  http.Header
	started chan struct{}
	let     chan struct{}
}

func (d *stalledClient) Header() http.Header { return d.header }
func (d *stalledClient) Flush()              {}
func (d *stalledClient) WriteHeader(status int) {
	if status < 200 {
		d.resume()
	}
}

func (d *stalledClient) Write(b []byte) (int, error) {
	d.resume()
	return len(b), nil
}

func (d *stalledClient) resume() {
	select {
	case d.started <- struct{}{}:
	default:
	}
	<-d.let
}

// TestAbortedUploadIsReportedAtOnce: if an endpoint aborts a request, the attempt ends at once,
// although the client is still sending slowly.
func TestAbortedUploadIsReportedAtOnce(t *testing.T) {
	for _, inflates := range []bool{false, true} {
		for what, does := range map[string]func(c *rawH2Conn, stream uint32){
			"resets": func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeInternal); c.drain() },
			"closes": func(*rawH2Conn, uint32) {},
		} {
			peer := startH2Server(t, func(_ int, c *rawH2Conn) {
				stream := c.next()
				if f, err := c.frame(); err == nil && f.Header().Type == http2.FrameData { // a part of the body
					does(c, stream)
				}
			})
			h, traces := newTracedGateway(t, func(c *proxy.Config) {
				useHTTP2(c)
				c.Grace, c.DefaultDeadline = 20*time.Second, time.Hour // otherwise the client would exceed its limits
				c.Routes[0].DecompressRequest = inflates
			}, peer.url)
			text := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome"
			if inflates {
				text = strings.Replace(text, "\r\n\r\nsome", "\r\nContent-Encoding: gzip\r\n\r\n"+gzipPrefix("some"), 1)
			}
			conn, in := h.raw(text)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 502 || !res.Close {
				conn.Close()
				t.Fatalf("%s: %+v, %v", what, res, err)
			}
			if got := traceLine(&(<-traces).Upstreams[0]); got != "failed connection_reset 0, method_not_idempotent" {
				t.Errorf("%s: %q", what, got)
			}
			conn.Close()
		}
	}
}

// gzipPrefix is the beginning of a gzip stream that contains text.
func gzipPrefix(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Flush()
	return b.String()
}

// TestResponseBeforeEndOfBody: a complete response is forwarded although the client is still
// sending.
func TestResponseBeforeEndOfBody(t *testing.T) {
	reset := make(chan http2.ErrCode, 1)
	peer := startH2Server(t, func(_ int, c *rawH2Conn) {
		c.respondOK(c.next())
		reset <- c.reset()
	})
	h, traces := newTracedGateway(t, func(c *proxy.Config) {
		useHTTP2(c)
		c.Grace, c.DefaultDeadline = time.Hour, time.Hour
	}, peer.url)
	conn, in := h.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome")
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // if the proxy waits for the body, it does so for an hour
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); string(body) != "wild" || err != nil || !res.Close {
		t.Errorf("%+v: %q, %v", res, body, err)
	}
	if got := traceLine(&(<-traces).Upstreams[0]); got != "completed  200, " {
		t.Error(got)
	}
	conn.Close()
	<-reset // the endpoint learns that no more of the body comes
}

// TestSilentH2ConnIsRetired: a connection on which nothing was received, for as long as opening a
// new one takes, gets no further requests.
func TestSilentH2ConnIsRetired(t *testing.T) {
	t.Parallel()
	peer := startH2Server(t, func(n int, c *rawH2Conn) {
		if n == 0 {
			c.drain()
			return
		}
		c.serveAll()
	})
	h := newGateway(t, func(c *proxy.Config) {
		useHTTP2(c)
		c.DialTimeout = time.Second
	}, peer.url)
	times := 0
	for ; times < 100; times++ { // they disconnect early: each of them waits for less than that
		if h.get("/", proxy.DeadlineHeader, "100").status == 200 {
			break
		}
	}
	if times < 5 || times == 100 || peer.conns.Load() != 2 {
		t.Errorf("%d in vain, %d connections", times, peer.conns.Load())
	}
}

// TestH2ConnWithManyAbortsIsRetired: the number of aborted requests on a connection is limited,
// because an endpoint may take more for an attack.
func TestH2ConnWithManyAbortsIsRetired(t *testing.T) {
	in := make(chan string)
	h := newGateway(t, useHTTP2, startH2Upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		in <- r.RemoteAddr
		<-r.Context().Done()
	}))
	from := make(map[string]int)
	for range 101 {
		ctx, leave := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			h.do(h.request("GET", "/", nil).WithContext(ctx))
			close(over)
		}()
		from[<-in]++
		leave()
		<-over
		h.port.requireIdle(t)
	}
	if len(from) != 2 {
		t.Error(from)
	}
}

// TestStreamLimitOfEndpoint: the proxy respects the stream limit of an endpoint and opens more
// connections. If the limit is 0, it does not open connections for ever.
func TestStreamLimitOfEndpoint(t *testing.T) {
	few := startH2Server(t, func(_ int, c *rawH2Conn) {
		c.serveAll()
	}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	h := newGateway(t, useHTTP2, few.url)
	for range 3 {
		if a := h.get("/"); a.status != 200 {
			t.Fatal(a)
		}
	}
	if got := few.conns.Load(); got != 1 {
		t.Errorf("%d connections, one request after the other", got)
	}
	none := startH2Server(t, func(_ int, c *rawH2Conn) { c.serveAll() }, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
	h = newGateway(t, func(c *proxy.Config) {
		useHTTP2(c)
		c.DefaultDeadline = time.Second
	}, none.url)
	for range 3 {
		h.get("/")
	}
	if got := none.conns.Load(); got > 12 {
		t.Errorf("%d connections in vain", got)
	}
}

// TestFullH2ConnIsKept: an aborted request occupies its stream until the endpoint has confirmed
// it. The connection is kept: meanwhile requests use another, and later this one.
func TestFullH2ConnIsKept(t *testing.T) {
	for _, takes := range []int{1, 2} {
		in, let, knows := make(chan struct{}), make(chan struct{}), make(chan struct{})
		peer := startH2Server(t, func(n int, c *rawH2Conn) {
			if n > 0 {
				c.serveAll()
				return
			}
			for range takes {
				c.next()
				c.heard() // including its stream limit
				in <- struct{}{}
			}
			<-let
			c.confirms()
			c.heard()
			close(knows)
			stream := c.next()
			c.head(stream, false, ":status", "200")
			c.data(stream, true, "the first")
			c.drain()
		}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(takes)})
		h, traces := newTracedGateway(t, useHTTP2, peer.url)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range takes {
			all.Go(func() { h.do(h.request("GET", "/", nil).WithContext(ctx)) })
			<-in
		}
		leave()
		all.Wait()
		for range takes {
			if got := traceLine(&(<-traces).Upstreams[0]); got != "abandoned client_disconnected 0, " {
				t.Error(got)
			}
		}
		asks := func(want string) {
			if a := h.do(h.request("POST", "/", nil)); a.status != 200 || a.body != want || peer.conns.Load() != 2 {
				t.Errorf("of %d: %d %q %v, over %d connections", takes, a.status, a.body, a.err, peer.conns.Load())
			}
		}
		asks("wild")
		close(let)
		<-knows
		asks("the first")
	}
}

// TestHeaderLimitOfEndpoint: a header above the endpoint's limit is the client's problem, and the
// endpoint has not failed.
func TestHeaderLimitOfEndpoint(t *testing.T) {
	peer := startH2Server(t, func(_ int, c *rawH2Conn) { c.serveAll() }, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 2000})
	h, traces := newTracedGateway(t, useHTTP2, peer.url)
	if a := h.get("/"); a.status != 200 || traceLine(&(<-traces).Upstreams[0]) != "completed  200, " {
		t.Fatal(a)
	}
	a := h.get("/", "X-Large", strings.Repeat("x", 2000))
	if got := traceLine(&(<-traces).Upstreams[0]); a.status != 400 || got != "abandoned stream_refused 0, " {
		t.Errorf("%d, %q", a.status, got)
	}
	if a := h.get("/"); a.status != 200 || peer.conns.Load() != 1 {
		t.Errorf("%d, over %d connections", a.status, peer.conns.Load())
	}
}

// TestNoUpgradeOverHTTP2: HTTP/2 has no Upgrade, so the request is answered without it, and the
// upstream has not failed.
func TestNoUpgradeOverHTTP2(t *testing.T) {
	h := newGateway(t, useHTTP2, startH2Upstream(t, echo))
	a := h.get("/", "Connection", "Upgrade", "Upgrade", "websocket")
	if a.status != 200 || a.header.Get("Saw-Upgrade") != "" {
		t.Errorf("%d, %v", a.status, a.header)
	}
	s := serveTLS(t, func(w http.ResponseWriter, r *http.Request) { // an endpoint that may choose gets the upgrade over HTTP/1.1
		if r.ProtoMajor == 2 {
			return
		}
		conn, with, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\nSec-Mine: 1\r\n\r\nhello\n")
		line, _ := with.ReadString('\n')
		_, _ = io.WriteString(conn, strings.ToUpper(line))
	}, "h2", "http/1.1")
	h = newGateway(t, s.trustRoots(proxy.Auto), s.URL)
	if a := h.get("/plain"); a.status != 200 {
		t.Fatal(a)
	}
	_, in := h.openTunnel()
	if rest, err := io.ReadAll(in); len(rest) != 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestHTTP11RequiredIsHonoured: if an endpoint that chose HTTP/2 resets a request with
// HTTP_1_1_REQUIRED, and the configuration lets it choose, the request is repeated over HTTP/1.1.
func TestHTTP11RequiredIsHonoured(t *testing.T) {
	cert := serveTLS(t, echo, "h2") // for its certificate
	var mu sync.Mutex
	asked := ""
	peer := play(t, &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}, func(_ int, conn net.Conn, c *rawH2Conn) {
		if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
			for c.handshake(); ; {
				stream := c.next()
				if stream == 0 {
					return
				}
				_ = c.WriteRSTStream(stream, http2.ErrCodeHTTP11Required)
			}
		}
		for in := bufio.NewReader(conn); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			mu.Lock()
			asked += " " + r.Method
			mu.Unlock()
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	for _, c := range []struct{ first, want string }{{"GET", " GET POST"}, {"POST", " POST"}} {
		asked = ""
		h := newGateway(t, cert.trustRoots(proxy.Auto), strings.Replace(peer.url, "http:", "https:", 1))
		first, second := h.do(h.request(c.first, "/", nil)), h.do(h.request("POST", "/", nil))
		mu.Lock()
		if want := map[string]int{"GET": 204, "POST": 502}[c.first]; first.status != want || second.status != 204 || asked != c.want {
			t.Errorf("%s: %d, then %d; by HTTP/1.1%s", c.first, first.status, second.status, asked)
		}
		mu.Unlock()
	}
}
