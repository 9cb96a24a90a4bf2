package proxy_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"macronode/adapters/proxy"
)

// A rawH2Conn is a connection on which the test plays an HTTP/2 endpoint by hand.
type rawH2Conn struct {
	*http2.Framer
	conn net.Conn
	text bytes.Buffer
	code *hpack.Encoder
	read *hpack.Decoder
	of   *rawH2Server
}

// rawH2Server has the connections of an endpoint.
type rawH2Server struct {
	url   string
	conns atomic.Int64
	mu    sync.Mutex
	asked map[string]int // by method, whatever the result was
	ready chan bool
}

func (w *rawH2Server) count(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[method]
}

// startH2Server starts an endpoint whose connections, numbered from 0, begin regularly and are
// then played by hand.
func startH2Server(t *testing.T, does func(n int, c *rawH2Conn), settings ...http2.Setting) *rawH2Server {
	t.Helper()
	return play(t, nil, func(n int, _ net.Conn, c *rawH2Conn) {
		if c.handshake(settings...) {
			does(n, c)
		}
	})
}

// play plays each connection by hand, with TLS if secure is not nil.
func play(t *testing.T, secure *tls.Config, does func(n int, conn net.Conn, c *rawH2Conn)) *rawH2Server {
	t.Helper()
	of := &rawH2Server{asked: make(map[string]int), ready: make(chan bool, 1)}
	of.url = "http://" + proxy.RawEndpoint(t, secure, func(n int, conn net.Conn) {
		of.conns.Add(1)
		c := &rawH2Conn{Framer: http2.NewFramer(conn, conn), conn: conn, read: hpack.NewDecoder(4<<10, nil), of: of}
		c.code = hpack.NewEncoder(&c.text)
		does(n, conn, c)
	})
	return of
}

// handshake reads the preface and sends the settings.
func (c *rawH2Conn) handshake(settings ...http2.Setting) bool {
	_, err := io.ReadFull(c.conn, make([]byte, len(http2.ClientPreface)))
	return err == nil && c.WriteSettings(settings...) == nil
}

// frame returns the next frame that is not connection management, which it answers.
func (c *rawH2Conn) frame() (http2.Frame, error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() && c.WriteSettingsAck() != nil {
				return nil, io.EOF
			}
		case *http2.PingFrame:
			if !f.IsAck() && c.WritePing(true, f.Data) != nil {
				return nil, io.EOF
			}
		case *http2.WindowUpdateFrame:
		default:
			return f, nil
		}
	}
}

// next returns the stream of the next request; 0: there is none.
func (c *rawH2Conn) next() uint32 {
	for {
		f, err := c.frame()
		if err != nil {
			return 0
		}
		h, ok := f.(*http2.HeadersFrame)
		if !ok {
			continue
		}
		fields, err := c.read.DecodeFull(h.HeaderBlockFragment())
		if err != nil {
			return 0
		}
		for _, one := range fields {
			if one.Name == ":method" {
				c.of.mu.Lock()
				c.of.asked[one.Value]++
				c.of.mu.Unlock()
			}
		}
		return f.Header().StreamID
	}
}

// drain reads until the other end is closed.
func (c *rawH2Conn) drain() { _, _ = io.Copy(io.Discard, c.conn) }

// reset reads until a stream is reset, and returns the code.
func (c *rawH2Conn) reset() (by http2.ErrCode) {
	for {
		f, err := c.frame()
		if err != nil {
			return 0xff
		}
		if r, ok := f.(*http2.RSTStreamFrame); ok {
			return r.ErrCode
		}
	}
}

// confirms reads until it gets a PING behind a reset, and answers it.
func (c *rawH2Conn) confirms() {
	for {
		f, err := c.ReadFrame()
		if p, ok := f.(*http2.PingFrame); err != nil || ok && !p.IsAck() {
			if ok {
				_ = c.WritePing(true, p.Data)
			}
			return
		}
	}
}

// head begins a response; fields are names and values, alternating.
func (c *rawH2Conn) head(stream uint32, ends bool, fields ...string) {
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block(fields...), EndStream: ends, EndHeaders: true})
}

func (c *rawH2Conn) block(fields ...string) []byte {
	c.text.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.code.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return c.text.Bytes()
}

func (c *rawH2Conn) data(stream uint32, ends bool, text string) {
	_ = c.WriteData(stream, ends, []byte(text))
}

// respondOK answers regularly.
func (c *rawH2Conn) respondOK(stream uint32) {
	if stream != 0 {
		c.head(stream, false, ":status", "200")
		c.data(stream, true, "wild")
	}
}

// serveAll answers all requests regularly, until the connection ends.
func (c *rawH2Conn) serveAll() {
	for {
		stream := c.next()
		if stream == 0 {
			return
		}
		c.respondOK(stream)
	}
}

// A h2Fault is what an HTTP/2 endpoint does to the first request on a connection.
type h2Fault struct {
	what string
	does func(c *rawH2Conn, stream uint32)
	// first is the first attempt of a repeatable request whose other attempts succeed, and single
	// that of a request that may not be repeated.
	first, single string
	status        int // of the response to single
}

// h2Faults are the faults. If the endpoint reports that it has not processed a request, it may be
// repeated; otherwise only a repeatable one. No fault causes a second delivery of another
// request.
var h2Faults = []h2Fault{
	{"resets it, and says that it has not begun", func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeRefusedStream); c.drain() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away, and has not begun", func(c *rawH2Conn, s uint32) { _ = c.WriteGoAway(s-1, http2.ErrCodeNo, nil); c.drain() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away in anger, and has not begun", func(c *rawH2Conn, s uint32) { _ = c.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil); c.drain() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away, and leaves it at that", func(c *rawH2Conn, s uint32) { _ = c.WriteGoAway(s, http2.ErrCodeNo, nil) },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"resets it", func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeInternal); c.drain() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"cancels it", func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeCancel); c.drain() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"resets it for what it calls an error of ours", func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeProtocol); c.drain() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"wants HTTP/1.1, where it is not to be had", func(c *rawH2Conn, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeHTTP11Required); c.drain() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"closes", func(*rawH2Conn, uint32) {},
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"speaks HTTP/1.1", func(c *rawH2Conn, _ uint32) {
		_, _ = io.WriteString(c.conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		c.drain()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"pushes", func(c *rawH2Conn, s uint32) {
		_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: c.block(":method", "GET"), EndHeaders: true})
		c.drain()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"sends a body without a header", func(c *rawH2Conn, s uint32) { c.data(s, true, "wild"); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"answers what nobody asked", func(c *rawH2Conn, s uint32) { c.data(s+2, true, "wild"); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"sends a frame that is too long", func(c *rawH2Conn, s uint32) {
		c.head(s+2, false, ":status", "200")
		_ = c.WriteRawFrame(http2.FrameData, 0, s, make([]byte, 16<<10+1))
		c.drain()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has no status", func(c *rawH2Conn, s uint32) { c.head(s, true, "x", "y"); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a status that is none", func(c *rawH2Conn, s uint32) { c.head(s, true, ":status", "no"); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a status of four digits", func(c *rawH2Conn, s uint32) { c.head(s, true, ":status", "1000"); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"opens a window beyond its end", func(c *rawH2Conn, s uint32) { _ = c.WriteWindowUpdate(s, 1<<31-1); c.drain() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a header that is too large", func(c *rawH2Conn, s uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: c.block(":status", "200", "x", strings.Repeat("x", 15<<10))})
		for range 5 {
			_ = c.WriteContinuation(s, false, c.block("x", strings.Repeat("y", 15<<10)))
		}
		_ = c.WriteContinuation(s, true, nil)
		c.drain()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a header without an end", func(c *rawH2Conn, s uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: c.block(":status", "200")})
		for part := c.block("x", strings.Repeat("y", 15<<10)); c.WriteContinuation(s, false, part) == nil; {
		}
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has an answer of its own, and resets", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "503")
		_ = c.WriteRSTStream(s, http2.ErrCodeNo)
		c.drain()
	}, "answered_5xx status 503", "truncated connection_reset 503, method_not_idempotent", 503},
}

// TestFaultyH2Endpoints: each fault is recorded as what it is. A repeatable request is repeated,
// and any other is sent once.
func TestFaultyH2Endpoints(t *testing.T) {
	for _, v := range h2Faults {
		for _, method := range []string{"GET", "POST"} {
			bad := startH2Server(t, func(_ int, c *rawH2Conn) {
				if stream := c.next(); stream != 0 {
					v.does(c, stream)
				}
			})
			h, traces := newTracedGateway(t, useHTTP2, bad.url, startH2Upstream(t, echo))
			a := h.do(h.request(method, "/", nil))
			got := traceLine(&(<-traces).Upstreams[0])
			want, status := v.first+", completed  200, ", 200
			if method == "POST" {
				want, status = v.single, v.status
			}
			if got != want || a.status != status || bad.count(method) != 1 {
				t.Errorf("%s, %s: %q, wants %q; %d %v, sent %d times", v.what, method, got, want, a.status, a.err, bad.count(method))
			}
			h.port.requireIdle(t)
		}
	}
}

// TestInvalidContentLengthOverHTTP2: an invalid or repeated Content-Length is not forwarded; the
// frames determine the body.
func TestInvalidContentLengthOverHTTP2(t *testing.T) {
	for _, lengths := range [][]string{{"content-length", "4", "content-length", "5"}, {"content-length", "four"}} {
		odd := startH2Server(t, func(_ int, c *rawH2Conn) {
			if s := c.next(); s != 0 {
				c.head(s, false, append([]string{":status", "200"}, lengths...)...)
				c.data(s, true, "wild")
				c.drain()
			}
		})
		h := newGateway(t, useHTTP2, odd.url)
		if a := h.do(h.request("GET", "/", nil)); a.status != 200 || a.body != "wild" || a.header["Content-Length"] != nil && a.header.Get("Content-Length") != "4" {
			t.Errorf("%v: %d %q %v", lengths, a.status, a.body, a.header)
		}
	}
}

// TestFailureBeforeHeaderIsAnswered: if a response fails before any of it was forwarded, the
// client gets a problem. A closed connection would cause many clients to repeat the request.
func TestFailureBeforeHeaderIsAnswered(t *testing.T) {
	for what, does := range map[string]func(c *rawH2Conn, s uint32){
		"says nothing of what it said": func(c *rawH2Conn, s uint32) { c.head(s, true, ":status", "200", "content-length", "8") },
		"says more than it said": func(c *rawH2Conn, s uint32) {
			c.head(s, false, ":status", "200", "content-length", "4")
			c.data(s, true, "half more")
		},
		"is whole, and is reset": func(c *rawH2Conn, s uint32) {
			c.head(s, false, ":status", "200", "content-length", "4")
			c.data(s, false, "wild")
			_ = c.WriteRSTStream(s, http2.ErrCodeInternal)
		},
	} {
		bad := startH2Server(t, func(_ int, c *rawH2Conn) {
			if s := c.next(); s != 0 {
				does(c, s)
				c.drain()
			}
		})
		h := newGateway(t, useHTTP2, bad.url)
		if a := h.do(h.request("POST", "/", nil)); a.status != 502 || bad.count("POST") != 1 {
			t.Errorf("%s: %d %v, sent %d times", what, a.status, a.err, bad.count("POST"))
		}
	}
	for _, text := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "HTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\n"} {
		for _, method := range []string{"GET", "POST"} {
			h := newGateway(t, nil, respondsWith(t, text))
			if a := h.do(h.request(method, "/", nil)); a.status != 502 {
				t.Errorf("%s, %q: %d %v", method, text, a.status, a.err)
			}
		}
	}
}

// TestNotModifiedOverHTTP2: the Content-Length of a 304 describes no body.
func TestNotModifiedOverHTTP2(t *testing.T) {
	fresh := startH2Server(t, func(_ int, c *rawH2Conn) {
		for s := c.next(); s != 0; s = c.next() {
			c.head(s, true, ":status", "304", "content-length", "500")
		}
	})
	for what, h := range map[string]*gateway{"HTTP/2": newGateway(t, useHTTP2, fresh.url), "HTTP/1.1": newGateway(t, nil, respondsWith(t, "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"))} {
		for range 2 {
			if a := h.do(h.request("GET", "/", nil)); a.status != 304 || a.err != nil {
				t.Errorf("%s: %d %v", what, a.status, a.err)
			}
		}
		h.port.requireIdle(t)
	}
}

// A h2Truncation is how an HTTP/2 endpoint continues a response that has begun.
type end struct {
	what   string
	method string
	does   func(c *rawH2Conn, stream uint32)
	first  string
	body   string // before the end; it is never complete
}

var ends = []end{
	{"resets it", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		_ = c.WriteRSTStream(s, http2.ErrCodeInternal)
		c.drain()
	}, "truncated connection_reset 200, ", "half"},
	{"resets it as if it were whole", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "8")
		c.data(s, false, "half")
		_ = c.WriteRSTStream(s, http2.ErrCodeNo)
		c.drain()
	}, "truncated connection_reset 200, ", "half"},
	{"closes", "GET", func(c *rawH2Conn, s uint32) { c.head(s, false, ":status", "200"); c.data(s, false, "half") }, "truncated connection_reset 200, ", "half"},
	{"goes away and closes", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		_ = c.WriteGoAway(s, http2.ErrCodeNo, nil)
	}, "truncated connection_reset 200, ", "half"},
	{"says less than it said", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "8")
		c.data(s, true, "half")
		c.drain()
	}, "truncated connection_reset 200, ", "half"},
	{"says nothing of what it said", "GET", func(c *rawH2Conn, s uint32) { c.head(s, true, ":status", "200", "content-length", "8"); c.drain() }, "truncated connection_reset 200, ", ""},
	{"says more than it said", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "4")
		c.data(s, true, "half and more")
		c.drain()
	}, "truncated protocol_error 200, ", ""},
	{"says something where there is nothing to say", "GET", func(c *rawH2Conn, s uint32) { c.head(s, false, ":status", "204"); c.data(s, true, "half"); c.drain() }, "truncated protocol_error 204, ", ""},
	{"goes on behind its end", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		c.head(s, false, "x", "y") // trailers without end of stream
		c.drain()
	}, "truncated protocol_error 200, ", "half"},
	{"sends more than the window", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200")
		for part := strings.Repeat("x", 16<<10); c.WriteData(s, false, []byte(part)) == nil; {
		}
	}, "truncated protocol_error 200, ", "x"},
	{"falls silent", "GET", func(c *rawH2Conn, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		c.reset()
		c.drain()
	}, "truncated response_stalled 200, ", "half"},
}

// TestTruncatedH2ResponseAbortsStream: a truncated HTTP/2 response is never complete for the
// client.
func TestTruncatedH2ResponseAbortsStream(t *testing.T) {
	for _, e := range ends {
		bad := startH2Server(t, func(_ int, c *rawH2Conn) {
			if stream := c.next(); stream != 0 {
				e.does(c, stream)
			}
		})
		h, traces := newTracedGateway(t, func(c *proxy.Config) {
			useHTTP2(c)
			c.StallTimeout = 500 * time.Millisecond
		}, bad.url)
		a := h.do(h.request(e.method, "/", nil))
		if got := traceLine(&(<-traces).Upstreams[0]); got != e.first || a.err == nil && a.status == 200 || !strings.HasPrefix(a.body, e.body) || bad.count(e.method) != 1 {
			t.Errorf("%s: %q, wants %q; %d %.20q %v, sent %d times", e.what, got, e.first, a.status, a.body, a.err, bad.count(e.method))
		}
	}
}
