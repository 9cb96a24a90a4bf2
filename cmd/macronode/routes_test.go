package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
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
