package settings

import (
	"cmp"
	"fmt"

	"macronode/adapters/config"
	"macronode/adapters/proxy"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
)

// Limits of the numbers of each kind. The configuration allows no more.
const (
	mostRules     = quota.MaxRules
	mostRoutes    = 256
	mostUpstreams = min(upstream.MaxUpstreams, proxy.MaxUpstreams)
	mostEndpoints = min(upstream.MaxEndpoints, proxy.MaxEndpoints)
)

// Numbers are the numbers of the rules, routes, upstreams and endpoints of a configuration in the core. A number
// keeps its meaning over reloads.
type Numbers struct {
	Rules, Routes, Upstreams Slots
	Endpoints                map[string]Slots // of each upstream

	rule, route, upstream []int   // by position in the configuration
	endpoint              [][]int // by the positions of the upstream and of the endpoint
}

// renumber numbers c. Entries with the same identity as before keep their numbers.
func (was Numbers) renumber(c *config.Config) (is Numbers, err error) {
	if is.Rules, is.rule, err = was.Rules.assign(each(c.Quotas, quotaIdentity), mostRules); err != nil {
		return was, fmt.Errorf("quotas: %w", err)
	}
	if is.Routes, is.route, err = was.Routes.assign(each(c.Routes, routeIdentity), mostRoutes); err != nil {
		return was, fmt.Errorf("routes: %w", err)
	}
	if is.Upstreams, is.upstream, err = was.Upstreams.assign(each(c.Upstreams, upstreamIdentity), mostUpstreams); err != nil {
		return was, fmt.Errorf("upstreams: %w", err)
	}
	is.Endpoints, is.endpoint = make(map[string]Slots), make([][]int, len(c.Upstreams))
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		s, numbers, err := was.Endpoints[u.Name].assign(each(u.URLs, func(at *string) string { return *at }), mostEndpoints)
		if err != nil {
			return was, fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		is.Endpoints[u.Name], is.endpoint[i] = s, numbers
	}
	return is, nil
}

// each returns the names of the entries of a list. Entries with the same name are distinguished by the number of
// earlier ones.
func each[T any](all []T, identity func(*T) string) (names []string) {
	seen := make(map[string]int)
	for i := range all {
		name := identity(&all[i])
		seen[name]++
		if n := seen[name]; n > 1 {
			name = fmt.Sprintf("%s\n%d", name, n)
		}
		names = append(names, name)
	}
	return names
}

// A quota keeps its identity with its name and what it counts, so its used amount stays. A route keeps it with its
// name or, without a name, with the requests that it matches.
func quotaIdentity(q *config.Quota) string {
	return fmt.Sprint(cmp.Or(q.Name, "-"), q.Scope, q.Unit(), q.Route)
}
func routeIdentity(r *config.Route) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("%s\n%s\n%q\n%s\n%s", r.Host, r.Path, r.Methods, r.Header.Name, r.Header.Value)
}
func upstreamIdentity(u *config.Upstream) string { return u.Name }
