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

// TestUnsendableRequestIsNoEndpointFault serves requests that a real client cannot send, as if
// the validator had accepted them: 400, and the endpoint has not failed.
func TestUnsendableRequestIsNoEndpointFault(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"method", func(r *http.Request) { r.Method = "(" }},
		{"field value", func(r *http.Request) { r.Header["X-A"] = []string{"b\x00"} }},
		{"field name", func(r *http.Request) { r.Header["X A"] = []string{"b"} }},
		{"trailer name", func(r *http.Request) { r.Trailer = http.Header{"": nil} }},
	} {
		for protocol, h := range map[string]*gateway{"HTTP/1.1": newGateway(t, nil, startUpstream(t, echo)), "HTTP/2": newGateway(t, useHTTP2, startH2Upstream(t, echo))} {
			if c.name == "method" && protocol == "HTTP/2" {
				continue // the client of the test writes any method
			}
			for range 3 { // the first uses a new connection
				if a := h.do(h.request("POST", "/", strings.NewReader("x"))); a.status != 200 {
					t.Fatalf("%s: %d %v", protocol, a.status, a.err)
				}
				h.port.mu.Lock()
				h.port.reported = nil
				h.port.mu.Unlock()
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("x"))
				m, problem := h.proxy.Match(r)
				if problem != event.None {
					t.Fatal(problem)
				}
				c.change(r)
				w, trace := httptest.NewRecorder(), new(proxy.Trace)
				h.proxy.Serve(w, r, m, trace)
				h.port.requireIdle(t)
				if got := traceLine(&trace.Upstreams[0]); w.Code != 400 || got != "abandoned invalid_request 0, " || h.port.results() != " abandoned" {
					t.Errorf("%s, %s: %d, %q,%s", c.name, protocol, w.Code, got, h.port.results())
				}
			}
		}
	}
}

// TestTooLargeHeaderIsNoEndpointFault: an HTTP/2 endpoint announces a limit of the header. If a
// request exceeds it, in the header, the trailer, or a read for a part, the answer is 400.
func TestTooLargeHeaderIsNoEndpointFault(t *testing.T) {
	limited := func(t *testing.T) *rawH2Server {
		return startH2Server(t, func(_ int, c *rawH2Conn) {
			for {
				f, err := c.frame()
				if err != nil {
					return
				}
				if h, ok := f.(*http2.HeadersFrame); ok && h.StreamEnded() {
					c.respondOK(f.Header().StreamID)
				}
			}
		}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1 << 10})
	}
	large := strings.Repeat("x", 1<<10)
	h, traces := newTracedGateway(t, useHTTP2, limited(t).url)
	if a := h.get("/"); a.status != 200 { // the endpoint has announced its limit by now
		t.Fatalf("%d %v", a.status, a.err)
	}
	<-traces
	trailer := h.request("PUT", "/", io.NopCloser(strings.NewReader("x")))
	trailer.Trailer = http.Header{"X-A": {large}}
	for what, r := range map[string]*http.Request{"header": h.request("GET", "/", nil, "X-A", large), "trailer": trailer} {
		a := h.do(r)
		if got := traceLine(&(<-traces).Upstreams[0]); a.status != 400 || !strings.HasPrefix(got, "abandoned stream_refused 0") {
			t.Errorf("%s: %d %v, %q", what, a.status, a.err, got)
		}
	}
	g, traces := newTracedGateway(t, func(c *proxy.Config) {
		c.Routes = []proxy.Route{{Prefix: "/", Parts: []proxy.Part{{Name: "a", Path: "/a", Required: true}}}}
		useHTTP2(c)
	}, limited(t).url)
	_ = g.get("/") // as above; the response is not JSON
	<-traces
	a := g.get("/", "X-A", large)
	if got := traceLine(&(<-traces).Upstreams[0]); a.status != 400 || got != "abandoned stream_refused 0, " {
		t.Errorf("part: %d %v, %q", a.status, a.err, got)
	}
}

// TestFieldsWithUnderscoresAreDropped: a field whose name differs from one of the gateway's only
// by underscores is not forwarded, in a header or a trailer.
func TestFieldsWithUnderscoresAreDropped(t *testing.T) {
	for what, h := range map[string]*gateway{"HTTP/1.1": newGateway(t, nil, startUpstream(t, checkFieldNames)), "HTTP/2": newGateway(t, useHTTP2, startH2Upstream(t, checkFieldNames))} {
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

// checkFieldNames answers with the fields that have an underscore.
func checkFieldNames(w http.ResponseWriter, r *http.Request) {
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
