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

// heard waits until the other end has read all that was written to it.
func (c *wild) heard() {
	_ = c.WritePing(false, [8]byte{1})
	for {
		if f, err := c.ReadFrame(); err != nil || f.Header().Type == http2.FramePing && f.Header().Flags.Has(http2.FlagPingAck) {
			return
		}
	}
}

// TestAKeptTrunkThatEnds: an endpoint that ends a connection just when it is asked over it
// has not failed: what may be repeated is, at once and once, and what may not is not. What was
// not sent at all goes over another whatever it is.
func TestAKeptTrunkThatEnds(t *testing.T) {
	away := func(c *wild) {
		stream := c.next()
		_ = c.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		c.until()
	}
	later := func(c *wild) { // when some of the body is there
		stream := c.next()
		_, _ = c.frame()
		_ = c.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		c.until()
	}
	for _, k := range []struct {
		what, method, body string
		ends               func(c *wild) // behind the first answer of the first connection
		second             bool          // so does the second, which has answered nothing
		status             int
		want               string
		times              int // that it was sent
	}{
		{"goes away", "GET", "", away, false, 200, "completed  200, ", 2},
		{"goes away", "DELETE", "", away, false, 200, "completed  200, ", 2},
		{"goes away", "POST", "", away, false, 502, "abandoned stream_refused 0, ", 1},
		{"goes away", "PUT", "body", later, false, 502, "abandoned stream_refused 0, ", 1},
		{"goes away twice", "GET", "", away, true, 200, "unsent stream_refused 0, completed  200, ", 3},
		{"closes", "GET", "", func(c *wild) { c.next() }, false, 200, "completed  200, ", 2},
		{"closes", "POST", "", func(c *wild) { c.next() }, false, 502, "failed connection_reset 0, method_not_idempotent", 1},
		{"closes twice", "GET", "", func(c *wild) { c.next() }, true, 200, "failed connection_reset 0, completed  200, ", 3},
		{"resets", "GET", "", func(c *wild) { _ = c.WriteRSTStream(c.next(), http2.ErrCodeInternal); c.serve() }, false, 200, "failed connection_reset 0, completed  200, ", 2},
		{"refuses", "GET", "", func(c *wild) { _ = c.WriteRSTStream(c.next(), http2.ErrCodeRefusedStream); c.serve() }, false, 200, "unsent stream_refused 0, completed  200, ", 2},
		{"has gone away before", "POST", "body", func(c *wild) { _ = c.WriteGoAway(1, http2.ErrCodeNo, nil); c.heard(); c.of.ready <- true; c.until() }, false, 200, "completed  200, ", 1},
	} {
		far := tame(t, func(n int, c *wild) {
			if n == 0 {
				c.well(c.next())
			}
			if n == 0 || n == 1 && k.second {
				k.ends(c)
				return
			}
			c.serve()
		})
		h, courses := followed(t, second, far.url)
		if a := h.do(h.request("OPTIONS", "/", nil)); a.status != 200 || told(&(<-courses).Legs[0]) != "completed  200, " {
			t.Fatal(a)
		}
		if strings.HasPrefix(k.what, "has gone") {
			<-far.ready
		}
		var body io.Reader
		if k.body != "" {
			body = strings.NewReader(k.body)
		}
		a := h.do(h.request(k.method, "/", body))
		if got := told(&(<-courses).Legs[0]); a.status != k.status || got != k.want || far.times(k.method) != k.times {
			t.Errorf("%s, %s: %d %v, %q, wants %q; sent %d times", k.what, k.method, a.status, a.err, got, k.want, far.times(k.method))
		}
	}
}

// TestGoesAwayAndFinishes: what is on a connection that goes away is answered over it, and
// what comes goes over another.
func TestGoesAwayAndFinishes(t *testing.T) {
	let := make(chan struct{})
	far := tame(t, func(n int, c *wild) {
		if n > 0 {
			c.serve()
			return
		}
		stream := c.next()
		c.head(stream, false, ":status", "200")
		_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
		c.data(stream, false, "first, ")
		<-let
		c.data(stream, true, "and last")
		c.until()
	})
	h := build(t, second, far.url)
	res, err := h.http.Do(h.request("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 7)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	if a := h.do(h.request("POST", "/", nil)); a.status != 200 || far.conns.Load() != 2 {
		t.Errorf("%d, over %d connections", a.status, far.conns.Load())
	}
	close(let)
	if rest, err := io.ReadAll(res.Body); string(rest) != "and last" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestWhatATrunkIsTold: no endpoint sends ahead more than the windows, in longer frames or
// with a longer header.
func TestWhatATrunkIsTold(t *testing.T) {
	told := make(map[http2.SettingID]uint32)
	more := uint32(0)
	far := tame(t, func(_ int, c *wild) {
		for {
			f, err := c.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				_ = f.ForeachSetting(func(s http2.Setting) error { told[s.ID] = s.Val; return nil })
			case *http2.WindowUpdateFrame:
				more += f.Increment
			case *http2.HeadersFrame:
				c.well(f.StreamID)
			}
		}
	})
	h := build(t, second, far.url)
	h.get("/")
	const window = 128 << 10
	if told[http2.SettingInitialWindowSize] != window || told[http2.SettingMaxFrameSize] != 16<<10 || told[http2.SettingEnablePush] != 0 ||
		told[http2.SettingMaxHeaderListSize] > 65<<10 || more < proxy.MaxStreams*window || more > proxy.MaxStreams*window+1<<16 {
		t.Errorf("%v, and %d", told, more)
	}
}

// TestASlowClientHoldsUpNobody: who does not take his answer, or what is said before it, has
// his window full, and nobody else's.
func TestASlowClientHoldsUpNobody(t *testing.T) {
	const window = 128 << 10
	full := make(chan struct{})
	h := build(t, second, serves2(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-From", r.RemoteAddr)
		w.Header().Set("Link", "</a>")
		switch r.URL.Path {
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
		case "/full":
			_, _ = w.Write(make([]byte, window)) // which is taken when all of it was sent
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
		w := &deaf{header: make(http.Header), said: make(chan struct{}, 1), let: let}
		all.Go(func() {
			defer func() { _ = recover() }() // an answer that is not whole ends so
			h.proxy.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://front"+path, nil))
		})
		for _, is := range []chan struct{}{w.said, full} {
			if path == "/early" && is == full {
				continue
			}
			select {
			case <-is:
			case <-time.After(20 * time.Second):
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

// deaf is a client that takes nothing of what is said to it until it is let.
type deaf struct {
	header http.Header
	said   chan struct{}
	let    chan struct{}
}

func (d *deaf) Header() http.Header { return d.header }
func (d *deaf) Flush()              {}
func (d *deaf) WriteHeader(status int) {
	if status < 200 {
		d.hears()
	}
}

func (d *deaf) Write(b []byte) (int, error) {
	d.hears()
	return len(b), nil
}

func (d *deaf) hears() {
	select {
	case d.said <- struct{}{}:
	default:
	}
	<-d.let
}

// TestAnUploadThatNobodyWants: an endpoint that gives a request up is told of at once, though
// its client is in the middle of sending, and is in no hurry.
func TestAnUploadThatNobodyWants(t *testing.T) {
	for _, inflates := range []bool{false, true} {
		for what, does := range map[string]func(c *wild, stream uint32){
			"resets": func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeInternal); c.until() },
			"closes": func(*wild, uint32) {},
		} {
			far := tame(t, func(_ int, c *wild) {
				stream := c.next()
				if f, err := c.frame(); err == nil && f.Header().Type == http2.FrameData { // some of the body
					does(c, stream)
				}
			})
			h, courses := followed(t, func(c *proxy.Config) {
				second(c)
				c.Grace, c.Deadline = 20*time.Second, time.Hour // it would be the client's fault then
				c.Routes[0].Inflate = inflates
			}, far.url)
			text := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome"
			if inflates {
				text = strings.Replace(text, "\r\n\r\nsome", "\r\nContent-Encoding: gzip\r\n\r\n"+flushed("some"), 1)
			}
			conn, in := h.raw(text)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 502 || !res.Close {
				t.Errorf("%s: %+v, %v", what, res, err)
			}
			if got := told(&(<-courses).Legs[0]); got != "failed connection_reset 0, method_not_idempotent" {
				t.Errorf("%s: %q", what, got)
			}
			conn.Close()
		}
	}
}

// flushed is the beginning of a gzip that has a text.
func flushed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Flush()
	return b.String()
}

// TestAnAnswerBeforeTheBody: one that is whole is given on though its client is sending yet.
func TestAnAnswerBeforeTheBody(t *testing.T) {
	reset := make(chan http2.ErrCode, 1)
	far := tame(t, func(_ int, c *wild) {
		c.well(c.next())
		reset <- c.reset()
	})
	h, courses := followed(t, func(c *proxy.Config) {
		second(c)
		c.Grace, c.Deadline = time.Hour, time.Hour
	}, far.url)
	conn, in := h.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome")
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // where it waits for the body, it does so for an hour
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); string(body) != "wild" || err != nil || !res.Close {
		t.Errorf("%+v: %q, %v", res, body, err)
	}
	if got := told(&(<-courses).Legs[0]); got != "completed  200, " {
		t.Error(got)
	}
	conn.Close()
	<-reset // its endpoint is told that no more of the body comes
}

// TestASilentTrunk: one from which nothing is heard, though it was asked for as long as a new
// one takes, is asked no more; it may be dead.
func TestASilentTrunk(t *testing.T) {
	t.Parallel()
	far := tame(t, func(n int, c *wild) {
		if n == 0 {
			c.until()
			return
		}
		c.serve()
	})
	h := build(t, func(c *proxy.Config) {
		second(c)
		c.Dial = time.Second
	}, far.url)
	times := 0
	for ; times < 100; times++ { // who are in a hurry: each of them waits for less than that
		if h.get("/", proxy.DeadlineHeader, "100").status == 200 {
			break
		}
	}
	if times < 5 || times == 100 || far.conns.Load() != 2 {
		t.Errorf("%d in vain, %d connections", times, far.conns.Load())
	}
}

// TestASpoiltTrunk: an endpoint is not asked over one connection by ever more who leave: it
// might take us for an attack.
func TestASpoiltTrunk(t *testing.T) {
	in := make(chan string)
	h := build(t, second, serves2(t, func(_ http.ResponseWriter, r *http.Request) {
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
		h.port.idle(t)
	}
	if len(from) != 2 {
		t.Error(from)
	}
}

// TestFewStreams: an endpoint is asked as much at once as it takes, over more connections
// where that is less; one that takes nothing is not connected to ever again.
func TestFewStreams(t *testing.T) {
	few := tame(t, func(_ int, c *wild) {
		c.serve()
	}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	h := build(t, second, few.url)
	for range 3 {
		if a := h.get("/"); a.status != 200 {
			t.Fatal(a)
		}
	}
	if got := few.conns.Load(); got != 1 {
		t.Errorf("%d connections, one request after the other", got)
	}
	none := tame(t, func(_ int, c *wild) { c.serve() }, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
	h = build(t, func(c *proxy.Config) {
		second(c)
		c.Deadline = time.Second
	}, none.url)
	for range 3 {
		h.get("/")
	}
	if got := none.conns.Load(); got > 12 {
		t.Errorf("%d connections in vain", got)
	}
}

// TestAFullTrunkIsKept: a request that is given up has its place on a trunk until the endpoint
// has confirmed that. The trunk is none that has ended: it is kept, who comes meanwhile goes
// over another, and who comes then over this one.
func TestAFullTrunkIsKept(t *testing.T) {
	for _, takes := range []int{1, 2} {
		in, let, knows := make(chan struct{}), make(chan struct{}), make(chan struct{})
		far := tame(t, func(n int, c *wild) {
			if n > 0 {
				c.serve()
				return
			}
			for range takes {
				c.next()
				c.heard() // how many it takes, too
				in <- struct{}{}
			}
			<-let
			c.confirms()
			c.heard()
			close(knows)
			stream := c.next()
			c.head(stream, false, ":status", "200")
			c.data(stream, true, "the first")
			c.until()
		}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(takes)})
		h, courses := followed(t, second, far.url)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range takes {
			all.Go(func() { h.do(h.request("GET", "/", nil).WithContext(ctx)) })
			<-in
		}
		leave()
		all.Wait()
		for range takes {
			if got := told(&(<-courses).Legs[0]); got != "abandoned client_disconnected 0, " {
				t.Error(got)
			}
		}
		asks := func(want string) {
			if a := h.do(h.request("POST", "/", nil)); a.status != 200 || a.body != want || far.conns.Load() != 2 {
				t.Errorf("of %d: %d %q %v, over %d connections", takes, a.status, a.body, a.err, far.conns.Load())
			}
		}
		asks("wild")
		close(let)
		<-knows
		asks("the first")
	}
}

// TestALargeHeader: what an endpoint takes no request for is its client's to mend, and no
// failure of the endpoint.
func TestALargeHeader(t *testing.T) {
	far := tame(t, func(_ int, c *wild) { c.serve() }, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 2000})
	h, courses := followed(t, second, far.url)
	if a := h.get("/"); a.status != 200 || told(&(<-courses).Legs[0]) != "completed  200, " {
		t.Fatal(a)
	}
	a := h.get("/", "X-Large", strings.Repeat("x", 2000))
	if got := told(&(<-courses).Legs[0]); a.status != 400 || got != "abandoned stream_refused 0, " {
		t.Errorf("%d, %q", a.status, got)
	}
	if a := h.get("/"); a.status != 200 || far.conns.Load() != 1 {
		t.Errorf("%d, over %d connections", a.status, far.conns.Load())
	}
}

// TestNoUpgradeBySecond: HTTP/2 has none, so who asks for one is answered without; no service
// is blamed for that.
func TestNoUpgradeBySecond(t *testing.T) {
	h := build(t, second, serves2(t, echo))
	a := h.get("/", "Connection", "Upgrade", "Upgrade", "websocket")
	if a.status != 200 || a.header.Get("Saw-Upgrade") != "" {
		t.Errorf("%d, %v", a.status, a.header)
	}
	s := serveTLS(t, func(w http.ResponseWriter, r *http.Request) { // who chooses is asked for one by HTTP/1.1
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
	h = build(t, s.trusts(proxy.Auto), s.URL)
	if a := h.get("/plain"); a.status != 200 {
		t.Fatal(a)
	}
	_, in := h.opens()
	if rest, err := io.ReadAll(in); len(rest) != 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestAnEndpointThatWantsHTTP1: one that chose HTTP/2, and says of a request that it wants it
// by HTTP/1.1, is asked so, where the operator lets it choose; by what may be repeated at once.
func TestAnEndpointThatWantsHTTP1(t *testing.T) {
	cert := serveTLS(t, echo, "h2") // for its certificate
	var mu sync.Mutex
	asked := ""
	far := play(t, &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}, func(_ int, conn net.Conn, c *wild) {
		if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
			for c.greets(); ; {
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
		h := build(t, cert.trusts(proxy.Auto), strings.Replace(far.url, "http:", "https:", 1))
		first, second := h.do(h.request(c.first, "/", nil)), h.do(h.request("POST", "/", nil))
		mu.Lock()
		if want := map[string]int{"GET": 204, "POST": 502}[c.first]; first.status != want || second.status != 204 || asked != c.want {
			t.Errorf("%s: %d, then %d; by HTTP/1.1%s", c.first, first.status, second.status, asked)
		}
		mu.Unlock()
	}
}
