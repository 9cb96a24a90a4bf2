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

// A route is a Route with derived values.
type route struct {
	Route
	index    int // in the configuration
	suffix   string
	deadline time.Duration
	cors     *cors // nil: the fields of the upstream are forwarded
}

// A Match is the matched route of a request.
type Match struct {
	Route     int    // index in the configuration
	Preflight bool   // Serve answers this CORS preflight itself
	Detail    string // why there is no match, as a sentence of ASCII without quotes; empty: the problem is sufficient
	Allow     string // the methods of the path, if there is no match because of the method
	route     *route // nil: there is no match
}

// SetHeader sets the fields that every response to r has, including problems.
func (m Match) SetHeader(h http.Header, r *http.Request) {
	if m.Allow != "" {
		h["Allow"] = []string{m.Allow}
	}
	if m.route != nil && m.route.cors != nil {
		m.route.cors.setHeader(h, r)
	}
}

// prepareRoutes checks the routes and sorts them by precedence.
func (p *Proxy) prepareRoutes() error {
	for i, r := range p.config.Routes {
		if !isCleanPath(r.Prefix) || r.Rewrite && !isCleanPath(r.NewPrefix) || len(r.Parts) == 0 && !p.hasUpstream(r.Upstream) {
			return ErrRoute
		}
		if err := checkParts(r.Parts, p.hasUpstream); err != nil {
			return err
		}
		prepared := route{Route: r, index: i, deadline: cmp.Or(r.Deadline, p.config.DefaultDeadline)}
		var err error
		if prepared.cors, err = newCORS(r.CORS); err != nil {
			return err
		}
		prepared.Header = http.CanonicalHeaderKey(r.Header)
		prepared.suffix, _ = strings.CutPrefix(r.Host, "*")
		if !strings.HasPrefix(r.Host, "*.") {
			prepared.suffix = ""
		}
		prepared.Prefix, prepared.NewPrefix = strings.TrimRight(r.Prefix, "/"), strings.TrimRight(r.NewPrefix, "/")
		p.upperCase = p.upperCase || strings.ToLower(prepared.Prefix) != prepared.Prefix
		p.routes = append(p.routes, prepared)
	}
	slices.SortStableFunc(p.routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(b.hostRank(), a.hostRank()), cmp.Compare(len(b.suffix), len(a.suffix)),
			cmp.Compare(len(b.Prefix), len(a.Prefix)), cmp.Compare(b.conditionCount(), a.conditionCount()))
	})
	return nil
}

// hasUpstream reports whether an upstream has that number.
func (p *Proxy) hasUpstream(upstream int) bool {
	return upstream >= 0 && upstream < len(p.config.Upstreams) && p.config.Upstreams[upstream].Name != ""
}

// isCleanPath reports whether a path is unchanged by cleanPath and has no escapes.
func isCleanPath(path string) bool {
	cleaned, ok := cleanPath(path)
	return ok && cleaned == path && !strings.ContainsAny(path, "%?#")
}

func (r *route) hostRank() int {
	switch {
	case r.suffix != "":
		return 1
	case r.Host != "":
		return 2
	}
	return 0
}

func (r *route) conditionCount() (n int) {
	if r.Header != "" {
		n++
	}
	if len(r.Methods) > 0 {
		n++
	}
	return n
}

// Match returns the route of a request, or the problem if there is none. A preflight matches the
// route of the announced request if that route has CORS. Otherwise it is matched like any
// request.
func (p *Proxy) Match(r *http.Request) (Match, event.Problem) {
	if err := httpcheck.Request(r); err != nil {
		return Match{Detail: err.Error()}, event.BadRequest
	}
	path, ok := cleanPath(r.URL.Path)
	if !ok {
		return Match{Detail: "The path is empty, or contains a dot segment or a control character."}, event.BadRequest
	}
	host, _ := httpcheck.Host(r.Host) // checked above
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return Match{Allow: p.allow(r, host, path)}, event.MethodNotAllowed
	}
	if method := preflightMethod(r); method != "" {
		match, why := p.findRoute(host, path, method, identity, func(matched *route) bool {
			return matched.matchesHeader(r.Header) || containsToken(r.Header["Access-Control-Request-Headers"], matched.Header)
		})
		if why == event.None && match.cors != nil {
			return Match{Route: match.index, Preflight: true, route: match}, event.None
		}
	}
	matched, why := p.findRoute(host, path, r.Method, identity, func(matched *route) bool { return matched.matchesHeader(r.Header) })
	switch why {
	case event.None:
	case event.MethodNotAllowed:
		return Match{Allow: p.allow(r, host, path)}, why
	default:
		return Match{}, why
	}
	if fault := p.strictFault(r, host, path, matched); fault != "" {
		return Match{Detail: fault}, event.BadRequest
	}
	return Match{Route: matched.index, route: matched}, event.None
}

// findRoute returns the first route that matches, if prefixes are folded. A route without key does not match if only its method keeps a
// request from a route with key that comes before: a caller without a key could otherwise reach what is behind that one. Routes of the
// same host and path are a choice by method. If the method is not allowed, it returns the route with key that matches but for it, or nil.
func (p *Proxy) findRoute(host, path, method string, fold func(prefix string) string, matchesHeader func(*route) bool) (*route, event.Problem) {
	why := event.NotFound
	var keyed *route
	for i := range p.routes {
		candidate := &p.routes[i]
		switch {
		case !candidate.matchesHost(host), !hasPathPrefix(path, fold(candidate.Prefix)), !matchesHeader(candidate):
		case !candidate.allowsMethod(method):
			why = event.MethodNotAllowed
			if keyed == nil && candidate.NeedsKey {
				keyed = candidate
			}
		case keyed != nil && !candidate.NeedsKey && (candidate.Host != keyed.Host || candidate.Prefix != keyed.Prefix):
			return keyed, event.MethodNotAllowed
		default:
			return candidate, event.None
		}
	}
	return keyed, why
}

// commonMethods are the methods of a route for any method that Allow names.
var commonMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// allow returns the methods for which a path has a route.
func (p *Proxy) allow(r *http.Request, host, path string) string {
	matchesHeader := func(matched *route) bool { return matched.matchesHeader(r.Header) }
	var all []string
	for i := range p.routes {
		methods := p.routes[i].Methods
		if len(methods) == 0 {
			methods = commonMethods
		}
		for _, m := range methods {
			if matched, why := p.findRoute(host, path, m, identity, matchesHeader); why == event.None && matched == &p.routes[i] && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return strings.Join(all, ", ")
}

func (r *route) allowsMethod(method string) bool {
	return len(r.Methods) == 0 || slices.Contains(r.Methods, method)
}

func (r *route) matchesHost(host string) bool {
	if r.suffix != "" {
		return len(host) > len(r.suffix) && strings.HasSuffix(host, r.suffix)
	}
	return r.Host == "" || r.Host == host
}

func (r *route) matchesHeader(h http.Header) bool {
	if r.Header == "" {
		return true
	}
	values := h[r.Header]
	return len(values) > 0 && (r.Value == "" || slices.Contains(values, r.Value))
}

// hasPathPrefix reports whether a path begins with a prefix, in whole segments.
func hasPathPrefix(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// cleanPath returns a decoded path with repeated slashes merged. ok is false if the path contains
// a control character, or a dot segment in any form that an upstream may accept: a whole segment,
// before a parameter, or between backslashes.
func cleanPath(path string) (cleaned string, ok bool) {
	if path == "" || path[0] != '/' {
		return "", false
	}
	hasDoubleSlash := false
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c < ' ' || c == 0x7f:
			return "", false
		case c != '/' && c != '\\':
			continue
		}
		rest := path[i+1:]
		if len(rest) > 0 && rest[0] == '.' && isDotSegment(rest) {
			return "", false
		}
		hasDoubleSlash = hasDoubleSlash || len(rest) > 0 && rest[0] == '/' && path[i] == '/'
	}
	if hasDoubleSlash {
		path = mergeSlashes(path)
	}
	return path, true
}

// isDotSegment reports whether a path begins with a dot segment.
func isDotSegment(rest string) bool {
	dots := 0
	for dots < len(rest) && rest[dots] == '.' {
		dots++
	}
	return dots <= 2 && (len(rest) == dots || strings.IndexByte("/\\;", rest[dots]) >= 0)
}

func mergeSlashes(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

// target returns the URL of a request at an endpoint. The path keeps its encoding, except for the
// prefix that is replaced.
func (r *route) target(base, in *url.URL) *url.URL {
	out := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: in.Path, RawPath: in.RawPath, RawQuery: in.RawQuery, ForceQuery: in.ForceQuery}
	if r.Rewrite {
		raw, path := trimPathPrefix(in.EscapedPath(), r.Prefix), trimPathPrefix(in.Path, r.Prefix)
		if r.NewPrefix == "" && strings.HasPrefix(raw, "%") { // an escaped slash follows the prefix: a target must begin with a plain one
			raw = "/" + raw[len("%2F"):]
		}
		out.Path, out.RawPath = r.NewPrefix+path, (&url.URL{Path: r.NewPrefix}).EscapedPath()+raw
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

// trimPathPrefix removes a prefix that the path, decoded or not, is known to have.
func trimPathPrefix(path, prefix string) string {
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
