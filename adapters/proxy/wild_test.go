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

// A wild endpoint speaks HTTP/2 by hand, and as it likes.
type wild struct {
	*http2.Framer
	conn net.Conn
	text bytes.Buffer
	code *hpack.Encoder
	read *hpack.Decoder
	of   *wilds
}

// wilds are an endpoint's connections.
type wilds struct {
	url   string
	conns atomic.Int64
	mu    sync.Mutex
	asked map[string]int // by method, whatever became of it
	ready chan bool
}

func (w *wilds) times(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[method]
}

// tame is an endpoint that plays its n-th connection, from 0, by hand, and begins it as it
// should.
func tame(t *testing.T, does func(n int, c *wild), says ...http2.Setting) *wilds {
	t.Helper()
	return play(t, nil, func(n int, _ net.Conn, c *wild) {
		if c.greets(says...) {
			does(n, c)
		}
	})
}

// play plays each connection by hand, of TLS where secure is not nil.
func play(t *testing.T, secure *tls.Config, does func(n int, conn net.Conn, c *wild)) *wilds {
	t.Helper()
	of := &wilds{asked: make(map[string]int), ready: make(chan bool, 1)}
	of.url = "http://" + proxy.Far(t, secure, func(n int, conn net.Conn) {
		of.conns.Add(1)
		c := &wild{Framer: http2.NewFramer(conn, conn), conn: conn, read: hpack.NewDecoder(4<<10, nil), of: of}
		c.code = hpack.NewEncoder(&c.text)
		does(n, conn, c)
	})
	return of
}

// greets reads the preface, and says how it begins.
func (c *wild) greets(says ...http2.Setting) bool {
	_, err := io.ReadFull(c.conn, make([]byte, len(http2.ClientPreface)))
	return err == nil && c.WriteSettings(says...) == nil
}

// frame is the next one that is no courtesy; those are returned.
func (c *wild) frame() (http2.Frame, error) {
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

// next is the stream of the next request; 0: there is none.
func (c *wild) next() uint32 {
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

// until reads until the other end has nothing to say any more.
func (c *wild) until() { _, _ = io.Copy(io.Discard, c.conn) }

// reset reads until a stream is reset, and by what.
func (c *wild) reset() (by http2.ErrCode) {
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

// confirms reads until it is asked whether it lives, behind a reset, and says so.
func (c *wild) confirms() {
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

// head begins an answer: of names and values, by turns.
func (c *wild) head(stream uint32, ends bool, fields ...string) {
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block(fields...), EndStream: ends, EndHeaders: true})
}

func (c *wild) block(fields ...string) []byte {
	c.text.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.code.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return c.text.Bytes()
}

func (c *wild) data(stream uint32, ends bool, text string) {
	_ = c.WriteData(stream, ends, []byte(text))
}

// well answers as it should.
func (c *wild) well(stream uint32) {
	if stream != 0 {
		c.head(stream, false, ":status", "200")
		c.data(stream, true, "wild")
	}
}

// serve answers all requests well, until the connection ends.
func (c *wild) serve() {
	for {
		stream := c.next()
		if stream == 0 {
			return
		}
		c.well(stream)
	}
}

// A vice is what an endpoint of HTTP/2 does to the first request on a connection.
type vice struct {
	what string
	does func(c *wild, stream uint32)
	// told is the first try of a request that may be repeated, of which all others are well,
	// and of one that may not.
	told, once string
	status     int // of the answer to that
}

// vices are all there are. What an endpoint says that it has not begun with was not sent;
// of all else nobody knows. None has anything sent twice that may not be.
var vices = []vice{
	{"resets it, and says that it has not begun", func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeRefusedStream); c.until() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away, and has not begun", func(c *wild, s uint32) { _ = c.WriteGoAway(s-1, http2.ErrCodeNo, nil); c.until() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away in anger, and has not begun", func(c *wild, s uint32) { _ = c.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil); c.until() },
		"unsent stream_refused 0", "unsent stream_refused 0, method_not_idempotent", 502},
	{"goes away, and leaves it at that", func(c *wild, s uint32) { _ = c.WriteGoAway(s, http2.ErrCodeNo, nil) },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"resets it", func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeInternal); c.until() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"cancels it", func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeCancel); c.until() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"resets it for what it calls an error of ours", func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeProtocol); c.until() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"wants HTTP/1.1, where it is not to be had", func(c *wild, s uint32) { _ = c.WriteRSTStream(s, http2.ErrCodeHTTP11Required); c.until() },
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"closes", func(*wild, uint32) {},
		"failed connection_reset 0", "failed connection_reset 0, method_not_idempotent", 502},
	{"speaks HTTP/1.1", func(c *wild, _ uint32) {
		_, _ = io.WriteString(c.conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		c.until()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"pushes", func(c *wild, s uint32) {
		_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: c.block(":method", "GET"), EndHeaders: true})
		c.until()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"sends a body without a header", func(c *wild, s uint32) { c.data(s, true, "wild"); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"answers what nobody asked", func(c *wild, s uint32) { c.data(s+2, true, "wild"); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"sends a frame that is too long", func(c *wild, s uint32) {
		c.head(s+2, false, ":status", "200")
		_ = c.WriteRawFrame(http2.FrameData, 0, s, make([]byte, 16<<10+1))
		c.until()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has no status", func(c *wild, s uint32) { c.head(s, true, "x", "y"); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a status that is none", func(c *wild, s uint32) { c.head(s, true, ":status", "no"); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a status of four digits", func(c *wild, s uint32) { c.head(s, true, ":status", "1000"); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"opens a window beyond its end", func(c *wild, s uint32) { _ = c.WriteWindowUpdate(s, 1<<31-1); c.until() },
		"failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a header that is too large", func(c *wild, s uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: c.block(":status", "200", "x", strings.Repeat("x", 15<<10))})
		for range 5 {
			_ = c.WriteContinuation(s, false, c.block("x", strings.Repeat("y", 15<<10)))
		}
		_ = c.WriteContinuation(s, true, nil)
		c.until()
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has a header without an end", func(c *wild, s uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: c.block(":status", "200")})
		for part := c.block("x", strings.Repeat("y", 15<<10)); c.WriteContinuation(s, false, part) == nil; {
		}
	}, "failed protocol_error 0", "failed protocol_error 0, method_not_idempotent", 502},
	{"has an answer of its own, and resets", func(c *wild, s uint32) {
		c.head(s, false, ":status", "503")
		_ = c.WriteRSTStream(s, http2.ErrCodeNo)
		c.until()
	}, "answered_5xx status 503", "truncated connection_reset 503, method_not_idempotent", 503},
}

// TestVices: whatever an endpoint does, it is told as what it is; what may be repeated is
// repeated elsewhere, and what may not is sent once.
func TestVices(t *testing.T) {
	for _, v := range vices {
		for _, method := range []string{"GET", "POST"} {
			bad := tame(t, func(_ int, c *wild) {
				if stream := c.next(); stream != 0 {
					v.does(c, stream)
				}
			})
			h, courses := followed(t, second, bad.url, serves2(t, echo))
			a := h.do(h.request(method, "/", nil))
			got := told(&(<-courses).Legs[0])
			want, status := v.told+", completed  200, ", 200
			if method == "POST" {
				want, status = v.once, v.status
			}
			if got != want || a.status != status || bad.times(method) != 1 {
				t.Errorf("%s, %s: %q, wants %q; %d %v, sent %d times", v.what, method, got, want, a.status, a.err, bad.times(method))
			}
			h.port.idle(t)
		}
	}
}

// TestALengthThatIsNone: of two lengths, and of one that is no number, the client is told
// nothing; the body is whole by its frames.
func TestALengthThatIsNone(t *testing.T) {
	for _, lengths := range [][]string{{"content-length", "4", "content-length", "5"}, {"content-length", "four"}} {
		odd := tame(t, func(_ int, c *wild) {
			if s := c.next(); s != 0 {
				c.head(s, false, append([]string{":status", "200"}, lengths...)...)
				c.data(s, true, "wild")
				c.until()
			}
		})
		h := build(t, second, odd.url)
		if a := h.do(h.request("GET", "/", nil)); a.status != 200 || a.body != "wild" || a.header["Content-Length"] != nil && a.header.Get("Content-Length") != "4" {
			t.Errorf("%v: %d %q %v", lengths, a.status, a.body, a.header)
		}
	}
}

// TestNothingHasLeft: an answer that breaks off before anything of it was told is no end of
// the connection, behind which many a client sends its request once more: it is a failure.
func TestNothingHasLeft(t *testing.T) {
	for what, does := range map[string]func(c *wild, s uint32){
		"says nothing of what it said": func(c *wild, s uint32) { c.head(s, true, ":status", "200", "content-length", "8") },
		"says more than it said": func(c *wild, s uint32) {
			c.head(s, false, ":status", "200", "content-length", "4")
			c.data(s, true, "half more")
		},
		"is whole, and is reset": func(c *wild, s uint32) {
			c.head(s, false, ":status", "200", "content-length", "4")
			c.data(s, false, "wild")
			_ = c.WriteRSTStream(s, http2.ErrCodeInternal)
		},
	} {
		bad := tame(t, func(_ int, c *wild) {
			if s := c.next(); s != 0 {
				does(c, s)
				c.until()
			}
		})
		h := build(t, second, bad.url)
		if a := h.do(h.request("POST", "/", nil)); a.status != 502 || bad.times("POST") != 1 {
			t.Errorf("%s: %d %v, sent %d times", what, a.status, a.err, bad.times("POST"))
		}
	}
	for _, text := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "HTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\n"} {
		for _, method := range []string{"GET", "POST"} {
			h := build(t, nil, says(t, text))
			if a := h.do(h.request(method, "/", nil)); a.status != 502 {
				t.Errorf("%s, %q: %d %v", method, text, a.status, a.err)
			}
		}
	}
}

// TestNotModified: the length of a 304 is that of what it speaks of.
func TestNotModified(t *testing.T) {
	fresh := tame(t, func(_ int, c *wild) {
		for s := c.next(); s != 0; s = c.next() {
			c.head(s, true, ":status", "304", "content-length", "500")
		}
	})
	for what, h := range map[string]*house{"HTTP/2": build(t, second, fresh.url), "HTTP/1.1": build(t, nil, says(t, "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"))} {
		for range 2 {
			if a := h.do(h.request("GET", "/", nil)); a.status != 304 || a.err != nil {
				t.Errorf("%s: %d %v", what, a.status, a.err)
			}
		}
		h.port.idle(t)
	}
}

// An end is how an endpoint of HTTP/2 goes on with an answer that it has begun.
type end struct {
	what   string
	method string
	does   func(c *wild, stream uint32)
	told   string
	body   string // that comes before the end; it is never a whole one
}

var ends = []end{
	{"resets it", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		_ = c.WriteRSTStream(s, http2.ErrCodeInternal)
		c.until()
	}, "truncated connection_reset 200, ", "half"},
	{"resets it as if it were whole", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "8")
		c.data(s, false, "half")
		_ = c.WriteRSTStream(s, http2.ErrCodeNo)
		c.until()
	}, "truncated connection_reset 200, ", "half"},
	{"closes", "GET", func(c *wild, s uint32) { c.head(s, false, ":status", "200"); c.data(s, false, "half") }, "truncated connection_reset 200, ", "half"},
	{"goes away and closes", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		_ = c.WriteGoAway(s, http2.ErrCodeNo, nil)
	}, "truncated connection_reset 200, ", "half"},
	{"says less than it said", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "8")
		c.data(s, true, "half")
		c.until()
	}, "truncated connection_reset 200, ", "half"},
	{"says nothing of what it said", "GET", func(c *wild, s uint32) { c.head(s, true, ":status", "200", "content-length", "8"); c.until() }, "truncated connection_reset 200, ", ""},
	{"says more than it said", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200", "content-length", "4")
		c.data(s, true, "half and more")
		c.until()
	}, "truncated protocol_error 200, ", ""},
	{"says something where there is nothing to say", "GET", func(c *wild, s uint32) { c.head(s, false, ":status", "204"); c.data(s, true, "half"); c.until() }, "truncated protocol_error 204, ", ""},
	{"goes on behind its end", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		c.head(s, false, "x", "y") // trailers that are not the last
		c.until()
	}, "truncated protocol_error 200, ", "half"},
	{"sends more than the window", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200")
		for part := strings.Repeat("x", 16<<10); c.WriteData(s, false, []byte(part)) == nil; {
		}
	}, "truncated protocol_error 200, ", "x"},
	{"falls silent", "GET", func(c *wild, s uint32) {
		c.head(s, false, ":status", "200")
		c.data(s, false, "half")
		c.reset()
		c.until()
	}, "truncated response_stalled 200, ", "half"},
}

// TestNoSecondTruncation: an answer of HTTP/2 that breaks off is never a shorter success.
func TestNoSecondTruncation(t *testing.T) {
	for _, e := range ends {
		bad := tame(t, func(_ int, c *wild) {
			if stream := c.next(); stream != 0 {
				e.does(c, stream)
			}
		})
		h, courses := followed(t, func(c *proxy.Config) {
			second(c)
			c.Silence = 500 * time.Millisecond
		}, bad.url)
		a := h.do(h.request(e.method, "/", nil))
		if got := told(&(<-courses).Legs[0]); got != e.told || a.err == nil && a.status == 200 || !strings.HasPrefix(a.body, e.body) || bad.times(e.method) != 1 {
			t.Errorf("%s: %q, wants %q; %d %.20q %v, sent %d times", e.what, got, e.told, a.status, a.body, a.err, bad.times(e.method))
		}
	}
}
