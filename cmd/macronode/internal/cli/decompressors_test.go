package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
)

// zstdOf returns a request with a zstd body: the head of a frame with a window of 8 MiB, and uncompressed text.
func zstdOf(length int, key, text string) string {
	if key != "" {
		key = "Authorization: Bearer " + key + "\r\n"
	}
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\n%sContent-Encoding: zstd\r\nContent-Length: %d\r\n\r\n\x28\xb5\x2f\xfd\x00\x68%s", key, length, text)
}

// trickle sends bytes on a connection until the test ends, slowly but faster than is required.
func trickle(t *testing.T, conn net.Conn) {
	t.Helper()
	var all sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); all.Wait() })
	all.Go(func() {
		for part := []byte(strings.Repeat("x", 1<<10)); ; {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			if _, err := conn.Write(part); err != nil {
				return
			}
		}
	})
}

// TestSlowZstdLeavesDecompressors: a few callers hold all decompressors that they get with zstd bodies that come slowly. Each other
// caller is served: the oldest body of the caller with the most gives way. So it is with and without keys, and explain names the
// decompressors.
func TestSlowZstdLeavesDecompressors(t *testing.T) {
	t.Parallel()
	for name, shares := range map[string][]int{"peers": {4, 2, 1, 1}, "tenants": {4, 4, 3, 2, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			t.Cleanup(s.Close)
			p := startNode(t, "log.level=error", "node.drain=10ms", fmt.Sprintf(`upstreams={"well":{"url":%q}}`, s.URL), "permits.give_way_after=300ms",
				`routes=[{"path":"/","upstream":"well","auth":"none","deadline":"30s","decompress_request":true}]`)
			admin, _ := p.callers(t)
			send := func(caller, length int, text string) net.Conn {
				key := ""
				if name == "tenants" {
					key, _ = p.makeKey(t, admin.key, fmt.Sprintf(`{"name":"k","scopes":["read"],"tenant":"%d"}`, 100+caller))
				}
				return p.dialFrom(t, fmt.Sprint("127.0.0.", 2+caller), zstdOf(length, key, text))
			}
			var slow []net.Conn
			for caller, most := range shares {
				for range most {
					conn := send(caller, 100_000, "\x00\x00\x10") // a block of 128 KiB, not the last one
					slow = append(slow, conn)
					trickle(t, conn)
					p.awaitDepth(t, "decompressors", fmt.Sprint(len(slow)))
				}
			}
			p.endsBusy(t, send(0, 11, "\x11\x00\x00hi"), "All decompressors for zstd", explain.NoDecompressor)
			for n := range 8 {
				if got := ending(t, send(10+n, 11, "\x11\x00\x00hi")); !strings.HasPrefix(got, "200") {
					t.Errorf("caller %d gets %s while others send slowly", n, got)
				}
			}
			p.endsBusy(t, slow[0], "its decompressor was given to a caller without one", explain.Symptoms[proxy.LostDecompressor])
			p.awaitDepth(t, "decompressors", fmt.Sprint(len(slow)-1))
		})
	}
}

// endsBusy fails unless a request gets 429 with a detail, and explain says why.
func (p process) endsBusy(t *testing.T, conn net.Conn, detail, why string) {
	t.Helper()
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(text), detail) {
		t.Errorf("%s, %q: %s, want %q", resp.Status, resp.Header.Get("Retry-After"), text, detail)
	}
	if is := p.explainText(t, resp.Header.Get("X-Decision-Id")); !strings.Contains(is, why) {
		t.Errorf("explain says\n%s\nwant %q", is, why)
	}
}
