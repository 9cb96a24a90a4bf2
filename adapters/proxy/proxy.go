// Package proxy forwards requests to the endpoints of upstreams, and streams the responses back.
//
//	Match ──► Serve ──► Pick ──► attempt ──► header ──► body, streamed ──► complete
//	                      ▲         │                     └──broken──► the client's connection is aborted
//	                      └─Retry───┴──► 502, 503, 504
//
// The implementation of Port decides about endpoints and retries.
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
	"time"

	"macronode/core/event"
)

// A Port decides where requests are sent. Its methods do not block for longer than a decision
// takes.
type Port interface {
	// Pick selects the endpoint of the first attempt, Retry that of the next.
	Pick(event.Pick) event.Picked
	Retry(event.Retry) event.Picked
	// ReportFailure reports a failed attempt and returns whether to retry.
	ReportFailure(event.AttemptResult) event.RetryDecision
	// Report reports every other result, without waiting. Each Picked with an endpoint is
	// reported until it ends: by ReportFailure, or as answered and then as completed, truncated
	// or abandoned.
	Report(event.AttemptResult)
	// HealthChecked reports the result of a health check.
	HealthChecked(event.HealthChecked, CheckResult)
}

// An Upstream is a set of equivalent endpoints. Its number is its index, and the number of an
// endpoint is its index in URLs. To keep numbers stable over reloads, an upstream without a name
// and a nil endpoint are unused places.
type Upstream struct {
	Name string
	URLs []*url.URL // http or https; the path, without a trailing slash, is prepended to that of each request
	Host string     // value of Host for the endpoints; empty: that of the client's request
	// Protocol is spoken to all endpoints.
	Protocol Protocol
	// HealthPath is the path of health checks; empty: there are none. A check runs each
	// CheckInterval. It passes if the endpoint answers 2xx or 3xx within CheckTimeout.
	HealthPath                  string
	CheckInterval, CheckTimeout time.Duration
}

// A Route selects requests for an upstream. Of several that match, the order of precedence is:
// one that names the host, the longer prefix, one with conditions on header or methods, the
// first.
type Route struct {
	Host              string   // in lower case; *.example.com matches all subdomains; empty: any
	Prefix            string   // of the decoded path, in whole segments; begins with a slash
	Methods           []string // empty: any
	Header            string   // that must be present; empty: none
	Value             string   // of Header; empty: any
	Upstream          int
	Rewrite           bool          // NewPrefix replaces Prefix
	NewPrefix         string        // begins with a slash
	Deadline          time.Duration // from the start of the request to the header of the response; 0: Config.DefaultDeadline
	Parts             []Part        // read concurrently and composed; none: the request is forwarded to Upstream
	DecompressRequest bool          // gzip and zstd bodies are decompressed; other codings are rejected
	CORS              CORS
	// StrictPath rejects a path that an upstream may read as another one. On a route without
	// NeedsKey, this includes a path that could be read as one of a route with NeedsKey.
	StrictPath bool
	NeedsKey   bool // the server requires an API key for this route
}

// Config configures a Proxy. Zero durations have the values of Default.
type Config struct {
	Upstreams         []Upstream
	Routes            []Route
	TrustedProxies    []netip.Prefix // proxies whose forwarding fields are trusted
	DefaultDeadline   time.Duration  // of a route without a deadline
	DialTimeout       time.Duration  // for a connection to an endpoint
	StallTimeout      time.Duration  // without data of the upstream within a response
	TunnelIdleTimeout time.Duration  // without data in either direction of a tunnel
	MinBytesPerSecond int64          // the lowest rate at which a client reads or sends
	Grace             time.Duration  // how long a client may be behind that rate
	TLS               *tls.Config    // for https endpoints; nil: the system's roots
	Tunnels           *Tunnels       // registry of open tunnels; nil: a registry of its own
	Endpoints         *Endpoints     // shared table of endpoints, see PublishEndpoints; nil: a table of its own
	Inflaters         *Inflaters     // limit of zstd bodies; nil: a limit of its own
	GiveWayAfter      time.Duration  // wait for a decompressor, and age at which a zstd body gives its own to another caller; 0: never
	Conns             *Conns         // limit of connections to all endpoints; nil: there is none
	// Fail writes a problem. Retry-After is set before, if it is known.
	Fail          func(http.ResponseWriter, *http.Request, event.Problem)
	Log           *slog.Logger
	ShutdownCause error // the cause with which the server cancels requests at shutdown; nil: there is none
}

// Default returns the default limits.
func Default() Config {
	return Config{DefaultDeadline: 5 * time.Second, DialTimeout: 2 * time.Second, StallTimeout: time.Minute, TunnelIdleTimeout: time.Minute, MinBytesPerSecond: 1 << 10, Grace: 5 * time.Second}
}

// Proxy serves routes. Run does the health checks; requests are served without it.
type Proxy struct {
	config    Config
	port      Port
	routes    []route            // in order of precedence
	upperCase bool               // a prefix has an upper-case letter
	h1Pools   map[string]*h1pool // for endpoints with http, by host and port
	idleConns idleConns          // in all pools
	transport *http.Transport    // for HTTP/1.1
	dialers   [HTTP2 + 1]*dialer
	checker   *http.Transport
	tunnels   *Tunnels
	inflaters *Inflaters
	running   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	h2Pools map[poolKey]*h2pool
	retired bool
}

// Errors of New.
var (
	ErrUpstream = errors.New("proxy: an upstream needs a name, and at least one http or https URL without a query")
	ErrRoute    = errors.New("proxy: a route needs an existing upstream, and a prefix that begins with a slash and has no dot segment")
	ErrParts    = errors.New("proxy: at most 3 parts, each with a unique name of a-z 0-9 _, a path, and a fallback in JSON")
)

// New returns a Proxy. It opens no connection.
func New(c Config, port Port) (*Proxy, error) {
	d := Default()
	for _, t := range []struct {
		to   *time.Duration
		from time.Duration
	}{{&c.DefaultDeadline, d.DefaultDeadline}, {&c.DialTimeout, d.DialTimeout}, {&c.StallTimeout, d.StallTimeout}, {&c.TunnelIdleTimeout, d.TunnelIdleTimeout}, {&c.Grace, d.Grace}} {
		if *t.to == 0 {
			*t.to = t.from
		}
	}
	if c.MinBytesPerSecond == 0 {
		c.MinBytesPerSecond = d.MinBytesPerSecond
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
	if err := p.prepareRoutes(); err != nil {
		return nil, err
	}
	if alone {
		p.PublishEndpoints()
	}
	dial := c.Conns.limited((&net.Dialer{Timeout: c.DialTimeout, KeepAlive: 30 * time.Second}).DialContext)
	p.idleConns.most = c.Conns.maxIdle()
	plain := withResetConn(dial)
	p.transport = &http.Transport{DialContext: withHeaderConn(plain), DialTLSContext: withHeaderConn(withTLS(&c, plain)),
		DisableCompression: true, MaxIdleConns: int(p.idleConns.most), MaxIdleConnsPerHost: maxIdlePerEndpoint, IdleConnTimeout: idleConnTimeout,
		ExpectContinueTimeout: continueTimeout(&c), MaxResponseHeaderBytes: maxHeaderBytes, ReadBufferSize: 8 << 10}
	p.checker = &http.Transport{DialContext: dial, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.DialTimeout,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes}
	p.dialers[Auto], p.dialers[HTTP2] = newDialer(&c, dial, true), newDialer(&c, dial, false)
	p.h2Pools, p.h1Pools = make(map[poolKey]*h2pool), make(map[string]*h1pool)
	for i := range c.Upstreams {
		for _, to := range c.Upstreams[i].URLs {
			if to != nil && p.h1Pools[to.Host] == nil { // nil is an unused place
				p.h1Pools[to.Host] = newH1Pool(to, dial, &p.idleConns)
			}
		}
	}
	return p, nil
}

func (u *Upstream) check() error {
	if u.Name == "" && len(u.URLs) == 0 {
		return nil
	}
	ok, some := u.Name != "" && len(u.URLs) <= MaxEndpoints && u.Protocol <= HTTP2 && (u.HealthPath == "" || u.HealthPath[0] == '/' && u.CheckInterval > 0 && u.CheckTimeout > 0), false
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

// continueTimeout is how long a body waits for 100 Continue.
func continueTimeout(c *Config) time.Duration { return min(time.Second, c.DefaultDeadline/2) }

// ServeHTTP calls Match and Serve.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, problem := p.Match(r)
	m.SetHeader(w.Header(), r)
	if problem != event.None {
		p.fail(w, r, problem, 0)
		return
	}
	p.Serve(w, r, m, new(Trace))
}

// fail writes a problem, with Retry-After if the status calls for it.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, problem event.Problem, wait time.Duration) {
	if s := problem.Status(); s == http.StatusServiceUnavailable || s == http.StatusTooManyRequests {
		w.Header()["Retry-After"] = []string{fmt.Sprint(max(1, int((wait+time.Second-1)/time.Second)))}
	}
	p.config.Fail(w, r, problem)
}

// Retire closes idle connections. The successor serves new requests; this Proxy completes its
// requests and tunnels.
func (p *Proxy) Retire() {
	p.transport.CloseIdleConnections()
	p.checker.CloseIdleConnections()
	for _, l := range p.h1Pools {
		l.retire()
	}
	p.mu.Lock()
	p.retired = true
	all := slices.Collect(maps.Values(p.h2Pools))
	p.mu.Unlock()
	for _, s := range all {
		s.retire()
	}
}

// isIdempotent reports whether a method may be repeated.
func isIdempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
