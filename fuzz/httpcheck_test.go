package fuzz

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/httpcheck"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// A sentRequest is a request as an endpoint got it.
type sentRequest struct{ method, query, host, value string }

// endpoint is an upstream that records its requests.
type endpoint struct {
	mu   sync.Mutex
	sent []sentRequest
}

func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, sentRequest{r.Method, r.URL.RawQuery, r.Host, r.Header.Get("X-Fuzz")})
}

func (e *endpoint) take() []sentRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}

// A forwarder is a proxy in front of one endpoint.
type forwarder struct {
	*proxy.Proxy
	port *recordingPort
	far  *endpoint
}

func newForwarder(f *testing.F, protocol proxy.Protocol) *forwarder {
	f.Helper()
	w := &forwarder{port: new(recordingPort), far: new(endpoint)}
	far := httptest.NewUnstartedServer(w.far)
	far.Config.Protocols = new(http.Protocols)
	far.Config.Protocols.SetHTTP1(protocol == proxy.HTTP1)
	far.Config.Protocols.SetUnencryptedHTTP2(protocol == proxy.HTTP2)
	far.Start()
	f.Cleanup(far.Close)
	to, err := url.Parse(far.URL)
	if err != nil {
		f.Fatal(err)
	}
	c := proxy.Default()
	c.Upstreams = []proxy.Upstream{{Name: "app", URLs: []*url.URL{to}, Protocol: protocol}}
	c.Routes = []proxy.Route{{Prefix: "/"}}
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
	if w.Proxy, err = proxy.New(c, w.port); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(w.Retire)
	return w
}

// FuzzRequestCheck serves any request as an HTTP/2 server would pass it on. If the validator rejects it, the
// response is 400 and no endpoint is picked. Otherwise each client of the proxy writes it without an error, and it
// arrives unchanged.
func FuzzRequestCheck(f *testing.F) {
	for _, s := range []struct{ method, target, host, name, value, trailer, body string }{
		{"GET", "/a?b=c", "a.example:80", "x-fuzz", "v", "", ""},
		{"POST", "/%2f;x//y?a=%zz&b;c", "[::1]:8080", "x-fuzz", "\x80\tv", "x-t", "body"},
		{"(", "/", "a", "", "", "", ""},
		{"GET", "/?a b", "a", "", "", "", "body"},
		{"GET", "/?a HTTP/1.1\r\nx: y", "a", "", "", "", ""},
		{"GET", "*", "a", "", "", "", ""},
		{"OPTIONS", "*", "a", "", "", "", ""},
		{"GET", "/", "a:abc", "", "", "", ""},
		{"GET", "/", "a..b", "", "", "", ""},
		{"GET", "/", "b\u00fccher.example", "", "", "", ""},
		{"GET", "/", "a", "x fuzz", "v", "", ""},
		{"GET", "/", "a", "x-fuzz", " v", "", ""},
		{"GET", "/", "a", "x-fuzz", "v\r\nx-other: 1", "", ""},
		{"PUT", "/", "a", "transfer-encoding", "gzip", " ", "body"},
		{"PUT", "/", "a", "connection", "x-fuzz", "content-length", "body"},
		{"M-SEARCH", "/", "a", "upgrade", "h2c", "", "body"},
	} {
		f.Add(s.method, s.target, s.host, s.name, s.value, s.trailer, s.body)
	}
	all := map[string]*forwarder{"HTTP/1.1": newForwarder(f, proxy.HTTP1), "HTTP/2": newForwarder(f, proxy.HTTP2)}
	f.Fuzz(func(t *testing.T, method, target, host, name, value, trailer, body string) {
		for protocol, to := range all {
			r, ok := handedOver(method, target, host, name, value, trailer, body)
			if !ok {
				return
			}
			want := sentRequest{r.Method, r.URL.RawQuery, r.Host, r.Header.Get("X-Fuzz")}
			refused := httpcheck.Request(r)
			_, why := to.Match(r)
			if refused != nil && why != event.BadRequest {
				t.Fatalf("%v, and the problem is %v", refused, why)
			}
			w := httptest.NewRecorder()
			to.ServeHTTP(w, r.WithContext(t.Context()))
			outcomes, sent := to.port.take(), to.far.take()
			switch {
			case why != event.None:
				if w.Code != why.Status() || len(outcomes) > 0 || len(sent) > 0 {
					t.Errorf("%s: %v, and %d; told %v, sent %q", protocol, why, w.Code, outcomes, sent)
				}
			case len(outcomes) == 0, slices.ContainsFunc(outcomes, func(e event.AttemptOutcome) bool { return e != event.AttemptAnswered && e != event.AttemptCompleted }):
				if !strings.EqualFold(name, proxy.DeadlineHeader) { // the deadline may have passed at once
					t.Errorf("%s: %d, told %v", protocol, w.Code, outcomes)
				}
			case w.Code == http.StatusOK && (len(sent) != 1 || sent[0] != want && !strings.EqualFold(name, "Connection")):
				t.Errorf("%s: sent %q, want %q", protocol, sent, want)
			}
		}
	})
}

// handedOver returns a request as net/http's HTTP/2 server passes it to a handler; false if it does not.
func handedOver(method, target, host, name, value, trailer, body string) (r *http.Request, ok bool) {
	u, err := url.ParseRequestURI(target)
	if err != nil || method == "" {
		return nil, false
	}
	r = &http.Request{Method: method, URL: u, RequestURI: target, Host: host, Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: "127.0.0.1:1", Header: http.Header{}, Body: http.NoBody}
	if name != "" {
		r.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	if trailer != "" {
		r.Trailer = http.Header{textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(trailer)): nil}
	}
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
	}
	return r, true
}
