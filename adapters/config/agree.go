package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"macronode/core/types"
)

// lists checks the entries of lists, alone and together, beyond what their tags state.
func (c *Config) lists() (wrong []error) {
	refuse := func(place, of, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s (%s) %s", place, c.layer(of), fmt.Sprintf(format, args...)))
	}
	for i := range c.Quotas {
		c.quota(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("quotas[%d]%s", i, part), "quotas", format, args...)
		})
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if h := u.Health; h.Timeout > h.Interval {
			refuse("upstreams."+u.Name+".health.timeout", "upstreams", "is %s: must be at most its interval, which is %s",
				duration(h.Timeout), duration(h.Interval))
		}
	}
	for i := range c.Storage.Providers {
		c.provider(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("storage.providers[%d]%s", i, part), "storage.providers", format, args...)
		})
	}
	for i := range c.Usage.Prices {
		c.usagePrice(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("accounting.prices[%d]%s", i, part), "accounting.prices", format, args...)
		})
	}
	for i := range c.Usage.Prepaid {
		c.prepaid(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("accounting.prepaid[%d]%s", i, part), "accounting.prepaid", format, args...)
		})
	}
	for i := range c.Exports.Sinks {
		c.sink(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("exports.sinks[%d]%s", i, part), "exports.sinks", format, args...)
		})
	}
	for i := range c.Routes {
		c.route(i, func(part, format string, args ...any) {
			refuse(fmt.Sprintf("routes[%d]%s", i, part), "routes", format, args...)
		})
	}
	return wrong
}

// A refuser reports what is wrong with a part of an entry.
type refuser func(part, format string, args ...any)

const longestSpan = 366 * 24 * time.Hour // longest time in which a burst refills

func (c *Config) quota(at int, refuse refuser) {
	q := &c.Quotas[at]
	switch {
	case q.Scope == types.ScopeInstance && len(q.Classes) < int(types.NumClasses):
		refuse(".classes", "leaves out some: a quota of the instance is for all classes")
	case (q.Scope == types.ScopeKey || q.Scope == types.ScopeTenant) && slices.Equal(q.Classes, []types.Class{types.ClassAnon}):
		refuse(".classes", "has anon alone, which has neither key nor tenant: such a quota needs internal or authed")
	}
	c.counts(q, refuse)
	units, every := q.Rate()
	switch {
	case q.Burst.Sized && q.Unit() == types.UnitRequests:
		refuse(".burst", "is %s: must be a whole number, because the quota counts requests", q.Burst)
	case !q.Burst.Sized && q.Unit() == types.UnitBytes:
		refuse(".burst", "is %s: must be a size such as 512KiB, 256MiB or 1GiB, because the quota counts bytes", q.Burst)
	case units == 0:
	case (q.Burst.Units*uint64(every/time.Second)+units-1)/units > uint64(longestSpan/time.Second):
		refuse(".burst", "is %s, which takes more than 366 days to refill: set a lower burst or a higher rate", q.Burst)
	}
	if q.Name != "" && slices.ContainsFunc(c.Quotas[:at], func(other Quota) bool { return other.Name == q.Name }) {
		refuse(".name", "is %q, as that of another quota: each needs a name of its own", q.Name)
	}
}

// counts checks that the route of a quota exists, and sets the classes of the quota.
func (c *Config) counts(q *Quota, refuse refuser) {
	at, ok := c.Route(q.Route)
	switch {
	case q.Scope != types.ScopeRoute && q.Route == "":
	case q.Scope != types.ScopeRoute:
		refuse(".route", "is %q: a quota of scope %v is for all routes", q.Route, q.Scope)
	case q.Route == "":
		refuse("", "has no route: scope route needs the name of one")
	case !ok:
		var names []string
		for i := range c.Routes {
			if name := c.Routes[i].Name; name != "" {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			refuse(".route", "is %q: no route has a name", q.Route)
			return
		}
		refuse(".route", "is %q, which is no route: the nearest is %s, there are %s", q.Route, nearest(q.Route, names), strings.Join(names, ", "))
	case c.Routes[at].Auth == "key" && slices.Equal(q.Classes, []types.Class{types.ClassAnon}):
		refuse(".classes", "has only anon, which routes[%d] does not accept: must be internal or authed", at)
	}
}

func (c *Config) route(at int, refuse refuser) {
	r := &c.Routes[at]
	if other, named := c.Route(r.Name); named && other < at {
		refuse(".name", "is %q, as that of routes[%d]: each needs a name of its own", r.Name, other)
	}
	if r.Upstream != "" {
		c.serves(r.Upstream, ".upstream", refuse)
	}
	c.hydrates(r, refuse)
	r.allows(refuse)
	c.requires(r, refuse)
	if r.FlowInflight > r.MaxInflight {
		refuse(".max_inflight_per_flow", "is %d: must be at most max_inflight of the route, which is %d", r.FlowInflight, r.MaxInflight)
	}
	if r.Header.Value != "" && r.Header.Name == "" {
		refuse(".header", "has a value but no name: set both, or the name only")
	}
	for other := range at {
		if r.same(&c.Routes[other]) {
			refuse("", "is for requests that routes[%d] is for: one route is allowed", other)
		}
	}
}

// requires checks that the health of a required upstream is known.
func (c *Config) requires(r *Route, refuse refuser) {
	if !r.Required {
		return
	}
	if len(r.Needs()) == 0 {
		refuse(".required_for_readiness", "is true, but no read of the route is required: set required on one read, or set this to false")
	}
	for _, name := range r.Needs() {
		if at, ok := c.Upstream(name); ok && c.Upstreams[at].Health.Path == "" {
			refuse(".required_for_readiness", "is true, but upstreams.%s.health has no path: set a path, so that the health of the upstream is known", name)
		}
	}
}

// allows checks the CORS of a route.
func (r *Route) allows(refuse refuser) {
	o := &r.CORS
	if len(o.Origins) == 0 && (len(o.Methods) > 0 || len(o.Headers) > 0 || len(o.Expose) > 0 || o.Credentials) {
		refuse(".cors", "has no origins: list the origins that may call the route")
	}
	for _, of := range []struct {
		part string
		list []string
	}{{"origins", o.Origins}, {"methods", o.Methods}, {"headers", o.Headers}, {"expose", o.Expose}} {
		if o.Credentials && slices.Contains(of.list, "*") {
			refuse(".cors."+of.part, "has *: with credentials each is named")
		}
	}
	for _, m := range o.Methods {
		if m != "*" && len(r.Methods) > 0 && !slices.Contains(r.Methods, m) {
			refuse(".cors.methods", "has %s, which the route does not take: it takes %s", m, strings.Join(r.Methods, ", "))
		}
	}
	if o.MaxAge%time.Second != 0 {
		refuse(".cors.max_age", "is %s: must be whole seconds", duration(o.MaxAge))
	}
}

// hydrates checks the parts of a route.
func (c *Config) hydrates(r *Route, refuse refuser) {
	for i, part := range r.Hydrate {
		c.serves(part.Upstream, fmt.Sprintf(".hydrate[%d].upstream", i), refuse)
		if slices.ContainsFunc(r.Hydrate[:i], func(other Part) bool { return other.Name == part.Name }) {
			refuse(fmt.Sprintf(".hydrate[%d].name", i), "is %q, as that of another read: each needs a name of its own", part.Name)
		}
	}
	switch {
	case len(r.Hydrate) == 0:
	case r.Inflate:
		refuse(".decompress_request", "is true, but a route with hydrate forwards no body")
	case r.Rewrite != "":
		refuse(".rewrite", "is %q: a route that hydrates sends no path on", r.Rewrite)
	case slices.ContainsFunc(r.Methods, func(m string) bool { return m != "GET" && m != "HEAD" }):
		refuse(".methods", "are %s: a route that hydrates takes GET and HEAD alone", strings.Join(r.Methods, ", "))
	}
}

// serves checks that an upstream exists.
func (c *Config) serves(name, part string, refuse refuser) {
	switch _, ok := c.Upstream(name); {
	case ok:
	case len(c.Upstreams) == 0:
		refuse(part, "is %q: there are no upstreams", name)
	default:
		var names []string
		for i := range c.Upstreams {
			names = append(names, c.Upstreams[i].Name)
		}
		refuse(part, "is %q, which is no upstream: the nearest is %s, there are %s", name, nearest(name, names), strings.Join(names, ", "))
	}
}

// same reports whether two routes match the same requests equally well.
func (r *Route) same(as *Route) bool {
	if r.Host != as.Host || strings.TrimRight(r.Path, "/") != strings.TrimRight(as.Path, "/") ||
		!strings.EqualFold(r.Header.Name, as.Header.Name) || r.Header.Value != as.Header.Value {
		return false
	}
	if min(len(r.Methods), len(as.Methods)) == 0 {
		return cmp.Or(len(r.Methods), len(as.Methods)) == 0
	}
	return slices.ContainsFunc(r.Methods, func(m string) bool { return slices.Contains(as.Methods, m) })
}
