package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/nodedir"
)

// TestADrainTellsOfEverybody: of requests that were sent on and of the wallet's, by HTTP/1.1, by
// HTTP/2 and of another protocol: who finished since the end began, and whom it cut, each once; while
// the node ends, and when it has.
func TestADrainTellsOfEverybody(t *testing.T) {
	dir, release := t.TempDir(), make(chan struct{})
	pool := certifies(t, dir, time.Now().Add(30*24*time.Hour))
	waits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	t.Cleanup(waits.Close)
	p := serves(t, append(proof(dir), "node.lame_duck=5m", fmt.Sprintf(`upstreams={"app":{"url":%q},"waits":{"url":%q}}`, service(t), waits.URL),
		`routes=[{"path":"/waits","upstream":"waits","auth":"none"},{"upstream":"app","auth":"none"}]`)...)
	over := func(t *testing.T, say string) *bufio.ReadWriter { // a connection of its own
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.HTTP, "https://"), &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, say)
		return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	}
	told := func(from *bufio.ReadWriter, want int) {
		t.Helper()
		resp, err := http.ReadResponse(from.Reader, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%+v, %v: want %d", resp, err, want)
		}
	}
	done := over(t, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n") // it is none of the drain's
	told(done, http.StatusOK)
	finishes := over(t, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
	told(finishes, http.StatusOK)
	told(over(t, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"), http.StatusOK)
	told(over(t, "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"), http.StatusSwitchingProtocols)
	wire := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer wire.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.HTTP+"/endless", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	second, err := wire.RoundTrip(req)
	if err != nil || second.Proto != "HTTP/2.0" {
		t.Fatalf("%+v, %v", second, err)
	}
	defer second.Body.Close()
	key, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"to":"ann","asset":"EUR/2","amount_minor":"1"}`
	wallet := over(t, fmt.Sprintf("POST /v1/issue HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		strings.TrimSpace(string(key)), len(body)))
	told(wallet, http.StatusContinue) // it is in

	run, err := nodedir.Read(p.dir)
	if err != nil || syscall.Kill(run.PID, syscall.SIGTERM) != nil {
		t.Fatal("it cannot be told to end", err)
	}
	for check := hangGuard(t); !strings.Contains(p.state(t), `"phase":"lame_duck"`); check() {
	}
	_, _ = wallet.WriteString(body)
	_ = wallet.Flush()
	told(wallet, http.StatusOK)
	close(release)
	for asked := 0; !strings.Contains(p.state(t), `"drain":{"finished":2,"refused":0,"aborted":0}`); asked++ {
		if asked == 1000 {
			t.Fatal(p.state(t))
		}
	}
	p.end() // it is told a second time, and gives up
	var said struct{ Finished, Refused, Aborted int }
	if err := json.Unmarshal([]byte(p.last.String()), &said, json.MatchCaseInsensitiveNames(true)); err != nil || said.Finished != 2 || said.Refused != 0 || said.Aborted != 3 {
		t.Errorf("%+v, %v of %q", said, err, p.last)
	}
	if text := p.log.String(); !strings.Contains(text, "finished=2 refused=0 aborted=3 ") {
		t.Errorf("%s", text)
	}
}

// state is what a node says of itself to who asks for all of it.
func (p process) state(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(p.Admin + "/readyz?verbose") //nolint:noctx // it ends
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
