package main

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

// far is a service that answers at once, and the setting that names it app.
func far(t *testing.T) (set string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("here")) }))
	t.Cleanup(s.Close)
	return `upstreams={"app":{"url":"` + s.URL + `"}}`
}

// gets asks the public listener.
func (p process) gets(t *testing.T, path string) *http.Response {
	t.Helper()
	return p.sends(t, http.MethodGet, path)
}

// sends asks with headers: names and values, by turns.
func (p process) sends(t *testing.T, method, path string, header ...string) *http.Response {
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

// TestARouteHasItsQuota: it counts what is asked of it, of all who ask, and nothing else;
// who is refused is told by which.
func TestARouteHasItsQuota(t *testing.T) {
	p := serves(t, far(t), `routes=[{"upstream":"app","auth":"none"},{"name":"shop","path":"/shop","upstream":"app","auth":"none"}]`,
		`quotas=[{"name":"shop-bears","scope":"route","route":"shop","requests_per_second":0.001,"burst":2}]`)
	for i, want := range []int{200, 200, 429} {
		resp := p.gets(t, "/shop/1")
		if resp.StatusCode != want || !strings.HasPrefix(resp.Header.Get("RateLimit"), `"shop-bears";r=`+[]string{"1", "0", "0"}[i]) {
			t.Errorf("request %d: %d, %v", i+1, resp.StatusCode, resp.Header)
		}
	}
	for _, path := range []string{"/shopping", "/", "/openapi.json"} {
		if resp := p.gets(t, path); resp.StatusCode != http.StatusOK || resp.Header.Get("RateLimit") != "" {
			t.Errorf("%s: %d, %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// TestARouteHasItsCORS: a page of an origin that is named may use it, and reads why it is
// refused; a preflight is admitted among strangers. The node's own API is for no page.
func TestARouteHasItsCORS(t *testing.T) {
	p := serves(t, far(t), `routes=[{"upstream":"app","auth":"none"},{"path":"/shop","upstream":"app","cors":{"origins":["https://app.example"],"methods":["PUT"]}}]`,
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
		{http.MethodOptions, "/", ask, http.StatusOK, ""}, // its service is asked
		{http.MethodOptions, "/v1/issue", ask, http.StatusMethodNotAllowed, ""},
		{http.MethodGet, "/openapi.json", ask[:2], http.StatusOK, ""},
		{http.MethodGet, "/v1/balance", ask[:2], http.StatusUnauthorized, ""},
		{http.MethodOptions, "/shop/1", ask, http.StatusTooManyRequests, ""},
		{http.MethodPut, "/shop/1", ask[:2], http.StatusTooManyRequests, origin},
	} {
		resp := p.sends(t, c.method, c.path, c.header...)
		if resp.StatusCode != c.status || resp.Header.Get(allow) != c.allowed {
			t.Errorf("%s %s: %d, %v", c.method, c.path, resp.StatusCode, resp.Header)
		}
	}
}

// A doctor is the health check of a service, which is sick until the node has said that it
// waits for it, and dies again when it is told to.
type doctor struct {
	dir    string // of the node
	mu     sync.Mutex
	saw    string // what the node said while it waited
	died   bool
	sick   int           // times that it said so when it had died
	enough chan struct{} // closed when that is as often as it takes
}

func (d *doctor) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.died:
		if d.sick++; d.sick == 5 {
			close(d.enough)
		}
	case d.saw == "":
		d.saw = d.looks()
	default:
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
}

// looks is what the node says of itself, once it can be asked.
func (d *doctor) looks() string {
	run, err := nodedir.Read(d.dir)
	if err != nil || run.Listen.Admin == "" || run.Listen.HTTP == "" {
		return "" // the next check comes soon
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

// TestARequiredUpstream: the node waits until it was well once, and says for whom; that it
// dies later is nothing to what else the node does.
func TestARequiredUpstream(t *testing.T) {
	d := &doctor{dir: t.TempDir(), enough: make(chan struct{})}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	p := startsIn(t, d.dir, "--set", `upstreams={"app":{"url":"`+s.URL+`","health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}},"idle":{"url":"http://127.0.0.1:9"}}`,
		"--set", `routes=[{"upstream":"app","auth":"none","required_for_readiness":true},{"path":"/idle","upstream":"idle"}]`)
	d.mu.Lock()
	saw := d.saw
	d.died = true
	d.mu.Unlock()
	if !strings.HasPrefix(saw, "503") || !strings.Contains(saw, `"awaited_upstreams":["app"]`) {
		t.Errorf("while it waited it said %s", saw)
	}
	<-d.enough
	if is := p.asks(t, "/readyz?verbose"); !strings.Contains(is, `"ready":true,"phase":"degraded"`) || !strings.Contains(is, `"unhealthy_upstreams":["app"]`) || strings.Contains(is, "awaited") {
		t.Errorf("after the service died: %s", is)
	}
	if resp := p.gets(t, "/"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("what goes to it: %d", resp.StatusCode)
	}
	if resp := p.gets(t, "/openapi.json"); resp.StatusCode != http.StatusOK {
		t.Errorf("what does not: %d", resp.StatusCode)
	}
}

// TestARouteInflates: its service is sent what was compressed as it was before; one without
// is sent it as it came.
func TestARouteInflates(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Saw", fmt.Sprintf("%d bytes of %q, %v", len(body), r.Header.Get("Content-Encoding"), err))
	}))
	t.Cleanup(s.Close)
	p := serves(t, `upstreams={"app":{"url":"`+s.URL+`"}}`, `routes=[{"upstream":"app","auth":"none"},{"path":"/plain","upstream":"app","auth":"none","decompress_request": true}]`)
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
