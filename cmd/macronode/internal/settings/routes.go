package settings

import (
	"cmp"
	"fmt"
	"strings"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/proxy"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
)

// upstreams returns the settings of each upstream by number. An upstream that was removed stays until the next
// reload, because it still has requests in progress.
func upstreams(c *config.Config, is Numbers, before *Reload) []event.Upstream {
	all := make([]event.Upstream, len(is.Upstreams.Names))
	was := before.Numbers.Upstreams.Names
	for i := range all {
		if is.Upstreams.Names[i] == "" && i < len(was) && was[i] != "" {
			all[i] = before.Policy.Upstreams[i]
			all[i].ResetEndpoints = 0
		}
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		s := is.Endpoints[u.Name]
		r := event.Upstream(upstream.Default(0))
		r.Endpoints, r.ResetEndpoints = s.assigned(), s.changedBits(before.Numbers.Endpoints[u.Name])
		r.MaxAttempts = uint8(u.Tries)
		if r.UnhealthyAfter, r.HealthyAfter = 0, 0; u.Health.Path != "" {
			r.UnhealthyAfter, r.HealthyAfter = uint8(u.Health.Fall), uint8(u.Health.Rise)
		}
		all[is.upstream[i]] = r
	}
	return all
}

// requiredUpstreams returns the upstreams that readiness needs, as bits. At a start their numbers are their
// positions.
func requiredUpstreams(c *config.Config) (bits uint64) {
	for i := range c.Routes {
		if !c.Routes[i].Required {
			continue
		}
		for _, name := range c.Routes[i].Needs() {
			at, _ := c.Upstream(name) // the configuration is valid, so it exists
			bits |= 1 << at
		}
	}
	return bits
}

// upstreamCalls returns how many requests may be with upstreams: for each permit the parts of its request, and the
// streams.
func upstreamCalls(c *config.Config) int { return 3*c.Permits.Proxy + c.Permits.Streams }

// routeLimits returns the limits of the requests of each route, by the route numbers of the public API.
func routeLimits(c *config.Config, is Numbers) []event.RouteLimits {
	all := make([]event.RouteLimits, httpapi.Endpoints()+len(is.Routes.Names))
	for i := range c.Routes {
		all[httpapi.Endpoints()+is.route[i]] = event.RouteLimits{Requests: c.Routes[i].MaxInflight, PerFlow: c.Routes[i].FlowInflight}
	}
	return all
}

// CheckPaths rejects routes that no request can match, because their paths belong to the node.
func CheckPaths(c *config.Config) error {
	for i := range c.Routes {
		if p := c.Routes[i].Path; p == "/v1" || httpapi.OwnsPath(p) {
			return fmt.Errorf("routes[%d].path %s is reserved for the node's own API", i, p)
		}
	}
	return nil
}

// protocols are the protocols of endpoints, by their names in the configuration.
var protocols = map[string]proxy.Protocol{"auto": proxy.Auto, "http1": proxy.HTTP1, "http2": proxy.HTTP2}

// proxyOf returns the settings of the proxy that do not belong to a route.
func proxyOf(c *config.Config) proxy.Config {
	of := proxy.Default()
	of.TrustedProxies, of.TunnelIdleTimeout = c.HTTP.TrustedProxies, c.HTTP.TunnelIdle
	of.GiveWayAfter = c.Permits.GiveWay
	return of
}

// routeName returns the name of the route at a position, from 0, or the position.
func routeName(c *config.Config, i int) string {
	place := fmt.Sprintf("routes[%d]", i)
	if name := c.Routes[i].Name; name != "" {
		return name + ", " + place
	}
	return place
}

// routeLabel returns the name of a route in usage: its name, that of its upstream, or proxy.
func routeLabel(r *config.Route) string {
	return strings.ToLower(cmp.Or(r.Name, r.Upstream, "proxy"))
}

// routeOf returns a route as the proxy needs it.
func routeOf(c *config.Config, n Numbers, r *config.Route) proxy.Route {
	at := func(name string) int {
		i, _ := c.Upstream(name) // the configuration is valid, so it exists
		return n.upstream[i]
	}
	to := proxy.Route{Host: r.Host, Prefix: r.Path, Methods: r.Methods, Header: r.Header.Name, Value: r.Header.Value,
		Rewrite: r.Rewrite != "", NewPrefix: r.Rewrite, Deadline: r.Deadline, DecompressRequest: r.Inflate, CORS: proxy.CORS(r.CORS),
		StrictPath: r.PathNormalization == config.StrictPaths, NeedsKey: r.WantsKey()}
	if r.Upstream != "" {
		to.Upstream = at(r.Upstream)
	}
	for i := range r.Hydrate {
		h := &r.Hydrate[i]
		to.Parts = append(to.Parts, proxy.Part{Name: h.Name, Upstream: at(h.Upstream), Path: h.Path, Fallback: h.Missing, Required: h.Required})
	}
	return to
}
