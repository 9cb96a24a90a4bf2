package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"macronode/core/event"
)

// permissivePort allows everything and counts failed attempts.
type permissivePort struct{ failed atomic.Int64 }

func (*permissivePort) Pick(event.Pick) event.Picked { return event.Picked{} }
func (*permissivePort) Retry(event.Retry) event.Picked {
	return event.Picked{NoEndpoint: event.NoEndpointUnhealthy}
}
func (o *permissivePort) ReportFailure(event.AttemptResult) event.RetryDecision {
	o.failed.Add(1)
	return event.RetryDecision{}
}
func (*permissivePort) Report(event.AttemptResult)                     {}
func (*permissivePort) HealthChecked(event.HealthChecked, CheckResult) {}

// newRawEndpoint returns a proxy in front of an endpoint that the test plays by hand. do gets the
// number of each connection, from 0.
func newRawEndpoint(t *testing.T, play func(n int, c net.Conn, in *bufio.Reader)) (p *Proxy, port *permissivePort, ask func(method string) *httptest.ResponseRecorder) {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: RawEndpoint(t, nil, func(n int, c net.Conn) { play(n, c, bufio.NewReader(c)) })}
	port = &permissivePort{}
	c := Default()
	c.Upstreams = []Upstream{{Name: "app", URLs: []*url.URL{to}}}
	c.Routes = []Route{{Prefix: "/"}}
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
	var err error
	if p, err = New(c, port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Retire)
	return p, port, func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://front/x", nil))
		return w
	}
}

// nextPath returns the path of the next request; false: there is none.
func nextPath(in *bufio.Reader) (string, bool) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return "", false
	}
	return r.URL.Path, true
}

const here = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"

// TestConnectionIsReused: consecutive requests use one connection, whatever they are.
func TestConnectionIsReused(t *testing.T) {
	var conns atomic.Int64
	_, port, ask := newRawEndpoint(t, func(_ int, c net.Conn, in *bufio.Reader) {
		conns.Add(1)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if r.Method == http.MethodHead {
				_, _ = io.WriteString(c, strings.TrimSuffix(here, "here"))
			} else {
				_, _ = io.WriteString(c, here)
			}
		}
	})
	for range 5 {
		if w := ask(http.MethodGet); w.Code != 200 || w.Body.String() != "here" {
			t.Fatal(w)
		}
		if w := ask(http.MethodHead); w.Code != 200 || w.Body.Len() > 0 {
			t.Fatal(w)
		}
	}
	if n := conns.Load(); n != 1 || port.failed.Load() > 0 {
		t.Errorf("%d connections, %d tries failed", n, port.failed.Load())
	}
}

// TestClosedIdleConnectionIsReplaced: if an endpoint closes a reused connection during a request,
// the request is sent over a new one, and the endpoint has not failed. If it closes a new
// connection, it has failed.
func TestClosedIdleConnectionIsReplaced(t *testing.T) {
	_, port, ask := newRawEndpoint(t, func(n int, c net.Conn, in *bufio.Reader) {
		if _, ok := nextPath(in); ok && n < 3 {
			_, _ = io.WriteString(c, here)
			nextPath(in) // and does not answer
		}
	})
	for range 3 {
		if w := ask(http.MethodGet); w.Code != 200 || port.failed.Load() > 0 {
			t.Fatal(w, port.failed.Load())
		}
	}
	if w := ask(http.MethodGet); w.Code != 502 || port.failed.Load() != 1 {
		t.Error(w, port.failed.Load())
	}
}

// TestClosingConnectionIsNotReused: a connection is not reused after Connection: close, or after
// unexpected data.
func TestClosingConnectionIsNotReused(t *testing.T) {
	for name, answer := range map[string]string{
		"close":    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhere",
		"older":    "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nhere",
		"too much": here + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
	} {
		var conns atomic.Int64
		_, port, ask := newRawEndpoint(t, func(_ int, c net.Conn, in *bufio.Reader) {
			conns.Add(1)
			for {
				if _, ok := nextPath(in); !ok {
					return
				}
				_, _ = io.WriteString(c, answer)
			}
		})
		for range 3 {
			if w := ask(http.MethodGet); w.Code != 200 || w.Body.String() != "here" {
				t.Fatal(name, w)
			}
		}
		if n := conns.Load(); n != 3 || port.failed.Load() > 0 {
			t.Errorf("%s: %d connections, %d tries failed", name, n, port.failed.Load())
		}
	}
}

// TestResponseHeaderLimit: the size of a header and the number of interim responses are limited.
func TestResponseHeaderLimit(t *testing.T) {
	for name, answer := range map[string]string{
		"a long header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeaderBytes) + "\r\nContent-Length: 4\r\n\r\nhere",
		"many headers":  strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInterimResponses+1) + here,
	} {
		_, port, ask := newRawEndpoint(t, func(_ int, c net.Conn, in *bufio.Reader) {
			nextPath(in)
			_, _ = io.WriteString(c, answer)
			nextPath(in)
		})
		if w := ask(http.MethodGet); w.Code == 200 || port.failed.Load() != 1 {
			t.Errorf("%s: %d, %d tries failed", name, w.Code, port.failed.Load())
		}
	}
}

// TestIdleConnectionIsCheckedBeforeUse: a connection that its endpoint has closed, or that has
// unexpected data, is not reused.
func TestIdleConnectionIsCheckedBeforeUse(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"ended": func(c net.Conn) { c.Close() },
		"said":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n") },
	} {
		peer := make(chan net.Conn, 2)
		p, _, _ := newRawEndpoint(t, func(_ int, c net.Conn, _ *bufio.Reader) {
			peer <- c
			<-t.Context().Done()
		})
		var of *h1pool
		for _, of = range p.h1Pools {
		}
		l, err := of.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		of.put(l)
		if again, err := of.get(t.Context()); err != nil || again != l {
			t.Fatalf("%s: an idle connection is not reused: %v", name, err)
		}
		of.put(l)
		end(<-peer)
		for end := time.Now().Add(time.Minute); l.isUsable(); runtime.Gosched() { // until the kernel has delivered it
			if time.Now().After(end) {
				t.Fatalf("%s: the end has not come for a minute", name)
			}
		}
		other, err := of.get(t.Context())
		if err != nil || other == l {
			t.Errorf("%s: it is taken: %v", name, err)
		}
		if _, err := l.conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: it is open: %v", name, err)
		}
	}
}

// TestH1PoolLimits: the number of idle connections is limited, for one endpoint and for all, and
// so is their age. A retired proxy keeps none.
func TestH1PoolLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := idleConns{most: MaxIdleConns}
		var open atomic.Int64
		dial := func(context.Context, string, string) (net.Conn, error) {
			open.Add(1)
			near, _ := net.Pipe()
			return &countedConn{Conn: near, open: &open}, nil
		}
		fill := func(s *h1pool, n int) {
			var taken []*h1conn
			for range n {
				l, err := s.get(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				taken = append(taken, l)
			}
			for _, l := range taken {
				s.put(l)
			}
		}
		var each []*h1pool
		for range 5 {
			s := newH1Pool(&url.URL{Scheme: "http", Host: "a"}, dial, &all)
			if s.address != "a:80" {
				t.Error(s.address)
			}
			each = append(each, s)
			fill(s, maxIdlePerEndpoint+10)
		}
		if open.Load() != MaxIdleConns || all.Load() != MaxIdleConns || len(each[0].idle) != maxIdlePerEndpoint || len(each[4].idle) != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), all.Load())
		}
		time.Sleep(idleConnTimeout / 2)
		fill(each[0], 7) // the last ones are used first
		time.Sleep(idleConnTimeout/2 + time.Millisecond)
		synctest.Wait()
		if open.Load() != 7 || all.Load() != 7 {
			t.Errorf("%d are open, %d kept", open.Load(), all.Load())
		}
		time.Sleep(idleConnTimeout)
		synctest.Wait()
		if open.Load() != 0 || each[0].sweep != nil {
			t.Errorf("%d are open", open.Load())
		}
		fill(each[1], 3)
		each[1].retire()
		fill(each[1], 3)
		if open.Load() != 0 || all.Load() != 0 {
			t.Errorf("%d are open behind the end, %d kept", open.Load(), all.Load())
		}
	})
}

// countedConn counts a connection while it is open.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
