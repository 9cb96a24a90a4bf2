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

// A sentRequest is a request as an endpoint was sent it.
type sentRequest struct{ method, query, host, value string }

// endpoint is a service that keeps what it was sent.
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
	port *meek
	far  *endpoint
}

func newForwarder(f *testing.F, protocol proxy.Protocol) *forwarder {
	f.Helper()
	w := &forwarder{port: new(meek), far: new(endpoint)}
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

// FuzzRequestCheck serves any request as a server of HTTP/2 would hand it over. One that the
// validator refuses is 400, and no endpoint is picked for it. One that it takes is written by
// each client of the proxy without an error, and arrives as it was.
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
			told, sent := to.port.take(), to.far.take()
			switch {
			case why != event.None:
				if w.Code != why.Status() || len(told) > 0 || len(sent) > 0 {
					t.Errorf("%s: %v, and %d; told %v, sent %q", protocol, why, w.Code, told, sent)
				}
			case len(told) == 0, slices.ContainsFunc(told, func(e event.AttemptOutcome) bool { return e != event.AttemptAnswered && e != event.AttemptCompleted }):
				if !strings.EqualFold(name, proxy.DeadlineHeader) { // a deadline may be over at once
					t.Errorf("%s: %d, told %v", protocol, w.Code, told)
				}
			case w.Code == http.StatusOK && (len(sent) != 1 || sent[0] != want && !strings.EqualFold(name, "Connection")):
				t.Errorf("%s: sent %q, want %q", protocol, sent, want)
			}
		}
	})
}

// handedOver is a request as net/http's server of HTTP/2 hands it to a handler; false if it
// hands it to none.
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
