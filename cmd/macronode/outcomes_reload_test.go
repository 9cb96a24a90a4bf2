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
	"sync"
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

// firstHangs answers all requests but the first, which it answers at the end.
func firstHangs(begun, end chan struct{}) http.Handler {
	var first sync.Once
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hangs := false
		first.Do(func() { hangs = true })
		if hangs {
			begun <- struct{}{}
			<-end
		}
	})
}

// TestRoutesOfMethodsKeepTheirCounters: two routes without names that differ in their methods alone
// have counters of their own, and keep them when a reload puts them in the other order.
func TestRoutesOfMethodsKeepTheirCounters(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(firstHangs(begun, end))
	t.Cleanup(s.Close)
	app := "upstreams: {app: {url: \"" + s.URL + "\"}}\n"
	reads, writes := "{path: /x, methods: [GET], upstream: app, auth: none, max_inflight: 1}", "{path: /x, methods: [POST], upstream: app, auth: none, max_inflight: 1}"
	c := startsWith(t, app+"routes: ["+reads+", "+writes+"]\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.Post(c.HTTP+"/x", "text/plain", http.NoBody); err == nil { //nolint:noctx // it ends below
			resp.Body.Close()
		}
	}()
	<-begun
	defer func() { close(end); <-done }()
	want := func(method string, status int) {
		t.Helper()
		if got, id := c.asked(t, method, "/x"); got != status {
			t.Errorf("%s: %d, want %d: %s", method, got, status, c.why(t, id))
		}
	}
	want("POST", 429)
	want("GET", 200)
	if _, status := c.reload(app + "routes: [" + writes + ", " + reads + "]\n"); status != 200 {
		t.Fatal(status)
	}
	want("POST", 429)
	want("GET", 200)
}

// TestMaxInflightIsOfItsRoute: a route that has as many requests as it may refuses another, and
// no operation of the wallet.
func TestMaxInflightIsOfItsRoute(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(firstHangs(begun, end))
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
// behind a reload is not ejected.
func TestAReplacedEndpointHasNoFailures(t *testing.T) {
	good := says(t, "here")
	at := func(url string) string {
		return "upstreams: {app: {urls: [\"" + url + "\", \"" + good + "\"], max_attempts: 1}}\nroutes: [{path: /, upstream: app, auth: none}]\n"
	}
	c := startsWith(t, at(nobody(t)))
	for !c.ejects(t, "app") {
		c.asked(t, "POST", "/x")
	}
	if _, status := c.reload(at(says(t, "here"))); status != 200 {
		t.Fatal(status)
	}
	if c.ejects(t, "app") {
		t.Error("the new endpoint is ejected")
	}
	for range 10 {
		status, id := c.asked(t, "POST", "/x")
		if d := c.kept(t, id); status != 200 || len(d.Legs) != 1 || len(d.Legs[0].Tries) != 1 || d.Legs[0].Tries[0].Out {
			t.Errorf("the new endpoint has the failures of the old one: %d %+v", status, d.Legs)
		}
	}
}
