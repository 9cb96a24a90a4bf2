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
		`quotas=[{"name":"strangers","scope":"peer","classes":["anon"],"requests_per_second":0.001,"burst":5}]`)
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
