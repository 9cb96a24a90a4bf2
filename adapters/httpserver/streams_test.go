package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// shared is a server of HTTP/2 whose peers have a share, and its reports.
type shared struct {
	*running
	refused, byPeer, closed atomic.Int64
	begun                   atomic.Int64 // requests that have counted
	trust                   *tls.Config
}

// startShared starts a server whose peers have a share of its requests; 127.0.0.9 has no limit.
func startShared(t *testing.T, share int, change func(*Config), h http.Handler) *shared {
	t.Helper()
	k := &shared{running: &running{ended: make(chan error, 1)}}
	c := local()
	c.TLS, k.trust = shows(t, false)
	change(&c)
	up := make(chan net.Addr, 1)
	k.Server = New(c, h, Hooks{Listening: func(a net.Addr) { up <- a }, Stream: func(by int) { k.begun.Add(int64(max(by, 0))); k.streams.Add(int64(by)) },
		PeerShare: func(from netip.Addr) int {
			if from == netip.MustParseAddr("127.0.0.9") {
				return 0
			}
			return share
		},
		Refused: func() { k.refused.Add(1) }, PeerRefused: func() { k.byPeer.Add(1) }, IdleClosed: func(ConnLimit) { k.closed.Add(1) }}, quietly)
	go func() { k.ended <- k.Run(context.Background()) }()
	t.Cleanup(k.Kill)
	k.addr = <-up
	return k
}

// stalled connects from an address, as a client that takes no body, and sends requests whose
// handlers return.
func (k *shared) stalled(t *testing.T, from string, requests int) *frames {
	t.Helper()
	client := k.trust.Clone()
	client.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}, Config: client}).Dial("tcp", k.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f := framesOn(t, conn.(*tls.Conn))
	f.must(conn.SetReadDeadline(time.Now().Add(time.Minute))) // ends a hang
	f.must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	for i := range uint32(requests) {
		f.must(f.asks(2*i+1, true))
		f.must(f.until(beginsResponse(2*i + 1)))
	}
	return f
}

// has waits until the server counts so many requests.
func (k *shared) has(t *testing.T, want int64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); k.streams.Load() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // it hangs
			t.Fatalf("%d requests count, want %d", k.streams.Load(), want)
		}
	}
}

// beginsResponse matches the header of the response in a stream. Its handler has returned, if it
// does not flush: net/http buffers a small response.
func beginsResponse(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		h, ok := f.(*http2.HeadersFrame)
		return ok && h.StreamID == stream
	}
}

func resets(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		r, ok := f.(*http2.RSTStreamFrame)
		return ok && r.StreamID == stream
	}
}

// ends matches the end of a stream, and notes whether it is a reset.
func ends(stream uint32, wasReset *bool) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		*wasReset = resets(stream)(f)
		d, ok := f.(*http2.DataFrame)
		return *wasReset || ok && d.StreamID == stream && d.StreamEnded()
	}
}

func never(http2.Frame) bool { return false }

// TestStalledResponsesAreInTheShare: a response that its client does not take counts until it has
// ended, although its handler has returned. A request above the share of the peer is refused, on
// whatever connection, and those of other peers are served.
func TestStalledResponsesAreInTheShare(t *testing.T) {
	k := startShared(t, 3, func(c *Config) { c.Streams, c.Read, c.Request, c.Write = 2, time.Hour, time.Hour, time.Hour }, respondWith("here"))
	first, second := k.stalled(t, "127.0.0.2", 2), k.stalled(t, "127.0.0.2", 1)
	second.must(second.asks(3, true))
	if err := second.until(resets(3)); err != nil || k.byPeer.Load() != 1 {
		t.Fatalf("the fourth of a peer with three: %v, %d were refused", err, k.byPeer.Load())
	}
	_, _ = k.stalled(t, "127.0.0.3", 2), k.stalled(t, "127.0.0.9", 2)
	_, _ = k.stalled(t, "127.0.0.9", 2), k.stalled(t, "127.0.0.9", 1)
	first.must(first.WriteWindowUpdate(1, 100))
	var wasReset bool
	if err := first.until(ends(1, &wasReset)); err != nil || wasReset {
		t.Fatalf("a response that is read: %v, it was reset: %v", err, wasReset)
	}
	k.has(t, 2+2+5)
	second.must(second.asks(5, true))
	if err := second.until(beginsResponse(5)); err != nil {
		t.Fatalf("after a response has ended: %v", err)
	}
	first.must(first.WriteRSTStream(3, http2.ErrCodeCancel))
	k.has(t, 2+2+5)
	if k.byPeer.Load() != 1 || k.refused.Load() != 0 || k.closed.Load() != 0 {
		t.Errorf("%d and %d were refused, %d connections closed", k.byPeer.Load(), k.refused.Load(), k.closed.Load())
	}
	_ = second.conn.Close()
	k.has(t, 2+5)
}

// TestFewPeersCannotHoldStreams: two peers hold all requests with responses that they do not take.
// A third one is served, and the connection with the most of them ends.
func TestFewPeersCannotHoldStreams(t *testing.T) {
	k := startShared(t, 5, func(c *Config) {
		c.MaxConns, c.Read, c.Request, c.Write = 8, time.Hour, time.Hour, time.Hour
		c.Streams = 4
	}, respondWith("here"))
	few, most := k.stalled(t, "127.0.0.2", 2), k.stalled(t, "127.0.0.2", 3)
	other := k.stalled(t, "127.0.0.3", 3)
	other.must(other.asks(7, true))
	if err := other.until(resets(7)); err != nil || k.refused.Load() != 1 {
		t.Fatalf("a peer with many: %v, %d were refused", err, k.refused.Load())
	}
	third := k.stalled(t, "127.0.0.4", 1)
	if err := most.until(never); err == nil || k.closed.Load() != 1 {
		t.Fatalf("%d connections were closed: %v", k.closed.Load(), err)
	}
	for n, f := range []*frames{few, other, third} {
		const stream = 1
		f.must(f.WriteWindowUpdate(stream, 100))
		var wasReset bool
		if err := f.until(ends(stream, &wasReset)); err != nil || wasReset {
			t.Errorf("connection %d: %v, its stream was reset: %v", n, err, wasReset)
		}
	}
}

// TestStalledResponseEnds: the end of a response that net/http still has when the handler returns
// has the time to write a response, whatever time the request had.
func TestStalledResponseEnds(t *testing.T) {
	k := startShared(t, 3, func(c *Config) { c.Read, c.Request, c.Write = time.Hour, time.Hour, time.Second }, respondWith("here"))
	f := k.stalled(t, "127.0.0.2", 1)
	if err := f.until(resets(1)); err != nil {
		t.Fatal(err)
	}
	k.has(t, 0)
}

// TestEachStreamIsUncounted: whatever way a request ends, it counts no more.
func TestEachStreamIsUncounted(t *testing.T) {
	let := make(chan struct{})
	k := startShared(t, 100, func(*Config) {}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Kind") {
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "long":
			_, _ = io.WriteString(w, strings.Repeat("x", 20<<10))
		case "interim":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "here")
		case "trailers":
			w.Header().Set("Trailer", "After")
			_, _ = io.WriteString(w, "here")
			w.Header().Set("After", "it")
		case "aborted":
			panic(http.ErrAbortHandler)
		case "echo":
			_, _ = io.Copy(w, r.Body)
		case "held":
			<-let
		}
	}))
	f := k.stalled(t, "127.0.0.2", 0)
	stream := uint32(1)
	ended := func(name string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); k.begun.Load() < int64(stream+1)/2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		k.has(t, 0)
		if stream += 2; k.byPeer.Load() != 0 {
			t.Fatalf("%s: refused", name)
		}
	}
	f.must(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
	for _, name := range []string{"none", "empty", "long", "interim", "trailers", "aborted"} {
		f.must(f.asks(stream, true, "kind", name))
		ended(name)
		f.must(f.asks(stream, false, "kind", name)) // its body does not end
		ended(name)
		f.must(f.WriteRSTStream(stream-2, http2.ErrCodeCancel)) // late
	}
	f.must(f.asks(stream, false, "kind", "echo"))
	f.must(f.WriteData(stream, false, []byte("here")))
	f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.header()[:0], EndStream: true, EndHeaders: true})) // trailers
	ended("echo")
	f.must(f.asks(stream, true, "X-Upper-Case", ""))
	ended("no request")
	f.must(f.asks(stream, true, "kind", "held"))
	f.must(f.WriteRSTStream(stream, http2.ErrCodeCancel))
	close(let)
	ended("reset")
	f.must(f.asks(stream, true, "kind", "empty"))
	ended("the last")
}

// TestEndlessStreamsCloseTheirConnection: a connection on which net/http reads about no new stream,
// because it has announced the end, does not collect them.
func TestEndlessStreamsCloseTheirConnection(t *testing.T) {
	l := newListener(nil, 10, 3)
	c := &conn{Conn: nullConn{}, of: l}
	l.add(c)
	for n := range uint32(3 + MaxIdleFrames) {
		if !l.beginStream(c, 2*n+1) {
			t.Fatalf("stream %d ends it", n)
		}
	}
	if l.beginStream(c, 1<<20+1) || l.streams != 3 {
		t.Errorf("one more is accepted, %d count", l.streams)
	}
	_ = c.Close()
	if l.streams != 0 {
		t.Errorf("%d are left", l.streams)
	}
}

// TestRefusedRequestsCloseTheirConnection: a client that goes on with requests above its share is
// closed as a flood, long before one whose requests are served.
func TestRefusedRequestsCloseTheirConnection(t *testing.T) {
	k := startShared(t, 2, func(c *Config) { c.Streams, c.Read, c.Request, c.Write = 2, time.Hour, time.Hour, time.Hour }, respondWith("here"))
	_, above := k.stalled(t, "127.0.0.2", 2), k.stalled(t, "127.0.0.2", 0)
	refused := 0
	for stream := uint32(1); refused < MaxIdleFrames; stream += 2 {
		if above.asks(stream, true) != nil || above.until(resets(stream)) != nil {
			break
		}
		refused++
	}
	if refused < 20 || refused >= MaxIdleFrames/4 {
		t.Errorf("closed after %d requests above the share", refused)
	}
}
