package cli

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestBodiesAndStreamsAreCounted: a large body that is arriving, and a stream of changes, each count in their own
// gauge while they last.
func TestBodiesAndStreamsAreCounted(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "http.read_timeout=1m", "http.request_deadline=1m")
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	key := strings.TrimSpace(string(raw))
	open := func(text string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
		testkit.Must(t, err)
		_, err = io.WriteString(conn, strings.ReplaceAll(text, "KEY", key))
		testkit.Must(t, err)
		return conn
	}
	gauges := func() string {
		text := p.adminText(t, "/metrics")
		_, large, _ := strings.Cut(text, "\n"+testkit.QueueSeries("large_bodies")+" ")
		_, streams, _ := strings.Cut(text, "\n"+testkit.Series("semaphore_inflight", "facet", "streams")+" ")
		large, _, _ = strings.Cut(large, "\n")
		streams, _, _ = strings.Cut(streams, "\n")
		return large + " " + streams
	}
	become := func(want string) {
		t.Helper()
		is := ""
		for range 1000 {
			if is = gauges(); is == want {
				return
			}
			time.Sleep(time.Millisecond) // the next scrape
		}
		t.Errorf("bodies and streams are %s, want %s", is, want)
	}
	become("0 0")
	testkit.Until(func() bool { // the index is open
		status, _ := p.requestID(t, http.MethodGet, "/v1/changes", "Authorization", "Bearer "+key)
		return status == http.StatusOK
	})
	body := open("POST /v1/batch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nIdempotency-Key: one\r\nContent-Length: 100000\r\n\r\n{")
	become("1 0")
	stream := open("GET /v1/changes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nAccept: text/event-stream\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	become("1 1")
	testkit.Must(t, body.Close())
	become("0 1")
	testkit.Must(t, stream.Close())
	become("0 0")
}
