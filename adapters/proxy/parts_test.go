package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// threeParts configures three parts of two upstreams.
func threeParts(a, b string) func(*proxy.Config) {
	return func(c *proxy.Config) {
		c.Upstreams = append(c.Upstreams[:0], proxy.Upstream{Name: "a"}, proxy.Upstream{Name: "b"})
		for i, to := range []string{a, b} {
			c.Upstreams[i].URLs = nil
			c.Upstreams[i].URLs = append(c.Upstreams[i].URLs, mustURL(to))
		}
		c.Routes = []proxy.Route{{Prefix: "/page", Parts: []proxy.Part{
			{Name: "user", Upstream: 0, Path: "/user", Required: true},
			{Name: "cart", Upstream: 1, Path: "/cart", Fallback: `{"items":[]}`},
			{Name: "news", Upstream: 1, Path: "/news"},
		}}}
	}
}

// Parts are read concurrently and composed.
func TestPartsAreComposed(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	part := func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait() // sequential reads would block for ever
		_, _ = fmt.Fprintf(w, `{"of":%q,"q":%q,"auth":%q,"enc":%q}`, r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding"))
	}
	h := newGateway(t, threeParts(startUpstream(t, part), startUpstream(t, part)))
	a := h.get("/page?id=1", "Authorization", "Bearer x", "If-None-Match", "1", "Accept-Encoding", "br")
	one := func(of string) string {
		return `{"of":"/` + of + `","q":"id=1","auth":"Bearer x","enc":""}`
	}
	if want := `{"user":` + one("user") + `,"cart":` + one("cart") + `,"news":` + one("news") + `,"_missing":{}}`; a.status != 200 || a.body != want {
		t.Errorf("%d %s\nwant %s", a.status, a.body, want)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
		t.Error(a.header)
	}
	if a := h.do(h.request("POST", "/page", strings.NewReader("x"))); a.status != 405 {
		t.Errorf("POST: %d", a.status)
	}
}

// A missing part is named and replaced by its fallback. If a required part is missing, the
// response is a problem.
func TestMissingPartsGetFallback(t *testing.T) {
	good := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "1") }
	for _, c := range []struct {
		name, cart string // the response of /cart
		status     int
		missing    string
	}{
		{"there", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", 200, ``},
		{"not there", "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", 200, `"cart":"status 404"`},
		{"turned away", "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}", 200, `"cart":"status 503"`},
		{"no JSON", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{x", 200, `"cart":"no JSON"`},
		{"two of them", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}{}", 200, `"cart":"no JSON"`},
		{"no UTF-8", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\":\"\xff\xfe\"}", 200, `"cart":"no JSON"`},
		{"nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, `"cart":"no JSON"`},
		{"cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", 200, `"cart":"bad_gateway"`},
		{"too large", "HTTP/1.1 200 OK\r\nContent-Length: 300002\r\n\r\n\"" + strings.Repeat("x", 300_000) + `"`, 200, `"cart":"too large"`},
		{"too large together", "HTTP/1.1 200 OK\r\nContent-Length: 262132\r\n\r\n\"" + strings.Repeat("x", 262_130) + `"`, 502, ""},
		{"hangs", "", 200, `"cart":"timeout"`},
	} {
		cart := respondsWith(t, c.cart)
		if c.cart == "" {
			cart = servesRaw(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() })
		}
		h := newTimedGateway(t, 50*time.Millisecond, func(cfg *proxy.Config) {
			threeParts(startUpstream(t, good), cart)(cfg)
			if cfg.Routes[0].Parts = cfg.Routes[0].Parts[:2]; c.name == "hangs" {
				cfg.DefaultDeadline = time.Second
			}
		})
		a := h.get("/page")
		want := `{"user":1,"cart":{"items":[]},"_missing":{` + c.missing + `}}`
		if c.missing == "" {
			want = `{"user":1,"cart":[],"_missing":{}}`
		}
		if c.status != 200 {
			want = `{"code":"bad_gateway"}`
		}
		if a.status != c.status || a.body != want {
			t.Errorf("%s: %d %.200s", c.name, a.status, a.body)
		}
		h.port.requireIdle(t)
	}
	h := newGateway(t, threeParts(nettest.RefusingAddress(t), startUpstream(t, good)))
	if a := h.get("/page"); a.status != 502 || a.body != `{"code":"bad_gateway"}` {
		t.Errorf("required: %d %s", a.status, a.body)
	}
}

// Health checks find endpoints that fail and that recover, over connections of their own.
func TestHealthChecksFindStates(t *testing.T) {
	var mu sync.Mutex
	status := 200
	good := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/health" || r.Header.Get("User-Agent") != "macronode-check" || !r.Close {
			t.Errorf("%s, %v, close %v", r.URL.Path, r.Header, r.Close)
		}
	})
	moody := startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(status)
	})
	hangs, gone := servesRaw(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() }), nettest.RefusingAddress(t)
	h := newGateway(t, func(c *proxy.Config) {
		c.Upstreams[0].HealthPath, c.Upstreams[0].CheckInterval, c.Upstreams[0].CheckTimeout = "/health", 5*time.Millisecond, 2*time.Second
		c.Upstreams = append(c.Upstreams, proxy.Upstream{Name: "hangs", URLs: c.Upstreams[0].URLs[:0:0], HealthPath: "/", CheckInterval: time.Millisecond, CheckTimeout: 20 * time.Millisecond})
		c.Upstreams[1].URLs = append(c.Upstreams[1].URLs, mustURL(hangs))
	}, good+"/base", moody+"/base", gone)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.proxy.Run(ctx) }()
	is := func(what string, upstream uint16, want string) {
		t.Helper()
		h.port.waitUntil(t, what, func() bool {
			all := ""
			for i := range 3 - 2*upstream {
				_, _, sick := h.port.m.Endpoint(upstream, uint8(i), event.Authenticated)
				all += map[bool]string{true: "ill ", false: "well "}[sick]
			}
			return all == want
		})
	}
	is("one that refuses is ill", 0, "well well ill ")
	is("one that hangs is ill", 1, "ill ")
	mu.Lock()
	status = 500
	mu.Unlock()
	is("one that says 500 is ill", 0, "well ill ill ")
	mu.Lock()
	status = 302
	mu.Unlock()
	is("it is well again", 0, "well well ill ")
	h.port.mu.Lock()
	for _, want := range []string{good + "/base  200", moody + "/base  200", moody + "/base status 500", moody + "/base  302", gone + " connection_refused 0", hangs + " deadline 0"} {
		if !h.port.checkResults[want] {
			t.Errorf("no check met %q, but %v", want, h.port.checkResults)
		}
	}
	h.port.mu.Unlock()
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSwitchedProtocolEndsCheck: an endpoint that answers a check with another protocol has failed, and is checked again.
func TestSwitchedProtocolEndsCheck(t *testing.T) {
	var ended atomic.Uint32
	switches := servesRaw(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
		_, _ = io.Copy(io.Discard, r)
		ended.Add(1)
	})
	h := newGateway(t, func(c *proxy.Config) {
		c.Upstreams[0].HealthPath, c.Upstreams[0].CheckInterval, c.Upstreams[0].CheckTimeout = "/health", time.Millisecond, time.Minute
	}, switches)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.proxy.Run(ctx) }()
	h.port.waitUntil(t, "the endpoint is checked again", func() bool { return ended.Load() >= 2 && h.port.checkResults[switches+" protocol_error 0"] })
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
