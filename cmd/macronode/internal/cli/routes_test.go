package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/nodedir"
)

// newAppUpstream starts an upstream that answers at once, and returns the setting that names it app.
func newAppUpstream(t *testing.T) (set string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("here")) }))
	t.Cleanup(s.Close)
	return `upstreams={"app":{"url":"` + s.URL + `"}}`
}

// get sends a GET to the public listener.
func (p process) get(t *testing.T, path string) *http.Response {
	t.Helper()
	return p.send(t, http.MethodGet, path)
}

// send sends a request with header fields: names and values in turn.
func (p process) send(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// TestRouteQuota: the quota of a route counts the requests of all callers to that route, and nothing else. A
// rejection names the quota.
func TestRouteQuota(t *testing.T) {
	t.Parallel()
	p := startNode(t, newAppUpstream(t), `routes=[{"upstream":"app","auth":"none"},{"name":"shop","path":"/shop","upstream":"app","auth":"none"}]`,
		`quotas=[{"name":"shop-bears","scope":"route","route":"shop","requests_per_second":0.001,"burst":2}]`)
	for i, want := range []int{200, 200, 429} {
		resp := p.get(t, "/shop/1")
		if resp.StatusCode != want || !strings.HasPrefix(resp.Header.Get("RateLimit"), `"shop-bears";r=`+[]string{"1", "0", "0"}[i]) {
			t.Errorf("request %d: %d, %v", i+1, resp.StatusCode, resp.Header)
		}
	}
	for _, path := range []string{"/shopping", "/", "/openapi.json"} {
		if resp := p.get(t, path); resp.StatusCode != http.StatusOK || resp.Header.Get("RateLimit") != "" {
			t.Errorf("%s: %d, %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// TestRouteCORS: a page of a listed origin can use the route and read its rejections. A preflight is admitted as
// anonymous. The node's own API allows no page.
func TestRouteCORS(t *testing.T) {
	t.Parallel()
	p := startNode(t, newAppUpstream(t), `routes=[{"upstream":"app","auth":"none"},{"path":"/shop","upstream":"app","cors":{"origins":["https://app.example"],"methods":["PUT"]}}]`,
		`quotas=[{"name":"strangers","scope":"peer","classes":["anon"],"requests_per_second":0.001,"burst":6}]`)
	const origin, allow = "https://app.example", "Access-Control-Allow-Origin"
	ask := []string{"Origin", origin, "Access-Control-Request-Method", "PUT"}
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		allowed      string
	}{
		{http.MethodOptions, "/shop/1", ask, http.StatusNoContent, origin},
		{http.MethodPut, "/shop/1", ask[:2], http.StatusUnauthorized, origin},
		{http.MethodOptions, "/", ask, http.StatusOK, ""}, // forwarded to its upstream
		{http.MethodOptions, "/v1/issue", ask, http.StatusMethodNotAllowed, ""},
		{http.MethodGet, "/openapi.json", ask[:2], http.StatusOK, ""},
		{http.MethodGet, "/v1/balance", ask[:2], http.StatusUnauthorized, ""},
		{http.MethodOptions, "/shop/1", ask, http.StatusTooManyRequests, ""},
		{http.MethodPut, "/shop/1", ask[:2], http.StatusTooManyRequests, origin},
	} {
		resp := p.send(t, c.method, c.path, c.header...)
		if resp.StatusCode != c.status || resp.Header.Get(allow) != c.allowed {
			t.Errorf("%s %s: %d, %v", c.method, c.path, resp.StatusCode, resp.Header)
		}
	}
}

// A healthEndpoint is the health check of an upstream. It fails until the node reports that it waits for it, and
// again on request.
type healthEndpoint struct {
	dir    string // of the node
	mu     sync.Mutex
	status string // the status of the node while it waited
	died   bool
	sick   int           // failed checks since the last change
	enough chan struct{} // closed after enough failed checks
}

func (d *healthEndpoint) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.died:
		if d.sick++; d.sick == 5 {
			close(d.enough)
		}
	case d.status == "":
		d.status = d.nodeStatus()
	default:
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
}

// nodeStatus returns the status of the node, once it can be read.
func (d *healthEndpoint) nodeStatus() string {
	run, err := nodedir.Read(d.dir)
	if err != nil || run.Listen.Admin == "" || run.Listen.HTTP == "" {
		return "" // the next check follows soon
	}
	resp, err := http.Get("http://" + run.Listen.Admin + "/readyz?verbose")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if !strings.Contains(string(text), `"waiting_for":["upstreams"]`) {
		return ""
	}
	return resp.Status + string(text)
}

// TestRequiredUpstream: the node waits until a required upstream was healthy once, and names it. If it fails
// later, the node stays ready.
func TestRequiredUpstream(t *testing.T) {
	t.Parallel()
	d := &healthEndpoint{dir: t.TempDir(), enough: make(chan struct{})}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	p := startInDir(t, d.dir, "--set", `upstreams={"app":{"url":"`+s.URL+`","health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}},"idle":{"url":"http://127.0.0.1:9"}}`,
		"--set", `routes=[{"upstream":"app","auth":"none","required_for_readiness":true},{"path":"/idle","upstream":"idle"}]`)
	d.mu.Lock()
	saw := d.status
	d.died = true
	d.mu.Unlock()
	if !strings.HasPrefix(saw, "503") || !strings.Contains(saw, `"awaited_upstreams":["app"]`) {
		t.Errorf("while it waited it said %s", saw)
	}
	<-d.enough
	if is := p.adminText(t, "/readyz?verbose"); !strings.Contains(is, `"ready":true,"phase":"degraded"`) || !strings.Contains(is, `"unhealthy_upstreams":["app"]`) || strings.Contains(is, "awaited") {
		t.Errorf("after the service died: %s", is)
	}
	if resp := p.get(t, "/"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("what goes to it: %d", resp.StatusCode)
	}
	if resp := p.get(t, "/openapi.json"); resp.StatusCode != http.StatusOK {
		t.Errorf("what does not: %d", resp.StatusCode)
	}
}

// TestAllowNamesMethodsOfRoutes: 405 of a path of routes names their methods.
func TestAllowNamesMethodsOfRoutes(t *testing.T) {
	t.Parallel()
	p := startNode(t, newAppUpstream(t), `routes=[{"path":"/x","methods":["POST"],"upstream":"app"},{"path":"/x","methods":["PUT"],"upstream":"app","auth":"none"},{"upstream":"app","auth":"none"}]`)
	if resp := p.get(t, "/x"); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST, PUT" {
		t.Errorf("%d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

// TestRouteDecompresses: a route with decompress_request forwards the decompressed body, others forward it
// unchanged.
func TestRouteDecompresses(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Saw", fmt.Sprintf("%d bytes of %q, %v", len(body), r.Header.Get("Content-Encoding"), err))
	}))
	t.Cleanup(s.Close)
	p := startNode(t, `upstreams={"app":{"url":"`+s.URL+`"}}`, `routes=[{"upstream":"app","auth":"none"},{"path":"/plain","upstream":"app","auth":"none","decompress_request": true}]`)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 50_000))
	_ = z.Close()
	for path, want := range map[string]string{"/plain": `50000 bytes of "", <nil>`, "/": fmt.Sprintf(`%d bytes of "gzip", <nil>`, packed.Len())} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.HTTP+path, bytes.NewReader(packed.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("X-Saw"); got != want {
			t.Errorf("%s: %d, %s, want %s", path, resp.StatusCode, got, want)
		}
	}
}
