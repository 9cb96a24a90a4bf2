package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
)

// TestConnsAgreesWithModel: a connection that is open has one file, one that is being opened two. A dial fails without a try if its files are
// above the limit. Whatever fails or is closed twice, the count is right.
func TestConnsAgreesWithModel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 6).Draw(t, "limit")
		conns, tried, fails := NewConns(limit), 0, false
		dial := conns.limited(func(ctx context.Context, network, address string) (net.Conn, error) {
			if tried++; fails {
				return nil, syscall.ECONNREFUSED
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		})
		var open []net.Conn
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "close") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				_, _ = open[i].Close(), open[i].Close()
				open = append(open[:i], open[i+1:]...)
			} else {
				fails = rapid.Bool().Draw(t, "fails")
				before, fits := tried, len(open)+filesOfDial <= limit
				c, err := dial(context.Background(), "tcp", l.Addr().String())
				switch {
				case (tried > before) != fits, isExhausted(err) == fits, (err == nil) != (fits && !fails):
					t.Fatalf("%d of %d are open: %v", len(open), limit, err)
				case err == nil:
					open = append(open, c)
				}
			}
			if depth, most := conns.Depth(); depth != len(open) || most != limit {
				t.Fatalf("%d of %d, want %d of %d", depth, most, len(open), limit)
			}
		}
		for _, c := range open {
			_ = c.Close()
		}
	})
}

// TestNoConnectionIsNoEndpointFault: a request above the limit of connections gets 503, and the endpoint has not failed. The limit holds for
// all proxies that share it, and for every protocol.
func TestNoConnectionIsNoEndpointFault(t *testing.T) {
	for _, protocol := range []Protocol{HTTP1, HTTP2} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			port := new(recorder)
			p := newLimitedProxy(t, port, protocol, NewConns(filesOfDial-1))
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
			if w.Code != http.StatusServiceUnavailable || len(port.reported) != 1 || port.reported[0] != event.AttemptAbandoned {
				t.Errorf("%s, protocol %d: %d, %v", method, protocol, w.Code, port.reported)
			}
		}
	}
}

// TestFewIdleConnections: of a low limit, at most a third is kept idle in each kind of pool.
func TestFewIdleConnections(t *testing.T) {
	for limit, want := range map[int]int64{1: 1, 32: 10, 3072: 1024, 100_000: 1024} {
		if got := NewConns(limit).maxIdle(); got != want {
			t.Errorf("%d: %d, want %d", limit, got, want)
		}
	}
	if got := (*Conns)(nil).maxIdle(); got != MaxIdleConns {
		t.Errorf("without a limit: %d", got)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") }
	if _, err := (*Conns)(nil).limited(dial)(t.Context(), "tcp", ""); err == nil || err.Error() != "dialled" {
		t.Errorf("without a limit: %v", err)
	}
}
