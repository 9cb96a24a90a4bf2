package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"macronode/core/share"
)

// A heldConn is a connection whose writes can be held.
type heldConn struct {
	net.Conn
	mu   sync.Mutex
	held chan struct{} // nil: writes are not held
}

func (c *heldConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		<-held
	}
	return c.Conn.Write(p)
}

func (c *heldConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = make(chan struct{})
}

func (c *heldConn) letWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		close(c.held)
		c.held = nil
	}
}

func (c *heldConn) Close() error {
	c.letWrite()
	return c.Conn.Close()
}

// A pipeListener accepts connections that are sent to it.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipeListener) Close() error   { return nil }
func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// newHTTP2Pool returns the pool of a server of net/http that sends 1 MB for /large. dialed holds its connections.
func newHTTP2Pool(t *testing.T) (p *Proxy, s *h2pool, dialed *[]*heldConn, stop func()) {
	listener, conns := make(pipeListener), new([]*heldConn)
	server := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, 1<<20))
			return
		}
		_, _ = io.WriteString(w, "small")
	})}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	p, _, let := newPoolTest(t)
	close(let)
	c := Default()
	p.dialers[HTTP2] = newDialer(&c, func(context.Context, string, string) (net.Conn, error) {
		near, peer := net.Pipe()
		listener <- peer
		one := &heldConn{Conn: near}
		*conns = append(*conns, one)
		return one, nil
	}, false)
	s = p.poolOf("a")
	return p, s, conns, func() {
		s.retire()
		close(listener)
		_ = server.Close()
		synctest.Wait()
	}
}

// abortDownload aborts a download in the moment in which its header arrives, and holds the reset until golang.org/x/net
// has received a whole window of it. No response is returned.
func abortDownload(t *testing.T, p *Proxy, s *h2pool, on *heldConn) {
	t.Helper()
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	returned := make(chan struct{})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		on.hold()
		abort()
		<-returned
	}})
	_, err := p.roundTripH2(s, getOf(ctx, "/large"), untracedRequest())
	close(returned)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	synctest.Wait()
	on.letWrite()
	synctest.Wait()
}

func getOf(ctx context.Context, path string) *http.Request {
	return (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "a", Path: path}, Host: "a", Header: make(http.Header)}).WithContext(ctx)
}

func untracedRequest() h2Request {
	return h2Request{upstream: &UpstreamTrace{Attempts: make([]Attempt, 1)}, canRepeat: func() bool { return false }}
}

// TestAbortedDownloadsStopNoOthers: golang.org/x/net does not return the window of an aborted download to the endpoint. Others are answered
// at once nevertheless, over the same connection until it has had its share of resets.
func TestAbortedDownloadsStopNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, dialed, stop := newHTTP2Pool(t)
		defer stop()
		get := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			res, err := p.roundTripH2(s, getOf(ctx, "/"), untracedRequest())
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || string(text) != "small" || time.Since(began) != 0 {
				t.Fatalf("%q, %v after %v", text, err, time.Since(began))
			}
		}
		get()
		for n := 1; n <= 3*maxAbortedRequests; n++ {
			on := s.conns[len(s.conns)-1].conn
			before := on.receiveWindow()
			if before < streamWindow {
				t.Fatalf("after %d aborted downloads the endpoint may send %d bytes", n-1, before)
			}
			abortDownload(t, p, s, (*dialed)[len(*dialed)-1])
			if lost := before - on.receiveWindow(); n%maxAbortedRequests != 0 && lost < streamWindow-4<<10 { // x/net gathers 4 KiB, and the last one closes the connection
				t.Fatalf("the window has lost %d bytes: the transport is mended, or this test does not show its fault", lost)
			}
			get()
			if want := 1 + n/maxAbortedRequests; len(*dialed) != want {
				t.Fatalf("%d connections after %d aborted downloads, want %d", len(*dialed), n, want)
			}
		}
	})
}

// TestConnWithShortReceiveWindowIsReplaced: a connection gets a request only if its window suffices for all requests in progress, for those that
// were aborted, and for this one. If it does not, the connection is closed after its last request.
func TestConnWithShortReceiveWindowIsReplaced(t *testing.T) {
	for _, c := range []struct{ requests, aborted int }{{0, 0}, {3, 0}, {0, 5}, {3, 5}} {
		synctest.Test(t, func(t *testing.T) {
			p, open, let := newPoolTest(t)
			close(let)
			s := p.poolOf("a")
			acquire := func() *h2conn {
				one, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				return one
			}
			first := acquire()
			for range c.aborted {
				s.release(acquire(), bodyToSend{}, true, false)
			}
			var taken []*h2conn
			for range c.requests {
				taken = append(taken, acquire())
			}
			s.release(first, bodyToSend{}, false, false)
			suffices := int64(c.requests+c.aborted+1) * streamWindow
			first.conn.wire.receive.Store(suffices)
			again := acquire()
			s.release(again, bodyToSend{}, false, false)
			first.conn.wire.receive.Store(suffices - 1)
			next := acquire()
			if again != first || next == first {
				t.Errorf("%+v: reused %v with all that it needs, and %v with less", c, again == first, next == first)
			}
			releaseAll(taken)
			s.release(next, bodyToSend{}, false, false)
			synctest.Wait()
			if open.Load() != 1 || len(s.conns) != 1 || s.conns[0] != next {
				t.Errorf("%+v: %d are open", c, open.Load())
			}
			s.retire()
			synctest.Wait()
		})
	}
}

// TestResetRequestsCountAsAborted: a request that was sent and then reset counts for its connection, whatever the reason is.
func TestResetRequestsCountAsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		post := func(value string, body io.Reader) {
			out := getOf(t.Context(), "/")
			out.Method, out.ContentLength = http.MethodPost, 10
			out.Header.Set("X-Value", value)
			e := untracedRequest()
			e.body = bodyToSend{true, ann, share.UnknownLength}
			e.newBody = func() *upload {
				return &upload{inner: body, inBackground: func(do func()) { go do() }, closed: make(chan struct{})}
			}
			if res, err := p.roundTripH2(s, out, e); err == nil {
				_ = res.Body.Close()
				t.Error("answered")
			}
		}
		post("a\nb", http.NoBody)
		if s.conns[0].aborted != 0 {
			t.Error("a request that was never sent counts")
		}
		broken, end := io.Pipe()
		_ = end.CloseWithError(errors.New("broken"))
		post("a", broken)
		if s.conns[0].aborted != 1 {
			t.Errorf("%d count", s.conns[0].aborted)
		}
		s.retire()
		synctest.Wait()
	})
}
