package proxy_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/adapters/proxy"
)

// A page is a script of an origin that sends a request in a browser, by the Fetch standard.
type page struct {
	origin      string
	method      string
	headers     []string // beside Accept
	credentials bool     // are sent along
}

// safelisted are the methods and request headers that need no preflight.
var safelisted = []string{"GET", "HEAD", "POST", "accept", "accept-language", "content-language"}

func (p *page) unsafe() (names []string) {
	for _, name := range p.headers {
		if name = strings.ToLower(name); !slices.Contains(safelisted, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checks is the CORS check of section 4.10.
func (p *page) checks(h http.Header) bool {
	origin := strings.Join(h["Access-Control-Allow-Origin"], ", ")
	switch {
	case origin == "*" && !p.credentials:
		return true
	case origin != p.origin:
		return false
	}
	return !p.credentials || strings.Join(h["Access-Control-Allow-Credentials"], ", ") == "true"
}

func list(h http.Header, name string) (all []string) {
	for _, line := range h[name] {
		for one := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}

// preflighted is the CORS-preflight fetch of section 4.8.
func (p *page) preflighted(h *gateway, path string) bool {
	fields := []string{"Origin", p.origin, "Access-Control-Request-Method", p.method, "Accept", "*/*"}
	unsafe := p.unsafe()
	if len(unsafe) > 0 {
		fields = append(fields, "Access-Control-Request-Headers", strings.Join(unsafe, ","))
	}
	a := h.do(h.request("OPTIONS", path, nil, fields...))
	if a.err != nil || a.status < 200 || a.status > 299 || !p.checks(a.header) {
		return false
	}
	methods, names := list(a.header, "Access-Control-Allow-Methods"), list(a.header, "Access-Control-Allow-Headers")
	wild := func(in []string) bool { return !p.credentials && slices.Contains(in, "*") }
	if !slices.Contains(methods, p.method) && !slices.Contains(safelisted, p.method) && !wild(methods) {
		return false
	}
	for _, name := range unsafe {
		there := slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		if !there && (name == "authorization" || !wild(names)) {
			return false
		}
	}
	return true
}

// fetches sends the request and returns where it ends: "read", or the step that fails.
func (p *page) fetches(h *gateway, path string) (ends string, a clientResponse) {
	if (!slices.Contains(safelisted, p.method) || len(p.unsafe()) > 0) && !p.preflighted(h, path) {
		return "preflight", a
	}
	fields := []string{"Origin", p.origin}
	for _, name := range p.headers {
		fields = append(fields, name, "x")
	}
	if a = h.do(h.request(p.method, path, nil, fields...)); a.err != nil || !p.checks(a.header) {
		return "answer", a
	}
	return "read", a
}

// talkative is an upstream that sends CORS fields of its own.
func talkative(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Saw", r.Method)
	w.Header()["Access-Control-Allow-Origin"] = []string{"*", "https://evil.example"}
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Set("Access-Control-Expose-Headers", "*")
	w.Header().Set("Vary", "Accept")
}

// TestCORS compares routes with the results by the Fetch standard.
func TestCORS(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		some := proxy.CORS{Origins: []string{"https://app.example", "http://localhost:3000"}, Methods: []string{"GET", "PUT"},
			Headers: []string{"X-Mine", "Content-Type"}, Expose: []string{"X-Saw"}, MaxAge: time.Minute}
		with := some
		with.Credentials = true
		c.Routes = []proxy.Route{{Prefix: "/"}, {Prefix: "/some", CORS: some}, {Prefix: "/with", CORS: with},
			{Prefix: "/any", CORS: proxy.CORS{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*"}, Expose: []string{"*"}}},
			{Prefix: "/auth", CORS: proxy.CORS{Origins: []string{"*"}, Headers: []string{"*", "Authorization"}}},
			{Prefix: "/null", CORS: proxy.CORS{Origins: []string{"null"}}},
			{Prefix: "/two", Methods: []string{"GET"}}, {Prefix: "/two", CORS: some},
			{Prefix: "/head", Header: "X-Mine", CORS: some}, {Prefix: "/head"}}
	}, startUpstream(t, talkative))
	const app, evil = "https://app.example", "https://evil.example"
	for _, c := range []struct {
		path string
		page page
		want string
	}{
		{"/some", page{origin: app, method: "GET"}, "read"},
		{"/some", page{origin: "http://localhost:3000", method: "GET"}, "read"},
		{"/some", page{origin: evil, method: "GET"}, "answer"},
		{"/some", page{origin: "https://app.example.evil.example", method: "GET"}, "answer"},
		{"/some", page{origin: "http://app.example", method: "GET"}, "answer"},
		{"/some", page{origin: "https://app.example:8443", method: "GET"}, "answer"},
		{"/some", page{origin: "null", method: "GET"}, "answer"},
		{"/some", page{origin: "*", method: "GET"}, "answer"},
		{"/some", page{origin: app, method: "POST"}, "read"}, // no preflight is sent, so Methods has no effect
		{"/some", page{origin: app, method: "PUT"}, "read"},
		{"/some", page{origin: app, method: "DELETE"}, "preflight"},
		{"/some", page{origin: evil, method: "PUT"}, "preflight"},
		{"/some", page{origin: app, method: "GET", headers: []string{"x-mine", "Content-Type"}}, "read"},
		{"/some", page{origin: app, method: "GET", headers: []string{"X-Other"}}, "preflight"},
		{"/some", page{origin: app, method: "GET", credentials: true}, "answer"},
		{"/some", page{origin: app, method: "PUT", credentials: true}, "preflight"},
		{"/with", page{origin: app, method: "PUT", credentials: true, headers: []string{"X-Mine"}}, "read"},
		{"/with", page{origin: app, method: "GET"}, "read"},
		{"/with", page{origin: evil, method: "GET", credentials: true}, "answer"},
		{"/any", page{origin: evil, method: "DELETE", headers: []string{"X-Other"}}, "read"},
		{"/any", page{origin: evil, method: "GET", headers: []string{"Authorization"}}, "preflight"}, // * does not include it
		{"/auth", page{origin: evil, method: "GET", headers: []string{"Authorization", "X-Other"}}, "read"},
		{"/any", page{origin: evil, method: "GET", credentials: true}, "answer"},
		{"/any", page{origin: "null", method: "GET"}, "answer"},
		{"/null", page{origin: "null", method: "GET"}, "read"},
		{"/null", page{origin: app, method: "GET"}, "answer"},
		{"/two", page{origin: app, method: "PUT"}, "read"},
		{"/two", page{origin: app, method: "GET", headers: []string{"X-Mine"}}, "preflight"}, // the route has no such header
		{"/head", page{origin: app, method: "GET", headers: []string{"X-Mine"}}, "read"},
		{"/head", page{origin: app, method: "PUT"}, "preflight"},
		{"/", page{origin: evil, method: "GET"}, "answer"}, // the upstream's fields are forwarded, doubled as they are
	} {
		if got, a := c.page.fetches(h, c.path); got != c.want {
			t.Errorf("%s: %+v ends at %s, want %s: %d %v", c.path, c.page, got, c.want, a.status, a.header)
		}
	}
}

// TestCORSHeaderFields checks the fields of responses and the requests to the upstream.
func TestCORSHeaderFields(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{{Prefix: "/", CORS: proxy.CORS{Origins: []string{"https://app.example"}, Methods: []string{"GET", "PUT"},
			Headers: []string{"X-Mine", "X-Yours"}, Expose: []string{"X-Saw", "RateLimit"}, Credentials: true, MaxAge: 90 * time.Second}}}
	}, startUpstream(t, talkative))
	fields := func(h http.Header) (all string) {
		for _, name := range []string{"Allow-Origin", "Allow-Credentials", "Allow-Methods", "Allow-Headers", "Max-Age", "Expose-Headers"} {
			if v, ok := h["Access-Control-"+name]; ok {
				all += name + "=" + strings.Join(v, "+") + " "
			}
		}
		return all + "Vary=" + strings.Join(list(h, "Vary"), "+")
	}
	ask := []string{"Origin", "https://app.example", "Access-Control-Request-Method", "PUT"}
	strange := []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "PUT"}
	const read = "Allow-Origin=https://app.example Allow-Credentials=true Expose-Headers=X-Saw, RateLimit Vary="
	for _, c := range []struct {
		r         *http.Request
		status    int
		saw, want string
	}{
		{h.request("OPTIONS", "/", nil, ask...), 204, "", "Allow-Origin=https://app.example Allow-Credentials=true Allow-Methods=GET, PUT Allow-Headers=X-Mine, X-Yours Max-Age=90 Vary=Origin"},
		{h.request("OPTIONS", "/", nil, strange...), 204, "", "Vary=Origin"},
		{h.request("OPTIONS", "/", nil, append(ask, "Origin", "https://evil.example")...), 200, "OPTIONS", "Vary=Accept+Origin"}, // not a preflight: two origins
		{h.request("OPTIONS", "/", nil, ask[:2]...), 200, "OPTIONS", read + "Accept+Origin"},                                     // not a preflight
		{h.request("GET", "/", nil, ask[:2]...), 200, "GET", read + "Accept+Origin"},
		{h.request("GET", "/", nil, strange[:2]...), 200, "GET", "Vary=Accept+Origin"},
		{h.request("GET", "/", nil), 200, "GET", "Vary=Accept+Origin"},
	} {
		a := h.do(c.r)
		if a.err != nil || a.status != c.status || a.header.Get("X-Saw") != c.saw || fields(a.header) != c.want {
			t.Errorf("%s %v: %d, %q saw %s, %v\n got %s\nwant %s", c.r.Method, c.r.Header, a.status, a.body, a.header.Get("X-Saw"), a.err, fields(a.header), c.want)
		}
	}
	_, in := h.raw("POST / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 400 || fields(res.Header) != read+"Origin" {
		t.Errorf("a problem cannot be read: %+v, %v", res, err)
	}
}

// TestCORSAgreesWithModel: for any configuration and page, a browser allows what the
// configuration allows, and nothing else.
func TestCORSAgreesWithModel(t *testing.T) {
	peer, saw := startUpstream(t, talkative), map[string]int{}
	draw := func(t *rapid.T, from ...string) (some []string) {
		for _, one := range from {
			if rapid.Bool().Draw(t, one) {
				some = append(some, one)
			}
		}
		return some
	}
	rapid.Check(t, func(r *rapid.T) {
		of := proxy.CORS{Credentials: rapid.Bool().Draw(r, "credentials")}
		star := []string{"*"}
		if of.Credentials {
			star = nil
		}
		of.Origins = append(draw(r, append(star, "https://a", "null")...), "https://b")
		of.Methods, of.Headers = draw(r, append(star, "PUT", "GET")...), draw(r, append(star, "x-a", "Authorization")...)
		h := newGateway(t, func(c *proxy.Config) { c.Routes = []proxy.Route{{Prefix: "/", CORS: of}} }, peer)
		p := page{rapid.SampledFrom([]string{"https://a", "https://b", "https://c", "null"}).Draw(r, "origin"),
			rapid.SampledFrom([]string{"GET", "POST", "PUT", "DELETE"}).Draw(r, "method"), draw(r, "x-a", "x-b", "authorization"), rapid.Bool().Draw(r, "sent")}
		if rapid.IntRange(0, 2).Draw(r, "simple") == 0 { // otherwise hardly any page fails without a preflight
			p.method, p.headers = "GET", nil
		}
		if rapid.IntRange(0, 2).Draw(r, "strange") == 0 {
			p.origin = "https://c"
		}
		in := func(list []string, one string) bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, one) })
		}
		fits := in(of.Origins, p.origin) || in(of.Origins, "*") && p.origin != "null"
		fits = fits && (of.Credentials || !p.credentials)
		want, simple := "read", in(safelisted, p.method) && len(p.headers) == 0
		if !fits {
			want = "answer"
		}
		fits = fits && (in(of.Methods, p.method) || in(of.Methods, "*") || in(safelisted, p.method))
		for _, name := range p.headers {
			fits = fits && (in(of.Headers, name) || in(of.Headers, "*") && name != "authorization")
		}
		if !simple && !fits {
			want = "preflight"
		}
		got, a := p.fetches(h, "/")
		if saw[got]++; got != want {
			r.Fatalf("%+v of %+v ends at %s, want %s: %v", p, of, got, want, a.header)
		}
		if n := len(a.header["Access-Control-Allow-Origin"]); n > 1 {
			r.Fatalf("said %d times who may", n)
		}
	})
	if len(saw) < 3 && !testing.Short() { // in short mode too few cases are drawn
		t.Errorf("only saw %v", saw)
	}
}

// TestCORSCredentialsForbidWildcards: with credentials, a wildcard is rejected.
func TestCORSCredentialsForbidWildcards(t *testing.T) {
	up := []proxy.Upstream{{Name: "app", URLs: nil}}
	up[0].URLs = append(up[0].URLs, mustURL("http://127.0.0.1:1"))
	for _, of := range []proxy.CORS{{Origins: []string{"*"}}, {Origins: []string{"https://a"}, Methods: []string{"*"}},
		{Origins: []string{"https://a"}, Headers: []string{"X-A", "*"}}, {Origins: []string{"https://a"}, Expose: []string{"*"}}} {
		for _, with := range []bool{false, true} {
			of.Credentials = with
			c := proxy.Default()
			c.Upstreams, c.Routes, c.Tunnels = up, []proxy.Route{{Prefix: "/", CORS: of}}, proxy.NewTunnels()
			if _, err := proxy.New(c, newCorePort()); errors.Is(err, proxy.ErrCORS) != with {
				t.Errorf("%+v: %v", of, err)
			}
		}
	}
}
