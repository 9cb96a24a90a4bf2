package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// fakeTrace is the trace of a request.
type fakeTrace string

func (w fakeTrace) CutByShutdown() bool { return w == "cut" }
func (w fakeTrace) EndedByClient() bool { return w == "ended" }
func (w fakeTrace) Detail() string {
	if w == "half" {
		return "Half of it came."
	}
	return ""
}

// fakeProxy serves every path outside the API.
type fakeProxy struct{}

func (fakeProxy) Match(r *http.Request) (httpapi.ProxyRoute, event.Problem) {
	w := httpapi.ProxyRoute{Number: 3, Deadline: 7 * time.Second, NeedsKey: r.URL.Path == "/keyed"}
	switch r.URL.Path {
	case "/nowhere":
		return w, event.NotFound
	case "/preflight":
		w.Preflight, w.NeedsKey = true, true
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusNoContent)
		}
	case "/cors":
		w.NeedsKey = true
		w.SetHeader = func(h http.Header) { h.Set("Vary", "Origin") }
	case "/gone":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("gone")
			w.Header().Set("Retry-After", "9")
			httpapi.WriteProblem(w, r, event.Unavailable)
		}
	case "/late":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("late")
			httpapi.WriteProblem(w, r, event.Timeout)
		}
	case "/half":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("half")
			httpapi.WriteProblem(w, r, event.BadRequest)
		}
	case "/ended", "/ended-late":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			if *to = fakeTrace("ended"); r.URL.Path == "/ended" {
				panic(http.ErrAbortHandler)
			}
			httpapi.WriteProblem(w, r, event.Timeout)
		}
	case "/cut-tunnel":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("cut")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	case "/their-503":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("well")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/early":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
			w.WriteHeader(http.StatusEarlyHints)
			httpapi.WriteProblem(w, r, event.BadGateway)
		}
	case "/cut":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush() // sends the first part
			panic(http.ErrAbortHandler)
		}
	case "/echo":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprint(w, "sent on: ", r.Header["X-Request-Id"], " ", r.Header["X-Decision-Id"])
		}
	case "/credentials":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprintf(w, "forwarded: %q", r.Header["Authorization"])
		}
	default:
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
			*to = fakeTrace("well")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, "from afar: "+r.URL.Path+" "+r.Header.Get("Authorization"))
		}
	}
	return w, event.None
}

// TestTunnelsUseStreamPermits: upgrades and event streams of proxy routes need a permit of the facet streams.
func TestTunnelsUseStreamPermits(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	for header, want := range map[string]types.Facet{"": types.FacetProxy, "Upgrade: websocket": types.Streams, "Accept: text/event-stream": types.Streams, "Accept: text/csv": types.FacetProxy} {
		r := s.get("/a?wait=1")
		if want == types.Streams {
			r.Method = http.MethodPost // an upstream may stream its response to any method
		}
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		h.admits = nil
		if a := s.send(r); a.status != 200 || len(h.admits) != 1 || h.admits[0].Facet != want {
			t.Errorf("%q: %d, came as %+v", header, a.status, h.admits)
		}
	}
}

// TestKeysAreHidden: no upstream sees an API key of the node in an Authorization field, however it is written. Other
// credentials are forwarded.
func TestKeysAreHidden(t *testing.T) {
	s := serve(t, build(t), func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	key := strings.TrimPrefix(bearer(1), "Bearer ")
	for _, c := range []struct{ sent, forwarded []string }{
		{[]string{"Bearer " + key}, nil},
		{[]string{"Bearer\t" + key}, nil},
		{[]string{"Bearer " + key + ", Basic x"}, nil},
		{[]string{"Basic x, Bearer " + key}, nil},
		{[]string{key}, nil},
		{[]string{"Bearer mk_mk_" + key}, nil},
		{[]string{"Bearer " + key[:len(key)-1]}, nil},
		{[]string{"Bearer " + key, "Bearer " + key}, nil},
		{[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+key))}, nil},
		{[]string{"basic  " + base64.RawStdEncoding.EncodeToString([]byte(key+":password"))}, nil},
		{[]string{"Basic " + base64.URLEncoding.EncodeToString([]byte("???>>>:"+key))}, nil},
		{[]string{"Basic dXNlcjpwYXNzd29yZA=="}, []string{"Basic dXNlcjpwYXNzd29yZA=="}},
		{[]string{"Bearer " + key, "Basic x"}, []string{"Basic x"}},
		{[]string{"Basic x", "Bearer " + key}, []string{"Basic x"}},
		{[]string{"Basic x"}, []string{"Basic x"}},
		{[]string{"Bearer mk_live_0123456789abcdef_0123"}, []string{"Bearer mk_live_0123456789abcdef_0123"}},
		{[]string{"Bearer mk_0123456789abcdef"}, []string{"Bearer mk_0123456789abcdef"}},
	} {
		r := s.get("/credentials")
		r.Header["Authorization"] = c.sent
		want := fmt.Sprintf("forwarded: %q", c.forwarded)
		if a := s.send(r); a.status != 200 || a.body != want {
			t.Errorf("%q: %d %s, want %s", c.sent, a.status, a.body, want)
		}
	}
}

// TestProxyRoutes: a path outside the API is admitted like any other, and then served by the proxy.
func TestProxyRoutes(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	bare := func(path string) *http.Request {
		r := s.get(path)
		r.Header.Del("Authorization")
		return r
	}
	withAuth := func(path, auth string) *http.Request {
		r := bare(path)
		r.Header.Set("Authorization", auth)
		return r
	}
	for _, c := range []struct {
		r        *http.Request
		status   int
		contains string
		arrives  bool
	}{
		{bare("/a/b"), 200, "from afar: /a/b", true},
		{bare("/"), 200, "from afar: /", true},
		{bare("/keyed"), 401, `"code":"unauthorized"`, true},
		{s.get("/keyed"), 200, "from afar: /keyed ", true},
		{withAuth("/a", bearer(1)), 200, "from afar: /a ", true},
		{withAuth("/keyed", "Bearer   "+bearer(1)[7:]), 200, "from afar: /keyed ", true},
		{withAuth("/a", "Bearer theirs"), 200, "from afar: /a Bearer theirs", true},
		{bare("/nowhere"), 404, `"code":"not_found"`, true},
		{bare("/gone"), 503, `"code":"unavailable"`, true},
		{bare("/half"), 400, `"detail":"Half of it came."`, true},
		{bare("/late"), 504, `"detail":"The deadline passed before`, true},
		{bare("/v1/nowhere"), 404, `"code":"not_found"`, true},
		{s.post("balance", "", ""), 405, `"code":"method_not_allowed"`, true},
		{bare("/openapi.json"), 200, "openapi", true},
	} {
		h.admits, kept.all = nil, nil
		a := s.send(c.r)
		path := c.r.URL.Path
		if a.status != c.status || !strings.Contains(a.body, c.contains) || strings.Contains(a.body, "afar") && strings.Contains(a.body, "mk_") || a.header.Get("X-Request-Id") == "" && a.status != 200 {
			t.Errorf("%s: %d %s %v", path, a.status, a.body, a.header)
		}
		if (len(h.admits) == 1) != c.arrives || len(h.permits) != 0 {
			t.Errorf("%s: %d were admitted, %d have permits", path, len(h.admits), len(h.permits))
		}
		if in := h.admits; len(in) == 1 && strings.HasSuffix(path, "/nowhere") && in[0].Class != types.ClassAnon {
			t.Errorf("%s: %+v", path, in)
		}
		if c.arrives && c.status != 404 && c.status != 405 && path != "/openapi.json" {
			in := h.admits[0]
			if in.Facet != types.FacetProxy || in.Route != uint16(httpapi.Endpoints())+3 || in.TimeLeft != 7*time.Second || in.PermitFor < time.Hour {
				t.Errorf("%s: %+v", path, in)
			}
			if len(kept.all) != 1 || kept.all[0].Route != "proxy" || kept.all[0].Status != c.status || kept.all[0].Path != path || kept.all[0].Method != "GET" {
				t.Errorf("%s: kept %+v", path, kept.all)
			} else if trace := kept.all[0].Trace; (trace == fakeTrace("well")) != (c.status == 200) || (trace == fakeTrace("gone")) != (c.status == 503) {
				t.Errorf("%s: its trace is %v", path, trace)
			}
		}
		if path == "/gone" && a.header.Get("Retry-After") != "9" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	h.verdict = &event.Decision{Problem: event.Busy, Reason: event.RejectRouteLimit}
	if a := s.send(bare("/a")); a.status != 429 || strings.Contains(a.body, "afar") {
		t.Errorf("%+v", a)
	}
	h.verdict = nil
	s.set(func(st *event.Status) { st.Reads = false })
	for _, path := range []string{"/a", "/v1/balance", "/v1/nowhere"} {
		kept.all = nil
		if a := s.send(bare(path)); a.status != 503 || len(kept.all) != 1 || kept.all[0].Class != types.ClassAnon || kept.all[0].Verdict.Reason != event.RejectNotServing {
			t.Errorf("%s: %+v, kept %+v", path, a, kept.all)
		}
	}
	if s.count.get("barred anon not_serving") != 3 {
		t.Error("rejections of the shutdown are not counted")
	}
}

// TestRejectionsCountForTheirPlane: a rejected proxy request counts for the proxy, not for the API of the node,
// and the other way round.
func TestRejectionsCountForTheirPlane(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	busy := &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}
	for _, c := range []struct {
		path    string
		verdict *event.Decision
		status  int
		counts  string
	}{
		{"/gone", nil, 503, "proxy refused unavailable"},
		{"/a", busy, 429, "proxy refused rate_limited"},
		{"/late", nil, 504, "proxy refused timeout"},
		{"/v1/nowhere", busy, 429, "wallet refused rate_limited"},
		{"/v1/nowhere", nil, 404, "wallet refused not_found"},
	} {
		h.verdict = c.verdict
		before := s.count.get(c.counts)
		if a := s.send(s.get(c.path)); a.status != c.status || s.count.get(c.counts) != before+1 {
			t.Errorf("%s: %d %s, counted %v", c.path, a.status, a.body, s.count.of)
		}
	}
	if s.count.get("proxy refused rate_limited") != 1 || s.count.get("wallet refused rate_limited") != 1 || s.count.get("timed out timeout") != 0 {
		t.Errorf("%v", s.count.of)
	}
}

// TestPreflightNeedsNoKey: a preflight is admitted as an anonymous request, does not count for its route, and
// needs no key.
func TestPreflightNeedsNoKey(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	for _, auth := range []string{"", bearer(1)} {
		h.admits, kept.all = nil, nil
		r := s.get("/preflight")
		r.Header.Set("Authorization", auth)
		if a := s.send(r); a.status != http.StatusNoContent || len(h.admits) != 1 || len(h.permits) != 0 || len(kept.all) != 1 {
			t.Fatalf("%d %s; %d were admitted, %d have permits, %d kept", a.status, a.body, len(h.admits), len(h.permits), len(kept.all))
		}
		if in := h.admits[0]; in.Class != types.ClassAnon || in.Key != 0 || in.Tenant != 0 || in.Facet != types.FacetProxy || in.Route != 0 || in.PermitFor != 0 {
			t.Errorf("%+v", in)
		}
	}
	h.verdict = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}
	if a := s.send(s.get("/preflight")); a.status != http.StatusTooManyRequests {
		t.Errorf("%+v", a)
	}
}

// TestRejectionsHaveRouteHeaders: the header fields of a route are also in its rejections.
func TestRejectionsHaveRouteHeaders(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	r := s.get("/cors")
	r.Header.Del("Authorization")
	if a := s.send(r); a.status != http.StatusUnauthorized || a.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.status, a.header)
	}
	h.verdict = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}
	if a := s.send(s.get("/cors")); a.status != http.StatusTooManyRequests || a.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// TestCutProxyResponse: a response that breaks off does not look complete, and its permit is returned.
func TestCutProxyResponse(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = fakeProxy{} })
	plain := &http.Client{Transport: new(http.Transport)} // the other client validates complete responses
	defer plain.CloseIdleConnections()
	resp, err := plain.Do(s.get("/cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err == nil || string(b) != "half" {
		t.Errorf("%q, %v", b, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.permits) != 0 {
		t.Errorf("%d have permits", len(h.permits))
	}
}

// TestProblemAfterEarlyHints: an informational response is not the response, so a problem can follow.
func TestProblemAfterEarlyHints(t *testing.T) {
	kept := new(decisionLog)
	s := serve(t, build(t), func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	if a := s.send(s.get("/early")); a.status != http.StatusBadGateway || !strings.Contains(a.body, `"code":"bad_gateway"`) || len(kept.all) != 1 || kept.all[0].Status != a.status {
		t.Errorf("%+v, kept %+v", a, kept.all)
	}
}
