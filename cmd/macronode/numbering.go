package main

import (
	"cmp"
	"fmt"

	"macronode/adapters/config"
	"macronode/adapters/proxy"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
)

// How many numbers there are of each kind. The configuration takes no more of any.
const (
	mostRules     = quota.MaxRules
	mostRoutes    = 256
	mostUpstreams = min(upstream.MaxUpstreams, proxy.MaxUpstreams)
	mostEndpoints = min(upstream.MaxEndpoints, proxy.MaxEndpoints)
)

// numbering is what the node calls the parts of a configuration: rules, routes, upstreams
// and their endpoints are numbers there, which keep their meaning over changes.
type numbering struct {
	rules, routes, upstreams slots
	endpoints                map[string]slots // of each upstream

	rule, route, upstream []int   // by its place in the configuration
	endpoint              [][]int // by the upstream's place, and its own
}

// renumber numbers c, as it was numbered before where it says the same.
func (was numbering) renumber(c *config.Config) (is numbering, err error) {
	if is.rules, is.rule, err = was.rules.assign(each(c.Quotas, quotaIdentity), mostRules); err != nil {
		return was, fmt.Errorf("quotas: %w", err)
	}
	if is.routes, is.route, err = was.routes.assign(each(c.Routes, routeIdentity), mostRoutes); err != nil {
		return was, fmt.Errorf("routes: %w", err)
	}
	if is.upstreams, is.upstream, err = was.upstreams.assign(each(c.Upstreams, upstreamIdentity), mostUpstreams); err != nil {
		return was, fmt.Errorf("upstreams: %w", err)
	}
	is.endpoints, is.endpoint = make(map[string]slots), make([][]int, len(c.Upstreams))
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		s, numbers, err := was.endpoints[u.Name].assign(each(u.URLs, func(at *string) string { return *at }), mostEndpoints)
		if err != nil {
			return was, fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		is.endpoints[u.Name], is.endpoint[i] = s, numbers
	}
	return is, nil
}

// each names the entries of a list. Those that would have one name are told apart by how
// many came before.
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

// A quota is the same while it has its name, and counts the same of the same: what was used
// of it stays used. A route is the same while it has its name or, without one, while the same
// requests take it.
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
