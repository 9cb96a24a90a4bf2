package fuzz

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// A recordingPort admits everything, and records the outcomes that it gets.
type recordingPort struct {
	mu       sync.Mutex
	outcomes []event.AttemptOutcome
}

func (m *recordingPort) Pick(event.Pick) event.Picked   { return event.Picked{} }
func (m *recordingPort) Retry(event.Retry) event.Picked { return event.Picked{} }
func (m *recordingPort) ReportFailure(in event.AttemptResult) (_ event.RetryDecision) {
	m.Report(in)
	return
}
func (m *recordingPort) HealthChecked(event.HealthChecked, proxy.CheckResult) {}
func (m *recordingPort) Report(in event.AttemptResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes = append(m.outcomes, in.Outcome)
}

func (m *recordingPort) take() []event.AttemptOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.outcomes
	m.outcomes = nil
	return taken
}

// FuzzForward sends any bytes to a proxy. Each request that the upstream gets has one length, the real client
// address and a path without dot segments. Nothing that a client sends counts as a failure of the upstream.
func FuzzForward(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /b HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 2\r\nForwarded: for=1\r\nX-Real-Ip: 3\r\n\r\n",
		"GET /a/../b HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 2\r\nForwarded: for=1\r\n\r\n",
		"POST /%2e%2e%2f HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-A, b c\r\nConnection: x-a, Te\r\nTE: trailers\r\n\r\n3\r\nabc\r\n0\r\nX-A: 1\r\n\r\n",
		"GET http://b:1/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: xn--\xc3\xbc\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nX-Deadline-Ms: 0\r\nExpect: 100-continue\r\n\r\n",
		"HEAD /?a=%zz;b#c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	var mu sync.Mutex
	var wrong []string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		if why := violation(r); why != "" {
			wrong = append(wrong, why)
		}
	}))
	f.Cleanup(up.Close)
	port := new(recordingPort)
	c := proxy.Default()
	c.Tunnels = proxy.NewTunnels()
	c.Grace = 100 * time.Millisecond
	to, err := url.Parse(up.URL)
	if err != nil {
		f.Fatal(err)
	}
	c.Upstreams = []proxy.Upstream{{Name: "app", URLs: []*url.URL{to}}}
	c.Routes = []proxy.Route{{Prefix: "/"}, {Prefix: "/a", Rewrite: true, NewPrefix: "/b"}}
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
	p, err := proxy.New(c, port)
	if err != nil {
		f.Fatal(err)
	}
	front := httptest.NewServer(p)
	f.Cleanup(func() {
		over, cut := context.WithCancel(context.Background())
		cut()
		c.Tunnels.Drain(over)
		p.Retire()
		front.Close()
	})
	f.Fuzz(func(t *testing.T, request []byte) {
		conn, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = conn.Write(request)
		_ = conn.(*net.TCPConn).CloseWrite()
		answers, err := io.ReadAll(conn) // responses without bodies
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Errorf("%q: no end after %q", request, answers)
		}
		for line := range bytes.Lines(answers) {
			if status, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 5")); ok && !slices.Contains([]string{"01", "04", "05"}, string(status[:2])) {
				t.Errorf("%q: %s", request, line)
			}
		}
		for _, e := range port.take() {
			if e == event.AttemptFailed || e == event.AttemptUnsent || e == event.AttemptTruncated || e == event.AttemptTimedOut {
				t.Errorf("%q: the upstream is said to have %v", request, e)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, why := range wrong {
			t.Errorf("%q: %s", request, why)
		}
		wrong = nil
	})
}

// violation describes what an upstream must never get.
func violation(r *http.Request) string {
	one := func(name, want string) string {
		if got := r.Header[name]; len(got) != 1 || want != "" && got[0] != want {
			return name + " is " + strings.Join(got, "|")
		}
		return ""
	}
	for _, why := range []string{one("X-Forwarded-For", "127.0.0.1"), one("X-Forwarded-Proto", "http"), one(proxy.DeadlineHeader, "")} {
		if why != "" {
			return why
		}
	}
	if host := r.Header["X-Forwarded-Host"]; len(host) > 1 || len(host) == 1 && host[0] == "" { // none: the request had no host
		return "X-Forwarded-Host is " + strings.Join(host, "|")
	}
	if n := len(r.Header["Traceparent"]); n > 1 { // the client's, or none
		return fmt.Sprint(n, " fields Traceparent")
	}
	for name := range r.Header {
		switch low := strings.ToLower(strings.ReplaceAll(name, "_", "-")); {
		case low == "forwarded", strings.HasPrefix(low, "x-forwarded-") && strings.Contains(name, "_"),
			low == "x-real-ip", low == "keep-alive", low == "proxy-authorization", low == "proxy-connection":
			return name + " went on"
		case low == "upgrade": // a valid upgrade is forwarded hop by hop
			if why := cmp.Or(one("Upgrade", ""), one("Connection", "Upgrade")); why != "" {
				return why
			}
		}
	}
	for _, part := range strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if part, _, _ = strings.Cut(part, ";"); part == "." || part == ".." {
			return "it climbs: " + r.URL.Path
		}
	}
	if len(r.TransferEncoding) > 0 && r.ContentLength >= 0 || bytes.ContainsAny([]byte(r.URL.Path), "\x00\r\n") {
		return "two lengths, or a line too many"
	}
	return ""
}
