package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS says which pages of other origins may use a route from a browser, in the terms of the
// Fetch standard. Without Origins it says nothing, and what an upstream says of it is passed
// on. With them the gateway alone says it: a preflight is answered here and never sent on.
type CORS struct {
	Origins     []string      // as a browser says them; *: any that has a name; null: those that have none
	Methods     []string      // that want to be asked for; *: any
	Headers     []string      // that a request may have beside what each may; *: any but Authorization
	Expose      []string      // of an answer, which a page may read beside what each may; *: all
	Credentials bool          // a page may have cookies and credentials of a client sent along; not with any *
	MaxAge      time.Duration // that a browser may remember the answer to a preflight; whole seconds
}

// ErrCORS is why there is no proxy.
var ErrCORS = errors.New("proxy: what is allowed with credentials is named one by one")

// cors is a CORS with what is said of it. What is shared is never written to.
type cors struct {
	CORS
	any                              bool
	methods, headers, expose, maxAge []string
}

var (
	isAny    = []string{"*"}
	isTrue   = []string{"true"}
	isOrigin = []string{"Origin"}
)

// newCORS is nil where a route says nothing.
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

// preflight is the method that a browser asks whether a page may use it; empty: it does
// not ask.
func preflight(r *http.Request) (method string) {
	of := r.Header["Access-Control-Request-Method"]
	if r.Method != http.MethodOptions || len(r.Header["Origin"]) != 1 || len(of) != 1 {
		return ""
	}
	return of[0]
}

// allows is what is said to the origin of a request; nil: nothing, and a browser keeps the
// answer from the page.
func (c *cors) allows(r *http.Request) []string {
	said := r.Header["Origin"]
	switch {
	case len(said) != 1:
		return nil
	case slices.Contains(c.Origins, said[0]):
		return said
	case c.any && said[0] != "null":
		return isAny
	}
	return nil
}

// head puts into the header of an answer, whatever it is, that a page may read it.
func (c *cors) head(h http.Header, r *http.Request) {
	h["Vary"] = isOrigin
	origin := c.allows(r)
	if origin == nil || preflight(r) != "" {
		return
	}
	c.admit(h, origin)
	if len(c.Expose) > 0 {
		h["Access-Control-Expose-Headers"] = c.expose
	}
}

func (c *cors) admit(h http.Header, origin []string) {
	h["Access-Control-Allow-Origin"] = origin
	if c.Credentials {
		h["Access-Control-Allow-Credentials"] = isTrue
	}
}

// answer answers a preflight.
func (c *cors) answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if origin := c.allows(r); origin != nil {
		c.admit(h, origin)
		h["Access-Control-Allow-Methods"] = c.methods
		if len(c.Headers) > 0 {
			h["Access-Control-Allow-Headers"] = c.headers
		}
		h["Access-Control-Max-Age"] = c.maxAge
	}
	w.WriteHeader(http.StatusNoContent)
}

// pass is what goes further of an upstream's answer: of who may read it the route has said
// all, and that the answer is another for other origins.
func (r *route) pass(to, from http.Header) {
	if r.cors == nil {
		pass(to, from, nil)
		return
	}
	pass(to, from, func(name string) bool { return strings.HasPrefix(name, "Access-Control-") })
	if said := to["Vary"]; !listed(said, "Origin") && !listed(said, "*") {
		to["Vary"] = append(said[:len(said):len(said)], "Origin")
	}
}
