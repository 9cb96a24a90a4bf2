package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"macronode/core/types"
)

// A Quota limits each subject of its scope to a rate of requests or bytes, and to Burst at once
// after an idle time. Load sets Burst and Classes.
type Quota struct {
	Name     string           `key:"name" form:"label" doc:"Name of the quota in metrics and responses."`
	Scope    types.QuotaScope `key:"scope" one:"instance peer key tenant route" need:"yes" doc:"What the quota counts: the whole instance, each peer, each key, each tenant, or all requests of one route."`
	Route    string           `key:"route" form:"label" doc:"Name of the route, for scope route."`
	Requests Rate             `key:"requests_per_second" min:"0.000001" max:"1000000000" either:"rate" doc:"Refill rate in requests per second."`
	Bytes    Bytes            `key:"bytes_per_second" min:"1B" max:"1024GiB" either:"rate" doc:"Refill rate in bytes per second."`
	Burst    Burst            `key:"burst" min:"1" max:"1099511627776" doc:"Maximum that can be used at once after a pause. Default: the refill of one second, at least 1."`
	Classes  []types.Class    `key:"classes" one:"internal authed anon" most:"3" takes:"classes" doc:"Classes to which the quota applies. Default: all that can have a counter of this scope, or all that the route accepts."`
	Shadow   bool             `key:"shadow" default:"false" doc:"Counts in quota_refused_total what the quota would reject, and rejects nothing."`
}

// Unit returns the unit that q counts.
func (q *Quota) Unit() types.QuotaUnit {
	if q.Bytes > 0 {
		return types.UnitBytes
	}
	return types.UnitRequests
}

// Rate returns the number of units per time.
func (q *Quota) Rate() (units uint64, every time.Duration) {
	if q.Bytes > 0 {
		return uint64(q.Bytes), time.Second
	}
	return q.Requests.Units, q.Requests.Every
}

// completeQuota sets the defaults of q.
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

// An Upstream is a set of endpoints that serve the same. After Load, URLs has all of them and URL
// is empty.
type Upstream struct {
	Name     string   // its name in the mapping
	URL      string   `key:"url" form:"url" either:"url" doc:"The only endpoint."`
	URLs     []string `key:"urls" form:"url" most:"16" takes:"endpoints" either:"url" doc:"The endpoints."`
	Host     string   `key:"host" form:"authority" doc:"Host header sent to the endpoints. Default: the host of the request."`
	Protocol string   `key:"protocol" default:"auto" one:"auto http1 http2" doc:"Protocol to the endpoints. http1: HTTP/1.1 only. http2: HTTP/2 only, over http without negotiation. auto: HTTP/2 if an https endpoint selects it, else HTTP/1.1."`
	Tries    int      `key:"max_attempts" default:"3" min:"1" max:"10" doc:"Maximum attempts for one request, the first included. Only idempotent requests are retried."`
	Health   Health   `key:"health" doc:"Health checks of the endpoints."`
}

// Health is a periodic health check.
type Health struct {
	Path     string        `key:"path" form:"path" doc:"Path requested from each endpoint; 2xx and 3xx are healthy. Not set: no health checks."`
	Interval time.Duration `key:"interval" default:"5s" min:"100ms" max:"10m" doc:"Time between two checks."`
	Timeout  time.Duration `key:"timeout" default:"1s" min:"10ms" max:"1m" doc:"Time limit for a check, at most the interval."`
	Fall     int           `key:"fall" default:"3" min:"1" max:"100" doc:"Consecutive failed checks after which an endpoint is unhealthy."`
	Rise     int           `key:"rise" default:"2" min:"1" max:"100" doc:"Consecutive successful checks after which it is healthy again."`
}

// complete sets the defaults of u.
func (u *Upstream) complete() {
	if u.URL != "" {
		u.URLs, u.URL = []string{u.URL}, ""
	}
}

// A Route selects requests for an upstream.
type Route struct {
	Name         string        `key:"name" form:"label" doc:"Name of the route in quotas and reports."`
	Host         string        `key:"host" form:"host" doc:"Host of the request, without port; *.example.com covers all names below it. Default: any host."`
	Path         string        `key:"path" default:"/" form:"prefix" doc:"Path prefix of the request, in whole segments."`
	Methods      []string      `key:"methods" form:"method" most:"16" takes:"methods" doc:"Methods of the request. Default: any method."`
	Header       Header        `key:"header" doc:"Header that the request must have."`
	Upstream     string        `key:"upstream" form:"label" either:"what is served" doc:"Upstream to which requests are forwarded."`
	Hydrate      []Part        `key:"hydrate" most:"3" takes:"reads" either:"what is served" doc:"Upstream reads made concurrently and merged into one JSON response."`
	Auth         string        `key:"auth" default:"key" one:"none key" doc:"Credential that the request needs: key for an API key of this node, none for none."`
	Rewrite      string        `key:"rewrite" form:"path" doc:"Replacement for the matched path prefix. Default: the path is unchanged."`
	Deadline     time.Duration `key:"deadline" default:"5s" min:"10ms" max:"5m" doc:"Time limit until a response begins, or the client's X-Deadline-Ms if shorter."`
	MaxInflight  int           `key:"max_inflight" default:"0" min:"0" max:"65536" doc:"Maximum requests of the route waiting or in progress, of all callers. 0 means no limit of its own."`
	FlowInflight int           `key:"max_inflight_per_flow" default:"0" min:"0" max:"65536" doc:"Of max_inflight, those of one tenant, or one peer without a key. 0: it leaves room for others and gets another request only while it has fewer than are left, so half of them alone. Admin keys have no such limit."`
	Required     bool          `key:"required_for_readiness" default:"false" doc:"The node becomes ready only after the upstream has passed a health check; with hydrate, the upstreams of the required reads."`
	Inflate      bool          `key:"decompress_request" default:"false" doc:"Decompresses gzip and zstd bodies before they are forwarded, up to ten times the size plus 64 KiB, at most 32 MiB. Other codings are rejected."`

	// Load sets PathNormalization.
	PathNormalization string `key:"path_normalization" one:"strict off" doc:"strict rejects a path with 400 if an upstream may normalise it to another path; off forwards it unchanged. Default: strict for a route with key and for the other routes of its host, else off."`

	CORS CORS `key:"cors" doc:"Cross-origin access by browsers. Without origins the upstream decides."`
}

// CORS lists the pages that may use a route. If it has origins, Load sets Methods.
type CORS struct {
	Origins     []string      `key:"origins" form:"origin" most:"64" takes:"origins" doc:"Permitted origins: * for any origin that has a name, null for origins without one."`
	Methods     []string      `key:"methods" form:"allowed method" most:"16" takes:"methods" doc:"Methods that a preflight permits, or *. Default: the methods of the route, or GET, HEAD and POST."`
	Headers     []string      `key:"headers" form:"header" most:"64" takes:"names of headers" doc:"Headers that a preflight permits, or * for all except Authorization."`
	Expose      []string      `key:"expose" form:"header" most:"64" takes:"names of headers" doc:"Response headers that a page may read, or *."`
	Credentials bool          `key:"credentials" default:"false" doc:"Permits cookies and other credentials. All other lists must then be explicit, without *."`
	MaxAge      time.Duration `key:"max_age" default:"10m" min:"0s" max:"24h" doc:"Time that a browser may cache a preflight response, in whole seconds."`
}

// Values of Route.PathNormalization.
const (
	StrictPaths = "strict"
	AnyPaths    = "off"
)

// WantsKey reports whether a caller of r needs an API key.
func (r *Route) WantsKey() bool { return r.Auth != "none" }

// completePaths sets PathNormalization where it is not set. A request for a route with API keys
// may match another route of the same host in another spelling of the path, so all of these are
// strict.
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

// hostsMeet reports whether two host patterns match a common host.
func hostsMeet(a, b string) bool {
	below := func(host, of string) bool {
		suffix, wild := strings.CutPrefix(of, "*")
		return wild && strings.HasSuffix(host, suffix)
	}
	return a == "" || b == "" || a == b || below(a, b) || below(b, a)
}

// Needs returns the upstreams without which r has no answer.
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

// complete sets the defaults of the CORS of r.
func (r *Route) complete() {
	if len(r.CORS.Origins) == 0 || len(r.CORS.Methods) > 0 {
		return
	}
	if r.CORS.Methods = slices.Clone(r.Methods); len(r.Methods) == 0 {
		r.CORS.Methods = []string{"GET", "HEAD", "POST"}
	}
}

// Header is a header that must be present.
type Header struct {
	Name  string `key:"name" form:"header" doc:"Name of the header. Not set: no header is needed."`
	Value string `key:"value" form:"value" doc:"Value of the header. Not set: any value."`
}

// A Part is an upstream read that becomes one member of a response.
type Part struct {
	Name     string `key:"name" form:"member" need:"yes" doc:"Name of the member in the response."`
	Upstream string `key:"upstream" form:"label" need:"yes" doc:"Upstream to read."`
	Path     string `key:"path" form:"path" need:"yes" doc:"Path to request; the query of the request is appended."`
	Missing  string `key:"fallback" default:"null" form:"json" doc:"Value used if the read fails."`
	Required bool   `key:"required" default:"false" doc:"Without this part there is no response."`
}

// Upstream returns the index of an upstream in Upstreams, which is sorted by name; false if there
// is none.
func (c *Config) Upstream(name string) (at int, ok bool) {
	at = slices.IndexFunc(c.Upstreams, func(u Upstream) bool { return u.Name == name })
	return at, at >= 0
}

// Route returns the index of a route in Routes; false if there is none.
func (c *Config) Route(name string) (at int, ok bool) {
	at = slices.IndexFunc(c.Routes, func(r Route) bool { return r.Name == name && name != "" })
	return at, at >= 0
}

// complete sets the defaults of the entries of lists.
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
	for i := range c.Storage.Providers {
		p := &c.Storage.Providers[i]
		p.Domain = cmp.Or(p.Domain, p.Name)
		if p.Endpoint != "" {
			p.Region = cmp.Or(p.Region, defaultRegion)
		}
	}
	for i := range c.Exports.Sinks {
		c.Exports.Sinks[i].complete()
	}
	c.completePaths()
}
