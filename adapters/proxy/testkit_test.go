package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/proxy"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A corePort is the state machine of upstreams behind a mutex, with all results reported to it.
type corePort struct {
	mu           sync.Mutex
	startedAt    time.Time
	m            upstream.Upstreams
	reported     []event.AttemptResult
	checked      []event.HealthChecked
	checkResults map[string]bool // results of health checks, by endpoint
	events       chan struct{}   // receives one value for each report
	isMuted      bool            // nothing is recorded
}

func newCorePort(rules ...upstream.Rules) *corePort {
	return &corePort{startedAt: time.Now(), m: upstream.New(1024, types.NewRand(1), rules...), events: make(chan struct{}, 1<<16)}
}

func (s *corePort) now() types.Instant { return types.Instant(time.Since(s.startedAt)) + 1 }

func (s *corePort) Pick(in event.Pick) event.Picked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Pick(s.now(), in)
}

func (s *corePort) Retry(in event.Retry) event.Picked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Retry(s.now(), in)
}

func (s *corePort) ReportFailure(in event.AttemptResult) event.RetryDecision {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(in)
	return s.m.Report(s.now(), in)
}

func (s *corePort) Report(in event.AttemptResult) { s.ReportFailure(in) }

func (s *corePort) note(in event.AttemptResult) {
	if s.isMuted {
		return
	}
	s.reported = append(s.reported, in)
	select {
	case s.events <- struct{}{}:
	default:
	}
}

func (s *corePort) HealthChecked(in event.HealthChecked, met proxy.CheckResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkResults == nil {
		s.checkResults = make(map[string]bool)
	}
	s.checkResults[fmt.Sprint(met.Endpoint, " ", met.Reason, " ", met.Status)] = true
	s.checked = append(s.checked, in)
	s.m.HealthChecked(s.now(), in)
	select {
	case s.events <- struct{}{}:
	default:
	}
}

// setMaxAttempts configures the only upstream: one endpoint for each attempt.
func (s *corePort) setMaxAttempts(attempts uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := upstream.Default(attempts)
	r.MaxAttempts, r.RetryPerSecond, r.BreakerMinAttempts = attempts, 100, 1<<20
	s.m = upstream.New(1024, types.NewRand(1), r)
}

// results returns all reported results in order.
func (s *corePort) results() (all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.reported {
		all += " " + in.Outcome.String()
	}
	return all
}

// requireIdle fails unless every request has ended.
func (s *corePort) requireIdle(t *testing.T) {
	t.Helper()
	s.waitUntil(t, "everything is over", func() bool {
		for i := range s.m.Count() {
			if s.m.Stats(uint16(i)).InFlight > 0 {
				return false
			}
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.m.Check(); err != nil {
		t.Error(err)
	}
}

// waitUntil waits for a condition that reports bring about.
func (s *corePort) waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for {
		s.mu.Lock()
		ok := so()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-s.events:
		case <-time.After(time.Minute):
			t.Fatalf("never: %s; told%s", what, s.results())
		}
	}
}

// A gateway is a proxy behind a server, in front of upstreams with one endpoint each, unless the
// test configures others.
type gateway struct {
	t     *testing.T
	proxy *proxy.Proxy
	port  *corePort

	tunnels *proxy.Tunnels
	front   *httptest.Server
	http    *http.Client
}

// newGateway starts one. to are the endpoints of the only upstream, unless change configures
// others.
func newGateway(t *testing.T, change func(*proxy.Config), to ...string) *gateway {
	t.Helper()
	return newTimedGateway(t, time.Minute, change, to...)
}

// newTimedGateway starts one whose server has the given time for a response, from the end of the
// request header.
func newTimedGateway(t *testing.T, write time.Duration, change func(*proxy.Config), to ...string) *gateway {
	t.Helper()
	c := proxy.Default()
	c.Tunnels = proxy.NewTunnels()
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status())
		_, _ = fmt.Fprintf(w, `{"code":%q}`, p.Code())
	}
	c.Upstreams = []proxy.Upstream{{Name: "app"}}
	for _, one := range to {
		c.Upstreams[0].URLs = append(c.Upstreams[0].URLs, mustURL(one))
	}
	c.Routes = []proxy.Route{{Prefix: "/"}}
	if change != nil {
		change(&c)
	}
	var rules []upstream.Rules
	for i := range c.Upstreams {
		r := upstream.Default(0)
		for n, at := range c.Upstreams[i].URLs {
			if at != nil {
				r.Endpoints |= 1 << n
			}
		}
		r.BreakerMinAttempts = 1 << 20 // the breaker is tested with the state machine
		rules = append(rules, r)
	}
	h := &gateway{t: t, port: newCorePort(rules...)}
	var err error
	if h.proxy, err = proxy.New(c, h.port); err != nil {
		t.Fatal(err)
	}
	h.tunnels = c.Tunnels
	h.front = httptest.NewUnstartedServer(h.proxy)
	h.front.Config.ReadTimeout = time.Minute
	h.front.Config.WriteTimeout = write
	h.front.Start()
	h.http = h.front.Client()
	h.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		h.http.CloseIdleConnections()
		over, cut := context.WithCancel(context.Background())
		cut()
		h.tunnels.Drain(over)
		h.proxy.Retire()
		h.front.Close()
		h.port.requireIdle(t)
	})
	return h
}

// startUpstream starts an upstream that lives as long as the test.
func startUpstream(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// respondsWith starts an upstream that answers each connection with these bytes after it has read
// a header, and closes it.
func respondsWith(t *testing.T, text string) string {
	t.Helper()
	return servesRaw(t, func(c net.Conn, r *bufio.Reader) { _, _ = io.WriteString(c, text) })
}

// servesRaw starts an upstream that runs f after it has read a header.
func servesRaw(t *testing.T, f func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	return "http://" + proxy.RawEndpoint(t, nil, func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
		}
		f(c, r)
	})
}

// A clientResponse is what a client received.
type clientResponse struct {
	status int
	header http.Header
	body   string
	err    error // of reading it
	res    *http.Response
}

func (h *gateway) do(r *http.Request) clientResponse {
	h.t.Helper()
	res, err := h.http.Do(r)
	if err != nil {
		return clientResponse{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return clientResponse{res.StatusCode, res.Header, string(body), err, res}
}

func (h *gateway) get(path string, header ...string) clientResponse {
	h.t.Helper()
	return h.do(h.request("GET", path, nil, header...))
}

// request has names and values of headers, alternating.
func (h *gateway) request(method, path string, body io.Reader, header ...string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, h.front.URL+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// raw writes bytes to the gateway and returns the connection.
func (h *gateway) raw(text string) (net.Conn, *bufio.Reader) {
	h.t.Helper()
	c, err := net.Dial("tcp", h.front.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		h.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// mustURL parses a URL.
func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
