package settings

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

// Reload are the settings that a reload replaces, in the core and in the adapters. They
// depend on a configuration, its numbers, and the settings before it.
type Reload struct {
	Numbers Numbers

	Policy event.Policy           // policy of the core
	Face   httpapi.ConfigSnapshot // of the public API, without what it sends requests on to

	Proxy  proxy.Config // used where there are routes; without the ports of a running node
	Routes []Route

	Arrears Arrears
	Sinks   []Sink
	Counted countedNames
	Memory  Memory
	Level   slog.Level
	Access  bool // each request has a line in the log
	Admin   Admin
	ofPeer  peerLimit
}

// PeerShare returns how many of the conns connections of a listener the peer at an address may have; 0 if it has no
// share, because it is a trusted proxy.
func (s *Reload) PeerShare(conns int, from netip.Addr) int {
	if slices.ContainsFunc(s.Face.Trusted, func(n netip.Prefix) bool { return n.Contains(from) }) {
		return 0
	}
	return s.ofPeer.of(conns)
}

// Admin are what the admin API checks of its callers.
type Admin struct {
	Hosts       []string // host names that a request may name, beside addresses
	OpenMetrics bool     // /metrics needs no credential
	tokenFile   string   // file of the stable token; empty: there is none
}

// Route are those of a route that the public API needs before it sends a request on.
type Route struct {
	Name     string // as decisions show it
	Label    string // in usage
	Number   int
	Key      bool // a caller must show an API key
	Deadline time.Duration
}

// countedNames are the names that have metrics of their own.
type countedNames struct{ Quotas, Upstreams []string }

// Next returns the settings of a configuration that follows s. It fails if a file that the
// configuration names cannot be used.
func (s *Reload) Next(c *config.Config) (next Reload, err error) {
	numbers, err := s.Numbers.renumber(c)
	if err != nil {
		return next, err
	}
	if next, err = newReload(c, numbers, s); err == nil {
		_, err = next.Admin.ReadToken()
	}
	return next, err
}

// newReload translates a configuration with the numbers n, which follow the settings before them.
func newReload(c *config.Config, n Numbers, before *Reload) (s Reload, err error) {
	s.Numbers = n
	if s.Proxy, err = proxySettings(c, n); err != nil {
		return s, err
	}
	s.Policy = policyOf(c, n, before)
	s.Face = httpapi.ConfigSnapshot{Version: Version(c), Quotas: policies(c, n), Trusted: c.HTTP.TrustedProxies}
	s.Face.Prepaid, s.Arrears = prepaidTerms(c)
	for i := range c.Routes {
		r := &c.Routes[i]
		s.Routes = append(s.Routes, Route{Name: routeName(c, i), Label: routeLabel(r), Number: n.route[i], Key: r.WantsKey(), Deadline: r.Deadline})
	}
	s.Sinks = sinks(c)
	s.Counted = namesToCount(c, s.Face.Quotas)
	s.Memory, s.Level, s.Access = MemoryBound(c), LogLevel(c.Log), c.Log.Access
	s.Admin = NewAdmin(c)
	s.ofPeer = peerLimit(c.Listen.MaxPeerConns)
	return s, nil
}

// NewAdmin translates the section admin.
func NewAdmin(c *config.Config) Admin {
	return Admin{Hosts: c.Admin.Hosts, OpenMetrics: c.Admin.Metrics == "open", tokenFile: c.Admin.TokenFile}
}

// proxySettings returns what the proxy needs: upstreams by their numbers, and routes in their order.
func proxySettings(c *config.Config, n Numbers) (proxy.Config, error) {
	s := proxyOf(c)
	s.Upstreams = make([]proxy.Upstream, len(n.Upstreams.Names))
	for i := range c.Upstreams {
		u, err := proxyUpstream(&c.Upstreams[i], n.endpoint[i], len(n.Endpoints[c.Upstreams[i].Name].Names))
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
		HealthPath: u.Health.Path, CheckInterval: u.Health.Interval, CheckTimeout: u.Health.Timeout}
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
			names.Quotas = append(names.Quotas, q.Name)
		}
	}
	for i := range c.Upstreams {
		names.Upstreams = append(names.Upstreams, c.Upstreams[i].Name)
	}
	return names
}
