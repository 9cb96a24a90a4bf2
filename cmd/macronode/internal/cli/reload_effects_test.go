package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// healthChecked is an upstream that responds with its name and counts its health checks.
func healthChecked(t *testing.T, name string) (url string, checks *atomic.Int64) {
	t.Helper()
	checks = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthy" {
			checks.Add(1)
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL, checks
}

// TestReloadUnderTrafficHasItsEffects: one reload changes hot keys of each section under constant traffic. Each
// change has its effect, and no request fails.
func TestReloadUnderTrafficHasItsEffects(t *testing.T) {
	t.Parallel()
	one, ofOne := healthChecked(t, "one")
	two, ofTwo := healthChecked(t, "two")
	health := "health: { path: /healthy, interval: 100ms, timeout: 100ms, fall: 100, rise: 1 }"
	c := startWithFile(t, fmt.Sprintf("upstreams:\n  app: { url: %q, %s }\nroutes:\n  - { path: /app, upstream: app, auth: none }\n", one, health))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	went := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				if err := getOneOf(client, c.HTTP+"/app", "one", "two"); err != nil {
					t.Error(err)
				}
				select {
				case went <- struct{}{}:
				default:
				}
			}
		})
	}
	defer wg.Wait()
	defer stop()
	<-went
	testkit.Until(func() bool { return ofOne.Load() > 1 })

	decided := func() string {
		_, id := c.requestID(t, http.MethodGet, "/app", "X-Forwarded-For", "203.0.113.9")
		return c.decision(t, id).Peer
	}
	if peer := decided(); strings.HasPrefix(peer, "203.") {
		t.Errorf("nobody is trusted, and %s is believed", peer)
	}
	memory := c.memoryLimit(t)
	is, status := c.reload(fmt.Sprintf(`upstreams:
  app: { url: %q, %s }
  more: { url: %q }
  shared: { url: "https://127.0.0.1:9", protocol: http2 }
routes:
  - { path: /app, upstream: app, auth: none }
  - { path: /more, upstream: more, auth: none }
  - { path: /shared, upstream: shared, auth: none }
quotas:
  - { name: all, scope: peer, requests_per_second: 1000000 }
http: { trusted_proxies: [127.0.0.0/8] }
log: { level: warn, access: true }
admin: { metrics: open }
`, two, health, two))
	if status != http.StatusOK {
		t.Fatalf("%d %+v", status, is.Last)
	}
	if status, body, policy := c.get("/app"); status != http.StatusOK || body != "two" || !strings.HasPrefix(policy, `"all";`) {
		t.Errorf("upstreams, quotas: %d %s, policy %q", status, body, policy)
	}
	if status, body, _ := c.get("/more"); status != http.StatusOK || body != "two" {
		t.Errorf("routes: %d %s", status, body)
	}
	if now := c.memoryLimit(t); now <= memory {
		t.Errorf("memory limit: %v bytes, and %v before: connections over HTTP/2 have more buffers", now, memory)
	}
	if peer := decided(); peer != "203.0.113.9" {
		t.Errorf("http.trusted_proxies: the caller is %s", peer)
	}
	began := ofTwo.Load()
	before := ofOne.Load()
	testkit.Until(func() bool { return ofTwo.Load() >= began+5 })
	if more := ofOne.Load() - before; more > 1 { // one may have been on its way
		t.Errorf("upstreams: the old endpoint was checked %d times more", more)
	}
	resp, err := http.Get(c.Admin + "/metrics") //nolint:noctx // it answers
	testkit.Must(t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `upstream="more"`) {
		t.Errorf("admin.metrics: %d; series of the new upstream: %v", resp.StatusCode, strings.Contains(string(text), `upstream="more"`))
	}
	testkit.Until(func() bool {
		return strings.Contains(c.log.String(), "msg=request ") || strings.Contains(c.log.String(), "path=/app")
	})
	stop()
	wg.Wait()
	c.end()                                                                // then the log is complete
	for _, line := range []string{"configuration reloaded", "msg=ended"} { // at info, behind the change
		if strings.Contains(c.log.String(), line) {
			t.Errorf("log.level: %q is logged", line)
		}
	}
}

// memoryLimit returns the memory limit of the Go runtime of the node, in bytes.
func (c *reloadableNode) memoryLimit(t *testing.T) (bytes float64) {
	t.Helper()
	_, value, ok := strings.Cut(c.adminText(t, "/metrics"), "\ngo_gc_gomemlimit_bytes ")
	if _, err := fmt.Sscan(value, &bytes); !ok || err != nil {
		t.Fatalf("no memory limit: %v", err)
	}
	return bytes
}
