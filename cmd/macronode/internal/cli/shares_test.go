package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// openConn sends a request, keeps the connection open, and returns the status line.
func (p process) openConn(t *testing.T, request string) (status string) {
	t.Helper()
	return p.openConnFrom(t, "127.0.0.1", request)
}

// openConnFrom is openConn from an address of this host.
func (p process) openConnFrom(t *testing.T, address, request string) (status string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(p.HTTP, "http://"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	testkit.Must(t, err)
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	testkit.Must(t, err)
	_, status, _ = strings.Cut(strings.TrimSpace(line), " ")
	return status[:3]
}

// tunnelUpstream is an upstream that switches protocols and then stays silent. Its /endless never ends.
func tunnelUpstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, buf)
			_ = conn.Close()
		case r.URL.Path == "/endless":
			for block := make([]byte, 64<<10); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAnonymousTunnelsLeavePermits: a caller without a key that opens tunnels and reads nothing gets at most its
// share of permits, and requests with keys are served as before.
func TestAnonymousTunnelsLeavePermits(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "permits.proxy=16", "permits.streams=16", "queue.proxy=16", "node.drain=0s",
		fmt.Sprintf(`upstreams={"app":{"url":%q}}`, tunnelUpstream(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	own := strings.TrimSpace(string(raw))
	tenant, _ := p.makeKey(t, own, `{"name":"other","scopes":["read"],"tenant":"9"}`)
	for request, most := range map[string]string{
		"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n": "101",
		"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n":                                           "200",
	} {
		got := map[string]int{}
		for range 16 {
			got[p.openConn(t, request)]++
		}
		if got[most] != 4 || got["429"] != 12 { // a quarter of 16
			t.Errorf("%q: %v", request, got)
		}
	}
	for _, key := range []string{own, tenant} {
		if status, _ := p.requestID(t, http.MethodGet, "/page", "Authorization", "Bearer "+key); status != http.StatusOK {
			t.Errorf("a key is told %d", status)
		}
	}
}

// TestTunnelsOfTwoAddressesLeavePermits: two addresses without a key open as many tunnels as they can. The first gets its
// share, the second half of what is left, and further addresses still open tunnels.
func TestTunnelsOfTwoAddressesLeavePermits(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "node.drain=0s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, tunnelUpstream(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	const tunnel = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for _, of := range []struct {
		address string
		want    int
	}{{"127.0.0.2", 64}, {"127.0.0.3", 32}} { // of 128, and at most 64 each
		got := map[string]int{}
		for range 64 {
			got[p.openConnFrom(t, of.address, tunnel)]++
		}
		if got["101"] != of.want || got["429"] != 64-of.want {
			t.Errorf("%s: %v, want %d tunnels", of.address, got, of.want)
		}
	}
	for n := 4; n < 20; n++ {
		if address := fmt.Sprint("127.0.0.", n); p.openConnFrom(t, address, tunnel) != "101" {
			t.Errorf("%s gets no tunnel", address)
		}
	}
}

// TestTunnelsHoldTheirOwnPermits: a tunnel and an event stream of an upstream hold permits of the facet streams,
// and none of requests.
func TestTunnelsHoldTheirOwnPermits(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "node.drain=0s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, tunnelUpstream(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	for _, request := range []string{
		"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET /endless HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n",
	} {
		p.openConn(t, request)
	}
	testkit.Until(func() bool {
		text := p.adminText(t, "/metrics")
		return strings.Contains(text, "\n"+testkit.Series("semaphore_inflight", "facet", "streams")+" 2\n") &&
			strings.Contains(text, "\n"+testkit.Series("semaphore_inflight", "facet", "proxy")+" 0\n")
	})
}

// TestLongPollsLeaveListPermits: a key has at most its share of waiting requests, and waiting requests take no
// permits from lists.
func TestLongPollsLeaveListPermits(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "permits.query=4", "permits.streams=16", "node.drain=0s", "http.request_deadline=1m", "http.write_timeout=2m")
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	own := strings.TrimSpace(string(raw))
	one, _ := p.makeKey(t, own, `{"name":"one","scopes":["read"],"tenant":"8"}`)
	other, _ := p.makeKey(t, own, `{"name":"other","scopes":["read"],"tenant":"9"}`)
	testkit.Until(func() bool { // the index is open
		status, _ := p.requestID(t, http.MethodGet, "/v1/changes", "Authorization", "Bearer "+other)
		return status == http.StatusOK
	})
	got := map[string]int{}
	for range 8 {
		got[p.openConn(t, "GET /v1/changes HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+one+"\r\n\r\n")]++
	}
	if got["200"] != 4 || got["429"] != 4 { // a quarter of 16
		t.Errorf("streams: %v", got)
	}
	if status := p.openConn(t, "GET /v1/changes?wait=60000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+one+"\r\n\r\n"); status != "429" {
		t.Errorf("a long poll beside as many streams is told %s", status)
	}
	for range 4 {
		go p.sendAndDiscard("/v1/changes?wait=60000", other)
	}
	testkit.Until(func() bool { // they all wait
		return strings.Contains(p.adminText(t, "/metrics"), "\n"+testkit.Series("semaphore_inflight", "facet", "streams")+" 8\n")
	})
	for _, key := range []string{one, other, own} {
		if status, _ := p.requestID(t, http.MethodGet, "/v1/changes", "Authorization", "Bearer "+key); status != http.StatusOK {
			t.Errorf("a list is answered with %d", status)
		}
	}
}

// sendAndDiscard sends a request and discards the response.
func (p process) sendAndDiscard(path, key string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer "+key+"\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}
