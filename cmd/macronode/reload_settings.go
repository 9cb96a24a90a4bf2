package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// reloadSettings are the settings that a reload replaces, in the core and in the adapters. They
// depend on a configuration, its numbers, and the edition before it.
type reloadSettings struct {
	gate event.Policy // policy of the core
	face httpapi.Face // of the public API, without what it sends requests on to

	proxy  proxy.Config // used where there are routes; without the ports of a running node
	routes []routeSettings

	counted countedNames
	memory  memory
	level   slog.Level
	access  bool // each request has a line in the log
	admin   adminSettings
	peers   peerSettings
}

// peerSettings are how many connections one peer may have of each listener.
type peerSettings struct{ public, admin int }

// peerShare returns how many connections of the public or the admin listener the peer at an
// address may have; 0 if it has no share, because it is a trusted proxy.
func (s *reloadSettings) peerShare(of func(peerSettings) int, from netip.Addr) int {
	if slices.ContainsFunc(s.face.Trusted, func(n netip.Prefix) bool { return n.Contains(from) }) {
		return 0
	}
	return of(s.peers)
}

func ofPublic(p peerSettings) int { return p.public }
func ofAdmin(p peerSettings) int  { return p.admin }

// adminSettings are what the admin API checks of its callers.
type adminSettings struct {
	hosts       []string // host names that a request may name, beside addresses
	openMetrics bool     // /metrics needs no credential
	tokenFile   string   // file of the stable token; empty: there is none
}

// routeSettings are those of a route that the public API needs before it sends a request on.
type routeSettings struct {
	name     string // as decisions show it
	number   int
	key      bool // a caller must show an API key
	deadline time.Duration
}

// countedNames are the names that have metrics of their own.
type countedNames struct{ quotas, upstreams []string }

// newReloadSettings translates a configuration with the numbers n, which follows an edition.
func newReloadSettings(c *config.Config, n numbering, before *edition) (s reloadSettings, err error) {
	if s.proxy, err = proxySettings(c, n); err != nil {
		return s, err
	}
	s.gate = gateOf(c, n, before)
	s.face = httpapi.Face{Version: versionOf(c), Quotas: policies(c, n), Trusted: c.HTTP.TrustedProxies}
	for i := range c.Routes {
		r := &c.Routes[i]
		s.routes = append(s.routes, routeSettings{name: routeName(c, i), number: n.route[i], key: r.WantsKey(), deadline: r.Deadline})
	}
	s.counted = namesToCount(c, s.face.Quotas)
	s.memory, s.level, s.access = memoryBound(c), levelOf(c.Log), c.Log.Access
	s.admin = newAdminSettings(c)
	s.peers = peerSettings{public: peerConns(c, c.Listen.MaxConns), admin: peerConns(c, adminConns(c))}
	return s, nil
}

// newAdminSettings translates the section admin.
func newAdminSettings(c *config.Config) adminSettings {
	return adminSettings{hosts: c.Admin.Hosts, openMetrics: c.Admin.Metrics == "open", tokenFile: c.Admin.TokenFile}
}

// proxySettings returns what the proxy needs: upstreams by their numbers, and routes in their order.
func proxySettings(c *config.Config, n numbering) (proxy.Config, error) {
	s := proxyOf(c)
	s.Upstreams = make([]proxy.Upstream, len(n.upstreams.names))
	for i := range c.Upstreams {
		u, err := proxyUpstream(&c.Upstreams[i], n.endpoint[i], len(n.endpoints[c.Upstreams[i].Name].names))
		if err != nil {
			return s, err
		}
		s.Upstreams[n.upstream[i]] = u
	}
	for i := range c.Routes {
		s.Routes = append(s.Routes, routeOf(c, n, &c.Routes[i]))
	}
	return s, nil
}

// proxyUpstream returns the upstream whose endpoints have these numbers, all below size.
func proxyUpstream(u *config.Upstream, numbers []int, size int) (proxy.Upstream, error) {
	s := proxy.Upstream{Name: u.Name, Host: u.Host, Protocol: protocols[u.Protocol], URLs: make([]*url.URL, size),
		Check: u.Health.Path, Every: u.Health.Interval, Wait: u.Health.Timeout}
	for i, text := range u.URLs {
		at, err := url.Parse(text)
		if err != nil {
			return s, fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		s.URLs[numbers[i]] = at
	}
	return s, nil
}

// namesToCount returns the upstreams and the quotas of a configuration, by their names.
func namesToCount(c *config.Config, quotas []httpapi.Policy) (names countedNames) {
	for _, q := range quotas {
		if q.Name != "" {
			names.quotas = append(names.quotas, q.Name)
		}
	}
	for i := range c.Upstreams {
		names.upstreams = append(names.upstreams, c.Upstreams[i].Name)
	}
	return names
}
