package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"macronode/core/event"
)

// A recorder is a Port that allows everything and records the reports.
type recorder struct {
	reported []event.AttemptOutcome
	probed   int
}

func (r *recorder) Pick(event.Pick) event.Picked                   { return event.Picked{} }
func (r *recorder) Retry(event.Retry) event.Picked                 { return event.Picked{} }
func (r *recorder) Report(in event.AttemptResult)                  { r.reported = append(r.reported, in.Outcome) }
func (r *recorder) HealthChecked(event.HealthChecked, CheckResult) { r.probed++ }
func (r *recorder) ReportFailure(in event.AttemptResult) event.RetryDecision {
	r.Report(in)
	return event.RetryDecision{}
}

// TestExhaustedDescriptorsAreNoEndpointFault: if the node has no file descriptor for a
// connection, it answers 503, and the endpoint has not failed. An endpoint that cannot be reached
// has failed.
func TestExhaustedDescriptorsAreNoEndpointFault(t *testing.T) {
	for _, c := range []struct {
		why    syscall.Errno
		status int
		want   event.AttemptOutcome
	}{
		{syscall.EMFILE, 503, event.AttemptAbandoned}, {syscall.ENFILE, 503, event.AttemptAbandoned}, {syscall.ENOBUFS, 503, event.AttemptAbandoned}, {syscall.ENOMEM, 503, event.AttemptAbandoned},
		{syscall.ECONNREFUSED, 502, event.AttemptUnsent}, {syscall.EADDRNOTAVAIL, 502, event.AttemptUnsent}, {syscall.EHOSTUNREACH, 502, event.AttemptUnsent},
	} {
		for _, protocol := range []Protocol{HTTP1, HTTP2} {
			for _, method := range []string{http.MethodGet, http.MethodDelete} { // by the HTTP/1.1 pool and by http.Transport
				port := new(recorder)
				p := newFailingProxy(t, port, protocol, c.why)
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
				if w.Code != c.status || len(port.reported) != 1 || port.reported[0] != c.want {
					t.Errorf("%v, %s, protocol %d: %d, %v; want %d, %v", c.why, method, protocol, w.Code, port.reported, c.status, c.want)
				}
			}
		}
	}
}

// TestCheckWithoutDescriptorIsIgnored: a check without a connection changes nothing.
func TestCheckWithoutDescriptorIsIgnored(t *testing.T) {
	for why, want := range map[syscall.Errno]int{syscall.EMFILE: 0, syscall.ECONNREFUSED: 1} {
		port := new(recorder)
		p := newFailingProxy(t, port, HTTP1, why)
		ctx, stop := context.WithCancel(t.Context())
		asked := make(chan struct{}, 16)
		fails := p.checker.DialContext
		p.checker.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case asked <- struct{}{}:
			default:
			}
			return fails(ctx, network, address)
		}
		over := make(chan struct{})
		go func() { defer close(over); _ = p.Run(ctx) }()
		for range 2 { // the second happens after all effects of the first
			<-asked
		}
		stop()
		<-over
		if (port.probed > 0) != (want > 0) {
			t.Errorf("%v: %d checks were reported", why, port.probed)
		}
	}
}

// newFailingProxy returns a proxy whose dials fail.
func newFailingProxy(t *testing.T, port Port, protocol Protocol, why syscall.Errno) *Proxy {
	t.Helper()
	p := newLimitedProxy(t, port, protocol, nil)
	dial := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", why)}
	}
	p.transport.DialContext, p.checker.DialContext, p.h1Pools["127.0.0.1:1"].dial = dial, dial, dial
	p.dialers[HTTP2].dial = dial
	return p
}

// newLimitedProxy returns a proxy with a limit of connections. Its endpoint does not listen.
func newLimitedProxy(t *testing.T, port Port, protocol Protocol, conns *Conns) *Proxy {
	t.Helper()
	c := Default()
	c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
	c.Log, c.Conns = slog.New(slog.DiscardHandler), conns
	c.Upstreams = []Upstream{{Name: "app", URLs: []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}, Protocol: protocol, HealthPath: "/", CheckInterval: time.Millisecond, CheckTimeout: time.Second}}
	c.Routes = []Route{{Prefix: "/"}}
	p, err := New(c, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Retire)
	return p
}
