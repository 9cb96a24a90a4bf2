package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
)

// startShoutUpstream starts an upstream with another protocol: it answers each line in capitals,
// and the end of input with bye.
func startShoutUpstream(t *testing.T) string {
	return servesRaw(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\nSec-Mine: 1\r\n\r\nhello\n")
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			_, _ = fmt.Fprint(c, strings.ToUpper(line))
		}
		_, _ = fmt.Fprint(c, "bye\n")
	})
}

const wants = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: shout\r\n\r\n"

// openTunnel opens a tunnel and reads its first line.
func (h *gateway) openTunnel() (net.Conn, *bufio.Reader) {
	h.t.Helper()
	c, in := h.raw(wants + "early\n") // before the response has arrived
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 || res.Header.Get("Upgrade") != "shout" || res.Header.Get("Connection") != "Upgrade" || res.Header.Get("Sec-Mine") != "1" {
		h.t.Fatalf("%+v, %v", res, err)
	}
	for _, want := range []string{"hello\n", "EARLY\n"} {
		if line, err := in.ReadString('\n'); line != want {
			h.t.Fatalf("%q, %v", line, err)
		}
	}
	return c, in
}

// A tunnel carries both directions, and one direction after the other has ended.
func TestTunnel(t *testing.T) {
	h := newGateway(t, nil, startShoutUpstream(t))
	c, in := h.openTunnel()
	if n := h.tunnels.Open(); n != 1 {
		t.Errorf("%d tunnels", n)
	}
	_, _ = fmt.Fprint(c, "one\ntwo\n")
	for _, want := range []string{"ONE\n", "TWO\n"} {
		if line, err := in.ReadString('\n'); line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); string(rest) != "bye\n" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	h.port.requireIdle(t)
	if got := h.port.results(); got != " answered completed" || h.tunnels.Open() != 0 {
		t.Errorf("%s, %d tunnels", got, h.tunnels.Open())
	}
}

// A drain waits for tunnels, rejects new ones, and closes the rest.
func TestTunnelDrain(t *testing.T) {
	h := newGateway(t, nil, startShoutUpstream(t))
	first, _ := h.openTunnel()
	_, in := h.openTunnel()
	ctx, over := context.WithCancel(t.Context())
	cut := make(chan int, 1)
	go func() { cut <- h.tunnels.Drain(ctx) }()
	for { // until the drain has begun
		_, in := h.raw(wants)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 503 {
			if res.Header.Get("Retry-After") == "" {
				t.Error("nothing says when to come back")
			}
			break
		}
	}
	first.Close()
	select {
	case n := <-cut:
		t.Fatalf("it did not wait, and cut %d", n)
	default:
	}
	over()
	if n := <-cut; n < 1 {
		t.Errorf("cut %d", n)
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 && string(rest) != "bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
	if n := h.tunnels.Open(); n != 0 {
		t.Errorf("%d are left", n)
	}
	// Without tunnels it ends at once.
	if n := newGateway(t, nil, startShoutUpstream(t)).tunnels.Drain(t.Context()); n != 0 {
		t.Errorf("cut %d of none", n)
	}
}

// An idle tunnel is closed, and the upstream has not failed.
func TestIdleTunnelIsClosed(t *testing.T) {
	t.Parallel()
	h, traces := newTracedGateway(t, func(c *proxy.Config) { c.TunnelIdleTimeout = time.Second }, startShoutUpstream(t))
	_, in := h.openTunnel()
	if rest, err := io.ReadAll(in); len(rest) > 0 && string(rest) != "bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
	h.port.requireIdle(t)
	if got := traceLine(&(<-traces).Upstreams[0]); got != "completed idle_timeout 101, " {
		t.Errorf("%s", got)
	}
}

// TestTunnelResponseHasIDs: the 101 response carries the id of its request, and none of the
// upstream's.
func TestTunnelResponseHasIDs(t *testing.T) {
	h := newGateway(t, nil, servesRaw(t, func(c net.Conn, _ *bufio.Reader) {
		_, _ = fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\nX-Request-Id: theirs\r\nX-Decision-Id: theirs\r\n\r\n")
	}))
	h.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "ours")
		w.Header().Set("X-Decision-Id", "d_ours")
		h.proxy.ServeHTTP(w, r)
	})
	c, in := h.raw(wants)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 101 || fmt.Sprint(res.Header["X-Request-Id"], res.Header["X-Decision-Id"]) != "[ours] [d_ours]" {
		t.Errorf("%+v, %v", res, err)
	}
	c.Close()
	h.port.requireIdle(t)
}

// An invalid upgrade is answered with a response or a problem.
func TestInvalidUpgradeResponses(t *testing.T) {
	for name, c := range map[string]struct {
		ask, response string
		status        int
		endings       string
	}{
		"refused by the upstream": {wants, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", 403, " answered completed"},
		"another protocol":        {wants, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", 502, " answered truncated"},
		"nobody asked":            {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n", 502, " answered truncated"},
		"no protocol named":       {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502, " answered truncated"},
		"upgrade without saying":  {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: shout\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, " answered completed"},
	} {
		h := newGateway(t, nil, respondsWith(t, c.response))
		_, in := h.raw(c.ask)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: %+v, %v", name, res, err)
			continue
		}
		h.port.requireIdle(t)
		if got := h.port.results(); got != c.endings {
			t.Errorf("%s:%s", name, got)
		}
	}
}

// TestIgnoredUpgrades: a request for a protocol that is not tunnelled is forwarded without the
// upgrade.
func TestIgnoredUpgrades(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	for name, ask := range map[string]string{
		"h2c":               "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
		"settings unsaid":   "Connection: Upgrade\r\nUpgrade: H2C\r\nHTTP2-Settings: A\r\n\r\n",
		"TLS":               "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n",
		"HTTP":              "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n\r\n",
		"two protocols":     "Connection: Upgrade\r\nUpgrade: shout, h2c\r\n\r\n",
		"two lines":         "Connection: Upgrade\r\nUpgrade: shout\r\nUpgrade: h2c\r\n\r\n",
		"none":              "Connection: Upgrade\r\nUpgrade:\r\n\r\n",
		"two words":         "Connection: Upgrade\r\nUpgrade: sh out\r\n\r\n",
		"behind a body":     "Connection: Upgrade\r\nUpgrade: shout\r\nContent-Length: 1\r\n\r\nx",
		"behind chunks":     "Connection: Upgrade\r\nUpgrade: shout\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"h2c behind a body": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\nContent-Length: 1\r\n\r\nx",
	} {
		_, in := h.raw("GET /x HTTP/1.1\r\nHost: a\r\n" + ask)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %+v, %v", name, res, err)
			continue
		}
		if body, _ := io.ReadAll(res.Body); strings.Contains(name, "behind") != (string(body) == "x") {
			t.Errorf("%s: %q", name, body)
		}
		for _, field := range [...]string{"Saw-Upgrade", "Saw-Connection", "Saw-Http2-Settings"} {
			if values, ok := res.Header[field]; ok {
				t.Errorf("%s: %s %q", name, field, values)
			}
		}
	}
}

// An upgrade behind a body is not forwarded.
func TestUpgradeWithBodyIsIgnored(t *testing.T) {
	h := newGateway(t, nil, respondsWith(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n"))
	_, in := h.raw(strings.Replace(wants, "\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx", 1))
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 502 {
		t.Errorf("%+v, %v", res, err)
	}
}
