package httpapi_test

import (
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

// went is a course.
type went string

func (w went) Cut() bool { return w == "cut" }

// A far serves what is none of ours.
type far struct{}

func (far) Match(r *http.Request) (httpapi.Way, event.Problem) {
	w := httpapi.Way{Number: 3, Deadline: 7 * time.Second, Key: r.URL.Path == "/keyed"}
	switch r.URL.Path {
	case "/nowhere":
		return w, event.NotFound
	case "/preflight":
		w.Preflight, w.Key = true, true
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, _ *httpapi.Course) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusNoContent)
		}
	case "/heard":
		w.Key = true
		w.Head = func(h http.Header) { h.Set("Vary", "Origin") }
	case "/gone":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.Course) {
			*to = went("gone")
			w.Header().Set("Retry-After", "9")
			httpapi.Fail(w, r, event.Unavailable)
		}
	case "/late":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.Course) {
			*to = went("late")
			httpapi.Fail(w, r, event.Timeout)
		}
	case "/cut-tunnel":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, to *httpapi.Course) {
			*to = went("cut")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	case "/their-503":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, to *httpapi.Course) {
			*to = went("well")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/early":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.Course) {
			w.WriteHeader(http.StatusEarlyHints)
			httpapi.Fail(w, r, event.BadGateway)
		}
	case "/cut":
		w.Serve = func(w http.ResponseWriter, _ *http.Request, _ types.Flow, _ *httpapi.Course) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush() // so that it has left
			panic(http.ErrAbortHandler)
		}
	case "/echo":
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.Course) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprint(w, "sent on: ", r.Header["X-Request-Id"], " ", r.Header["X-Decision-Id"])
		}
	default:
		w.Serve = func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.Course) {
			*to = went("well")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, "from afar: "+r.URL.Path+" "+r.Header.Get("Authorization"))
		}
	}
	return w, event.None
}

// TestTunnelsWantAPermitOfStreams: of what goes to upstreams, upgrades and event streams ask for a
// permit of the facet streams.
func TestTunnelsWantAPermitOfStreams(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond = far{} })
	for header, want := range map[string]types.Facet{"": types.FacetProxy, "Upgrade: websocket": types.Streams, "Accept: text/event-stream": types.Streams, "Accept: text/csv": types.FacetProxy} {
		r := s.get("/a?wait=1")
		if want == types.Streams {
			r.Method = http.MethodPost // a service may stream its answer to any method
		}
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		h.arrived = nil
		if a := s.send(r); a.status != 200 || len(h.arrived) != 1 || h.arrived[0].Facet != want {
			t.Errorf("%q: %d, came as %+v", header, a.status, h.arrived)
		}
	}
}

// TestBeyond: what is no path of ours is admitted as all else, and served elsewhere.
func TestBeyond(t *testing.T) {
	h, kept := build(t), new(diary)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond, c.Decisions = far{}, kept })
	bare := func(path string) *http.Request {
		r := s.get(path)
		r.Header.Del("Authorization")
		return r
	}
	told := func(path, auth string) *http.Request {
		r := bare(path)
		r.Header.Set("Authorization", auth)
		return r
	}
	for _, c := range []struct {
		r       *http.Request
		status  int
		says    string
		arrives bool
	}{
		{bare("/a/b"), 200, "from afar: /a/b", true},
		{bare("/"), 200, "from afar: /", true},
		{bare("/keyed"), 401, `"code":"unauthorized"`, true},
		{s.get("/keyed"), 200, "from afar: /keyed ", true},
		{told("/a", bearer(1)), 200, "from afar: /a ", true},
		{told("/keyed", "Bearer   "+bearer(1)[7:]), 200, "from afar: /keyed ", true},
		{told("/a", "Bearer theirs"), 200, "from afar: /a Bearer theirs", true},
		{bare("/nowhere"), 404, `"code":"not_found"`, true},
		{bare("/gone"), 503, `"code":"unavailable"`, true},
		{bare("/v1/nowhere"), 404, `"code":"not_found"`, true},
		{s.post("balance", "", ""), 405, `"code":"method_not_allowed"`, true},
		{bare("/openapi.json"), 200, "openapi", true},
	} {
		h.arrived, kept.all = nil, nil
		a := s.send(c.r)
		path := c.r.URL.Path
		if a.status != c.status || !strings.Contains(a.body, c.says) || strings.Contains(a.body, "afar") && strings.Contains(a.body, "mk_") || a.header.Get("X-Request-Id") == "" && a.status != 200 {
			t.Errorf("%s: %d %s %v", path, a.status, a.body, a.header)
		}
		if (len(h.arrived) == 1) != c.arrives || len(h.in) != 0 {
			t.Errorf("%s: %d came, %d are in", path, len(h.arrived), len(h.in))
		}
		if in := h.arrived; len(in) == 1 && strings.HasSuffix(path, "/nowhere") && in[0].Class != types.ClassAnon {
			t.Errorf("%s: %+v", path, in)
		}
		if c.arrives && c.status != 404 && c.status != 405 && path != "/openapi.json" {
			in := h.arrived[0]
			if in.Facet != types.FacetProxy || in.Route != uint16(httpapi.Endpoints())+3 || in.TimeLeft != 7*time.Second || in.PermitFor < time.Hour {
				t.Errorf("%s: %+v", path, in)
			}
			if len(kept.all) != 1 || kept.all[0].Route != "proxy" || kept.all[0].Status != c.status || kept.all[0].Path != path || kept.all[0].Method != "GET" {
				t.Errorf("%s: kept %+v", path, kept.all)
			} else if course := kept.all[0].Course; (course == went("well")) != (c.status == 200) || (course == went("gone")) != (c.status == 503) {
				t.Errorf("%s: its course is %v", path, course)
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
		t.Error("who is refused by the end is not counted")
	}
}

// TestRefusalsAreOfTheirPlane: what is refused on its way to another service, by the gate or
// by what became of it there, rings no alarm of the node's own API, and the other way round.
func TestRefusalsAreOfTheirPlane(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond = far{} })
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

// TestAPreflightIsAStrangers: it is admitted as anybody is, is nothing of its route, and
// wants no key, whatever it shows.
func TestAPreflightIsAStrangers(t *testing.T) {
	h, kept := build(t), new(diary)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond, c.Decisions = far{}, kept })
	for _, auth := range []string{"", bearer(1)} {
		h.arrived, kept.all = nil, nil
		r := s.get("/preflight")
		r.Header.Set("Authorization", auth)
		if a := s.send(r); a.status != http.StatusNoContent || len(h.arrived) != 1 || len(h.in) != 0 || len(kept.all) != 1 {
			t.Fatalf("%d %s; %d came, %d are in, %d kept", a.status, a.body, len(h.arrived), len(h.in), len(kept.all))
		}
		if in := h.arrived[0]; in.Class != types.ClassAnon || in.Key != 0 || in.Tenant != 0 || in.Facet != types.FacetProxy || in.Route != 0 || in.PermitFor != 0 {
			t.Errorf("%+v", in)
		}
	}
	h.verdict = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}
	if a := s.send(s.get("/preflight")); a.status != http.StatusTooManyRequests {
		t.Errorf("%+v", a)
	}
}

// TestRefusalsHaveAHead: what is to be said with any answer is said with one of ours.
func TestRefusalsHaveAHead(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond = far{} })
	r := s.get("/heard")
	r.Header.Del("Authorization")
	if a := s.send(r); a.status != http.StatusUnauthorized || a.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.status, a.header)
	}
	h.verdict = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded}
	if a := s.send(s.get("/heard")); a.status != http.StatusTooManyRequests || a.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// TestBeyondIsCut: an answer that breaks off is no whole one, and gives its permit back.
func TestBeyondIsCut(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond = far{} })
	plain := &http.Client{Transport: new(http.Transport)} // the other holds whole answers to the document
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
	if len(h.in) != 0 {
		t.Errorf("%d are in", len(h.in))
	}
}

// TestBeyondSaysSomethingFirst: what is said before an answer is none of it: there may still
// be a problem.
func TestBeyondSaysSomethingFirst(t *testing.T) {
	kept := new(diary)
	s := serve(t, build(t), func(c *httpapi.Config) { c.Face.Beyond, c.Decisions = far{}, kept })
	if a := s.send(s.get("/early")); a.status != http.StatusBadGateway || !strings.Contains(a.body, `"code":"bad_gateway"`) || len(kept.all) != 1 || kept.all[0].Status != a.status {
		t.Errorf("%+v, kept %+v", a, kept.all)
	}
}
