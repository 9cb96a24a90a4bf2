package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// useHTTP2 makes all upstreams use HTTP/2 only.
func useHTTP2(c *proxy.Config) {
	for i := range c.Upstreams {
		c.Upstreams[i].Protocol = proxy.HTTP2
	}
}

// startH2Upstream starts an upstream that speaks only HTTP/2 without TLS.
func startH2Upstream(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// A tlsUpstream is an upstream with TLS that offers some protocols and counts handshakes.
type tlsUpstream struct {
	*httptest.Server
	handshakes atomic.Int64 // handshakes, counted at the first message of the client
}

func serveTLS(t *testing.T, f http.HandlerFunc, offers ...string) *tlsUpstream {
	t.Helper()
	s := &tlsUpstream{Server: httptest.NewUnstartedServer(f)}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{NextProtos: offers, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { s.handshakes.Add(1); return nil, nil }}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// trustRoots adds its certificate to the roots of the proxy.
func (s *tlsUpstream) trustRoots(by proxy.Protocol) func(*proxy.Config) {
	return func(c *proxy.Config) {
		c.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		c.TLS.NextProtos = nil
		c.Upstreams[0].Protocol = by
	}
}

// newH2Gateway returns a gateway whose clients use HTTP/2, too.
func newH2Gateway(t *testing.T, change func(*proxy.Config), to ...string) (*gateway, *http.Client, string) {
	t.Helper()
	h := newGateway(t, change, to...)
	front := httptest.NewUnstartedServer(h.proxy)
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	t.Cleanup(front.Client().CloseIdleConnections)
	return h, front.Client(), front.URL
}

// TestProtocolOfUpstream: the configuration decides the protocol. If it is not set, an endpoint
// with TLS chooses it. Requests are forwarded as over HTTP/1.1.
func TestProtocolOfUpstream(t *testing.T) {
	proto := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		echo(w, r)
	}
	both, old := serveTLS(t, proto, "h2", "http/1.1"), serveTLS(t, proto, "http/1.1")
	for name, c := range map[string]struct {
		to, want string
		change   func(*proxy.Config)
	}{
		"http":                       {startUpstream(t, proto), "HTTP/1.1", nil},
		"http, HTTP/2":               {startH2Upstream(t, proto), "HTTP/2.0", useHTTP2},
		"https":                      {both.URL, "HTTP/2.0", both.trustRoots(proxy.Auto)},
		"https, HTTP/1.1":            {both.URL, "HTTP/1.1", both.trustRoots(proxy.HTTP1)},
		"https, HTTP/2":              {both.URL, "HTTP/2.0", both.trustRoots(proxy.HTTP2)},
		"https that has no HTTP/2":   {old.URL, "HTTP/1.1", old.trustRoots(proxy.Auto)},
		"https that has not, HTTP/2": {old.URL, "", old.trustRoots(proxy.HTTP2)},
		"http that has not, HTTP/2":  {startUpstream(t, proto), "", useHTTP2},
	} {
		h := newGateway(t, c.change, c.to)
		for _, one := range []struct{ method, path, body, want string }{
			{"GET", "/a/b?x=1;y=%zz", "", `GET HOST /a/b?x=1;y=%zz 0 [] <nil>`},
			{"POST", "/a%2fb//c%20d", "hello", `POST HOST /a%2fb//c%20d 5 [] <nil>`},
			{"DELETE", "/", "", `DELETE HOST / 0 [] <nil>`},
			{"PATCH", "/?", strings.Repeat("x", 1<<20), `PATCH HOST /? 1048576 [] <nil>`},
			{"HEAD", "/", "", `HEAD HOST / 0 [] <nil>`},
		} {
			r := h.request(one.method, one.path, strings.NewReader(one.body), "X-Mine", "1", "X-Mine", "2", "Cookie", "a=1; b=2")
			a := h.do(r)
			want := strings.ReplaceAll(one.want, "HOST", r.URL.Host)
			if c.want == "" {
				if a.status != 502 {
					t.Errorf("%s: %d", name, a.status)
				}
				continue
			}
			body := one.body
			if one.method == "HEAD" {
				body = ""
			}
			if a.err != nil || a.status != 200 || a.header.Get("X-Proto") != c.want || a.header.Get("X-Saw") != want || a.body != body ||
				strings.Join(a.header["Saw-X-Mine"], ",") != "1,2" || a.header.Get("Saw-Cookie") != "a=1; b=2" || a.header.Get("Saw-X-Forwarded-For") != "127.0.0.1" {
				t.Errorf("%s: %s %s: %d, %v, %d bytes, %v, want %s", name, one.method, one.path, a.status, a.header, len(a.body), a.err, want)
			}
		}
		h.port.requireIdle(t)
		if got := h.port.results(); c.want != "" && got != strings.Repeat(" answered completed", 5) {
			t.Errorf("%s:%s", name, got)
		}
	}
}

// TestRequestsShareH2Conn: concurrent requests share a connection up to the limit. An endpoint
// that has chosen HTTP/1.1 is not probed again at each request.
func TestRequestsShareH2Conn(t *testing.T) {
	in, let := make(chan string, 2*proxy.MaxStreams), make(chan struct{})
	s := serveTLS(t, func(_ http.ResponseWriter, r *http.Request) { in <- r.RemoteAddr; <-let }, "h2", "http/1.1")
	h := newGateway(t, s.trustRoots(proxy.Auto), s.URL)
	var all sync.WaitGroup
	conns := make(map[string]int)
	for range proxy.MaxStreams + 1 {
		all.Go(func() { h.get("/") })
	}
	for range proxy.MaxStreams + 1 {
		conns[<-in]++
	}
	close(let)
	all.Wait()
	if got := s.handshakes.Load(); got != 2 || len(conns) != 2 {
		t.Errorf("%d handshakes, %v", got, conns)
	}
	old := serveTLS(t, echo, "http/1.1")
	h = newGateway(t, old.trustRoots(proxy.Auto), old.URL)
	for range 5 {
		if a := h.get("/"); a.status != 200 {
			t.Fatal(a)
		}
	}
	if got := old.handshakes.Load(); got != 2 { // one to find the protocol, and one for the request
		t.Errorf("%d handshakes", got)
	}
}

// TestStreamsBothWaysOverHTTP2: both ends send and receive at once, from HTTP/2 and HTTP/1.1 to
// HTTP/2. Trailers arrive last, even if they were not announced.
func TestStreamsBothWaysOverHTTP2(t *testing.T) {
	origin := startH2Upstream(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		w.Header().Set("Content-Type", "application/grpc")
		w.WriteHeader(200)
		_ = c.Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil || line == "enough\n" {
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
				w.Header().Set(http.TrailerPrefix+"X-Te", r.Header.Get("Te"))
				w.Header().Set(http.TrailerPrefix+"X-Mine", r.Trailer.Get("X-Mine"))
				return
			}
			_, _ = fmt.Fprint(w, "you said ", line)
			_ = c.Flush()
		}
	})
	h, two, at := newH2Gateway(t, useHTTP2, origin)
	for name, client := range map[string]*http.Client{h.front.URL: h.http, at: two} {
		for _, ends := range []bool{true, false} { // the client ends it, or the upstream
			out, in := io.Pipe()
			r, err := http.NewRequestWithContext(t.Context(), "POST", name+"/service/method", out)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Te", "trailers")
			r.Trailer = http.Header{"X-Mine": {"1"}}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(res.Body)
			for i := range 5 {
				_, _ = fmt.Fprintf(in, "%d\n", i)
				if got, err := lines.ReadString('\n'); got != fmt.Sprintf("you said %d\n", i) {
					t.Fatalf("%q, %v", got, err)
				}
			}
			mine := ""
			if ends {
				in.Close()
				mine = "1"
			} else {
				_, _ = io.WriteString(in, "enough\n")
			}
			if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil || res.Trailer.Get("Grpc-Status") != "0" || res.Trailer.Get("X-Te") != "trailers" || res.Trailer.Get("X-Mine") != mine {
				t.Errorf("%s, ends %v: %q, %v, %v", res.Proto, ends, rest, err, res.Trailer)
			}
			res.Body.Close()
			in.Close()
		}
	}
	h.port.requireIdle(t)
	if got := h.port.results(); got != strings.Repeat(" answered completed", 4) {
		t.Error(got)
	}
}

// TestInterimResponsesOverHTTP2: 1xx responses are forwarded, and 100 Continue is handled.
func TestInterimResponsesOverHTTP2(t *testing.T) {
	hints := 1
	h := newGateway(t, useHTTP2, startH2Upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hints":
			w.Header().Set("Link", "</a>")
			for range hints {
				w.WriteHeader(http.StatusEarlyHints)
			}
			w.Header().Del("Link")
		case "/no":
			w.WriteHeader(417)
			return
		}
		echo(w, r)
	}))
	var received []string
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		received = append(received, fmt.Sprint(code, h["Link"]))
		return nil
	}})
	for _, method := range []string{"GET", "POST"} {
		received = nil
		if a := h.do(h.request(method, "/hints", nil).WithContext(ctx)); a.status != 200 || a.header.Get("Link") != "" || fmt.Sprint(received) != "[103 [</a>]]" {
			t.Errorf("%s: %d, %v, before it %q", method, a.status, a.header, received)
		}
	}
	hints = 6
	if a := h.get("/hints"); a.status != 502 {
		t.Errorf("%d behind six answers that are none", a.status)
	}
	h.http.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	for path, want := range map[string]string{"/no": "417 0", "/yes": "200 5"} {
		var read atomic.Int64
		r := h.request("PUT", path, reader(func(b []byte) (int, error) {
			n := copy(b, "hello"[read.Load():])
			if read.Add(int64(n)); n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}), "Expect", "100-continue")
		r.ContentLength = 5
		a := h.do(r)
		if got := fmt.Sprint(a.status, " ", read.Load()); got != want || a.err != nil {
			t.Errorf("%s: %s, %v, want %s", path, got, a.err, want)
		}
	}
}

// TestHealthChecksOverHTTP2: a check uses the protocol of requests, over its own connection.
func TestHealthChecksOverHTTP2(t *testing.T) {
	var mu sync.Mutex
	from := make(map[string]int)
	well := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			mu.Lock()
			from[r.Proto+r.RemoteAddr]++
			mu.Unlock()
		}
	}
	old, both := serveTLS(t, well, "http/1.1"), serveTLS(t, well, "h2", "http/1.1")
	for name, c := range map[string]struct {
		to, by string
		sick   bool
		change func(*proxy.Config)
	}{
		"http":                       {startH2Upstream(t, well), "HTTP/2.0", false, useHTTP2},
		"http that has no HTTP/2":    {startUpstream(t, well), "", true, useHTTP2},
		"https":                      {both.URL, "HTTP/2.0", false, both.trustRoots(proxy.Auto)},
		"https that has no HTTP/2":   {old.URL, "HTTP/1.1", false, old.trustRoots(proxy.Auto)},
		"https that has not, HTTP/2": {old.URL, "", true, old.trustRoots(proxy.HTTP2)},
	} {
		clear(from)
		h := newGateway(t, func(p *proxy.Config) {
			c.change(p)
			p.Upstreams[0].HealthPath, p.Upstreams[0].CheckInterval, p.Upstreams[0].CheckTimeout = "/health", time.Millisecond, 2*time.Second
		}, c.to)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.proxy.Run(ctx) }()
		h.port.waitUntil(t, name, func() bool {
			_, _, sick := h.port.m.Endpoint(0, 0, event.Authenticated)
			return sick == c.sick && len(h.port.checked) > 4
		})
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		mu.Lock()
		for peer, times := range from {
			if !strings.HasPrefix(peer, c.by) || times > 1 {
				t.Errorf("%s: %s %d times", name, peer, times)
			}
		}
		if (len(from) == 0) != c.sick {
			t.Errorf("%s: %v", name, from)
		}
		mu.Unlock()
	}
}

// TestPartsOverHTTP2: parts are read in the protocol of each upstream.
func TestPartsOverHTTP2(t *testing.T) {
	proto := func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%q", r.Proto) }
	one, two := startUpstream(t, proto), startH2Upstream(t, proto)
	h, traces := newTracedGateway(t, func(c *proxy.Config) {
		c.Upstreams = []proxy.Upstream{{Name: "one", URLs: []*url.URL{mustURL(one)}}, {Name: "two", URLs: []*url.URL{mustURL(two)}, Protocol: proxy.HTTP2}}
		c.Routes = []proxy.Route{{Prefix: "/", Parts: []proxy.Part{{Name: "one", Upstream: 0, Path: "/"}, {Name: "two", Upstream: 1, Path: "/"}}}}
	}, "http://nowhere")
	if a := h.get("/"); a.body != `{"one":"HTTP/1.1","two":"HTTP/2.0","_missing":{}}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	if c := <-traces; c.Upstreams[0].Attempts[0].HTTP2 || !c.Upstreams[1].Attempts[0].HTTP2 {
		t.Errorf("%+v", c.Upstreams)
	}
}

// TestProtocolIsChangedByReload: the latest configuration decides the protocol, also for requests
// that came before it. Connections of the old proxy end after use.
func TestProtocolIsChangedByReload(t *testing.T) {
	in, let, proto := make(chan struct{}), make(chan struct{}), make(chan string, 3)
	to := startH2Upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(in)
			<-let
		}
		proto <- r.Proto
	})
	shared := new(proxy.Endpoints)
	h := newGateway(t, func(c *proxy.Config) { c.Endpoints = shared }, to)
	h.proxy.PublishEndpoints()
	if a := h.get("/"); a.status != 502 {
		t.Fatalf("it speaks HTTP/1.1: %d", a.status)
	}
	next := newGateway(t, func(c *proxy.Config) {
		useHTTP2(c)
		c.Endpoints = shared
	}, to)
	next.proxy.PublishEndpoints()
	for _, h := range []*gateway{h, next} {
		if a := h.get("/"); a.status != 200 || <-proto != "HTTP/2.0" {
			t.Error(a.status)
		}
	}
	done := make(chan int, 1)
	go func() { done <- next.get("/long").status }()
	<-in
	next.proxy.Retire()
	if a := next.get("/"); a.status != 200 { // the request came before the reload and was read slowly
		t.Error(a.status)
	}
	close(let)
	if got := <-done; got != 200 {
		t.Error(got)
	}
}

// TestDeadlinesOverHTTP2: an upstream that exceeds the deadline has failed and is cancelled. If
// the client disconnects, the request is cancelled, and the upstream has not failed.
func TestDeadlinesOverHTTP2(t *testing.T) {
	in, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	to := startH2Upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begins" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
		}
		in <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	for _, c := range []struct {
		path, want string
		leaves     bool
		change     func(*proxy.Config)
		header     []string
	}{
		{"/", "timed_out deadline 0, deadline", false, func(c *proxy.Config) { c.DefaultDeadline = 50 * time.Millisecond }, nil},
		{"/", "abandoned client_deadline 0, ", false, nil, []string{proxy.DeadlineHeader, "50"}},
		{"/begins", "truncated response_stalled 200, ", false, func(c *proxy.Config) { c.StallTimeout = 50 * time.Millisecond }, nil},
		{"/", "abandoned client_disconnected 0, ", true, nil, nil},
		{"/begins", "abandoned client_disconnected 200, ", true, nil, nil},
	} {
		h, traces := newTracedGateway(t, func(p *proxy.Config) {
			useHTTP2(p)
			if c.change != nil {
				c.change(p)
			}
		}, to)
		ctx, leave := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			res, err := h.http.Do(h.request("GET", c.path, nil, c.header...).WithContext(ctx))
			if err != nil {
				return
			}
			defer res.Body.Close()
			if c.leaves { // after the header of a response
				leave()
			}
			_, _ = io.Copy(io.Discard, res.Body)
		}()
		<-in
		if c.leaves && c.path == "/" {
			leave()
		}
		<-gone
		if got := traceLine(&(<-traces).Upstreams[0]); got != c.want {
			t.Errorf("%s: %q, wants %q", c.path, got, c.want)
		}
		<-over
		leave()
	}
}
