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
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/adapters/proxy"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stepper is the machine behind a mutex, with every word that it was told.
type stepper struct {
	mu     sync.Mutex
	began  time.Time
	m      upstream.Upstreams
	told   []event.AttemptResult
	probed []event.HealthChecked
	met    map[string]bool // what health checks met, endpoint for endpoint
	heard  chan struct{}   // a word was
	quiet  bool            // nothing is noted
}

func newStepper(rules ...upstream.Rules) *stepper {
	return &stepper{began: time.Now(), m: upstream.New(1024, types.NewRand(1), rules...), heard: make(chan struct{}, 1<<16)}
}

func (s *stepper) now() types.Instant { return types.Instant(time.Since(s.began)) + 1 }

func (s *stepper) Pick(in event.Pick) event.Picked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Pick(s.now(), in)
}

func (s *stepper) Retry(in event.Retry) event.Picked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Retry(s.now(), in)
}

func (s *stepper) Failed(in event.AttemptResult) event.RetryDecision {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(in)
	return s.m.Report(s.now(), in)
}

func (s *stepper) Tell(in event.AttemptResult) { s.Failed(in) }

func (s *stepper) note(in event.AttemptResult) {
	if s.quiet {
		return
	}
	s.told = append(s.told, in)
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

func (s *stepper) Probed(in event.HealthChecked, met proxy.Checkup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met == nil {
		s.met = make(map[string]bool)
	}
	s.met[fmt.Sprint(met.Endpoint, " ", met.Symptom, " ", met.Status)] = true
	s.probed = append(s.probed, in)
	s.m.HealthChecked(s.now(), in)
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// allow has the only upstream, of so many endpoints, try each of them.
func (s *stepper) allow(tries uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := upstream.Default(tries)
	r.MaxAttempts, r.RetryPerSecond, r.BreakerMinAttempts = tries, 100, 1<<20
	s.m = upstream.New(1024, types.NewRand(1), r)
}

// endings are all that was told, in order.
func (s *stepper) endings() (all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.told {
		all += " " + in.Outcome.String()
	}
	return all
}

// idle fails unless every request is over.
func (s *stepper) idle(t *testing.T) {
	t.Helper()
	s.until(t, "everything is over", func() bool {
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

// until waits for what words of requests bring about.
func (s *stepper) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for {
		s.mu.Lock()
		ok := so()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-s.heard:
		case <-time.After(20 * time.Second):
			t.Fatalf("never: %s; told%s", what, s.endings())
		}
	}
}

// A house is a proxy behind a server, in front of upstreams of which each has one
// endpoint, unless the test says otherwise.
type house struct {
	t     *testing.T
	proxy *proxy.Proxy
	port  *stepper

	tunnels *proxy.Tunnels
	front   *httptest.Server
	http    *http.Client
}

// build makes one; to are the endpoints of the only upstream, or what change makes of it.
func build(t *testing.T, change func(*proxy.Config), to ...string) *house {
	t.Helper()
	return timed(t, time.Minute, change, to...)
}

// timed has a server with so much time for an answer, from the header of the request on.
func timed(t *testing.T, write time.Duration, change func(*proxy.Config), to ...string) *house {
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
		c.Upstreams[0].URLs = append(c.Upstreams[0].URLs, link(one))
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
		r.BreakerMinAttempts = 1 << 20 // a breaker is the machine's to test
		rules = append(rules, r)
	}
	h := &house{t: t, port: newStepper(rules...)}
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
		h.port.idle(t)
	})
	return h
}

// serves is an upstream that lives as long as the test.
func serves(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// refuses is an address where nobody listens: it stays bound, so no other socket gets it.
func refuses(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// says is an upstream that answers each connection by these bytes, once it has read a
// header, and closes it.
func says(t *testing.T, text string) string {
	t.Helper()
	return speaks(t, func(c net.Conn, r *bufio.Reader) { _, _ = io.WriteString(c, text) })
}

// speaks is an upstream that does as it likes, once it has read a header.
func speaks(t *testing.T, f func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	return "http://" + proxy.Far(t, nil, func(_ int, c net.Conn) {
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

// An answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // reading it
	res    *http.Response
}

func (h *house) do(r *http.Request) answer {
	h.t.Helper()
	res, err := h.http.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body), err, res}
}

func (h *house) get(path string, header ...string) answer {
	h.t.Helper()
	return h.do(h.request("GET", path, nil, header...))
}

// request has names and values of headers, by turns.
func (h *house) request(method, path string, body io.Reader, header ...string) *http.Request {
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

// raw says bytes to the front, and returns the connection.
func (h *house) raw(text string) (net.Conn, *bufio.Reader) {
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

// link is a URL that is one.
func link(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
