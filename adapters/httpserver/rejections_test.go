package httpserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"macronode/core/rejection"
)

// rejecting is a running server that rejects requests for /no or with X-No, and its reports. Its clock stands.
type rejecting struct {
	*crowded
	rejected, floods, delayed atomic.Int64
}

func startRejecting(t *testing.T, c Config) *rejecting {
	t.Helper()
	k, began := new(rejecting), time.Now()
	k.crowded = startCrowded(t, c, 1000, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" || r.Header.Get("X-No") != "" {
			k.rejected.Add(1)
			MarkRejected(r.Context())
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "here")
	}), func(s *crowded) {
		s.hooks.RejectedFlood, s.hooks.Delayed = func() { k.floods.Add(1) }, func() { k.delayed.Add(1) }
		s.now = func() time.Time { return began.Add(time.Duration(s.later.Load())) }
	})
	return k
}

// startRejectingH2 returns such a server with TLS, and a client of HTTP/2.
func startRejectingH2(t *testing.T) (*rejecting, *frames) {
	t.Helper()
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	k := startRejecting(t, c)
	return k, k.frames(t, client)
}

// flood sends so many requests at once, which are rejected, and returns how many were answered
// before the connection ended.
func flood(t *testing.T, c net.Conn, from *bufio.Reader, n int) (answered int, closed bool) {
	t.Helper()
	go func() { _, _ = io.WriteString(c, strings.Repeat("GET /no HTTP/1.1\r\nHost: node\r\n\r\n", n)) }()
	for answered < n {
		status, closes, _, err := readResponse(from)
		if err != nil {
			return answered, true // the end of the connection may overtake the last response
		}
		if status != http.StatusUnauthorized {
			t.Fatalf("status %d", status)
		}
		if answered++; closes {
			return answered, true
		}
	}
	return answered, false
}

// TestOptionsOfServerAreLimited: OPTIONS * passes no admission, and takes the credit of a rejected request.
func TestOptionsOfServerAreLimited(t *testing.T) {
	k := startRejecting(t, local())
	c, from := k.dialFrom(t, "127.0.0.1")
	for n := range rejection.Burst + 1 {
		if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(n, err)
		}
		status, closes, body, err := readResponse(from)
		if err != nil || status != http.StatusOK || len(body) > 0 || closes != (n == rejection.Burst) {
			t.Fatalf("request %d: %d, closes: %v, %q, %v", n, status, closes, body, err)
		}
	}
	if _, _, _, err := readResponse(from); err == nil {
		t.Error("the connection goes on")
	}
}

// TestRejectedRequestsCloseTheConnection: a peer has Burst rejected requests. The response to the
// next one ends its connection, and what was sent behind it is not served. Other connections of the
// peer are served as long as their requests are accepted, and other peers and trusted proxies are
// not limited.
func TestRejectedRequestsCloseTheConnection(t *testing.T) {
	k := startRejecting(t, local())
	good, goodFrom := k.dialFrom(t, "127.0.0.1")
	answered(t, good, goodFrom)
	other, otherFrom := k.dialFrom(t, "127.0.0.2")
	proxy, proxyFrom := k.dialFrom(t, "127.0.0.9")
	c, from := k.dialFrom(t, "127.0.0.1")
	if n, closed := flood(t, c, from, rejection.Burst); n != rejection.Burst || closed {
		t.Fatalf("%d rejected requests are answered, closed: %v", n, closed)
	}
	if _, closed := flood(t, c, from, 5000); !closed || k.rejected.Load() != rejection.Burst+1 || k.floods.Load() != 1 {
		t.Errorf("closed: %v; %d requests were rejected, and %d connections ended", closed, k.rejected.Load(), k.floods.Load())
	}
	if lines := k.log.String(); !strings.Contains(lines, `limit="500 rejected requests at once" peer=127.0.0.1`) {
		t.Error(lines)
	}
	for range 2 * rejection.Burst {
		answered(t, good, goodFrom)
	}
	if n, closed := flood(t, other, otherFrom, rejection.Burst); n != rejection.Burst || closed {
		t.Errorf("another peer: %d are answered, closed: %v", n, closed)
	}
	if n, closed := flood(t, proxy, proxyFrom, 2*rejection.Burst); n != 2*rejection.Burst || closed {
		t.Errorf("a trusted proxy: %d are answered, closed: %v", n, closed)
	}
	k.later.Store(int64(time.Second) / rejection.PerSecond)
	again, againFrom := k.dialFrom(t, "127.0.0.1")
	if n, closed := flood(t, again, againFrom, 2); n != 2 || !closed {
		t.Errorf("after the time for one request: %d are answered, closed: %v", n, closed)
	}
	if log := k.log.String(); strings.Count(log, "limit of rejected requests reached") != 1 || !strings.Contains(log, "peer=127.0.0.1") {
		t.Errorf("log: %s", log)
	}
}

// TestAcceptedRequestsPayForRejectedOnes: a client that is served as often as it is rejected is not
// limited. What it was served before pays for MaxPaid requests at most.
func TestAcceptedRequestsPayForRejectedOnes(t *testing.T) {
	k := startRejecting(t, local())
	c, from := k.dialFrom(t, "127.0.0.1")
	for n := range 2 * rejection.Burst {
		answered(t, c, from)
		if _, closed := flood(t, c, from, 1); closed {
			t.Fatalf("closed after %d of each", n)
		}
	}
	for range 2 * rejection.MaxPaid {
		answered(t, c, from)
	}
	if n, closed := flood(t, c, from, rejection.MaxPaid+rejection.Burst); closed {
		t.Fatalf("closed after %d", n)
	}
	if n, closed := flood(t, c, from, 1); !closed {
		t.Errorf("%d more are answered, and the connection is open", n)
	}
}

// TestConnectionsAfterRejectionsAreDelayed: while a peer has less than half of its credit, its new
// connections start with a delay, and are then served. Those of others do not. Connections that end
// before a request is complete take credit as well, and so do requests with ambiguous framing.
func TestConnectionsAfterRejectionsAreDelayed(t *testing.T) {
	for name, send := range map[string]string{
		"rejected":  "GET /no HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
		"malformed": "GET\r\n\r\n",
		"ambiguous": "POST / HTTP/1.1\r\nHost: node\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"cut":       "GET / HTTP",
	} {
		t.Run(name, func(t *testing.T) {
			k := startRejecting(t, local())
			for range rejection.Burst/2 + 1 {
				c, from := k.dialFrom(t, "127.0.0.1")
				if _, err := io.WriteString(c, send); err != nil {
					t.Fatal(err)
				}
				_ = c.(*net.TCPConn).CloseWrite() // fails if the server has reset it
				_, _ = io.Copy(io.Discard, from)
				_ = c.Close()
				until(func() bool { return k.open.Load() == 0 })
			}
			if k.delayed.Load() != 0 {
				t.Errorf("%d connections were delayed with half of the credit", k.delayed.Load())
			}
			other, otherFrom := k.dialFrom(t, "127.0.0.2")
			answered(t, other, otherFrom)
			if k.delayed.Load() != 0 {
				t.Error("a connection of another peer was delayed")
			}
			c, from := k.dialFrom(t, "127.0.0.1")
			answered(t, c, from)
			if k.delayed.Load() != 1 || k.floods.Load() != 0 {
				t.Errorf("%d connections were delayed, want 1; %d ended", k.delayed.Load(), k.floods.Load())
			}
		})
	}
}

// TestRejectedRequestsEndHTTP2: the client gets a GOAWAY with the response, not only when the connection was idle for long.
func TestRejectedRequestsEndHTTP2(t *testing.T) {
	k, f := startRejectingH2(t)
	for n := range uint32(rejection.Burst) {
		f.must(f.asks(2*n+1, true, "x-no", "1"))
		f.must(f.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders && f.Header().StreamID == 2*n+1 }))
	}
	if k.floods.Load() != 0 {
		t.Fatalf("%d connections ended", k.floods.Load())
	}
	isAnnounced := false
	goes := func(frame http2.Frame) bool {
		isAnnounced = isAnnounced || goesAway(http2.ErrCodeNo)(frame)
		return isAnnounced
	}
	f.must(f.asks(2*rejection.Burst+1, true, "x-no", "1"))
	f.must(f.until(func(frame http2.Frame) bool {
		return goes(frame) || frame.Header().Type == http2.FrameHeaders && frame.Header().StreamID == 2*rejection.Burst+1
	}))
	if !isAnnounced {
		f.must(f.WritePing(false, [8]byte{1}))
		f.must(f.until(func(frame http2.Frame) bool {
			is, ok := frame.(*http2.PingFrame)
			return goes(frame) || ok && is.IsAck()
		}))
	}
	if !isAnnounced || k.floods.Load() != 1 {
		t.Fatalf("announced: %v; %d connections ended", isAnnounced, k.floods.Load())
	}
}

// TestStreamsBehindRejectedOneAreReset: a request of HTTP/2 that was read before the end of its connection was announced, and whose
// handler begins behind the rejection, is not served.
func TestStreamsBehindRejectedOneAreReset(t *testing.T) {
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	began := make(chan struct{})
	k := startCrowded(t, c, 1000, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-No") == "" {
			t.Error("a request behind the rejected one is served")
			return
		}
		r.Context().Value(connKey{}).(*conn).closes.Store(true) //nolint:forcetypeassert // of this server
		close(began)
		<-r.Context().Done()
	}))
	f := k.frames(t, client)
	f.must(f.asks(1, true, "x-no", "1"))
	<-began
	f.must(f.asks(3, true))
	f.must(f.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream && f.Header().StreamID == 3 }))
	f.must(f.WriteRSTStream(1, http2.ErrCodeCancel))
}

// TestMalformedRequestsOfHTTP2TakeCredit: net/http rejects them itself. They count for their peer, and the one above the limit ends its
// connection.
func TestMalformedRequestsOfHTTP2TakeCredit(t *testing.T) {
	k, f := startRejectingH2(t)
	for n := range uint32(rejection.Burst) {
		f.must(f.asks(2*n+1, true, "te", "gzip"))
		f.must(f.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders && f.Header().StreamID == 2*n+1 }))
	}
	if k.floods.Load() != 0 || k.rejected.Load() != 0 {
		t.Fatalf("%d connections ended, %d requests had a handler", k.floods.Load(), k.rejected.Load())
	}
	for n := uint32(rejection.Burst); ; n++ {
		if err := f.asks(2*n+1, true, "te", "gzip"); err != nil {
			break
		}
		if err := f.until(func(f http2.Frame) bool { return f.Header().StreamID == 2*n+1 }); err != nil {
			break
		}
		if n > rejection.Burst+2 {
			t.Fatal("the connection goes on")
		}
	}
	if k.floods.Load() != 1 {
		t.Errorf("%d connections ended", k.floods.Load())
	}
}

// TestFailedHandshakesTakeCredit: a handshake costs more than a request.
func TestFailedHandshakesTakeCredit(t *testing.T) {
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	k := startRejecting(t, c)
	for range rejection.Burst/2 + 1 {
		c, from := k.dialFrom(t, "127.0.0.1")
		if _, err := io.WriteString(c, "not TLS at all\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, from)
		until(func() bool { return k.open.Load() == 0 })
	}
	conn, err := k.greets(t, client)
	if err != nil {
		t.Fatal(err)
	}
	answered(t, conn, bufio.NewReader(conn))
	if k.delayed.Load() != 1 {
		t.Errorf("%d connections were delayed, want 1", k.delayed.Load())
	}
}

// slowConn is a connection on which data has been received.
type slowConn struct{ nullConn }

func (slowConn) Read(b []byte) (int, error) { return copy(b, "G"), nil }

// TestDelayEnds: the first read of a delayed connection waits for the delay, unless the connection
// or the listener is closed. At most half of the time for a header passes.
func TestDelayEnds(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.1")
	delayed := func(most time.Duration) (*listener, *conn) {
		l := newListener(nil, 10, 10)
		l.hooks.PeerShare, l.maxDelay = func(netip.Addr) int { return 5 }, most
		for range rejection.Burst {
			l.rejected.Reject(l.instant(), at)
		}
		for range 20 {
			l.rejected.Delay(l.instant(), at)
		}
		c := &conn{Conn: slowConn{}, of: l, from: at, peer: at}
		l.add(c)
		return l, c
	}
	const one = time.Second / rejection.StartsPerSecond
	for name, c := range map[string]struct {
		most, want time.Duration
		ends       func(*listener, *conn)
	}{
		"in time":             {time.Second, 21 * one, nil},
		"a short header time": {2 * one, 2 * one, nil},
		"closed":              {time.Second, one, func(_ *listener, c *conn) { _ = c.Close() }},
		"a shutdown":          {time.Second, one, func(l *listener, _ *conn) { close(l.closed) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, d := delayed(c.most)
				if c.ends != nil {
					time.AfterFunc(one, func() { c.ends(l, d) })
				}
				began := time.Now()
				for range 2 { // the second read has no delay
					if _, err := d.Read(make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("waited %v, want %v", took, c.want)
				}
			})
		})
	}
}
