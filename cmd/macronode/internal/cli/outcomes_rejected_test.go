package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"macronode/adapters/decisions"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
)

// rejection is the response to a request that admission rejects.
type rejection struct {
	status int
	code   string
}

var rejections = map[string]rejection{
	"pacing_timeout": {429, "rate_limited"}, "queue_timeout": {429, "busy"}, "queue_full": {429, "busy"}, "class_limit": {429, "busy"}, "flow_limit": {429, "busy"},
	"class_disabled": {429, "busy"}, "route_limit": {429, "busy"}, "route_flow_limit": {429, "busy"}, "not_serving": {503, "unavailable"}, "client_disconnected": {0, "client_disconnected"},
}

// hangs is a request that is answered when its upstream ends.
const hangs = "GET /hangs HTTP/1.1\r\nHost: a\r\n\r\n"

// rejectionCollector is a node whose rejections are collected, one for each reason.
type rejectionCollector struct {
	process
	t   *testing.T
	mu  sync.Mutex
	got map[string]decisions.Decision
}

func newRejected(t *testing.T, sets ...string) *rejectionCollector {
	t.Helper()
	sets = append([]string{"log.access=true", "log.format=json", "log.level=error", "node.drain=10ms"}, sets...)
	return &rejectionCollector{process: startNode(t, sets...), t: t, got: make(map[string]decisions.Decision)}
}

// sendFrom sends a request from an address, with a key unless it is empty, and records its rejection.
func (r *rejectionCollector) sendFrom(address, key string) {
	r.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.HTTP+"/well", http.NoBody)
	testkit.Must(r.t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	testkit.Must(r.t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.Must(r.t, err)
	_ = resp.Body.Close()
	d := r.decision(r.t, resp.Header.Get("X-Decision-Id"))
	if d.Why == "admitted" {
		return
	}
	if want := rejections[d.Why]; resp.StatusCode != want.status || !strings.Contains(string(text), `"code":"`+want.code+`"`) {
		r.t.Errorf("%s: its client was told %d %s", d.Why, resp.StatusCode, text)
	}
	r.note(d)
}

func (r *rejectionCollector) note(d decisions.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[d.Why] = d
}

// misses reports whether one of some reasons is missing.
func (r *rejectionCollector) misses(reasons ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reason := range reasons {
		if _, ok := r.got[reason]; !ok {
			return true
		}
	}
	return false
}

// compare ends the node and compares each rejection with its access line and with explain.
func (r *rejectionCollector) compare(reasons ...string) {
	r.t.Helper()
	for _, reason := range reasons {
		if text := r.explainText(r.t, r.got[reason].ID); !strings.Contains(text, "admission   "+explain.Reasons[reason]+"\n") {
			r.t.Errorf("%s: explain says\n%s", reason, text)
		}
	}
	r.end()
	lines := accessLines(r.t, r.log.String())
	for _, reason := range reasons {
		d := r.got[reason]
		l := lines[d.ID]
		if want := rejections[reason]; d.Status != want.status || d.Code != want.code || d.Why != reason {
			r.t.Errorf("%s: the decision has %+v", reason, d)
		}
		compareRecords(r.t, reason, &d, &l)
	}
}

// TestRejectionsAgree provokes each reason of a rejection on a running node. The response, the decision, the
// access log and explain agree.
func TestRejectionsAgree(t *testing.T) {
	t.Parallel()
	const routes = `routes=[{"path":"/","upstream":"well","auth":"none","deadline":"30s"}]`
	upstreams := func(t *testing.T) string { return fmt.Sprintf(`upstreams={"well":{"url":%q}}`, newUpstream(t)) }
	for size, reasons := range map[string][]string{"3": {"queue_timeout", "queue_full"}, "12": {"class_limit", "flow_limit"}} { // a class has at least one place, and a third at most
		t.Run("queue of "+size, func(t *testing.T) {
			r := newRejected(t, upstreams(t), routes, "permits.proxy=1", "queue.proxy="+size, "queue.flow_share=10", "queue.max_wait=200ms")
			raw, err := os.ReadFile(filepath.Join(r.dir, "bootstrap.key"))
			testkit.Must(t, err)
			admin := strings.TrimSpace(string(raw))
			other, _ := r.makeKey(t, admin, `{"name":"other","scopes":["read"]}`)
			_ = r.dial(hangs)
			r.await(`upstream_inflight{upstream="well"} 1`)
			for check := testkit.HangGuard(t); r.misses(reasons...); check() {
				var all sync.WaitGroup
				for peer := range 5 {
					for _, key := range []string{"", "", other, admin} {
						all.Go(func() { r.sendFrom(fmt.Sprint("127.0.0.", peer+2), key) })
					}
				}
				all.Wait()
			}
			r.compare(reasons...)
		})
	}
	t.Run("client that leaves", func(t *testing.T) {
		r := newRejected(t, upstreams(t), routes, "permits.proxy=1", "queue.max_wait=1s")
		_ = r.dial(hangs)
		r.await(`upstream_inflight{upstream="well"} 1`)
		for check := testkit.HangGuard(t); r.misses("client_disconnected"); check() {
			r.note(r.sendAndEnd(t, "GET /well HTTP/1.1\r\nHost: a\r\nX-Request-Id: NAME\r\n\r\n", func(c net.Conn) { _ = c.Close() }))
		}
		r.compare("client_disconnected")
	})
	t.Run("one request of the route", func(t *testing.T) {
		r := newRejected(t, upstreams(t), strings.Replace(routes, `"auth"`, `"max_inflight":1,"auth"`, 1))
		_ = r.dial(hangs)
		r.await(`upstream_inflight{upstream="well"} 1`)
		r.sendFrom("127.0.0.1", "")
		r.compare("route_limit")
	})
	t.Run("one request of a caller on the route", func(t *testing.T) {
		r := newRejected(t, upstreams(t), strings.Replace(routes, `"auth"`, `"max_inflight":2,"auth"`, 1))
		_ = r.dial(hangs)
		r.await(`upstream_inflight{upstream="well"} 1`)
		r.sendFrom("127.0.0.1", "")
		r.compare("route_flow_limit")
	})
	t.Run("slow instance", func(t *testing.T) {
		r := newRejected(t, upstreams(t), routes, `quotas=[{"name":"slow","scope":"instance","requests_per_second":0.001,"burst":1}]`)
		for check := testkit.HangGuard(t); r.misses("pacing_timeout"); check() {
			r.sendFrom("127.0.0.1", "")
		}
		r.compare("pacing_timeout")
	})
	t.Run("class without weight", func(t *testing.T) {
		r := newRejected(t, upstreams(t), routes, "queue.weights.anon=0")
		r.sendFrom("127.0.0.1", "")
		r.compare("class_disabled")
	})
	t.Run("draining", func(t *testing.T) {
		r := newRejected(t, upstreams(t), routes, "node.drain=30s")
		c := r.dial(hangs)
		r.await(`upstream_inflight{upstream="well"} 1`)
		rest := r.dial("GET /well HTTP/1.1\r\nHost: a\r\nX-Request-Id: draining\r\n") // the listener waits for it
		run, err := nodedir.Read(r.dir)
		testkit.Must(t, err)
		testkit.Must(t, syscall.Kill(run.PID, syscall.SIGTERM))
		for check := testkit.HangGuard(t); !strings.Contains(r.readyzText(t), `"phase":"draining"`); check() {
		}
		_, err = io.WriteString(rest, "\r\n")
		testkit.Must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(rest), nil)
		testkit.Must(t, err)
		if want := rejections["not_serving"].status; resp.StatusCode != want {
			t.Errorf("its client was told %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
		r.note(r.decision(t, resp.Header.Get("X-Decision-Id")))
		r.compare("not_serving")
		_ = c.Close() // the drain ends, and with it the node
	})
}

// dial sends a request and keeps its connection.
func (r *rejectionCollector) dial(request string) net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.HTTP, "http://"))
	testkit.Must(r.t, err)
	r.t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, request)
	testkit.Must(r.t, err)
	return c
}

// await waits until a series has a value.
func (r *rejectionCollector) await(series string) {
	r.t.Helper()
	for check := testkit.HangGuard(r.t); !strings.Contains(r.adminText(r.t, "/metrics"), "\n"+series+"\n"); check() {
	}
}
