package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// newTracedGateway returns a gateway that reports the trace of each request.
func newTracedGateway(t *testing.T, change func(*proxy.Config), to ...string) (*gateway, <-chan *proxy.Trace) {
	h, traces := newGateway(t, change, to...), make(chan *proxy.Trace, 16)
	h.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, _ := h.proxy.Match(r)
		c := new(proxy.Trace)
		defer func() { traces <- c }()
		h.proxy.Serve(w, r, m, c)
	})
	return h, traces
}

// traceLine prints an upstream's trace: each attempt, and why there was no other.
func traceLine(l *proxy.UpstreamTrace) string {
	var all []string
	for _, t := range l.Attempts {
		one := fmt.Sprint(t.Result, " ", string(t.Reason), " ", t.Status)
		if t.Ejected {
			one += " out"
		}
		all = append(all, one)
	}
	return strings.Join(append(all, l.NoRetry.String()), ", ")
}

// TestTraceOfOutcomes: the trace contains the outcome of every request.
func TestTraceOfOutcomes(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	hangs := servesRaw(t, func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() })
	soon := func(c *proxy.Config) { c.DefaultDeadline, c.StallTimeout = 100*time.Millisecond, 100*time.Millisecond }
	for _, c := range []struct {
		what, to, want string
		change         func(*proxy.Config)
		header         []string
		method         string
	}{
		{"well", respondsWith(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), "completed  200, ", nil, nil, "GET"},
		{"refused", nettest.RefusingAddress(t), "unsent connection_refused 0, unsent connection_refused 0, unsent connection_refused 0, max_attempts", nil, nil, "GET"},
		{"refused once", nettest.RefusingAddress(t), "unsent connection_refused 0, method_not_idempotent", nil, nil, "POST"},
		{"no such name", "http://nowhere.invalid", "unsent dns_error 0, method_not_idempotent", nil, nil, "POST"},
		{"not trusted", secure.URL, "failed tls_error 0, method_not_idempotent", nil, nil, "POST"},
		{"no TLS", strings.Replace(startUpstream(t, func(http.ResponseWriter, *http.Request) {}), "http:", "https:", 1), "failed tls_error 0, method_not_idempotent", nil, nil, "POST"},
		{"no HTTP", respondsWith(t, "220 mail\r\n\r\n"), "failed protocol_error 0, method_not_idempotent", nil, nil, "POST"},
		{"closed", respondsWith(t, ""), "failed connection_reset 0, method_not_idempotent", nil, nil, "POST"},
		{"turned", respondsWith(t, "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"), "completed status 503, method_not_idempotent", nil, nil, "POST"},
		{"says too much first", respondsWith(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 6)), "failed protocol_error 0, response_started", nil, nil, "GET"},
		{"cut", respondsWith(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"), "truncated connection_reset 200, ", nil, nil, "GET"},
		{"late", hangs, "timed_out deadline 0, deadline", soon, nil, "GET"},
		{"hurried", hangs, "abandoned client_deadline 0, ", nil, []string{proxy.DeadlineHeader, "20"}, "GET"},
		{"silent", servesRaw(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
			_, _ = r.ReadByte()
		}), "truncated response_stalled 200, ", soon, nil, "GET"},
	} {
		h, traces := newTracedGateway(t, c.change, c.to)
		h.do(h.request(c.method, "/", nil, c.header...))
		trace := <-traces
		leg := &trace.Upstreams[0]
		if got := traceLine(leg); got != c.want || len(trace.Upstreams) != 1 || leg.AttemptCount != len(leg.Attempts) || leg.NoEndpoint != event.EndpointPicked {
			t.Errorf("%s: %q of %+v, wants %q", c.what, got, trace.Upstreams, c.want)
		}
		if answered := leg.Attempts[len(leg.Attempts)-1].Status != 0; answered != (trace.FirstByte > 0) || leg.Attempts[0].Endpoint != c.to || leg.Attempts[0].Took <= 0 {
			t.Errorf("%s: %+v, the first byte after %v", c.what, leg.Attempts, trace.FirstByte)
		}
	}
}

// TestTraceCountsBytes: bytes are counted in both directions, also in a tunnel.
func TestTraceCountsBytes(t *testing.T) {
	h, traces := newTracedGateway(t, nil, startUpstream(t, echo)) // the upstream reads the whole body before it answers
	h.do(h.request("POST", "/", strings.NewReader("eight...")))
	if c := <-traces; c.BytesUp.Load() != 8 || c.BytesDown.Load() != 8 {
		t.Errorf("%d up, %d down", c.BytesUp.Load(), c.BytesDown.Load())
	}
	h, traces = newTracedGateway(t, nil, startShoutUpstream(t))
	conn, in := h.openTunnel()
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.ReadAll(in)
	if c := <-traces; c.BytesUp.Load() != uint64(len("early\n")) || c.BytesDown.Load() != uint64(len("hello\nEARLY\nbye\n")) || traceLine(&c.Upstreams[0]) != "completed  101, " {
		t.Errorf("%d up, %d down: %s", c.BytesUp.Load(), c.BytesDown.Load(), traceLine(&c.Upstreams[0]))
	}
}

// TestTraceOfTunnels: the trace contains which side ended a tunnel.
func TestTraceOfTunnels(t *testing.T) {
	h, traces := newTracedGateway(t, nil, startShoutUpstream(t))
	h.openTunnel()
	ctx, over := context.WithCancel(t.Context())
	over()
	h.tunnels.Drain(ctx)
	if got := traceLine(&(<-traces).Upstreams[0]); got != "completed shutdown 101, " {
		t.Error(got)
	}
	h, traces = newTracedGateway(t, func(c *proxy.Config) { c.TunnelIdleTimeout = 50 * time.Millisecond }, startShoutUpstream(t))
	h.openTunnel()
	if got := traceLine(&(<-traces).Upstreams[0]); got != "completed idle_timeout 101, " {
		t.Error(got)
	}
}

// headerNotifier reports when a response begins.
type headerNotifier struct {
	*httptest.ResponseRecorder
	came chan<- bool
}

func (b headerNotifier) WriteHeader(status int) {
	b.ResponseRecorder.WriteHeader(status)
	if status == http.StatusOK {
		b.came <- true
	}
}

// cutBody is a body that never arrives, on a connection that is cut.
type cutBody struct{ context.Context }

func (b cutBody) Read([]byte) (int, error) {
	<-b.Done()
	return 0, io.ErrUnexpectedEOF
}

func (cutBody) Close() error { return nil }

// TestTraceOfShutdown: a request that the server aborts is not recorded as a disconnection of the
// client, before and after the response has begun.
func TestTraceOfShutdown(t *testing.T) {
	ends := errors.New("the end")
	came, over := make(chan bool, 1), make(chan struct{})
	h, _ := newTracedGateway(t, func(c *proxy.Config) { c.ShutdownCause = ends }, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			_ = http.NewResponseController(w).Flush() // and the client reports when it has arrived
		} else {
			came <- true
		}
		<-over
	}))
	t.Cleanup(func() { close(over) })
	for _, c := range []struct {
		path, want string
		cause      error
	}{{"/begun", "abandoned shutdown 200, ", ends}, {"/waits", "abandoned shutdown 0, ", ends}, {"/begun", "abandoned client_disconnected 200, ", nil}, {"/waits", "abandoned client_disconnected 0, ", nil},
		{"/sent", "abandoned shutdown 0, ", ends}, {"/sent", "abandoned request_body_error 0, ", nil}} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", c.path, http.NoBody)
		if c.path == "/sent" {
			r = httptest.NewRequestWithContext(t.Context(), "PUT", c.path, http.NoBody)
			r.ContentLength = 9
		}
		ctx, cut := context.WithCancelCause(r.Context())
		go func() { <-came; cut(c.cause) }()
		trace := new(proxy.Trace)
		func() {
			defer func() { _ = recover() }()
			if r = r.WithContext(ctx); c.path == "/sent" {
				r.Body = cutBody{ctx}
			}
			m, _ := h.proxy.Match(r)
			h.proxy.Serve(headerNotifier{httptest.NewRecorder(), came}, r, m, trace)
		}()
		if got := traceLine(&trace.Upstreams[0]); got != c.want || trace.CutByShutdown() != (c.cause != nil) || trace.EndedByClient() == (c.cause != nil) {
			t.Errorf("%s, %v: %q, wants %q", c.path, c.cause, got, c.want)
		}
	}
}

// TestEndedByClient: the trace has that an endpoint works for a client that did not wait, whatever the protocol is. A request
// that no endpoint was sent, and one that ended by its endpoint or by the deadline of the route, are not ended by their client.
func TestEndedByClient(t *testing.T) {
	over := make(chan struct{})
	waits := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-over
	}
	h1, h2 := startUpstream(t, waits), startH2Upstream(t, waits)
	t.Cleanup(func() { close(over) }) // before the servers are closed
	const gone = -1
	for name, c := range map[string]struct {
		to, method, path string
		deadline         time.Duration // of the client; 0: none
		change           func(*proxy.Config)
		want             bool
		keyEnds          bool // then, and not the deadline
	}{
		"read":                      {h1, "GET", "/", 40 * time.Millisecond, nil, true, false},
		"write":                     {h1, "POST", "/", 40 * time.Millisecond, nil, true, false},
		"HTTP/2":                    {h2, "POST", "/", 40 * time.Millisecond, useHTTP2, true, false},
		"parts":                     {h1, "GET", "/page", 40 * time.Millisecond, threeParts(h1, h1), true, false},
		"parts, HTTP/2":             {h2, "GET", "/page", 40 * time.Millisecond, func(c *proxy.Config) { threeParts(h2, h2)(c); useHTTP2(c) }, true, false},
		"key ends":                  {h1, "POST", "/", 40 * time.Millisecond, nil, true, true},
		"key ends, read":            {h1, "GET", "/", 40 * time.Millisecond, nil, true, true},
		"key ends, parts":           {h1, "GET", "/page", 40 * time.Millisecond, threeParts(h1, h1), true, true},
		"deadline of the route":     {h1, "POST", "/", 0, func(c *proxy.Config) { c.DefaultDeadline = 40 * time.Millisecond }, false, false},
		"no endpoint":               {nettest.RefusingAddress(t), "POST", "/", 40 * time.Millisecond, nil, false, false},
		"disconnected before it":    {h1, "POST", "/", gone, nil, false, false},
		"disconnected before, read": {h1, "GET", "/", gone, nil, false, false},
	} {
		ended := func(deadline time.Duration) (bool, string) {
			h, _ := newTracedGateway(t, func(to *proxy.Config) {
				to.DefaultDeadline = time.Hour
				if c.change != nil {
					c.change(to)
				}
			}, c.to)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r := httptest.NewRequestWithContext(ctx, c.method, c.path, http.NoBody)
			w := headerNotifier{httptest.NewRecorder(), make(chan bool, 1)}
			to := http.ResponseWriter(w)
			switch {
			case deadline == gone:
				leave()
			case c.keyEnds:
				to = keyEnder{w, deadline}
			case deadline > 0:
				r.Header.Set("X-Deadline-Ms", strconv.FormatInt(deadline.Milliseconds(), 10))
			}
			trace := new(proxy.Trace)
			func() {
				defer func() { _ = recover() }()
				m, _ := h.proxy.Match(r)
				h.proxy.Serve(to, r, m, trace)
			}()
			return trace.EndedByClient(), traceLine(&trace.Upstreams[0])
		}
		got, line := ended(c.deadline)
		for wait := 2 * c.deadline; got != c.want && c.want && wait < 10*time.Second; wait *= 2 { // a busy machine had not sent it by then
			got, line = ended(wait)
		}
		if got != c.want {
			t.Errorf("%s: %v, %s", name, got, line)
		}
	}
}

// A keyEnder is the response of a request whose API key ends after a time.
type keyEnder struct {
	headerNotifier
	after time.Duration
}

func (k keyEnder) OnLostPermit(h interface{ LosePermit(why event.RejectReason) }) {
	time.AfterFunc(k.after, func() { h.LosePermit(event.RejectKeyEnded) })
}

// TestTraceKeepsFirstAndLastAttempts: of many attempts, the first ones and the last are recorded.
func TestTraceKeepsFirstAndLastAttempts(t *testing.T) {
	var down []string
	for range 6 {
		down = append(down, nettest.RefusingAddress(t))
	}
	h, traces := newTracedGateway(t, func(c *proxy.Config) { c.DefaultDeadline = time.Minute }, down...)
	h.port.setMaxAttempts(6)
	h.get("/")
	l := &(<-traces).Upstreams[0]
	if len(l.Attempts) != proxy.MaxAttempts || l.AttemptCount != 6 || l.Attempts[0].Endpoint != down[0] || l.Attempts[proxy.MaxAttempts-1].Endpoint != down[5] {
		t.Errorf("%d: %+v", l.AttemptCount, l.Attempts)
	}
}
