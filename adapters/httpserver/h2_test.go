package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2Server is an HTTP/2 server and the way for clients to reach it.
func h2Server(t *testing.T, change func(*Config), h http.Handler, refused func()) (*running, *tls.Config) {
	t.Helper()
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	if change != nil {
		change(&c)
	}
	return start(t, c, h, refused), client
}

// two is a real client that uses HTTP/2 only, on one connection as long as it is kept.
func (r *running) two(t *testing.T, c *tls.Config) *http.Transport {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP2(true)
	w := &http.Transport{TLSClientConfig: c, Protocols: p}
	t.Cleanup(w.CloseIdleConnections)
	return w
}

func (r *running) url() string { return "https://" + r.addr.String() }

// frames is an HTTP/2 client that a test plays by hand.
type frames struct {
	*http2.Framer
	t    *testing.T
	conn *tls.Conn
	text bytes.Buffer
	code *hpack.Encoder
}

func (r *running) frames(t *testing.T, c *tls.Config) *frames {
	t.Helper()
	c = c.Clone()
	c.NextProtos = []string{"h2"}
	conn, err := r.greets(t, c)
	if err != nil {
		t.Fatal(err)
	}
	f := framesOn(t, conn)
	f.must(f.WriteSettings())
	return f
}

// framesOn is a client on a connection that has only sent the preface.
func framesOn(t *testing.T, conn *tls.Conn) *frames {
	t.Helper()
	f := &frames{Framer: http2.NewFramer(conn, conn), t: t, conn: conn}
	f.code = hpack.NewEncoder(&f.text)
	f.must(func() error { _, err := io.WriteString(conn, http2.ClientPreface); return err }())
	return f
}

func (f *frames) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *frames) header(more ...string) []byte {
	f.text.Reset()
	for i, all := 0, append([]string{":method", "POST", ":scheme", "https", ":authority", "node", ":path", "/"}, more...); i < len(all); i += 2 {
		f.must(f.code.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}))
	}
	return f.text.Bytes()
}

// asks begins a request; if it is not ended, a body follows.
func (f *frames) asks(stream uint32, ends bool, more ...string) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.header(more...), EndStream: ends, EndHeaders: true})
}

// until reads until a frame matches; other than that, the connection must end.
func (f *frames) until(is func(http2.Frame) bool) error {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if is(frame) {
			return nil
		}
	}
}

// gone waits for the end of a connection after GOAWAY: net/http takes a second.
func (f *frames) gone() { _, _ = io.Copy(io.Discard, f.conn) }

func goesAway(code http2.ErrCode) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		return ok && g.ErrCode == code
	}
}

// TestClientsChooseProtocol: clients get HTTP/2 if they offer it, otherwise HTTP/1.1, and both
// have a TLS state.
func TestClientsChooseProtocol(t *testing.T) {
	r, client := h2Server(t, nil, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, q.Proto)
		if q.TLS == nil || q.TLS.Version != tls.VersionTLS13 {
			_, _ = io.WriteString(w, " without TLS")
		}
	}), nil)
	for want, transport := range map[string]*http.Transport{
		"HTTP/2.0": r.two(t, client), "HTTP/1.1": {TLSClientConfig: client.Clone(), ForceAttemptHTTP2: false},
	} {
		for range 2 {
			resp, err := transport.RoundTrip(post(r.url()))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if _ = resp.Body.Close(); err != nil || string(b) != want || resp.Proto != want {
				t.Errorf("%s: %q, %v", want, b, err)
			}
		}
		transport.CloseIdleConnections()
	}
}

// TestConcurrentStreamLimits: streams above the announced limit are reset, and all connections of
// a client together are limited by MaxConns.
func TestConcurrentStreamLimits(t *testing.T) {
	in, let, cut := make(chan struct{}, 8), make(chan struct{}), make(chan net.Conn, 2)
	var refused, came, may atomic.Int64
	r, client := h2Server(t, func(c *Config) { c.Streams, c.MaxConns = 2, 3 }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if came.Add(1) == may.Load()+1 { // no request is rejected, and none waits for this
			_, _ = (<-cut).Close(), (<-cut).Close()
		}
		in <- struct{}{}
		<-let
	}), func() { refused.Add(1) })
	defer close(let)
	one, other := r.frames(t, client), r.frames(t, client)
	cut <- one.conn
	cut <- other.conn
	may.Store(2)
	announced := false
	if err := one.until(func(f http2.Frame) bool {
		s, ok := f.(*http2.SettingsFrame)
		if ok = ok && !s.IsAck(); ok {
			n, _ := s.Value(http2.SettingMaxConcurrentStreams)
			announced = n == 2
		}
		return ok
	}); err != nil || !announced {
		t.Fatalf("nobody says how many there may be: %v", err)
	}
	reset := func(stream uint32) func(http2.Frame) bool {
		return func(f http2.Frame) bool {
			s, ok := f.(*http2.RSTStreamFrame)
			return ok && s.StreamID == stream
		}
	}
	for stream := uint32(1); stream <= 5; stream += 2 {
		one.must(one.asks(stream, true))
	}
	<-in
	<-in
	if err := one.until(reset(5)); err != nil {
		t.Fatalf("the third of one connection: %v", err)
	}
	may.Store(3)
	other.must(other.asks(1, true))
	<-in
	other.must(other.asks(3, true))
	if err := other.until(reset(3)); err != nil || refused.Load() != 1 {
		t.Fatalf("the fourth of all: %v, %d were refused", err, refused.Load())
	}
}

// TestRapidReset: requests that are reset at once do not accumulate. The running ones and the
// waiting ones are limited, and none is left.
func TestRapidReset(t *testing.T) {
	const streams = 4
	var in, most, total atomic.Int64
	let := make(chan struct{})
	r, client := h2Server(t, func(c *Config) { c.Streams = streams }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		total.Add(1)
		for n := in.Add(1); ; {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				break
			}
		}
		defer in.Add(-1)
		<-let // although its client has left
	}), nil)
	f := r.frames(t, client)
	var sent sync.WaitGroup
	sent.Go(func() {
		for stream := uint32(1); stream < MaxIdleFrames/2; stream += 2 { // fewer frames than end a connection by themselves
			if f.asks(stream, true) != nil || f.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
				return // the connection has ended
			}
		}
	})
	err := f.until(goesAway(http2.ErrCodeEnhanceYourCalm))
	if err != nil {
		t.Errorf("the connection goes on, or ends with %v", err)
	}
	close(let)
	_ = f.conn.Close()
	sent.Wait()
	r.Stop()
	if err := <-r.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if most.Load() > streams || in.Load() != 0 || r.streams.Load() != 0 || total.Load() > 6*streams {
		t.Errorf("%d were at work at once, %d and %d still are; %d were begun", most.Load(), in.Load(), r.streams.Load(), total.Load())
	}
}

// TestEndlessHeadersAreRejected: a header that never ends, or is too long, is not stored.
func TestEndlessHeadersAreRejected(t *testing.T) {
	r, client := h2Server(t, nil, respondWith("here"), nil)
	for name, size := range map[string]int{"of nothing": 0, "of much": 16 << 10} {
		f := r.frames(t, client)
		f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header(), EndStream: true}))
		junk := []byte(strings.Repeat("\x00\x01a\x01b", size/5)) // a field that is not stored
		var sent sync.WaitGroup
		sent.Go(func() {
			for range 20_000 {
				if f.WriteContinuation(1, false, junk) != nil {
					return
				}
			}
		})
		if size > 0 {
			if err := f.until(func(http2.Frame) bool { return false }); err == nil {
				t.Errorf("%s: it goes on", name)
			}
		}
		sent.Wait()
		_ = f.conn.Close()
	}
	f := r.frames(t, client)
	f.must(f.asks(1, true, "x", strings.Repeat("x", 15<<10), "y", strings.Repeat("x", 1500)))
	status := ""
	decode := hpack.NewDecoder(4<<10, func(h hpack.HeaderField) {
		if h.Name == ":status" {
			status = h.Value
		}
	})
	if err := f.until(func(frame http2.Frame) bool {
		if h, ok := frame.(*http2.HeadersFrame); ok {
			_, _ = decode.Write(h.HeaderBlockFragment())
		}
		return status != ""
	}); err != nil || status != "431" {
		t.Errorf("one that is too long: %q, %v", status, err)
	}
}

// TestFieldLimitOverHTTP2: one field above the limit is rejected over HTTP/2 too.
func TestFieldLimitOverHTTP2(t *testing.T) {
	r, client := h2Server(t, nil, respondWith("here"), nil)
	wire := r.two(t, client)
	for fields, want := range map[int]int{100: http.StatusOK, maxFields + 1: http.StatusBadRequest} {
		q := post(r.url())
		for i := range fields {
			q.Header.Set(fmt.Sprintf("X-%d", i), "x")
		}
		resp, err := wire.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%d fields: %d", fields, resp.StatusCode)
		}
	}
}

// TestHTTP2FramingAgreesWithFields: Content-Length and Host of an HTTP/2 request must agree with
// its frames, or it is rejected. A body of another length than declared does not end.
func TestHTTP2FramingAgreesWithFields(t *testing.T) {
	const length, later = "content-length", "(empty)"
	bodies, smuggled, up := make(chan string, 1), make(chan struct{}, 1), make(chan net.Addr, 1)
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	s := New(c, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		b, err := io.ReadAll(q.Body)
		bodies <- fmt.Sprintf("%q %v", b, err == nil)
	}), Hooks{Listening: func(a net.Addr) { up <- a }, AmbiguousRequest: func() { smuggled <- struct{}{} }}, quietly)
	r := &running{Server: s, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(context.Background()) }()
	t.Cleanup(s.Kill)
	r.addr = <-up
	for _, c := range []struct {
		name   string
		fields []string
		body   string // empty: the header ends the request
		want   string // what the handler reads, and whether it is complete; empty: no handler runs
	}{
		{"no length", nil, "abc", `"abc" true`},
		{"a length", []string{length, "3"}, "abc", `"abc" true`},
		{"a length of zeros", []string{length, "003"}, "abc", `"abc" true`},
		{"a length of no body", []string{length, "0"}, "", `"" true`},
		{"a length of 0 that ends in a frame of its own", []string{length, "0"}, later, `"" true`},
		{"a length of 0 before data", []string{length, "0"}, "abc", ""},
		{"no body", nil, "", `"" true`},
		{"a host twice, and the same", []string{"host", "node"}, "", `"" true`},
		{"more than it has", []string{length, "5"}, "abc", `"abc" false`},
		{"less than it has", []string{length, "2"}, "abc", `"" false`},
		{"two lengths", []string{length, "3", length, "5"}, "abc", ""},
		{"a length twice", []string{length, "3", length, "3"}, "abc", ""},
		{"a length, and no body", []string{length, "3"}, "", ""},
		{"two lengths in one", []string{length, "3, 3"}, "abc", ""},
		{"a length with a sign", []string{length, "+3"}, "abc", ""},
		{"a sign, and no body", []string{length, "+0"}, "", ""},
		{"less than none", []string{length, "-0"}, "", ""},
		{"a length of nothing", []string{length, ""}, "abc", ""},
		{"a length of letters, and no body", []string{length, "x"}, "", ""},
		{"a length that is too long", []string{length, "1000000000000000000"}, "abc", ""},
		{"another host", []string{"host", "other"}, "", ""},
		{"two hosts", []string{"host", "node", "host", "other"}, "", ""},
		{"the known expectation", []string{"expect", "100-continue"}, "abc", `"abc" true`},
		{"an unknown expectation", []string{"expect", "x"}, "", ""},
	} {
		f := r.frames(t, client)
		f.must(f.asks(1, c.body == "", c.fields...))
		if c.body != "" {
			f.must(f.WriteData(1, true, []byte(strings.TrimSuffix(c.body, later))))
		}
		got := ""
		select {
		case got = <-bodies:
		case <-smuggled:
		}
		if _ = f.conn.Close(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestUnreadDataIsBounded: a client cannot send more than the window ahead, nor a longer frame.
func TestUnreadDataIsBounded(t *testing.T) {
	let := make(chan struct{})
	r, client := h2Server(t, func(c *Config) { c.Streams, c.Window = 100, 64<<10 }, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { <-let }), nil)
	defer close(let)
	part := make([]byte, 16<<10)
	f := r.frames(t, client)
	f.must(f.asks(1, false))
	var sent sync.WaitGroup
	sent.Go(func() {
		for range 5 { // 80 KiB
			if f.WriteData(1, false, part) != nil {
				return
			}
		}
	})
	over := func(frame http2.Frame) bool {
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			return frame.ErrCode == http2.ErrCodeFlowControl
		case *http2.RSTStreamFrame:
			return frame.ErrCode == http2.ErrCodeFlowControl
		case *http2.WindowUpdateFrame:
			if grows := int(frame.Increment); frame.StreamID != 0 || grows != 100*64<<10-65535 { // the window of a connection begins so
				t.Errorf("the window grows by %d, although nothing is read", grows)
			}
		}
		return false
	}
	if err := f.until(over); err != nil {
		t.Errorf("more than the window: %v", err)
	}
	sent.Wait()
	g := r.frames(t, client)
	g.must(g.asks(1, false))
	g.must(g.WriteData(1, false, append(part, 0)))
	if err := g.until(goesAway(http2.ErrCodeFrameSize)); err != nil {
		t.Errorf("a longer frame: %v", err)
	}
	g.gone()
}

// TestSlowHeaderTimesOut: it ends with the time of a connection without a request.
func TestSlowHeaderTimesOut(t *testing.T) {
	r, client := h2Server(t, func(c *Config) { c.Idle = 50 * time.Millisecond }, respondWith("here"), nil)
	f := r.frames(t, client)
	f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header(), EndStream: true}))
	if err := f.until(func(http2.Frame) bool { return false }); err == nil {
		t.Error("it goes on")
	}
}

// A real client during heavy traffic: every request that was sent gets a complete response. The
// last ones announce the end.
func TestStopCutsNoStream(t *testing.T) {
	var total atomic.Int64
	warm := make(chan struct{})
	var once sync.Once
	r, config := h2Server(t, func(c *Config) { c.Grace = time.Second }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if total.Load() > 500 {
			once.Do(func() { close(warm) })
		}
		_, _ = io.WriteString(w, whole)
	}), nil)
	const clients, each = 4, 8
	cut := make(chan error, clients*each)
	for range clients {
		wire := r.two(t, config.Clone())
		for range each {
			go func() { cut <- streaming(wire, r.url(), &total) }()
		}
	}
	<-warm
	r.Stop()
	for range clients * each {
		if err := <-cut; err != nil {
			t.Errorf("a request was cut: %v", err)
		}
	}
	if err := <-r.ended; err != nil {
		t.Fatalf("ended with %v", err)
	}
	t.Logf("%d whole answers", total.Load())
}

func streaming(wire *http.Transport, url string, total *atomic.Int64) error {
	for {
		resp, err := wire.RoundTrip(post(url))
		var closed *net.OpError
		if errors.As(err, &closed) && closed.Op == "dial" {
			return nil // nothing was sent
		}
		if err != nil && strings.Contains(err.Error(), "could not be established") {
			return nil // neither: the connection was accepted, and was closed before its first stream was opened
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		if err == nil && string(b) != whole {
			err = io.ErrShortBuffer
		}
		if _ = resp.Body.Close(); err != nil {
			return err
		}
		total.Add(1)
	}
}

// TestStopSendsGoAway: requests in progress at Stop complete. Clients without a request get a
// GOAWAY and delay nothing, even without data after the handshake.
func TestStopSendsGoAway(t *testing.T) {
	in, let := make(chan struct{}), make(chan struct{})
	r, client := h2Server(t, func(c *Config) {
		c.Grace, c.Finish, c.Header, c.Read, c.Idle = time.Nanosecond, time.Hour, time.Hour, time.Hour, time.Hour
	}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(in)
		<-let
		_, _ = io.WriteString(w, "late")
	}), nil)
	busy, idle := r.frames(t, client), r.frames(t, client)
	busy.must(busy.asks(1, true))
	<-in
	silent := client.Clone()
	silent.NextProtos = []string{"http/1.1"}
	if _, err := r.greets(t, silent); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	close(let)
	ended, away := false, false
	if err := busy.until(func(frame http2.Frame) bool {
		d, ok := frame.(*http2.DataFrame)
		ended = ended || ok && d.StreamEnded()
		away = away || goesAway(http2.ErrCodeNo)(frame)
		return ended && away
	}); err != nil {
		t.Errorf("who was in: %v", err)
	}
	_ = busy.conn.Close()
	if err := idle.until(goesAway(http2.ErrCodeNo)); err != nil {
		t.Errorf("who asks nothing: %v", err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestHandshakeTimesOut: an unfinished handshake ends, and delays neither others nor the
// shutdown.
func TestHandshakeTimesOut(t *testing.T) {
	late := make(chan struct{}, 1)
	up := make(chan net.Addr, 1)
	c := local()
	server, client := shows(t, false)
	c.TLS = server
	s := New(c, respondWith("here"), Hooks{Listening: func(a net.Addr) { up <- a }, HandshakeDone: func(g HandshakeResult) {
		if g == HandshakeTimeout {
			late <- struct{}{}
		}
	}}, quietly)
	r := &running{Server: s, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(context.Background()) }()
	r.addr = <-up
	hangs := r.dial(t)
	if _, err := hangs.Write([]byte{22, 3, 1, 1, 0}); err != nil { // the beginning of a ClientHello
		t.Fatal(err)
	}
	if _, err := r.greets(t, client); err != nil {
		t.Errorf("another: %v", err)
	}
	if _, err := io.ReadAll(hangs); err != nil {
		t.Errorf("ended with %v", err)
	}
	<-late
	_ = r.dial(t) // without data
	s.Kill()
	if err := <-r.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestUnknownExpectationFails: an Expect that the server cannot meet gets the same status over both protocols.
func TestUnknownExpectationFails(t *testing.T) {
	r, client := h2Server(t, nil, new(reads), nil)
	for want, transport := range map[string]*http.Transport{"HTTP/2.0": r.two(t, client), "HTTP/1.1": {TLSClientConfig: client.Clone()}} {
		q := post(r.url())
		q.Header.Set("Expect", "x")
		resp, err := transport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusExpectationFailed || resp.Proto != want {
			t.Errorf("%s: %s %d", want, resp.Proto, resp.StatusCode)
		}
		transport.CloseIdleConnections()
	}
}
