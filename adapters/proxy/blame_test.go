package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// TestARequestThatCannotBeWrittenBlamesNoEndpoint serves requests that no client of the proxy writes,
// as if the validator had let them through: 400, and nothing is learnt of the endpoint.
func TestARequestThatCannotBeWrittenBlamesNoEndpoint(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"method", func(r *http.Request) { r.Method = "(" }},
		{"field value", func(r *http.Request) { r.Header["X-A"] = []string{"b\x00"} }},
		{"field name", func(r *http.Request) { r.Header["X A"] = []string{"b"} }},
		{"trailer name", func(r *http.Request) { r.Trailer = http.Header{"": nil} }},
	} {
		for protocol, h := range map[string]*house{"HTTP/1.1": build(t, nil, serves(t, echo)), "HTTP/2": build(t, second, serves2(t, echo))} {
			if c.name == "method" && protocol == "HTTP/2" {
				continue // its client writes any method
			}
			for range 3 { // the first is over a new connection
				if a := h.do(h.request("POST", "/", strings.NewReader("x"))); a.status != 200 {
					t.Fatalf("%s: %d %v", protocol, a.status, a.err)
				}
				h.port.mu.Lock()
				h.port.told = nil
				h.port.mu.Unlock()
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("x"))
				m, problem := h.proxy.Match(r)
				if problem != event.None {
					t.Fatal(problem)
				}
				c.change(r)
				w, course := httptest.NewRecorder(), new(proxy.Course)
				h.proxy.Serve(w, r, m, course)
				h.port.idle(t)
				if got := told(&course.Legs[0]); w.Code != 400 || got != "abandoned invalid_request 0, " || h.port.endings() != " abandoned" {
					t.Errorf("%s, %s: %d, %q,%s", c.name, protocol, w.Code, got, h.port.endings())
				}
			}
		}
	}
}

// TestAHeaderThatIsTooLargeBlamesNoEndpoint: an endpoint of HTTP/2 says how large a header it takes. A
// larger one of a client is 400, in front of the body, behind it, and in a read that becomes
// a part of an answer.
func TestAHeaderThatIsTooLargeBlamesNoEndpoint(t *testing.T) {
	limited := func(t *testing.T) *wilds {
		return tame(t, func(_ int, c *wild) {
			for {
				f, err := c.frame()
				if err != nil {
					return
				}
				if h, ok := f.(*http2.HeadersFrame); ok && h.StreamEnded() {
					c.well(f.Header().StreamID)
				}
			}
		}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1 << 10})
	}
	large := strings.Repeat("x", 1<<10)
	h, courses := followed(t, second, limited(t).url)
	if a := h.get("/"); a.status != 200 { // the endpoint has said it by now
		t.Fatalf("%d %v", a.status, a.err)
	}
	<-courses
	trailer := h.request("PUT", "/", io.NopCloser(strings.NewReader("x")))
	trailer.Trailer = http.Header{"X-A": {large}}
	for what, r := range map[string]*http.Request{"header": h.request("GET", "/", nil, "X-A", large), "trailer": trailer} {
		a := h.do(r)
		if got := told(&(<-courses).Legs[0]); a.status != 400 || !strings.HasPrefix(got, "abandoned stream_refused 0") {
			t.Errorf("%s: %d %v, %q", what, a.status, a.err, got)
		}
	}
	g, courses := followed(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{{Prefix: "/", Parts: []proxy.Part{{Name: "a", Path: "/a", Required: true}}}}
		second(c)
	}, limited(t).url)
	_ = g.get("/") // as above; what it serves is no JSON
	<-courses
	a := g.get("/", "X-A", large)
	if got := told(&(<-courses).Legs[0]); a.status != 400 || got != "abandoned stream_refused 0, " {
		t.Errorf("part: %d %v, %q", a.status, a.err, got)
	}
}

// TestUnderscoresHideNothing: a field that differs from one of the gateway by underscores
// alone goes no further, in a header and in a trailer.
func TestUnderscoresHideNothing(t *testing.T) {
	for what, h := range map[string]*house{"HTTP/1.1": build(t, nil, serves(t, spelled)), "HTTP/2": build(t, second, serves2(t, spelled))} {
		names := []string{"Transfer_Encoding", "Content_Length", "Keep_Alive", "Proxy_Connection", "Proxy_Authorization", "Http2_Settings",
			"X_Forwarded_For", "X_Real_Ip", "X_Deadline-Ms", "X_Mine"}
		r := h.request("POST", "/", io.NopCloser(strings.NewReader("x")))
		r.Trailer = make(http.Header)
		for _, name := range names {
			r.Header[name], r.Trailer[name] = []string{"1"}, []string{"1"}
		}
		if a := h.do(r); a.status != 200 || a.body != "header X_mine\ntrailer X_mine\n" {
			t.Errorf("%s: %d %v %q", what, a.status, a.err, a.body)
		}
	}
}

// spelled answers with the fields that have an underscore.
func spelled(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	for _, of := range []struct {
		part   string
		fields http.Header
	}{{"header", r.Header}, {"trailer", r.Trailer}} {
		for name := range of.fields {
			if strings.Contains(name, "_") {
				_, _ = fmt.Fprintln(w, of.part, name)
			}
		}
	}
}
