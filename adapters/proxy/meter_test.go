package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// A pacedMeter is a Meter that allows a number of bytes, each part after a pause, and then none.
type pacedMeter struct {
	http.ResponseWriter
	mu    sync.Mutex
	lets  int
	pause time.Duration
	went  atomic.Int64 // bytes for which it was asked
	took  atomic.Int64
	sent  atomic.Int64
}

func (w *pacedMeter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *pacedMeter) TryTake(int) bool            { return false }
func (w *pacedMeter) Count(n int)                 { w.took.Add(int64(n)) }
func (w *pacedMeter) CountSent(n int)             { w.sent.Add(int64(n)) }
func (w *pacedMeter) Take(n int) (int, event.Problem) {
	time.Sleep(w.pause) // the quota is empty meanwhile
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lets -= n; w.lets < 0 {
		return 0, event.Busy
	}
	w.went.Add(int64(n))
	return n, event.None
}

// A slowMeter permits some bytes at once, and the rest when its client has them.
type slowMeter struct {
	http.ResponseWriter
	free    int
	arrived <-chan struct{}
}

func (w *slowMeter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *slowMeter) TryTake(int) bool            { return false }
func (w *slowMeter) Count(int)                   {}
func (w *slowMeter) CountSent(int)               {}
func (w *slowMeter) Take(n int) (int, event.Problem) {
	if w.free > 0 {
		took := min(n, w.free)
		w.free -= took
		return took, event.None
	}
	<-w.arrived
	return n, event.None
}

// TestPermittedBytesAreSentAtOnce: the header of a response and the bytes that the quotas permit are
// sent before the rest of the part, with and without a length.
func TestPermittedBytesAreSentAtOnce(t *testing.T) {
	const size, free = 20_000, 4096
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		_, _ = io.WriteString(w, strings.Repeat("y", size))
	}))
	for _, path := range []string{"/length", "/chunks"} {
		arrived, ctx := make(chan struct{}), t.Context()
		s := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			h.proxy.ServeHTTP(&slowMeter{ResponseWriter: to, free: free, arrived: arrived}, r)
		}))
		t.Cleanup(s.Close)
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // ends a hang
		hang := context.AfterFunc(ctx, func() { close(arrived) })
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
		res, err := h.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadFull(res.Body, make([]byte, free)); n != free || err != nil {
			t.Errorf("%s: %d bytes before the rest, %v", path, n, err)
		}
		if hang() {
			close(arrived)
		}
		if rest, err := io.ReadAll(res.Body); len(rest) != size-free || err != nil {
			t.Errorf("%s: then %d bytes, %v", path, len(rest), err)
		}
		_ = res.Body.Close()
		cancel()
	}
}

// serveMetered serves through the proxy of h; each request has a meter of its own.
func serveMetered(t *testing.T, h *gateway, lets int, pause time.Duration) (url string, last func() *pacedMeter) {
	t.Helper()
	var w atomic.Pointer[pacedMeter]
	s := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w.Store(&pacedMeter{ResponseWriter: to, lets: lets, pause: pause})
		h.proxy.ServeHTTP(w.Load(), r)
	}))
	t.Cleanup(s.Close)
	return s.URL, w.Load
}

// TestMeterIsAskedForBothBodies: each part of either body is metered before it is forwarded, with
// and without a length.
func TestMeterIsAskedForBothBodies(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", int(n)/2))
	}))
	url, last := serveMetered(t, h, 1<<20, 0)
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

// TestMeterRefusalEndsRequest: if the meter refuses a part of the request body, the client gets a
// problem, and the upstream has not failed. If it refuses a part of the response, the response is
// truncated.
func TestMeterRefusalEndsRequest(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", 300_000))
	}))
	url, _ := serveMetered(t, h, 90_000, 0)
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
	if results := h.port.results(); strings.Contains(results, "failed") || strings.Contains(results, "cut") || strings.Contains(results, "late") {
		t.Errorf("the upstream is blamed: %s", results)
	}
}

// TestQuotaEndsBody: a request whose body a quota rejects was not ended by its client.
func TestQuotaEndsBody(t *testing.T) {
	h, _ := newTracedGateway(t, nil, startUpstream(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.NopCloser(io.LimitReader(zeros{}, 200_000)))
	w, trace := httptest.NewRecorder(), new(proxy.Trace)
	m, _ := h.proxy.Match(r)
	h.proxy.Serve(&pacedMeter{ResponseWriter: w, lets: 90_000}, r, m, trace)
	if got := trace.Upstreams[0].Outcome(); trace.EndedByClient() || got != string(proxy.QuotaTimeout) || w.Code != http.StatusTooManyRequests {
		t.Errorf("%d, %s, ended by the client: %v", w.Code, got, trace.EndedByClient())
	}
}

// TestQuotaWaitIsNotCounted: waiting for quota counts neither as slowness of the client nor of
// the upstream.
func TestQuotaWaitIsNotCounted(t *testing.T) {
	t.Parallel()
	const grace = 500 * time.Millisecond
	h := newGateway(t, func(c *proxy.Config) {
		c.Grace, c.StallTimeout, c.DefaultDeadline, c.MinBytesPerSecond = grace, grace, grace, 1<<30
	}, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", int(n)))
	}))
	url, _ := serveMetered(t, h, 1<<20, 2*grace)
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

// TestMeterIsAskedForTunnel: the bytes of a tunnel are metered and counted, each direction for itself.
func TestMeterIsAskedForTunnel(t *testing.T) {
	h := newGateway(t, nil, servesRaw(t, func(c net.Conn, in *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, in)
	}))
	url, last := serveMetered(t, h, 30, 0)
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
	if w := last(); w.took.Load() != 10 || w.sent.Load() != 10 || w.went.Load() != 20 {
		t.Errorf("%d of the client and %d of the upstream, %d asked for", w.took.Load(), w.sent.Load(), w.went.Load())
	}
}
