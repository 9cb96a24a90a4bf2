package cli

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

	"macronode/adapters/nettest"
	"macronode/cmd/macronode/internal/explain"
)

// sendWithKey sends a request with the first API key and returns the status and the body.
func (c *reloadableNode) sendWithKey(method, path, idem, body string) (status int, text string) {
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

// hangFirst delays the first response until end, and answers all others.
func hangFirst(begun, end chan struct{}) http.Handler {
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

// TestRoutesOfMethodsKeepTheirCounters: two unnamed routes that differ only in their methods have separate
// counters, and keep them if a reload changes their order.
func TestRoutesOfMethodsKeepTheirCounters(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(hangFirst(begun, end))
	t.Cleanup(s.Close)
	app := "upstreams: {app: {url: \"" + s.URL + "\"}}\n"
	reads, writes := "{path: /x, methods: [GET], upstream: app, auth: none, max_inflight: 1, deadline: 1m}", "{path: /x, methods: [POST], upstream: app, auth: none, max_inflight: 1, deadline: 1m}"
	c := startWithFile(t, app+"routes: ["+reads+", "+writes+"]\n")
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
		if got, id := c.requestID(t, method, "/x"); got != status {
			t.Errorf("%s: %d, want %d: %s", method, got, status, c.explainText(t, id))
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

// TestMaxInflightIsOfItsRoute: a route at its limit rejects requests of that route only.
func TestMaxInflightIsOfItsRoute(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(hangFirst(begun, end))
	t.Cleanup(s.Close)
	c := startWithFile(t, "upstreams: {app: {url: \""+s.URL+"\"}}\nroutes: [{path: /x, upstream: app, auth: none, max_inflight: 1, deadline: 1m}]\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.Get(c.HTTP + "/x"); err == nil { //nolint:noctx // it ends below
			resp.Body.Close()
		}
	}()
	<-begun
	defer func() { close(end); <-done }()
	if status, id := c.requestID(t, "GET", "/x"); status != 429 || !strings.Contains(c.explainText(t, id), explain.Reasons["route_limit"]) {
		t.Errorf("a second request of the route: %d, %s", status, c.explainText(t, id))
	}
	for _, path := range []string{"/v1/balance?account=a&asset=EUR/2", "/v1/accounts", "/v1/assets", "/v1/holds?account=a", "/v1/keys", "/v1/accounts/a/entries", "/openapi.json", "/"} {
		status, body := c.sendWithKey("GET", path, "", "")
		for status == 503 { // the index is behind
			status, body = c.sendWithKey("GET", path, "", "")
		}
		if status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := c.sendWithKey("POST", "/v1/issue", "k", `{"to":"a","asset":"EUR/2","amount_minor":"5"}`); status != 200 {
		t.Errorf("issue: %d %s", status, body)
	}
}

// TestPolicyNamesItsWindow: the window of RateLimit-Policy is the time in which the burst refills, in seconds.
func TestPolicyNamesItsWindow(t *testing.T) {
	t.Parallel()
	for _, q := range []struct{ rule, want string }{
		{"requests_per_second: 2, burst: 10", `"p";q=10;w=5`},
		{"requests_per_second: 0.5, burst: 30", `"p";q=30;w=60`},
	} {
		c := startWithFile(t, "quotas: [{name: p, scope: peer, "+q.rule+"}]\n")
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

// TestPagesRepeatNoAccount: the pages of accounts have each account once.
func TestPagesRepeatNoAccount(t *testing.T) {
	t.Parallel()
	c := startWithFile(t, "log: {level: error}\n")
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("acct-%d", i)
		want = append(want, name)
		if status, body := c.sendWithKey("POST", "/v1/issue", name, `{"to":"`+name+`","asset":"EUR/2","amount_minor":"5"}`); status != 200 {
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
			status, body := c.sendWithKey("GET", path, "", "")
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

// TestReplacedEndpointHasNoFailures: the failures of an endpoint end with it. An endpoint that replaces it after a
// reload is not ejected.
func TestReplacedEndpointHasNoFailures(t *testing.T) {
	t.Parallel()
	good := namedUpstream(t, "here")
	at := func(url string) string {
		return "upstreams: {app: {urls: [\"" + url + "\", \"" + good + "\"], max_attempts: 1}}\nroutes: [{path: /, upstream: app, auth: none}]\n"
	}
	c := startWithFile(t, at(nettest.RefusingAddress(t)))
	for !c.isEjected(t, "app") {
		c.requestID(t, "POST", "/x")
	}
	if _, status := c.reload(at(namedUpstream(t, "here"))); status != 200 {
		t.Fatal(status)
	}
	if c.isEjected(t, "app") {
		t.Error("the new endpoint is ejected")
	}
	for range 10 {
		status, id := c.requestID(t, "POST", "/x")
		if d := c.decision(t, id); status != 200 || len(d.Legs) != 1 || len(d.Legs[0].Tries) != 1 || d.Legs[0].Tries[0].Out {
			t.Errorf("the new endpoint has the failures of the old one: %d %+v", status, d.Legs)
		}
	}
}
