package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"macronode/adapters/decisions"
	"macronode/adapters/nettest"
	"macronode/cmd/macronode/internal/testkit"
)

// scriptedUpstream is an upstream that plays each connection and then closes it.
func scriptedUpstream(t *testing.T, play func(c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	testkit.Must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				play(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return "http://" + l.Addr().String()
}

// header reads the header of a request; false: there is none.
func header(in *bufio.Reader) bool {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		if line == "\r\n" {
			return true
		}
	}
}

// refuseStreams is an HTTP/2 upstream that refuses each stream.
func refuseStreams(c net.Conn, in *bufio.Reader) {
	f := http2.NewFramer(c, in)
	if _, err := io.ReadFull(in, make([]byte, len(http2.ClientPreface))); err != nil || f.WriteSettings() != nil {
		return
	}
	for {
		switch got, err := f.ReadFrame(); got := got.(type) {
		case *http2.SettingsFrame:
			if !got.IsAck() && f.WriteSettingsAck() != nil {
				return
			}
		case *http2.HeadersFrame:
			if f.WriteRSTStream(got.StreamID, http2.ErrCodeRefusedStream) != nil {
				return
			}
		default:
			if err != nil {
				return
			}
		}
	}
}

// fullBacklogAddress returns an address whose listener never accepts and whose backlog is full.
func fullBacklogAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	testkit.Must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	testkit.Must(t, syscall.Listen(socket, 0))
	at, err := syscall.Getsockname(socket)
	testkit.Must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
	c, err := net.Dial("tcp", address) // the only place
	testkit.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return "http://" + address
}

// TestUpstreamOutcomesAgree provokes rare upstream outcomes, each twice. The response, the decision and the access
// log agree, and explain names them.
func TestUpstreamOutcomesAgree(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	partly := scriptedUpstream(t, func(c net.Conn, in *bufio.Reader) {
		_ = header(in)
		_, _ = in.ReadByte() // of the body
	})
	hints := scriptedUpstream(t, func(c net.Conn, in *bufio.Reader) {
		if header(in) {
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
		}
	})
	waits := scriptedUpstream(t, func(_ net.Conn, in *bufio.Reader) { _ = header(in); <-over })
	defer close(over)
	h2, full, down, sick := scriptedUpstream(t, refuseStreams), fullBacklogAddress(t), nettest.RefusingAddress(t), nettest.RefusingAddress(t)
	const unnamed = "http://no..name"
	ups := map[string]string{"partly": partly, "hints": hints, "waits": waits, "h2": h2, "full": full, "down": down, "sick": sick, "unnamed": unnamed, "tunnel": newUpstream(t)}
	more := map[string]string{"h2": `,"protocol":"http2","max_attempts":1`, "sick": `,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}`,
		"full": `,"max_attempts":1`, "unnamed": `,"max_attempts":1`, "waits": `,"max_attempts":1`}
	var upstreams, routes []string
	for name, url := range ups {
		upstreams = append(upstreams, fmt.Sprintf(`%q:{"url":%q%s}`, name, url, more[name]))
		routes = append(routes, fmt.Sprintf(`{"name":%q,"path":"/%s","upstream":%q,"auth":"none"}`, name, name, name))
	}
	p := startNode(t, "log.access=true", "log.format=json", "log.level=error", "http.tunnel_idle=1s",
		"upstreams={"+strings.Join(upstreams, ",")+"}", "routes=["+strings.Join(routes, ",")+"]")
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), `"unhealthy_upstreams":["sick"]`); check() {
	}
	all := []outcome{
		{what: "no name", method: "GET", path: "/unnamed", status: 502, code: "bad_gateway", outcome: "dns_error", upstream: "unnamed", tries: 1, halt: "max_attempts"},
		{what: "no connection", method: "GET", path: "/full", status: 502, code: "bad_gateway", outcome: "connect_timeout", upstream: "full", tries: 1, halt: "max_attempts"},
		{what: "stream refused", method: "GET", path: "/h2", status: 502, code: "bad_gateway", outcome: "stream_refused", upstream: "h2", tries: 1, halt: "max_attempts"},
		{what: "body is gone", method: "PUT", path: "/partly", body: strings.Repeat("b", 70_000), status: 502, code: "bad_gateway", outcome: "connection_reset", upstream: "partly", tries: 1, halt: "body_consumed"},
		{what: "client was told", method: "GET", path: "/hints", status: 502, code: "bad_gateway", outcome: "connection_reset", upstream: "hints", tries: 1, halt: "response_started"},
		{what: "all are unhealthy", method: "GET", path: "/sick", status: 503, code: "unavailable", outcome: "no_healthy_endpoint", upstream: "sick"},
	}
	var saw []provoked
	for i := range all {
		all[i].why, all[i].endpoint = "admitted", ups[all[i].upstream]
		for round := range 2 {
			saw = append(saw, p.provoke(t, &all[i], strings.TrimSpace(string(raw)), 2*i+round))
		}
	}
	// These depend on earlier requests, so they are repeated until they occur.
	halts := func(reason string) func(*decisions.Leg) bool {
		return func(l *decisions.Leg) bool { return l.Halt == reason }
	}
	found := map[string]decisions.Decision{
		"retry_budget":       p.until(t, "GET", "/down", 4, halts("retry_budget")),
		"circuit breaker":    p.until(t, "GET", "/down", 4, halts("circuit_open")),
		"circuit_open":       p.until(t, "GET", "/down", 1, func(l *decisions.Leg) bool { return l.Stop == "circuit_open" }),
		"idle_timeout":       p.sendAndEnd(t, tunnelIn, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		"request_body_error": p.sendAndEnd(t, halfBody, func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite(); _, _ = io.Copy(io.Discard, c) }),
	}
	found["client_disconnected"] = p.sendAndEnd(t, wholeRequest, func(c net.Conn) {
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/metrics"), "\nupstream_inflight{upstream=\"waits\"} 1\n"); check() {
		}
		_ = c.Close()
	})
	kept := map[string]decisions.Decision{}
	for i := range saw {
		kept[saw[i].id] = p.decision(t, saw[i].id)
	}
	words := map[string]string{"retry_budget": "the retry budget of the upstream was used up", "circuit breaker": "the circuit breaker was open, or this failure opened it",
		"circuit_open": "The circuit breaker of the upstream is open"}
	for what, d := range found {
		if text := p.explainText(t, d.ID); !strings.Contains(text, what) && (words[what] == "" || !strings.Contains(text, words[what])) {
			t.Errorf("%s: explain says\n%s", what, text)
		}
	}
	p.end()
	lines := accessLines(t, p.log.String())
	for i := range saw {
		d, l := kept[saw[i].id], lines[saw[i].id]
		saw[i].compare(t, &d, &l)
	}
	for what, d := range found {
		l := lines[d.ID]
		compareRecords(t, what, &d, &l)
		if want := d.Legs[0].Outcome; strings.Contains(what, "_") && what != "retry_budget" && want != what {
			t.Errorf("%s: the outcome is %s", what, want)
		}
	}
}

// Requests that end in an unusual way; NAME is the request ID.
const (
	tunnelIn     = "GET /tunnel HTTP/1.1\r\nHost: a\r\nX-Request-Id: NAME\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	halfBody     = "POST /waits HTTP/1.1\r\nHost: a\r\nX-Request-Id: NAME\r\nContent-Length: 100\r\n\r\nhalf"
	wholeRequest = "GET /waits HTTP/1.1\r\nHost: a\r\nX-Request-Id: NAME\r\n\r\n"
)
