package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// as sends a request with the first API key, and returns the status and the body of its answer.
func (c *changing) as(method, path, idem, body string) (status int, text string) {
	c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, "bootstrap.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.HTTP+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(raw)))
	req.Header.Set("Content-Type", "application/json")
	if idem != "" {
		req.Header.Set("Idempotency-Key", idem)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRoutesOfMethodsKeepTheirCounters: two routes that differ in their methods alone have
// counters of their own, and keep them when a reload puts them in the other order.
func TestRoutesOfMethodsKeepTheirCounters(t *testing.T) {
	const quotas = "quotas: [{name: write-bears, scope: route, route: writes, requests_per_second: 0.0001, burst: 1}, {name: all, scope: peer, requests_per_second: 900, burst: 900}]\n"
	app := "upstreams: {app: {url: \"" + says(t, "here") + "\"}}\n"
	reads, writes := "{name: reads, path: /x, methods: [GET], upstream: app, auth: none}", "{name: writes, path: /x, methods: [POST], upstream: app, auth: none}"
	c := startsWith(t, app+quotas+"routes: ["+reads+", "+writes+"]\n")
	want := func(method string, status int) {
		t.Helper()
		if got, id := c.asked(t, method, "/x"); got != status {
			t.Errorf("%s: %d, want %d: %s", method, got, status, c.why(t, id))
		}
	}
	want("POST", 200)
	want("POST", 429)
	want("GET", 200)
	if _, status := c.reload(app + quotas + "routes: [" + writes + ", " + reads + "]\n"); status != 200 {
		t.Fatal(status)
	}
	want("POST", 429)
	want("GET", 200)
	want("GET", 200)
}

// TestMaxInflightIsOfItsRoute: a route that has as many requests as it may refuses another, and
// no operation of the wallet.
func TestMaxInflightIsOfItsRoute(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { begun <- struct{}{}; <-end }))
	t.Cleanup(s.Close)
	c := startsWith(t, "upstreams: {app: {url: \""+s.URL+"\"}}\nroutes: [{path: /x, upstream: app, auth: none, max_inflight: 1}]\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.Get(c.HTTP + "/x"); err == nil { //nolint:noctx // it ends below
			resp.Body.Close()
		}
	}()
	<-begun
	defer func() { close(end); <-done }()
	if status, id := c.asked(t, "GET", "/x"); status != 429 || !strings.Contains(c.why(t, id), bounds["route"]) {
		t.Errorf("a second request of the route: %d, %s", status, c.why(t, id))
	}
	for _, path := range []string{"/v1/balance?account=a&asset=EUR/2", "/v1/accounts", "/v1/assets", "/v1/holds?account=a", "/v1/keys", "/v1/accounts/a/entries", "/openapi.json", "/"} {
		status, body := c.as("GET", path, "", "")
		for status == 503 { // the index is behind
			status, body = c.as("GET", path, "", "")
		}
		if status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := c.as("POST", "/v1/issue", "k", `{"to":"a","asset":"EUR/2","amount_minor":"5"}`); status != 200 {
		t.Errorf("issue: %d %s", status, body)
	}
}

// TestPolicyNamesItsWindow: the window of RateLimit-Policy is the time in which the burst comes
// back, in seconds.
func TestPolicyNamesItsWindow(t *testing.T) {
	for _, q := range []struct{ rule, want string }{
		{"requests_per_second: 2, burst: 10", `"p";q=10;w=5`},
		{"requests_per_second: 0.5, burst: 30", `"p";q=30;w=60`},
	} {
		c := startsWith(t, "quotas: [{name: p, scope: peer, "+q.rule+"}]\n")
		resp, err := http.Get(c.HTTP + "/openapi.json") //nolint:noctx // the test is over before it could be needed
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("RateLimit-Policy"); got != q.want {
			t.Errorf("%s: %s, want %s", q.rule, got, q.want)
		}
		c.end()
	}
}

// TestPagesRepeatNoAccount: pages of accounts, put together, are each account once.
func TestPagesRepeatNoAccount(t *testing.T) {
	c := startsWith(t, "log: {level: error}\n")
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("acct-%d", i)
		want = append(want, name)
		if status, body := c.as("POST", "/v1/issue", name, `{"to":"`+name+`","asset":"EUR/2","amount_minor":"5"}`); status != 200 {
			t.Fatal(body)
		}
	}
	for _, limit := range []int{1, 2, 3, 7, 8} {
		var got []string
		for cursor, pages := "", 0; pages < 20; pages++ {
			path := fmt.Sprintf("/v1/accounts?prefix=acct-&limit=%d", limit)
			if cursor != "" {
				path += "&cursor=" + cursor
			}
			status, body := c.as("GET", path, "", "")
			if status == 503 {
				pages--
				continue // the index is behind
			}
			var page struct {
				Accounts []struct {
					Account string `json:"account"`
				} `json:"accounts"`
				Cursor string `json:"next_cursor"`
			}
			if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 {
				t.Fatalf("%d %v %s", status, err, body)
			}
			for _, a := range page.Accounts {
				got = append(got, a.Account)
			}
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
}

// TestAReplacedEndpointHasNoFailures: the failures of an endpoint end with it. What takes its place
// behind a reload is asked at once, although the breaker of the upstream had opened.
func TestAReplacedEndpointHasNoFailures(t *testing.T) {
	at := func(url string) string {
		return "upstreams: {app: {urls: [\"" + url + "\"], tries: 1}}\nroutes: [{path: /, upstream: app, auth: none}]\n"
	}
	c := startsWith(t, at(nobody(t)))
	for c.asksFor503(t) {
	}
	if _, status := c.reload(at(says(t, "here"))); status != 200 {
		t.Fatal(status)
	}
	_, id := c.asked(t, "GET", "/x")
	d := c.kept(t, id)
	if len(d.Legs) != 1 || len(d.Legs[0].Tries) > 0 && d.Legs[0].Tries[0].Out {
		t.Errorf("the new endpoint has the failures of the old one: %+v", d.Legs)
	}
	if c.ejects(t, "app") {
		t.Error("the new endpoint is ejected")
	}
}

// asksFor503 asks once, and reports that the upstream is still asked.
func (c *changing) asksFor503(t *testing.T) bool {
	t.Helper()
	status, _ := c.asked(t, "POST", "/x")
	return status != http.StatusServiceUnavailable
}
