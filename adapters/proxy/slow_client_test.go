package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"macronode/adapters/inflate"
	"macronode/adapters/proxy"
)

// A slowClient waits for longer than an endpoint does: before the second part of its body, or before it takes the
// first part of the response. Then the endpoint gives up.
type slowClient struct {
	*httptest.ResponseRecorder
	t          *testing.T
	isReader   bool // it is slow to read, not to send
	left       int  // bytes of its body
	parts      int  // that were sent or taken
	isComplete bool // the endpoint gives up after the whole body
	giveUp     chan struct{}
	hasWaited  bool
}

func (c *slowClient) wait() {
	if c.hasWaited {
		return
	}
	c.hasWaited = true
	pause(c.t.Context(), 1200*time.Millisecond)
	if !c.isComplete {
		close(c.giveUp)
	}
}

func (c *slowClient) Read(to []byte) (int, error) {
	if c.parts++; c.parts > 1 && !c.isReader {
		c.wait()
	}
	switch {
	case c.left == 0:
		return 0, io.EOF
	case c.parts > 2 && !c.isComplete:
		pause(c.t.Context(), time.Millisecond) // a trickle, until the transport reads no more
	}
	c.left--
	return copy(to, "x"), nil
}

func (c *slowClient) Close() error { return nil }

func (c *slowClient) Write(p []byte) (int, error) {
	if c.isReader {
		c.wait()
	}
	return c.ResponseRecorder.Write(p)
}

func (c *slowClient) Flush() {}

// TestSlowClientIsNoEndpointFault: endpoints limit the time of a body and of a response. A client that uses it up
// does not make the endpoint fail.
func TestSlowClientIsNoEndpointFault(t *testing.T) {
	t.Parallel()
	const whole = 3
	for name, c := range map[string]struct {
		client slowClient
		want   string
		code   int
	}{
		"body":         {slowClient{left: 1 << 20}, "abandoned client_slow 0, ", 502},
		"body, at end": {slowClient{left: whole, isComplete: true}, "abandoned client_slow 0, ", 502},
		"response":     {slowClient{isReader: true}, "abandoned client_slow 200, ", 200},
	} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Parallel()
				client := &slowClient{ResponseRecorder: httptest.NewRecorder(), t: t, isReader: c.client.isReader, left: c.client.left, isComplete: c.client.isComplete, giveUp: make(chan struct{})}
				gaveUp := func(body io.Reader) {
					if client.isComplete {
						_, _ = io.CopyN(io.Discard, body, whole)
						return
					}
					<-client.giveUp
				}
				h := newGateway(t, func(c *proxy.Config) {
					if c.Grace = time.Minute; protocol == "HTTP/2" {
						useHTTP2(c)
					}
				}, endpointThatGivesUp(t, protocol, client.isReader, gaveUp))
				r := httptest.NewRequestWithContext(t.Context(), "PUT", "/", client)
				if r.ContentLength = int64(client.left); client.isReader {
					r.Method, r.Body = "GET", http.NoBody
				}
				trace := new(proxy.Trace)
				func() {
					defer func() { _ = recover() }() // a response that has begun is aborted
					m, _ := h.proxy.Match(r)
					h.proxy.Serve(client, r, m, trace)
				}()
				h.port.requireIdle(t)
				if got := traceLine(&trace.Upstreams[0]); got != c.want || client.Code != c.code || strings.Contains(h.port.results(), "failed") || strings.Contains(h.port.results(), "truncated") {
					t.Errorf("%d, %q,%s", client.Code, got, h.port.results())
				}
				if !trace.EndedByClient() {
					t.Error("not ended by the client")
				}
				if detail := "The upstream service closed the connection after a long wait for the client."; client.Code == 502 && trace.Detail() != detail {
					t.Errorf("detail: %q", trace.Detail())
				}
			})
		}
	}
}

// endpointThatGivesUp starts an endpoint that begins a response, if it is to, and closes the connection or the
// stream when gaveUp returns.
func endpointThatGivesUp(t *testing.T, protocol string, responds bool, gaveUp func(body io.Reader)) string {
	if protocol == "HTTP/2" {
		return startH2Upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if responds {
				w.Header().Set("Content-Length", fmt.Sprint(1<<20))
				_, _ = w.Write(make([]byte, 100<<10))
				_ = http.NewResponseController(w).Flush()
			}
			gaveUp(r.Body)
			panic(http.ErrAbortHandler)
		})
	}
	return servesRaw(t, func(c net.Conn, in *bufio.Reader) {
		if responds {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 1<<20, make([]byte, 100<<10))
		}
		gaveUp(in)
	})
}

// TestBodyProblemHasDetail: the response says that the body did not arrive, that it cannot be decompressed, or that the service
// waited for the client, and not that the request is malformed.
func TestBodyProblemHasDetail(t *testing.T) {
	for name, c := range map[string]struct{ header, body, want string }{
		"nothing comes":     {"Content-Length: 10", "", "The request body did not arrive completely in time."},
		"half of it":        {"Content-Length: 10", "half", "The request body did not arrive completely in time."},
		"gzip, half of it":  {"Content-Encoding: gzip\r\nContent-Length: 1000", gzipOf("half"), "The request body did not arrive completely in time."},
		"no gzip":           {"Content-Encoding: gzip\r\nContent-Length: 5", "plain", "The request body does not match its Content-Encoding."},
		"more than allowed": {"Content-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(len(gzipOf(strings.Repeat("\x00", 64<<20)))), gzipOf(strings.Repeat("\x00", 64<<20)), inflate.Describe(inflate.Most)},
		"a window of 9 MiB": {"Content-Encoding: zstd\r\nContent-Length: 10", "\x28\xb5\x2f\xfd\x00\x69\x09\x00\x00x", inflate.Describe(inflate.Most)},
	} {
		h, traces := newTracedGateway(t, func(c *proxy.Config) {
			c.Grace = 50 * time.Millisecond
			c.Routes = []proxy.Route{{Prefix: "/", DecompressRequest: true}}
		}, startUpstream(t, echo))
		h.raw("POST / HTTP/1.1\r\nHost: a\r\n" + c.header + "\r\n\r\n" + c.body)
		if got := (<-traces).Detail(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
