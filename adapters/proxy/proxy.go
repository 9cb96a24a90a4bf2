// Package proxy stands in front of other services: it sends a request on to an endpoint of
// an upstream, and its answer back, as both come.
//
//	Match ──► Serve ──► Pick ──► try ──► header ──► body, as it comes ──► whole
//	                      ▲       │                 └──broken off──► the client's is broken off
//	                      └─Retry─┴──► 502, 503, 504
//
// What is decided about upstreams is decided behind Port.
package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
)

// A Port decides where requests go. None of it blocks for longer than a decision takes.
type Port interface {
	// Pick asks for a first try, Retry for the next.
	Pick(event.Pick) event.Picked
	Retry(event.Retry) event.Picked
	// Failed tells of a try that failed, and asks whether there is another.
	Failed(event.AttemptResult) event.RetryDecision
	// Tell tells of all else, without waiting. Each Picked that was not stopped is told of
	// until it is over: by Failed, or by Answered and then Whole, Cut or Left.
	Tell(event.AttemptResult)
	// Probed tells of a health check, and what it met.
	Probed(event.HealthChecked, Checkup)
}

// An Upstream is some endpoints that serve the same. Its number is its place, and that of
// an endpoint is its place in URLs: so numbers may keep their meaning from one Proxy to the
// next, one without a name is none, and an endpoint that is nil is none.
type Upstream struct {
	Name string
	URLs []*url.URL // http or https; the path, without a slash at its end, is put before each request's
	Host string     // that upstreams are asked for; empty: the one that the client asked for
	// Protocol is what they are asked by.
	Protocol Protocol
	// Check is a path that a health check asks for; empty: there is none. It wants an answer
	// of 2xx or 3xx within Wait, each Every.
	Check       string
	Every, Wait time.Duration
}

// A Route says which requests go to an upstream. Of several that fit, the one that names
// the host wins, then the longer prefix, then the one that wants a header or methods,
// then the first.
type Route struct {
	Host     string   // in lower case; *.example.com fits all below it; empty: any
	Prefix   string   // of the decoded path, in whole segments; begins with a slash
	Methods  []string // empty: any
	Header   string   // that must be there; empty: none
	Value    string   // of it; empty: any
	Upstream int
	Rewrite  bool          // Put stands in the place of Prefix
	Put      string        // begins with a slash
	Deadline time.Duration // until the header of the answer, from when the request is in; 0: Config.Deadline
	Parts    []Part        // read at once and made one answer; none: the request goes to Upstream
	Inflate  bool          // a body of gzip or zstd is sent on inflated; one of another coding is refused
	CORS     CORS
	// StrictPath refuses a path that an upstream may read as another one. Of a route that is not
	// Keyed, that is also a path that could be read as one of a route that is.
	StrictPath bool
	Keyed      bool // whoever serves the route wants an API key for it
}

// Config is all of it. Times that are 0 are those of Default.
type Config struct {
	Upstreams []Upstream
	Routes    []Route
	Trusted   []netip.Prefix // proxies whose word about their peers is taken
	Deadline  time.Duration  // of a route that has none
	Dial      time.Duration  // for a connection to an endpoint
	Silence   time.Duration  // of an upstream within an answer
	Idle      time.Duration  // of both ends of a tunnel
	Rate      int64          // bytes a second that a client takes or sends at least
	Grace     time.Duration  // that it may be behind
	TLS       *tls.Config    // to https endpoints; nil: the machine's roots
	Tunnels   *Tunnels       // where its tunnels are kept; nil: with itself
	Endpoints *Endpoints     // shared table of endpoints, see PublishEndpoints; nil: a table of its own
	Inflaters *Inflaters     // places for bodies of zstd; nil: the same
	// Fail answers with a problem. Retry-After is set before, where it is known.
	Fail func(http.ResponseWriter, *http.Request, event.Problem)
	Log  *slog.Logger
	Cut  error // the cause of which the server ends requests at its end; nil: it says none
}

// Default is the contract's times.
func Default() Config {
	return Config{Deadline: 5 * time.Second, Dial: 2 * time.Second, Silence: time.Minute, Idle: time.Minute, Rate: 1 << 10, Grace: 5 * time.Second}
}

// Proxy serves routes. Its Run does the health checks; requests are served without it.
type Proxy struct {
	config    Config
	port      Port
	routes    []route           // the one that fits first wins
	upperCase bool              // a prefix has an upper-case letter
	lines     map[string]*lines // to endpoints of http, by host and port
	kept      atomic.Int64      // of all lines and trunks, those without a request
	transport *http.Transport   // of HTTP/1.1
	greeters  [HTTP2 + 1]*greeter
	checker   *http.Transport
	tunnels   *Tunnels
	inflaters *Inflaters
	running   sync.WaitGroup

	mu      sync.Mutex // of what is below
	second  map[goal]*trunks
	retired bool
}

// Why there is no proxy.
var (
	ErrUpstream = errors.New("proxy: an upstream wants a name, and at least one url of http or https without query")
	ErrRoute    = errors.New("proxy: a route wants a prefix that begins with a slash and has no . or .. in it, and an upstream that is there")
	ErrParts    = errors.New("proxy: wants at most 3 parts, each of a name of a-z 0-9 _ of its own, a path, and JSON for when it is missing")
)

// New serves nothing until it is asked to.
func New(c Config, port Port) (*Proxy, error) {
	d := Default()
	for _, t := range []struct {
		to   *time.Duration
		from time.Duration
	}{{&c.Deadline, d.Deadline}, {&c.Dial, d.Dial}, {&c.Silence, d.Silence}, {&c.Idle, d.Idle}, {&c.Grace, d.Grace}} {
		if *t.to == 0 {
			*t.to = t.from
		}
	}
	if c.Rate == 0 {
		c.Rate = d.Rate
	}
	for i := range c.Upstreams {
		if err := c.Upstreams[i].check(); err != nil {
			return nil, fmt.Errorf("%w: %d, %q", err, i, c.Upstreams[i].Name)
		}
	}
	if len(c.Upstreams) > MaxUpstreams {
		return nil, ErrUpstream
	}
	if c.Tunnels == nil {
		c.Tunnels = NewTunnels()
	}
	alone := c.Endpoints == nil
	if alone {
		c.Endpoints = new(Endpoints)
	}
	if c.Inflaters == nil {
		c.Inflaters = NewInflaters()
	}
	p := &Proxy{config: c, port: port, tunnels: c.Tunnels, inflaters: c.Inflaters}
	if err := p.lay(); err != nil {
		return nil, err
	}
	if alone {
		p.PublishEndpoints()
	}
	dial := (&net.Dialer{Timeout: c.Dial, KeepAlive: 30 * time.Second}).DialContext
	p.transport = &http.Transport{DialContext: dial, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.Dial,
		DisableCompression: true, MaxIdleConns: Kept, MaxIdleConnsPerHost: keptEach, IdleConnTimeout: keptFor,
		ExpectContinueTimeout: expecting(&c), MaxResponseHeaderBytes: headerMost, ReadBufferSize: 8 << 10}
	p.checker = &http.Transport{DialContext: dial, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.Dial,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: headerMost}
	p.greeters[Auto], p.greeters[HTTP2] = newGreeter(&c, dial, true), newGreeter(&c, dial, false)
	p.second, p.lines = make(map[goal]*trunks), make(map[string]*lines)
	for i := range c.Upstreams {
		for _, to := range c.Upstreams[i].URLs {
			if to != nil && p.lines[to.Host] == nil { // nil is one that is no more
				p.lines[to.Host] = newLines(to, dial, &p.kept)
			}
		}
	}
	return p, nil
}

func (u *Upstream) check() error {
	if u.Name == "" && len(u.URLs) == 0 {
		return nil
	}
	ok, some := u.Name != "" && len(u.URLs) <= MaxEndpoints && u.Protocol <= HTTP2 && (u.Check == "" || u.Check[0] == '/' && u.Every > 0 && u.Wait > 0), false
	for _, at := range u.URLs {
		if at == nil {
			continue
		}
		some = true
		ok = ok && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" && at.RawQuery == "" && at.User == nil &&
			!strings.HasSuffix(at.Path, "/")
	}
	if !ok || !some {
		return ErrUpstream
	}
	return nil
}

// expecting is how long a body waits for an endpoint to say that it wants it.
func expecting(c *Config) time.Duration { return min(time.Second, c.Deadline/2) }

// ServeHTTP is Match and Serve, for where nothing is to be done between them.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, problem := p.Match(r)
	if problem != event.None {
		p.fail(w, r, problem, 0)
		return
	}
	m.Head(w.Header(), r)
	p.Serve(w, r, m, new(Course))
}

// fail answers with a problem, and says when to come back.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, problem event.Problem, wait time.Duration) {
	if s := problem.Status(); s == http.StatusServiceUnavailable || s == http.StatusTooManyRequests {
		w.Header()["Retry-After"] = []string{fmt.Sprint(max(1, int((wait+time.Second-1)/time.Second)))}
	}
	p.config.Fail(w, r, problem)
}

// Retire lets go of connections that nothing uses: another Proxy serves what comes from now
// on, this one what it has, and its tunnels.
func (p *Proxy) Retire() {
	p.transport.CloseIdleConnections()
	p.checker.CloseIdleConnections()
	for _, l := range p.lines {
		l.end()
	}
	p.mu.Lock()
	p.retired = true
	all := slices.Collect(maps.Values(p.second))
	p.mu.Unlock()
	for _, s := range all {
		s.end()
	}
}

// idempotent reports that a method may be asked twice.
func idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
