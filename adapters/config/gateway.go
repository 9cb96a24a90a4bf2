package config

import (
	"slices"
	"strings"
	"time"

	"macronode/core/types"
)

// A Quota lets each subject of its scope have so many requests, or bytes, a second, and
// Burst at once when it has been idle. When it was loaded, Burst and Classes are set.
type Quota struct {
	Name     string           `key:"name" form:"label" doc:"What it is called where it is told of."`
	Scope    types.QuotaScope `key:"scope" one:"instance peer key tenant route" need:"yes" doc:"Whom it counts: all, each peer, each key, each tenant, or all who ask for one route."`
	Route    string           `key:"route" form:"label" doc:"Name of the route, of a quota whose scope that is."`
	Requests Rate             `key:"requests_per_second" min:"0.000001" max:"1000000000" either:"rate" doc:"Requests that it gives back in a second."`
	Bytes    Bytes            `key:"bytes_per_second" min:"1B" max:"1024GiB" either:"rate" doc:"Bytes that it gives back in a second."`
	Burst    Burst            `key:"burst" min:"1" max:"1099511627776" doc:"What may be had at once by who was idle; when it is not set, what a second gives back, and at least 1."`
	Classes  []types.Class    `key:"classes" one:"internal authed anon" most:"3" takes:"classes" doc:"Whom it is for; when it is not set, all who have what it counts, or whom its route takes."`
	Shadow   bool             `key:"shadow" default:"false" doc:"Refuses nobody; quota_refused_total counts whom it would have refused."`
}

// Unit is what q counts.
func (q *Quota) Unit() types.QuotaUnit {
	if q.Bytes > 0 {
		return types.UnitBytes
	}
	return types.UnitRequests
}

// Rate is how many units come back in a time.
func (q *Quota) Rate() (units uint64, every time.Duration) {
	if q.Bytes > 0 {
		return uint64(q.Bytes), time.Second
	}
	return q.Requests.Units, q.Requests.Every
}

// completeQuota gives q what nobody said.
func (c *Config) completeQuota(q *Quota) {
	if q.Burst.Units == 0 {
		units, every := q.Rate()
		second := uint64(every / time.Second)
		q.Burst = Burst{Units: (units + second - 1) / second, Sized: q.Bytes > 0}
	}
	if len(q.Classes) == 0 {
		q.Classes = []types.Class{types.ClassInternal, types.ClassAuthed}
		at, _ := c.Route(q.Route)
		if q.Scope == types.ScopeInstance || q.Scope == types.ScopePeer || q.Scope == types.ScopeRoute && (at < 0 || c.Routes[at].Auth == "none") {
			q.Classes = append(q.Classes, types.ClassAnon)
		}
	}
}

// An Upstream is some endpoints that serve the same. When it was loaded, URLs are all of
// them, and URL is empty.
type Upstream struct {
	Name     string   // under which it stands
	URL      string   `key:"url" form:"url" either:"url" doc:"Its only endpoint."`
	URLs     []string `key:"urls" form:"url" most:"16" takes:"endpoints" either:"url" doc:"Its endpoints."`
	Host     string   `key:"host" form:"authority" doc:"Host that it is asked for; when it is not set, the one that the client asked for."`
	Protocol string   `key:"protocol" default:"auto" one:"auto http1 http2" doc:"What it is asked by: HTTP/1.1 alone, HTTP/2 alone, of http without asking whether it is spoken, or auto: HTTP/2 where an endpoint of https chooses it, else HTTP/1.1."`
	Tries    int      `key:"tries" default:"3" min:"1" max:"10" doc:"Tries of one request, the first among them; only one that may be asked twice is sent again."`
	Health   Health   `key:"health" doc:"How it is seen whether an endpoint is well."`
}

// Health is a check that is made again and again.
type Health struct {
	Path     string        `key:"path" form:"path" doc:"What each endpoint is asked for, to answer with 2xx or 3xx; when it is not set, there are no checks."`
	Interval time.Duration `key:"interval" default:"5s" min:"100ms" max:"10m" doc:"Time between two checks."`
	Timeout  time.Duration `key:"timeout" default:"1s" min:"10ms" max:"1m" doc:"Time for the answer, and no longer than the interval."`
	Fall     int           `key:"fall" default:"3" min:"1" max:"100" doc:"Checks in a row that fail, after which an endpoint is sick."`
	Rise     int           `key:"rise" default:"2" min:"1" max:"100" doc:"Checks in a row that succeed, after which it is well again."`
}

// complete gives u what nobody said.
func (u *Upstream) complete() {
	if u.URL != "" {
		u.URLs, u.URL = []string{u.URL}, ""
	}
}

// A Route says which requests go to an upstream, and how.
type Route struct {
	Name        string        `key:"name" form:"label" doc:"What it is called by a quota."`
	Host        string        `key:"host" form:"host" doc:"Host that is asked for, without a port; *.example.com is all below it; when it is not set, any."`
	Path        string        `key:"path" default:"/" form:"prefix" doc:"Path that a request's begins with, in whole segments."`
	Methods     []string      `key:"methods" form:"method" most:"16" takes:"methods" doc:"Methods; when it is not set, any."`
	Header      Header        `key:"header" doc:"A header that must be there."`
	Upstream    string        `key:"upstream" form:"label" either:"what is served" doc:"Upstream that serves it."`
	Hydrate     []Part        `key:"hydrate" most:"3" takes:"reads" either:"what is served" doc:"Reads of upstreams that are made at once, and become one answer of JSON."`
	Auth        string        `key:"auth" default:"key" one:"none key" doc:"What a caller shows: nothing, or an API key."`
	Rewrite     string        `key:"rewrite" form:"path" doc:"What stands in the place of the path that it begins with; when it is not set, the path stays."`
	Deadline    time.Duration `key:"deadline" default:"5s" min:"10ms" max:"5m" doc:"Time for an answer to begin, or less where the client says so."`
	MaxInflight int           `key:"max_inflight" default:"0" min:"0" max:"65536" doc:"Requests that wait or are at work at once; 0 is as many as there is room for."`
	Required    bool          `key:"required" default:"false" doc:"Nothing is served before its upstream was well once, as its health check sees it; of reads, those that are required."`
	Inflate     bool          `key:"inflate" default:"false" doc:"A body of gzip or zstd is sent on inflated, at most ten times as large and 64 KiB, and 32 MiB; one of another coding is refused."`

	// PathNormalization is set when the configuration is loaded.
	PathNormalization string `key:"path_normalization" one:"strict off" doc:"What is done with a path that an upstream may normalise to another one: strict refuses it with 400, off sends it on; when it is not set, strict for a route that wants a key and for each other route of its host, else off."`

	CORS CORS `key:"cors" doc:"Which pages of other origins may use it from a browser; without origins that is the upstream's to say."`
}

// CORS says which pages may use a route. When it was loaded and has origins, Methods is set.
type CORS struct {
	Origins     []string      `key:"origins" form:"origin" most:"64" takes:"origins" doc:"Origins whose pages may: * is any that has a name, null those that have none."`
	Methods     []string      `key:"methods" form:"allowed method" most:"16" takes:"methods" doc:"Methods that a preflight allows, or *; when it is not set, those of the route, or GET, HEAD and POST."`
	Headers     []string      `key:"headers" form:"header" most:"64" takes:"names of headers" doc:"Headers that a preflight allows, or *, which is any but Authorization."`
	Expose      []string      `key:"expose" form:"header" most:"64" takes:"names of headers" doc:"Headers of an answer that a page may read, or *."`
	Credentials bool          `key:"credentials" default:"false" doc:"Cookies and other credentials of the client may come along; all else is named then, without *."`
	MaxAge      time.Duration `key:"max_age" default:"10m" min:"0s" max:"24h" doc:"Time that a browser may remember the answer to a preflight, in whole seconds."`
}

// Values of Route.PathNormalization.
const (
	StrictPaths = "strict"
	AnyPaths    = "off"
)

// WantsKey reports whether a caller of r must show an API key.
func (r *Route) WantsKey() bool { return r.Auth != "none" }

// completePaths sets PathNormalization where it is not set. A request that is meant for a route
// that wants a key may match another route of the same host in another spelling, so each of
// these is strict.
func (c *Config) completePaths() {
	for i := range c.Routes {
		r := &c.Routes[i]
		switch {
		case r.PathNormalization != "":
		case slices.ContainsFunc(c.Routes, func(other Route) bool { return other.WantsKey() && hostsMeet(other.Host, r.Host) }):
			r.PathNormalization = StrictPaths
		default:
			r.PathNormalization = AnyPaths
		}
	}
}

// hostsMeet reports whether there is a host that two hosts of routes both match.
func hostsMeet(a, b string) bool {
	below := func(host, of string) bool {
		suffix, wild := strings.CutPrefix(of, "*")
		return wild && strings.HasSuffix(host, suffix)
	}
	return a == "" || b == "" || a == b || below(a, b) || below(b, a)
}

// Needs are the upstreams without which r has no answer.
func (r *Route) Needs() (names []string) {
	if r.Upstream != "" {
		return []string{r.Upstream}
	}
	for _, part := range r.Hydrate {
		if part.Required {
			names = append(names, part.Upstream)
		}
	}
	return names
}

// complete gives the CORS of r what nobody said.
func (r *Route) complete() {
	if len(r.CORS.Origins) == 0 || len(r.CORS.Methods) > 0 {
		return
	}
	if r.CORS.Methods = slices.Clone(r.Methods); len(r.Methods) == 0 {
		r.CORS.Methods = []string{"GET", "HEAD", "POST"}
	}
}

// Header is a header that must be there.
type Header struct {
	Name  string `key:"name" form:"header" doc:"Its name; when it is not set, none must be there."`
	Value string `key:"value" form:"value" doc:"What it says; when it is not set, anything."`
}

// A Part is a read of an upstream that becomes one member of an answer.
type Part struct {
	Name     string `key:"name" form:"member" need:"yes" doc:"Name of the member."`
	Upstream string `key:"upstream" form:"label" need:"yes" doc:"Upstream that is read."`
	Path     string `key:"path" form:"path" need:"yes" doc:"What it is asked for; the request's query follows."`
	Missing  string `key:"missing" default:"null" form:"json" doc:"What stands in its place when it is missing."`
	Required bool   `key:"required" default:"false" doc:"There is no answer without it."`
}

// Upstream is the place of the upstream of that name in Upstreams, which are in the order
// of their names; false when there is none.
func (c *Config) Upstream(name string) (at int, ok bool) {
	at = slices.IndexFunc(c.Upstreams, func(u Upstream) bool { return u.Name == name })
	return at, at >= 0
}

// Route is the place of the route of that name in Routes; false when there is none.
func (c *Config) Route(name string) (at int, ok bool) {
	at = slices.IndexFunc(c.Routes, func(r Route) bool { return r.Name == name && name != "" })
	return at, at >= 0
}

// complete gives the entries of lists what nobody said of them.
func (c *Config) complete() {
	for i := range c.Quotas {
		c.completeQuota(&c.Quotas[i])
	}
	for i := range c.Upstreams {
		c.Upstreams[i].complete()
	}
	for i := range c.Routes {
		c.Routes[i].complete()
	}
	c.completePaths()
}
