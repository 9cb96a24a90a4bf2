package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

// What stands behind the gateway: other services.

// upstreams are what is believed of each upstream, by its number. One that the edition before
// has and this one has not is there until the next change: requests are on their way to it.
func upstreams(c *config.Config, is numbering, before *edition) []event.Upstream {
	all := make([]event.Upstream, len(is.upstreams.names))
	was := before.numbers.upstreams.names
	for i := range all {
		if is.upstreams.names[i] == "" && i < len(was) && was[i] != "" {
			all[i] = before.gate.Upstreams[i]
			all[i].ResetEndpoints = 0
		}
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		s := is.endpoints[u.Name]
		r := event.Upstream(upstream.Default(0))
		r.Endpoints, r.ResetEndpoints = s.given(), s.fresh(before.numbers.endpoints[u.Name])
		r.MaxAttempts = uint8(u.Tries)
		if r.UnhealthyAfter, r.HealthyAfter = 0, 0; u.Health.Path != "" {
			r.UnhealthyAfter, r.HealthyAfter = uint8(u.Health.Fall), uint8(u.Health.Rise)
		}
		all[is.upstream[i]] = r
	}
	return all
}

// awaited are the upstreams without which nothing is served, as bits: at a start they are
// numbered by their places.
func awaited(c *config.Config) (bits uint64) {
	for i := range c.Routes {
		if !c.Routes[i].Required {
			continue
		}
		for _, name := range c.Routes[i].Needs() {
			at, _ := c.Upstream(name) // the configuration was checked: it is there
			bits |= 1 << at
		}
	}
	return bits
}

// upstreamNames are the names of some upstreams, by their bits.
func (l *life) upstreamNames(set uint64) (names []string) {
	for i, name := range l.edition.Load().numbers.upstreams.names {
		if set>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// calls is how many requests may be with upstreams: as many as have a permit for it, each
// with its reads, and those that last.
func calls(c *config.Config) int { return 3*c.Permits.Beyond + c.Permits.Streams }

// routeLimits is how many requests of each route may be in, by the numbers that the public
// API gives them.
func routeLimits(c *config.Config, is numbering) []int {
	all := make([]int, httpapi.Endpoints()+len(is.routes.names))
	for i := range c.Routes {
		all[httpapi.Endpoints()+is.route[i]] = c.Routes[i].MaxInflight
	}
	return all
}

// ownPaths refuses routes that nothing would ever take: what is under /v1/ is the node's.
func ownPaths(c *config.Config) error {
	for i := range c.Routes {
		if p := c.Routes[i].Path; p == "/openapi.json" || p == "/v1" || strings.HasPrefix(p, "/v1/") {
			return fmt.Errorf("routes[%d].path %s is reserved for the node's own API", i, p)
		}
	}
	return nil
}

// asks is the node as the proxy sees it.
type asks struct {
	*loop.Asks
	say  func(context.Context, event.Event)
	seen func(event.HealthChecked, proxy.Checkup) // behind the word of it
}

func (a asks) Probed(saw event.HealthChecked, met proxy.Checkup) {
	a.say(context.Background(), saw)
	a.seen(saw, met)
}

// beyond is the proxy as the public API sees it.
type beyond struct {
	*proxy.Proxy
	routes []routeSettings
}

// protocols are what endpoints are asked by, as the configuration calls it.
var protocols = map[string]proxy.Protocol{"auto": proxy.Auto, "http1": proxy.HTTP1, "http2": proxy.HTTP2}

// proxyOf is what a proxy is told that is of no route.
func proxyOf(c *config.Config) proxy.Config {
	of := proxy.Default()
	of.Trusted, of.Idle = c.HTTP.TrustedProxies, c.HTTP.TunnelIdle
	return of
}

// newBeyond is nil where nothing is sent on.
func (l *life) newBeyond(is *reloadSettings) (*beyond, error) {
	if len(is.routes) == 0 {
		return nil, nil
	}
	of := is.proxy
	of.Fail, of.Log, of.Tunnels, of.Endpoints, of.Inflaters = httpapi.Fail, l.log, l.tunnels, &l.endpoints, l.inflaters
	of.Cut = httpserver.ErrCut
	p, err := proxy.New(of, asks{l.desk.Asks, l.ear.say, l.watchChecks})
	return &beyond{p, is.routes}, err
}

// routeName is what a route is called, from 0: its name, where it has one, beside its place.
func routeName(c *config.Config, i int) string {
	place := fmt.Sprintf("routes[%d]", i)
	if name := c.Routes[i].Name; name != "" {
		return name + ", " + place
	}
	return place
}

// routeOf is a route as the proxy knows it.
func routeOf(c *config.Config, n numbering, r *config.Route) proxy.Route {
	at := func(name string) int {
		i, _ := c.Upstream(name) // the configuration was checked: it is there
		return n.upstream[i]
	}
	to := proxy.Route{Host: r.Host, Prefix: r.Path, Methods: r.Methods, Header: r.Header.Name, Value: r.Header.Value,
		Rewrite: r.Rewrite != "", Put: r.Rewrite, Deadline: r.Deadline, Inflate: r.Inflate, CORS: proxy.CORS(r.CORS),
		StrictPath: r.PathNormalization == config.StrictPaths, Keyed: r.WantsKey()}
	if r.Upstream != "" {
		to.Upstream = at(r.Upstream)
	}
	for i := range r.Hydrate {
		h := &r.Hydrate[i]
		to.Parts = append(to.Parts, proxy.Part{Name: h.Name, Upstream: at(h.Upstream), Path: h.Path, Missing: h.Missing, Required: h.Required})
	}
	return to
}

// Match finds the way of a request.
func (b *beyond) Match(r *http.Request) (httpapi.Way, event.Problem) {
	m, why := b.Proxy.Match(r)
	if why != event.None {
		return httpapi.Way{Detail: m.Detail}, why
	}
	of := &b.routes[m.Route]
	return httpapi.Way{Name: of.name, Number: uint16(of.number), Key: of.key, Deadline: of.deadline, Preflight: m.Preflight,
		Head: func(h http.Header) { m.Head(h, r) },
		Serve: func(w http.ResponseWriter, r *http.Request, of types.Flow, to *httpapi.Course) {
			c := &proxy.Course{Flow: of}
			*to = c
			b.Serve(w, r, m, c)
		}}, event.None
}

// endBeyond waits for tunnels that are open, no longer than what is in may take, and cuts
// what is left. It is over a little before the listener has had its time, so that a tunnel
// is told of once, and as what it is.
func (l *life) endBeyond(hard context.Context) {
	ctx, stop := context.WithTimeout(hard, l.publicServer().Finish)
	defer stop()
	if cut := l.tunnels.Drain(ctx); cut > 0 {
		l.log.Warn("tunnels closed by shutdown", "tunnels", cut)
	}
	if e := l.edition.Load(); e.beyond != nil {
		e.beyond.Retire()
	}
}
