package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
	"macronode/core/event"
)

// A route is a Route with what can be known of it beforehand.
type route struct {
	Route
	number   int // its place in the configuration
	suffix   string
	deadline time.Duration
	cors     *cors // nil: the upstream says what there is to say
}

// A Match is the route that a request takes.
type Match struct {
	Route     int    // its place in the configuration
	Preflight bool   // a browser asks what a page may: Serve answers that itself
	Detail    string // why there is no match, as a sentence of ASCII without quotes; empty: the problem says all
	route     *route
}

// Head puts into a header what is to be said with any answer to r, a problem as well.
func (m Match) Head(h http.Header, r *http.Request) {
	if m.route.cors != nil {
		m.route.cors.head(h, r)
	}
}

// lay checks the routes and puts them into the order in which they are tried.
func (p *Proxy) lay() error {
	for i, r := range p.config.Routes {
		if !inside(r.Prefix) || r.Rewrite && !inside(r.Put) || len(r.Parts) == 0 && !p.has(r.Upstream) {
			return ErrRoute
		}
		if err := checkParts(r.Parts, p.has); err != nil {
			return err
		}
		one := route{Route: r, number: i, deadline: cmp.Or(r.Deadline, p.config.Deadline)}
		var err error
		if one.cors, err = newCORS(r.CORS); err != nil {
			return err
		}
		one.Header = http.CanonicalHeaderKey(r.Header)
		one.suffix, _ = strings.CutPrefix(r.Host, "*")
		if !strings.HasPrefix(r.Host, "*.") {
			one.suffix = ""
		}
		one.Prefix, one.Put = strings.TrimRight(r.Prefix, "/"), strings.TrimRight(r.Put, "/")
		p.upperCase = p.upperCase || strings.ToLower(one.Prefix) != one.Prefix
		p.routes = append(p.routes, one)
	}
	slices.SortStableFunc(p.routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(b.names(), a.names()), cmp.Compare(len(b.suffix), len(a.suffix)),
			cmp.Compare(len(b.Prefix), len(a.Prefix)), cmp.Compare(b.wants(), a.wants()))
	})
	return nil
}

// has reports that there is an upstream of that number.
func (p *Proxy) has(upstream int) bool {
	return upstream >= 0 && upstream < len(p.config.Upstreams) && p.config.Upstreams[upstream].Name != ""
}

// inside reports a path that leads nowhere else.
func inside(path string) bool {
	cleaned, ok := clean(path)
	return ok && cleaned == path && !strings.ContainsAny(path, "%?#")
}

func (r *route) names() int {
	switch {
	case r.suffix != "":
		return 1
	case r.Host != "":
		return 2
	}
	return 0
}

func (r *route) wants() (n int) {
	if r.Header != "" {
		n++
	}
	if len(r.Methods) > 0 {
		n++
	}
	return n
}

// Match finds the route of a request. Where there is none it says why. A preflight is one
// of the route that the request would take which it asks for, if that route has CORS; else
// it is a request as any other.
func (p *Proxy) Match(r *http.Request) (Match, event.Problem) {
	if err := httpcheck.Request(r); err != nil {
		return Match{Detail: err.Error()}, event.BadRequest
	}
	path, ok := clean(r.URL.Path)
	if !ok {
		return Match{Detail: "The path is empty, or contains a dot segment or a control character."}, event.BadRequest
	}
	host, _ := httpcheck.Host(r.Host) // checked above
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return Match{}, event.MethodNotAllowed
	}
	if method := preflight(r); method != "" {
		would, _ := p.find(host, path, method, func(one *route) bool {
			return one.said(r.Header) || listed(r.Header["Access-Control-Request-Headers"], one.Header)
		})
		if would != nil && would.cors != nil {
			return Match{Route: would.number, Preflight: true, route: would}, event.None
		}
	}
	one, why := p.find(host, path, r.Method, func(one *route) bool { return one.said(r.Header) })
	if one == nil {
		return Match{}, why
	}
	if fault := p.strictFault(r, host, path, one); fault != "" {
		return Match{Detail: fault}, event.BadRequest
	}
	return Match{Route: one.number, route: one}, event.None
}

// find is the first route that fits.
func (p *Proxy) find(host, path, method string, said func(*route) bool) (*route, event.Problem) {
	why := event.NotFound
	for i := range p.routes {
		one := &p.routes[i]
		switch {
		case !one.at(host), !under(path, one.Prefix), !said(one):
		case !one.takes(method):
			why = event.MethodNotAllowed
		default:
			return one, event.None
		}
	}
	return nil, why
}

func (r *route) takes(method string) bool {
	return len(r.Methods) == 0 || slices.Contains(r.Methods, method)
}

func (r *route) at(host string) bool {
	if r.suffix != "" {
		return len(host) > len(r.suffix) && strings.HasSuffix(host, r.suffix)
	}
	return r.Host == "" || r.Host == host
}

func (r *route) said(h http.Header) bool {
	if r.Header == "" {
		return true
	}
	said := h[r.Header]
	return len(said) > 0 && (r.Value == "" || slices.Contains(said, r.Value))
}

// under reports that a path begins with a prefix, in whole segments.
func under(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// clean is a decoded path as routes see it: with one slash where there are several. It
// is false of one that climbs, in whatever spelling an upstream may understand: dots as
// a whole segment, before a parameter, between backslashes, and control characters.
func clean(path string) (cleaned string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", false
	}
	twice := false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c < ' ' || c == 0x7f:
			return "", false
		case c != '/' && c != '\\':
			continue
		}
		rest := path[i+1:]
		if len(rest) > 0 && rest[0] == '.' && climbs(rest) {
			return "", false
		}
		twice = twice || len(rest) > 0 && rest[0] == '/' && path[i] == '/'
	}
	if twice {
		path = once(path)
	}
	return path, true
}

// climbs reports that a path begins with a segment of dots.
func climbs(rest string) bool {
	dots := 0
	for dots < len(rest) && rest[dots] == '.' {
		dots++
	}
	return dots <= 2 && (len(rest) == dots || strings.IndexByte("/\\;", rest[dots]) >= 0)
}

func once(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

// target is where a request goes at an endpoint: its path as it was written, but for
// what a rewrite puts in the place of the prefix.
func (r *route) target(base, in *url.URL) *url.URL {
	out := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: in.Path, RawPath: in.RawPath, RawQuery: in.RawQuery, ForceQuery: in.ForceQuery}
	if r.Rewrite {
		raw, path := beyond(in.EscapedPath(), r.Prefix), beyond(in.Path, r.Prefix)
		if r.Put == "" && strings.HasPrefix(raw, "%") { // an escaped slash follows the prefix: a target must begin with a plain one
			raw = "/" + raw[len("%2F"):]
		}
		out.Path, out.RawPath = r.Put+path, (&url.URL{Path: r.Put}).EscapedPath()+raw
		if out.Path == "" {
			out.Path, out.RawPath = "/", ""
		}
	}
	if base.Path != "" {
		if out.RawPath != "" {
			out.RawPath = base.EscapedPath() + out.RawPath
		}
		out.Path = base.Path + out.Path
	}
	return out
}

// beyond is what stands behind a prefix that a path, decoded or not, is known to have.
func beyond(path, prefix string) string {
	at, slash := 0, false
	for n := 0; n < len(prefix) && at < len(path); {
		c, size := path[at], 1
		if c == '%' && at+2 < len(path) {
			c, size = unhex(path[at+1])<<4|unhex(path[at+2]), 3
		}
		if c != '/' || !slash || prefix[n] == '/' {
			n++
		}
		slash = c == '/'
		at += size
	}
	return path[at:]
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
