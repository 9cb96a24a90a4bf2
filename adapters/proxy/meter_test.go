package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// A toll is a writer that meters: it lets so many bytes go, one part after another, each
// after a pause, and then none.
type toll struct {
	http.ResponseWriter
	mu    sync.Mutex
	lets  int
	pause time.Duration
	went  atomic.Int64 // that were asked for
	took  atomic.Int64
}

func (w *toll) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *toll) May(int) bool                { return false }
func (w *toll) Took(n int)                  { w.took.Add(int64(n)) }
func (w *toll) Pass(n int) event.Problem {
	time.Sleep(w.pause) // a quota has nothing meanwhile
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lets -= n; w.lets < 0 {
		return event.Busy
	}
	w.went.Add(int64(n))
	return event.None
}

// tolled serves through the proxy of h; each request has a toll of its own.
func tolled(t *testing.T, h *house, lets int, pause time.Duration) (url string, last func() *toll) {
	t.Helper()
	var w atomic.Pointer[toll]
	s := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w.Store(&toll{ResponseWriter: to, lets: lets, pause: pause})
		h.proxy.ServeHTTP(w.Load(), r)
	}))
	t.Cleanup(s.Close)
	return s.URL, w.Load
}

// TestBothBodiesAreMetered: each part of either body is asked for before it goes on, whoever
// says how long it is.
func TestBothBodiesAreMetered(t *testing.T) {
	h := build(t, nil, serves(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", int(n)/2))
	}))
	url, last := tolled(t, h, 1<<20, 0)
	for _, body := range []io.Reader{strings.NewReader(strings.Repeat("x", 100_000)), io.LimitReader(zeros{}, 100_000)} {
		res, err := h.http.Post(url+"/", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if w := last(); err != nil || len(got) != 50_000 || w.went.Load() != 150_000 || w.took.Load() != 100_000 {
			t.Errorf("%d came, %v; %d were asked for, %d were taken", len(got), err, w.went.Load(), w.took.Load())
		}
	}
}

// TestABodyIsHeldBack: a body that may not go on ends its request with a problem that is the
// client's, and its upstream is not blamed; an answer that may not is broken off.
func TestABodyIsHeldBack(t *testing.T) {
	h := build(t, nil, serves(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", 300_000))
	}))
	url, _ := tolled(t, h, 90_000, 0)
	res, err := h.http.Post(url+"/", "text/plain", io.LimitReader(zeros{}, 200_000))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("told %d", res.StatusCode)
	}
	if res, err = h.http.Get(url + "/"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err == nil || len(got) > 90_000 {
		t.Errorf("%d came as if that were all", len(got))
	}
	if said := h.port.endings(); strings.Contains(said, "failed") || strings.Contains(said, "cut") || strings.Contains(said, "late") {
		t.Errorf("the upstream is blamed: %s", said)
	}
}

// TestAPauseIsNobodysFault: the time that a quota takes is not the client's, who is no slower
// for it, and not the upstream's.
func TestAPauseIsNobodysFault(t *testing.T) {
	t.Parallel()
	const grace = 500 * time.Millisecond
	h := build(t, func(c *proxy.Config) {
		c.Grace, c.Silence, c.Deadline, c.Rate = grace, grace, grace, 1<<30
	}, serves(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", int(n)))
	}))
	url, _ := tolled(t, h, 1<<20, 2*grace)
	res, err := h.http.Post(url+"/", "text/plain", strings.NewReader(strings.Repeat("x", 70_000)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || len(got) != 70_000 {
		t.Errorf("%d came, %v", len(got), err)
	}
}

// TestATunnelIsMetered: what goes through a tunnel is asked for, either way, and counted.
func TestATunnelIsMetered(t *testing.T) {
	h := build(t, nil, speaks(t, func(c net.Conn, in *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, in)
	}))
	url, last := tolled(t, h, 30, 0)
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "ten bytes.")
	if got, err := io.ReadAll(io.LimitReader(in, 10)); string(got) != "ten bytes." || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	_, _ = io.WriteString(c, "more than may go")
	if rest, err := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	if w := last(); w.took.Load() != 20 || w.went.Load() != 20 {
		t.Errorf("%d were taken, %d asked for", w.took.Load(), w.went.Load())
	}
}
