package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A ProxyRouter routes requests to upstreams.
type ProxyRouter interface {
	// Match returns the route of a request. If there is none, it returns the problem, and the ProxyRoute has a
	// Detail.
	Match(r *http.Request) (ProxyRoute, event.Problem)
}

// A ProxyRoute is the route of a request to an upstream.
type ProxyRoute struct {
	Name     string // of the route, as shown in decisions
	Usage    *UsageLabels
	Number   uint16 // of the route, from 0
	NeedsKey bool   // an API key is needed
	Deadline time.Duration
	Detail   string // why there is no route, in ASCII without quotes; empty: the problem is enough
	// Preflight marks a CORS preflight. Serve answers it without an upstream; it needs no key and does not count
	// as a request of its route.
	Preflight bool
	// SetHeader adds header fields that every response needs, including problems.
	SetHeader func(http.Header)
	Serve     func(w http.ResponseWriter, r *http.Request, of types.Flow, to *ProxyTrace) // stores the trace in to before anything else
}

// A ProxyTrace describes how a request was forwarded.
type ProxyTrace interface {
	// CutByShutdown reports whether the shutdown of the node ended the request.
	CutByShutdown() bool
	// EndedByClient reports whether an upstream was sent the request, and the client ended it before the response was complete.
	EndedByClient() bool
	// Detail says why the request got a problem; empty: the problem is enough.
	Detail() string
}

// maxPermitTime is the longest time for which a response without an end keeps its permit. It limits the effect of
// a bug.
const maxPermitTime = 24 * time.Hour

// Endpoints returns the number of operations. Proxy routes are numbered after them.
func Endpoints() int { return len(routes()) + 1 }

// OwnsPath reports whether a path belongs to the API of the node, so that no route gets its requests.
func OwnsPath(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/openapi.json" || path == "/o" || strings.HasPrefix(path, "/o/")
}

// serveProxied admits a request and forwards it to an upstream.
func (a *API) serveProxied(k *call) {
	d, ok := a.proxyEndpoints[k.r.Method]
	if !ok {
		d = a.proxyEndpoints["other"]
	}
	s := a.Node.Status()
	k.endpoint, k.at = d, s.At
	if isNotServing(&s) {
		k.fail(k.rejectNotServing())
		return
	}
	route, why := k.snapshot.Proxy.Match(k.r)
	if route.SetHeader != nil {
		route.SetHeader(k.Header())
	}
	if why != event.None {
		err := problemDetail(why, route.Detail)
		k.detail = route.Detail
		if why == event.NotFound {
			k.detail = "No route fits its host, path, method and header."
		}
		if why != event.Unavailable {
			rejected := k.admit()
			if rejected == nil && why == event.NotFound && isIndex(k.r) {
				k.index()
				return
			}
			err = cmp.Or(rejected, err)
		}
		k.fail(err)
		return
	}
	k.proxyRoute, k.routeUsage = route.Name, route.Usage
	if err := k.admitProxied(d, &route); err != nil {
		k.fail(err)
		return
	}
	hideKeys(k.r.Header)
	k.identify()
	h := k.Header()
	k.nameDecision(h)
	k.r.Header["X-Request-Id"], k.r.Header["X-Decision-Id"] = h["X-Request-Id"], h["X-Decision-Id"]
	route.Serve(k, k.r, k.flow, &k.trace)
}

// hideKeys removes each Authorization field that contains an API key, whatever else it contains: upstreams must not
// see the keys of this node.
func hideKeys(h http.Header) {
	before := h["Authorization"]
	if !slices.ContainsFunc(before, bearsKey) {
		return
	}
	left := slices.DeleteFunc(slices.Clone(before), bearsKey)
	if h["Authorization"] = left; len(left) == 0 {
		delete(h, "Authorization")
	}
}

// admitProxied admits a request of a proxy route, and checks its API key if the route needs one.
func (k *call) admitProxied(d *endpoint, route *ProxyRoute) error {
	k.timeLimit = route.Deadline
	if route.Preflight {
		delete(k.r.Header, "Authorization") // browsers send none
		return k.admit()
	}
	numbered := *d
	numbered.number = k.routeCount + 1 + route.Number // after all endpoints of the API
	k.endpoint, k.permitTime = &numbered, maxPermitTime
	if err := k.admit(); err != nil {
		return err
	}
	if route.NeedsKey {
		if err := k.requireScope(0); err != nil {
			return err
		}
	}
	return k.reserveUsage()
}

// upstreamUnavailable is the detail if no endpoint of an upstream is available.
const upstreamUnavailable = "The service behind this does not take requests now; this one was not sent to it."

// WriteProblem writes a problem to w, which must be the writer that Serve was given. While the node shuts down,
// the detail is that of the node, not of the upstream.
func WriteProblem(w http.ResponseWriter, _ *http.Request, p event.Problem) {
	k := w.(*call)
	if p == event.Busy && k.noteLoss() {
		k.fail(problemDetail(p, gaveWayDetail))
		return
	}
	if p == event.Unavailable && k.Node.Status().Phase < types.Draining {
		k.fail(problemDetail(p, upstreamUnavailable))
		return
	}
	detail := ""
	if k.trace != nil {
		detail = k.trace.Detail()
	}
	k.fail(problemDetail(p, detail))
}
