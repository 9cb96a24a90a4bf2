package gate_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// receivedBytes counts what an upstream has received, by path.
type receivedBytes struct {
	mu    sync.Mutex
	began time.Time
	bytes map[string]int64
}

func (s *receivedBytes) count(path string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes == nil {
		s.began, s.bytes = time.Now(), map[string]int64{}
	}
	s.bytes[path] += int64(n)
}

// now returns the counts, and the time since the first byte.
func (s *receivedBytes) now() (all int64, by map[string]int64, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by = map[string]int64{}
	for path, n := range s.bytes {
		by[path], all = n, all+n
	}
	return all, by, time.Since(s.began)
}

// read reads a body to its end, or until it breaks off.
func (s *receivedBytes) read(r *http.Request) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			s.count(r.URL.Path, n)
		}
		if err != nil {
			return
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// dialAbrupt dials a connection that discards data in transit when it closes: the buffers of the kernel would hold
// half a minute of some quotas.
func dialAbrupt(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetLinger(0)
}

// uploads lets callers send endless bodies of unknown length for a time, and then aborts them.
func (h *gatewayNode) uploads(span time.Duration, callers map[string]string) (all int64, by map[string]int64, took time.Duration) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	var wg sync.WaitGroup
	for path, key := range callers {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1, DialContext: dialAbrupt}}
			defer client.CloseIdleConnections()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.HTTP+path, io.NopCloser(endless{}))
			if err != nil {
				panic(err)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				h.t.Errorf("%s ended with %d", path, resp.StatusCode)
			}
		})
	}
	end := time.NewTimer(span)
	defer end.Stop()
	<-end.C
	all, by, took = h.took.now()
	stop()
	wg.Wait()
	return all, by, took
}

// TestBytes: callers that stream bodies of unknown length get exactly the bytes of their quota. If they abort, no
// permit is lost.
func TestBytes(t *testing.T) {
	const rate, burst = 4 << 20, 1 << 20
	h := start(t, `quotas=[{"scope":"tenant","bytes_per_second":"4MiB","burst":"1MiB"}]`)
	key := h.key(7, `"read"`)
	all, _, took := h.uploads(5*time.Second, map[string]string{"/keyed/a": key, "/keyed/b": key})
	ratio := float64(all) / (burst + rate*took.Seconds())
	if ratio < 0.99 || ratio > 1.01 {
		t.Errorf("%d bytes in %v, %.4f of the quota", all, took, ratio)
	}
	h.awaitIdle()
	t.Logf("evidence: gate.bytes = %.4f, with two bodies of unknown length, %d bytes in %v", ratio, all, took.Round(time.Millisecond))
}

// TestStreamsAreEqual: streaming tenants get equal shares of the instance quota, even if one has five bodies and
// another two.
func TestStreamsAreEqual(t *testing.T) {
	h := start(t, `quotas=[{"scope":"instance","bytes_per_second":"2MiB","burst":"64KiB"}]`, "queue.max_wait=1s")
	callers, of := map[string]string{}, map[string]int{}
	for tenant := range 4 {
		key := h.key(tenant+2, `"read"`)
		for body := range tenant + 2 { // one is lined while another is read
			path := fmt.Sprintf("/keyed/%d/%d", tenant, body)
			callers[path], of[path] = key, tenant
		}
	}
	_, by, took := h.uploads(5*time.Second, callers)
	var got [4]float64
	for path, n := range by {
		got[of[path]] += float64(n)
	}
	sum, squares := 0.0, 0.0
	for _, n := range got {
		sum, squares = sum+n, squares+n*n
	}
	jain := sum * sum / (4 * squares)
	if jain < 0.99 || sum < 2<<20 {
		t.Errorf("Jain %.4f over %v in %v", jain, got, took)
	}
	h.awaitIdle()
	t.Logf("evidence: gate.stream = %.4f over four tenants with 2, 3, 4 and 5 streaming bodies, %.0f bytes", jain, sum)
}
