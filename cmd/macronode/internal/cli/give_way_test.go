package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
)

// stuck are requests that last: in the order in which they arrive and give way, with what their clients get.
var stuck = []struct{ request, from, gets string }{
	{"POST /hangs HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", "127.0.0.2", "429"},
	{"GET /hangs HTTP/1.1\r\nHost: a\r\n\r\n", "127.0.0.3", "429"},
	{"POST /hangs HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ndone", "127.0.0.3", "cut"}, // it may have been done
	{"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n", "127.0.0.2", "cut"},
}

// stuckStreams are the same of the permits for streams.
var stuckStreams = []struct{ request, from, gets string }{
	{"GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", "127.0.0.2", "cut"},
	{"GET /hangs HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", "127.0.0.2", "stays"},
	{"GET /hangs HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", "127.0.0.3", "stays"},
	{"GET /hangs HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", "127.0.0.4", "stays"},
}

// TestPeerWithoutPermitIsServed: requests of two peers hold all permits of callers without a key. A third one is served, and the
// oldest request of the peer with the most ends: with a problem if nothing was done, else its connection is cut.
func TestPeerWithoutPermitIsServed(t *testing.T) {
	t.Parallel()
	for name, requests := range map[string][]struct{ request, from, gets string }{"proxy": stuck, "streams": stuckStreams} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRejected(t, fmt.Sprintf(`upstreams={"well":{"url":%q}}`, newUpstream(t)), `routes=[{"path":"/","upstream":"well","auth":"none","deadline":"30s"}]`,
				"permits.proxy=8", "permits.streams=8", "permits.give_way_after=300ms")
			var conns []net.Conn
			for n, s := range requests {
				conns = append(conns, p.dialFrom(t, s.from, s.request))
				p.await(fmt.Sprintf(`semaphore_inflight{facet=%q} %d`, name, n+1))
			}
			peer, accept := 10, ""
			if name == "streams" {
				accept = "text/event-stream"
			}
			for n, s := range requests {
				if s.gets == "stays" {
					continue
				}
				began := time.Now()
				if status := p.getFrom(t, fmt.Sprint("127.0.0.", peer), "/list", accept); status != http.StatusOK {
					t.Fatalf("a peer without a permit gets %d after %v", status, time.Since(began))
				}
				peer++
				if got := ending(t, conns[n]); !strings.HasPrefix(got, s.gets) {
					t.Errorf("%q gets %s, want %s", s.request, got, s.gets)
				} else if _, id, ok := strings.Cut(got, " "); ok {
					if text := p.explainText(t, id); !strings.Contains(text, "admission   "+explain.Reasons["gave_way"]+"\n") || !strings.Contains(text, explain.Symptoms[proxy.GaveWay]) {
						t.Errorf("explain says\n%s", text)
					}
				}
				if name == "streams" {
					break
				}
				p.dialFrom(t, s.from, hangs) // it takes the permit that is free again
				p.await(fmt.Sprintf(`semaphore_inflight{facet=%q} %d`, name, len(requests)))
			}
			p.await(`admission_refused_total{class="anon",reason="gave_way"} ` + fmt.Sprint(peer-10))
			p.end()
		})
	}
}

// dialFrom sends a request from an address of this machine and returns its connection.
func (p process) dialFrom(t *testing.T, address, request string) net.Conn {
	t.Helper()
	to, err := url.Parse(p.HTTP)
	testkit.Must(t, err)
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(t.Context(), "tcp", to.Host)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	testkit.Must(t, err)
	return conn
}

// getFrom reads a path from an address of this machine, and returns the status.
func (p process) getFrom(t *testing.T, address, path, accept string) int {
	t.Helper()
	conn := p.dialFrom(t, address, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: "+accept+"\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// ending returns how a request ended: "cut", or the status and the decision.
func ending(t *testing.T, conn net.Conn) string {
	t.Helper()
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && resp.StatusCode < http.StatusBadRequest { // a response that began
		_, err = io.ReadAll(resp.Body)
	}
	if ended, ok := err.(net.Error); ok && ended.Timeout() { //nolint:errorlint // of this connection
		return "nothing"
	}
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return "cut"
	}
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Decision-Id"))
}
