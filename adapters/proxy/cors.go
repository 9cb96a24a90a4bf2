package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS states which pages of other origins may use a route from a browser, in the terms of the
// Fetch standard. Without Origins the gateway does nothing, and the CORS fields of the upstream
// are forwarded. With Origins only the gateway sets these fields: a preflight is answered here
// and never forwarded.
type CORS struct {
	Origins     []string      // as a browser sends them; *: any named origin; null: opaque origins
	Methods     []string      // that need permission; *: any
	Headers     []string      // of a request, beside the safelisted ones; *: any but Authorization
	Expose      []string      // of a response, which a page may read beside the safelisted ones; *: all
	Credentials bool          // a page may send cookies and credentials of the client; not with any *
	MaxAge      time.Duration // how long a browser may cache the answer to a preflight; whole seconds
}

// ErrCORS is returned by New if a wildcard is combined with credentials.
var ErrCORS = errors.New("proxy: CORS with credentials allows no wildcard")

// cors is a CORS with its header values. The values are shared and never written to.
type cors struct {
	CORS
	anyOrigin                        bool
	methods, headers, expose, maxAge []string
}

var (
	isAny    = []string{"*"}
	isTrue   = []string{"true"}
	isOrigin = []string{"Origin"}
)

// newCORS returns nil if the route has no origins.
func newCORS(c CORS) (*cors, error) {
	if len(c.Origins) == 0 {
		return nil, nil
	}
	for _, list := range [][]string{c.Origins, c.Methods, c.Headers, c.Expose} {
		if c.Credentials && slices.Contains(list, "*") {
			return nil, ErrCORS
		}
	}
	line := func(list []string) []string { return []string{strings.Join(list, ", ")} }
	return &cors{c, slices.Contains(c.Origins, "*"), line(c.Methods), line(c.Headers), line(c.Expose),
		[]string{strconv.FormatInt(int64(c.MaxAge/time.Second), 10)}}, nil
}

// preflightMethod returns the method that a preflight asks for. It is empty if r is no preflight.
func preflightMethod(r *http.Request) (method string) {
	of := r.Header["Access-Control-Request-Method"]
	if r.Method != http.MethodOptions || len(r.Header["Origin"]) != 1 || len(of) != 1 {
		return ""
	}
	return of[0]
}

// allowedOrigin returns the value of Access-Control-Allow-Origin for a request. If it is nil, no
// value is set, and a browser withholds the response from the page.
func (c *cors) allowedOrigin(r *http.Request) []string {
	origin := r.Header["Origin"]
	switch {
	case len(origin) != 1:
		return nil
	case slices.Contains(c.Origins, origin[0]):
		return origin
	case c.anyOrigin && origin[0] != "null":
		return isAny
	}
	return nil
}

// setHeader sets the fields that let a page read a response, whatever its status is.
func (c *cors) setHeader(h http.Header, r *http.Request) {
	h["Vary"] = isOrigin
	origin := c.allowedOrigin(r)
	if origin == nil || preflightMethod(r) != "" {
		return
	}
	c.allowOrigin(h, origin)
	if len(c.Expose) > 0 {
		h["Access-Control-Expose-Headers"] = c.expose
	}
}

func (c *cors) allowOrigin(h http.Header, origin []string) {
	h["Access-Control-Allow-Origin"] = origin
	if c.Credentials {
		h["Access-Control-Allow-Credentials"] = isTrue
	}
}

// servePreflight answers a preflight.
func (c *cors) servePreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if origin := c.allowedOrigin(r); origin != nil {
		c.allowOrigin(h, origin)
		h["Access-Control-Allow-Methods"] = c.methods
		if len(c.Headers) > 0 {
			h["Access-Control-Allow-Headers"] = c.headers
		}
		h["Access-Control-Max-Age"] = c.maxAge
	}
	w.WriteHeader(http.StatusNoContent)
}

// copyResponseHeader copies the fields of an upstream's response that are forwarded. If the route
// has CORS, the fields of the upstream are dropped, and Vary contains Origin.
func (r *route) copyResponseHeader(to, from http.Header) {
	if r.cors == nil {
		copyFields(to, from, nil)
		return
	}
	copyFields(to, from, func(name string) bool { return strings.HasPrefix(name, "Access-Control-") })
	if vary := to["Vary"]; !containsToken(vary, "Origin") && !containsToken(vary, "*") {
		to["Vary"] = append(vary[:len(vary):len(vary)], "Origin")
	}
}
