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

// open lets everybody through, and counts the tries that failed.
type open struct{ failed atomic.Int64 }

func (*open) Pick(event.Pick) event.Picked { return event.Picked{} }
func (*open) Retry(event.Retry) event.Picked {
	return event.Picked{NoEndpoint: event.NoEndpointUnhealthy}
}
func (o *open) Failed(event.AttemptResult) event.RetryDecision {
	o.failed.Add(1)
	return event.RetryDecision{}
}
func (*open) Tell(event.AttemptResult)            {}
func (*open) Probed(event.HealthChecked, Checkup) {}

// wired is a proxy before an endpoint that is played by hand: over the n-th connection
// that is made to it, from 0.
func wired(t *testing.T, play func(n int, c net.Conn, in *bufio.Reader)) (p *Proxy, port *open, ask func(method string) *httptest.ResponseRecorder) {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: Far(t, nil, func(n int, c net.Conn) { play(n, c, bufio.NewReader(c)) })}
	port = &open{}
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

// asked is the path of the next request; false: there is none any more.
func asked(in *bufio.Reader) (string, bool) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return "", false
	}
	return r.URL.Path, true
}

const here = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"

// TestKept: one request after another goes over one connection, whatever it is asked for.
func TestKept(t *testing.T) {
	var conns atomic.Int64
	_, port, ask := wired(t, func(_ int, c net.Conn, in *bufio.Reader) {
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

// TestKeptAndEnded: an endpoint that ends a kept connection when it is asked over it is
// asked over a new one, and has not failed. One that ends a new one has.
func TestKeptAndEnded(t *testing.T) {
	_, port, ask := wired(t, func(n int, c net.Conn, in *bufio.Reader) {
		if _, ok := asked(in); ok && n < 3 {
			_, _ = io.WriteString(c, here)
			asked(in) // and says nothing to it
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

// TestLastWord: a connection whose endpoint says that it ends it is not asked over again;
// nor is one on which more came than was asked for.
func TestLastWord(t *testing.T) {
	for name, answer := range map[string]string{
		"close":    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhere",
		"older":    "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nhere",
		"too much": here + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
	} {
		var conns atomic.Int64
		_, port, ask := wired(t, func(_ int, c net.Conn, in *bufio.Reader) {
			conns.Add(1)
			for {
				if _, ok := asked(in); !ok {
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

// TestLongHeader: no more of a header is read than may be; nor is one early answer after
// another.
func TestLongHeader(t *testing.T) {
	for name, answer := range map[string]string{
		"a long header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", headerMost) + "\r\nContent-Length: 4\r\n\r\nhere",
		"many headers":  strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", earlyMost+1) + here,
	} {
		_, port, ask := wired(t, func(_ int, c net.Conn, in *bufio.Reader) {
			asked(in)
			_, _ = io.WriteString(c, answer)
			asked(in)
		})
		if w := ask(http.MethodGet); w.Code == 200 || port.failed.Load() != 1 {
			t.Errorf("%s: %d, %d tries failed", name, w.Code, port.failed.Load())
		}
	}
}

// TestQuiet: a kept connection is looked at before it is used: one that its endpoint ended,
// or on which it said what nobody asked, is not.
func TestQuiet(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"ended": func(c net.Conn) { c.Close() },
		"said":  func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n") },
	} {
		far := make(chan net.Conn, 2)
		p, _, _ := wired(t, func(_ int, c net.Conn, _ *bufio.Reader) {
			far <- c
			<-t.Context().Done()
		})
		var of *lines
		for _, of = range p.lines {
		}
		l, err := of.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		of.put(l)
		if again, err := of.take(t.Context()); err != nil || again != l {
			t.Fatalf("%s: a kept line is not taken: %v", name, err)
		}
		of.put(l)
		end(<-far)
		for end := time.Now().Add(time.Minute); l.quiet(); runtime.Gosched() { // until the kernel has brought it
			if time.Now().After(end) {
				t.Fatalf("%s: the end has not come for a minute", name)
			}
		}
		other, err := of.take(t.Context())
		if err != nil || other == l {
			t.Errorf("%s: it is taken: %v", name, err)
		}
		if _, err := l.conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: it is open: %v", name, err)
		}
	}
}

// TestKeptBounds: no more are kept than may be, of one endpoint and of all, none for long,
// and none when the proxy is retired.
func TestKeptBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all atomic.Int64
		var open atomic.Int64
		dial := func(context.Context, string, string) (net.Conn, error) {
			open.Add(1)
			near, _ := net.Pipe()
			return &counted{Conn: near, open: &open}, nil
		}
		fill := func(s *lines, n int) {
			var taken []*line
			for range n {
				l, err := s.take(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				taken = append(taken, l)
			}
			for _, l := range taken {
				s.put(l)
			}
		}
		var each []*lines
		for range 5 {
			s := newLines(&url.URL{Scheme: "http", Host: "a"}, dial, &all)
			if s.address != "a:80" {
				t.Error(s.address)
			}
			each = append(each, s)
			fill(s, keptEach+10)
		}
		if open.Load() != Kept || all.Load() != Kept || len(each[0].kept) != keptEach || len(each[4].kept) != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), all.Load())
		}
		time.Sleep(keptFor / 2)
		fill(each[0], 7) // the last ones are used again
		time.Sleep(keptFor/2 + time.Millisecond)
		synctest.Wait()
		if open.Load() != 7 || all.Load() != 7 {
			t.Errorf("%d are open, %d kept", open.Load(), all.Load())
		}
		time.Sleep(keptFor)
		synctest.Wait()
		if open.Load() != 0 || each[0].sweep != nil {
			t.Errorf("%d are open", open.Load())
		}
		fill(each[1], 3)
		each[1].end()
		fill(each[1], 3)
		if open.Load() != 0 || all.Load() != 0 {
			t.Errorf("%d are open behind the end, %d kept", open.Load(), all.Load())
		}
	})
}

// counted is a connection that is counted while it is open.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
