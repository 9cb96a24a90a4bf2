package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// TestMatch: hosts, prefixes, methods and headers match, independent of their order in the
// configuration.
func TestMatch(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{
			{Prefix: "/"},
			{Prefix: "/api"},
			{Prefix: "/api/admin/", Methods: []string{"GET"}},
			{Prefix: "/api", Header: "x-beta", Value: "yes"},
			{Prefix: "/", Host: "*.shop.example"},
			{Prefix: "/", Host: "www.shop.example"},
			{Prefix: "/api", Host: "www.shop.example", Methods: []string{"POST", "PUT"}},
			{Prefix: "/any", Header: "X-Any"},
		}
	}, "http://a")
	for _, c := range []struct {
		method, host, path, header string
		want                       int
		problem                    event.Problem
	}{
		{"GET", "a", "/", "", 0, 0},
		{"GET", "a", "/x", "", 0, 0},
		{"GET", "a", "/apix", "", 0, 0},
		{"GET", "a", "/api", "", 1, 0},
		{"GET", "a", "/api/", "", 1, 0},
		{"GET", "a", "/api/x", "X-Beta: yes", 3, 0},
		{"GET", "a", "/api/x", "X-Beta: no", 1, 0},
		{"GET", "a", "/any", "X-Any: 1", 7, 0},
		{"GET", "a", "/any", "", 0, 0},
		{"GET", "a", "/api/admin", "", 2, 0},
		{"GET", "a", "/api/admin/x", "", 2, 0},
		{"GET", "a", "//api///admin//x", "", 2, 0}, // as an upstream may read it
		{"GET", "a", "/api%2Fadmin%2fx", "", 2, 0},
		{"GET", "a", "/%61pi/admin", "", 2, 0},
		{"GET", "a", "/api/adminx", "", 1, 0},
		{"POST", "a", "/api/admin", "", 1, 0}, // another route accepts it
		{"GET", "WWW.shop.Example:8080", "/", "", 5, 0},
		{"GET", "x.shop.example", "/", "", 4, 0},
		{"GET", "shop.example", "/", "", 0, 0},
		{"GET", "evilshop.example", "/", "", 0, 0},
		{"PUT", "www.shop.example", "/api/1", "", 6, 0},
		{"GET", "www.shop.example", "/api/1", "", 5, 0},
		{"GET", "www.shop.example.", "/", "", 5, 0}, // the same name
		{"GET", "WWW.shop.example.:80", "/", "", 5, 0},
		{"GET", "x.shop.example.", "/", "", 4, 0},
		{"GET", "www.shop.example..", "/", "", 0, event.BadRequest},
		{"GET", "www.shop.example:80:80", "/", "", 0, event.BadRequest},
		{"GET", "[www.shop.example]", "/", "", 0, event.BadRequest},
		{"GET", "[::1]:80", "/", "", 0, 0},
		{"GET", "[::1]", "/", "", 0, 0},
		{"GET", "a/b", "/", "", 0, event.BadRequest},
		{"GET", "a@b", "/", "", 0, event.BadRequest},
		{"GET", "xn--\u00fc.example", "/", "", 0, event.BadRequest},
		{"CONNECT", "a", "/", "", 0, event.MethodNotAllowed},
		{"TRACE", "a", "/", "", 0, event.MethodNotAllowed},
	} {
		r := request(t, c.method, c.host, c.path)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		m, problem := h.proxy.Match(r)
		if problem != c.problem || problem == event.None && m.Route != c.want {
			t.Errorf("%s %s%s: route %d, %v, want %d, %v", c.method, c.host, c.path, m.Route, problem, c.want, c.problem)
		}
	}
	one := newGateway(t, func(c *proxy.Config) { c.Routes = []proxy.Route{{Prefix: "/a", Methods: []string{"GET"}}} }, "http://a")
	for path, want := range map[string]event.Problem{"/a": event.MethodNotAllowed, "/b": event.NotFound} {
		if _, problem := one.proxy.Match(request(t, "POST", "a", path)); problem != want {
			t.Errorf("%s: %v, want %v", path, problem, want)
		}
	}
}

// TestMethodIsNoWayAroundAKey: a request of a path that needs a key for some methods does not reach a route without key at a shorter path
// or of another host by another method, nor by the same one in small letters. 405 names the methods of the path.
func TestMethodIsNoWayAroundAKey(t *testing.T) {
	h := newGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{
			{Prefix: "/", StrictPath: true},
			{Prefix: "/secret", Methods: []string{"GET", "POST"}, NeedsKey: true, StrictPath: true},
			{Prefix: "/both", Methods: []string{"POST"}, NeedsKey: true, StrictPath: true},
			{Prefix: "/both", StrictPath: true},
			{Prefix: "/open", Methods: []string{"POST"}, StrictPath: true},
			{Prefix: "/", Host: "named", Methods: []string{"GET"}, NeedsKey: true, StrictPath: true},
			{Prefix: "/secret/more", Methods: []string{"PUT"}, NeedsKey: true, StrictPath: true},
		}
	}, "http://a")
	for _, c := range []struct {
		method, host, path string
		want               int
		problem            event.Problem
		allow              string
	}{
		{"GET", "a", "/secret/a", 1, event.None, ""},
		{"HEAD", "a", "/secret/a", 0, event.MethodNotAllowed, "GET, POST"},
		{"get", "a", "/secret/a", 0, event.MethodNotAllowed, "GET, POST"},
		{"DELETE", "a", "/secret", 0, event.MethodNotAllowed, "GET, POST"},
		{"HEAD", "a", "/Secret", 0, event.BadRequest, ""}, // the same path for some servers
		{"HEAD", "a", "/secret%3Fa", 0, event.BadRequest, ""},
		{"GET", "a", "/secret/more", 1, event.None, ""}, // that needs a key, too
		{"DELETE", "a", "/secret/more", 0, event.MethodNotAllowed, "PUT, GET, POST"},
		{"GET", "a", "/both", 3, event.None, ""},
		{"Post", "a", "/both", 0, event.BadRequest, ""},
		{"Brew", "a", "/both", 3, event.None, ""},
		{"GET", "a", "/open", 0, event.None, ""},
		{"HEAD", "named", "/", 0, event.MethodNotAllowed, "GET"},
		{"HEAD", "other", "/", 0, event.None, ""},
	} {
		m, problem := h.proxy.Match(request(t, c.method, c.host, c.path))
		if problem != c.problem || problem == event.None && m.Route != c.want || m.Allow != c.allow {
			t.Errorf("%s %s%s: route %d, %v, Allow %q, want %d, %v, %q", c.method, c.host, c.path, m.Route, problem, m.Allow, c.want, c.problem, c.allow)
		}
	}
}

func request(t *testing.T, method, host, path string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(path)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, Host: host, URL: u, Header: http.Header{}}
}

// TestMissingHostIsRejected: a request without Host is rejected, except from an HTTP/1.0 client.
// One Host is forwarded.
func TestMissingHostIsRejected(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	for _, c := range []struct {
		host  string
		minor int
		major int
		want  int
	}{
		{"", 0, 2, 400}, {"", 1, 1, 400}, {":80", 1, 1, 400}, {".", 0, 2, 400}, {"", 0, 1, 200}, {"a", 0, 2, 200}, {"a", 1, 1, 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Host, r.ProtoMajor, r.ProtoMinor = c.host, c.major, c.minor
		if c.host != "" {
			r.Header["Host"] = []string{c.host}
		}
		w := httptest.NewRecorder()
		r.Header.Set("X-Forwarded-Host", "of-the-client")
		if h.proxy.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%q by HTTP/%d.%d: %d, want %d: %s", c.host, c.major, c.minor, w.Code, c.want, w.Body)
		}
		if got, sent := w.Header()["Saw-X-Forwarded-Host"]; sent != (c.want == 200 && c.host != "") || sent && got[0] != c.host {
			t.Errorf("%q by HTTP/%d.%d: the upstream saw X-Forwarded-Host %q", c.host, c.major, c.minor, got)
		}
	}
}

// A path with dot segments in any spelling is rejected.
func TestTraversalIsRejected(t *testing.T) {
	h := newGateway(t, nil, "http://a")
	for path, ok := range map[string]bool{
		"/../etc": false, "/a/../b": false, "/a/..": false, "/..": false, "/.": false, "/a/./b": false, "/a/.": false,
		"/a/%2e%2e/b": false, "/a/%2E./b": false, "/a%2f..%2fb": false, "/a%5c..%5cb": false, "/a\\..\\b": false, "/a/..\\b": false,
		"/a/..;/b": false, "/a/..;x=1/b": false, "/a/.;/b": false, "/a%00b": false, "/a%0d%0aHost:%20b": false, "/a%7f": false, "*": false,
		"/a/...": true, "/a/..b": true, "/a/b..": true, "/.well-known/x": true, "/a/.b/..c": true, "/a%252e%252e/b": true, "/ä": true, "/a;b": true, "/a\\b": true,
	} {
		_, problem := h.proxy.Match(request(t, "GET", "a", path))
		if ok != (problem == event.None) || !ok && problem != event.BadRequest {
			t.Errorf("%s: %v", path, problem)
		}
	}
}

// TestRewriteReplacesPrefix: the rest of the path keeps its encoding.
func TestRewriteReplacesPrefix(t *testing.T) {
	saw := startUpstream(t, echo)
	for _, c := range []struct{ prefix, put, base, path, want string }{
		{"/api", "/", "", "/api/x?q=%20", "/x?q=%20"},
		{"/api", "/", "", "/api", "/"},
		{"/api", "/", "", "/api/", "/"},
		{"/api", "/", "", "/api%2fx", "/x"},
		{"/api", "/", "", "/api%2F%2Fx%2fy", "/%2Fx%2fy"},
		{"/api", "/", "/base", "/api%2fx", "/base/x"},
		{"/api", "/", "", "/%61pi%2f", "/"},
		{"/api", "/v1", "", "/api/a%2Fb/c%20d", "/v1/a%2Fb/c%20d"},
		{"/api", "/v1", "", "/%61pi%2fa%2Fb", "/v1%2fa%2Fb"},
		{"/api/x", "/v1/", "", "//api//x//y", "/v1//y"},
		{"/", "/v1", "", "/a%2Fb", "/v1/a%2Fb"},
		{"/api", "/v1", "/base", "/api/a%2Fb", "/base/v1/a%2Fb"},
		{"/", "", "/base", "/a//b%2F", "/base/a//b%2F"},
		{"/", "", "/base", "/a", "/base/a"},
		{"/ä", "/ö", "", "/%C3%A4/x", "/%C3%B6/x"},
	} {
		h := newGateway(t, func(cfg *proxy.Config) {
			cfg.Upstreams[0].Host = "app.internal"
			cfg.Routes = []proxy.Route{{Prefix: c.prefix, Rewrite: c.put != "", NewPrefix: c.put}}
		}, saw+c.base)
		if got := h.get(c.path).header.Get("X-Saw"); !strings.HasPrefix(got, "GET app.internal "+c.want+" ") {
			t.Errorf("%s: %s to %s%s: %s, want %s", c.path, c.prefix, c.base, c.put, got, c.want)
		}
	}
}

// TestInvalidConfigurations checks the errors of New.
func TestInvalidConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*proxy.Config)
		want  error
	}{
		"no url":                  {func(c *proxy.Config) { c.Upstreams[0].URLs = nil }, proxy.ErrUpstream},
		"no name":                 {func(c *proxy.Config) { c.Upstreams[0].Name = "" }, proxy.ErrUpstream},
		"a scheme":                {func(c *proxy.Config) { c.Upstreams[0].URLs[0].Scheme = "ftp" }, proxy.ErrUpstream},
		"a slash at the end":      {func(c *proxy.Config) { c.Upstreams[0].URLs[0].Path = "/" }, proxy.ErrUpstream},
		"a check without time":    {func(c *proxy.Config) { c.Upstreams[0].HealthPath = "/" }, proxy.ErrUpstream},
		"no prefix":               {func(c *proxy.Config) { c.Routes[0].Prefix = "" }, proxy.ErrRoute},
		"a prefix that climbs":    {func(c *proxy.Config) { c.Routes[0].Prefix = "/a/../b" }, proxy.ErrRoute},
		"a prefix of two slashes": {func(c *proxy.Config) { c.Routes[0].Prefix = "//a" }, proxy.ErrRoute},
		"no such upstream":        {func(c *proxy.Config) { c.Routes[0].Upstream = 1 }, proxy.ErrRoute},
		"four parts": {func(c *proxy.Config) {
			c.Routes[0].Parts = []proxy.Part{{Name: "a", Path: "/"}, {Name: "b", Path: "/"}, {Name: "c", Path: "/"}, {Name: "d", Path: "/"}}
		}, proxy.ErrParts},
		"a part twice": {func(c *proxy.Config) {
			c.Routes[0].Parts = []proxy.Part{{Name: "a", Path: "/"}, {Name: "a", Path: "/"}}
		}, proxy.ErrParts},
		"a part's name": {func(c *proxy.Config) { c.Routes[0].Parts = []proxy.Part{{Name: `a"`, Path: "/"}} }, proxy.ErrParts},
		"a part's path": {func(c *proxy.Config) { c.Routes[0].Parts = []proxy.Part{{Name: "a", Path: "x"}} }, proxy.ErrParts},
		"no JSON":       {func(c *proxy.Config) { c.Routes[0].Parts = []proxy.Part{{Name: "a", Path: "/", Fallback: "{"}} }, proxy.ErrParts},
	} {
		cfg := proxy.Default()
		cfg.Upstreams, cfg.Routes = []proxy.Upstream{{Name: "a", URLs: []*url.URL{mustURL("http://a")}}}, []proxy.Route{{Prefix: "/"}}
		c.spoil(&cfg)
		if _, err := proxy.New(cfg, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request is one request for the upstream as well, whatever its framing fields are: the proxy
// writes new ones.
func TestAmbiguousLengthsAreNotForwarded(t *testing.T) {
	h := newGateway(t, nil, startUpstream(t, echo))
	const inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, c := range map[string]struct {
		text string
		want string // the status, and what the upstream received, of each response
	}{
		"length and chunks": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `200 POST a / -1 ["chunked"] <nil> hello`},
		"chunks, and more":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, `200 POST a / -1 ["chunked"] <nil> ; 200 GET a /inner 0 [] <nil> `},
		"two lengths":       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
		"two encodings":     {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "501"},
		"another encoding":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"},
		"a length of many":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", "400"},
		"no chunk":          {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
		"a name with space": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"},
		"a folded line":     {"GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n Transfer-Encoding: chunked\r\n\r\n", "200 GET a / 0 [] <nil> "},
		"a trailer's name":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: a b\r\n\r\n0\r\n\r\n", "400"},
		"two hosts":         {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
		"an absolute one":   {"GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", "200 GET b /x 0 [] <nil> "},
	} {
		conn, in := h.raw(c.text)
		var got []string
		for range strings.Count(c.want, ";") + 1 {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				got = append(got, err.Error())
				break
			}
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != 200 {
				got = append(got, fmt.Sprint(res.StatusCode))
				break
			}
			got = append(got, fmt.Sprintf("%d %s %s", res.StatusCode, res.Header.Get("X-Saw"), body))
		}
		conn.Close()
		if all := strings.Join(got, "; "); all != c.want {
			t.Errorf("%s: %s, want %s", name, all, c.want)
		}
	}
}

// TestUnusedPlacesKeepNumbers: an upstream without a name and a nil endpoint are unused, and the
// others keep their numbers.
func TestUnusedPlacesKeepNumbers(t *testing.T) {
	here := startUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	h := newGateway(t, func(c *proxy.Config) {
		c.Upstreams[0].URLs = []*url.URL{nil, mustURL(here), nil}
		c.Upstreams = []proxy.Upstream{{}, {}, c.Upstreams[0]}
		c.Routes[0].Upstream = 2
	}, here)
	for range 3 {
		if a := h.get("/"); a.status != 200 || a.body != "here" {
			t.Fatalf("%d %q", a.status, a.body)
		}
	}
	// An endpoint that only another Proxy has is used as well: they share the table.
	shared := new(proxy.Endpoints)
	one := newGateway(t, func(c *proxy.Config) {
		c.Endpoints, c.Upstreams[0].URLs = shared, []*url.URL{mustURL(nettest.RefusingAddress(t)), nil}
	}, here)
	one.proxy.PublishEndpoints()
	next := newGateway(t, func(c *proxy.Config) { c.Endpoints, c.Upstreams[0].URLs = shared, []*url.URL{mustURL(here)} }, here)
	if a := one.get("/"); a.status != 502 {
		t.Fatalf("a proxy that is made and not applied changes where requests go: %d %q", a.status, a.body)
	}
	restore := next.proxy.PublishEndpoints()
	restore()
	if a := one.get("/"); a.status != 502 {
		t.Fatalf("a publication that was taken back changes where requests go: %d %q", a.status, a.body)
	}
	next.proxy.PublishEndpoints()
	if a := one.get("/"); a.status != 200 || a.body != "here" {
		t.Fatalf("%d %q", a.status, a.body)
	}
	for name, bad := range map[string]func(*proxy.Config){
		"a route to nobody":  func(c *proxy.Config) { c.Upstreams = append(c.Upstreams, proxy.Upstream{}); c.Routes[0].Upstream = 1 },
		"no endpoint":        func(c *proxy.Config) { c.Upstreams[0].URLs = []*url.URL{nil} },
		"too many endpoints": func(c *proxy.Config) { c.Upstreams[0].URLs = append(make([]*url.URL, 16), mustURL(here)) },
		"too many upstreams": func(c *proxy.Config) { c.Upstreams = append(c.Upstreams, make([]proxy.Upstream, 64)...) },
		"a part of nobody's": func(c *proxy.Config) { c.Routes[0].Parts = []proxy.Part{{Name: "a", Upstream: 1, Path: "/"}} },
	} {
		c := proxy.Default()
		c.Upstreams, c.Routes = []proxy.Upstream{{Name: "app", URLs: []*url.URL{mustURL(here)}}}, []proxy.Route{{Prefix: "/"}}
		bad(&c)
		if _, err := proxy.New(c, nil); err == nil {
			t.Error(name)
		}
	}
}
