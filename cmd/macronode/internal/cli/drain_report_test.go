package cli

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
	"macronode/cmd/macronode/internal/testkit"
)

// TestDrainReportCountsEveryRequest: the drain report counts each request once, as finished or aborted: proxied
// ones and those of the wallet, over HTTP/1.1, HTTP/2 and another protocol, during and after the drain.
func TestDrainReportCountsEveryRequest(t *testing.T) {
	t.Parallel()
	dir, release := t.TempDir(), make(chan struct{})
	pool := testkit.WriteCertificate(t, dir, time.Now().Add(30*24*time.Hour))
	waits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	t.Cleanup(waits.Close)
	p := startNode(t, append(testkit.TLSKeys(dir), "node.lame_duck=5m", fmt.Sprintf(`upstreams={"app":{"url":%q},"waits":{"url":%q}}`, newUpstream(t), waits.URL),
		`routes=[{"path":"/waits","upstream":"waits","auth":"none"},{"upstream":"app","auth":"none"}]`)...)
	over := func(t *testing.T, say string) *bufio.ReadWriter { // on its own connection
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.HTTP, "https://"), &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, say)
		return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	}
	wantStatus := func(from *bufio.ReadWriter, want int) {
		t.Helper()
		resp, err := http.ReadResponse(from.Reader, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%+v, %v: want %d", resp, err, want)
		}
	}
	done := over(t, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n") // it ends before the drain
	wantStatus(done, http.StatusOK)
	finishes := over(t, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
	wantStatus(finishes, http.StatusOK)
	wantStatus(over(t, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n"), http.StatusOK)
	wantStatus(over(t, "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"), http.StatusSwitchingProtocols)
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
	wantStatus(wallet, http.StatusContinue) // it is in progress

	run, err := nodedir.Read(p.dir)
	if err != nil || syscall.Kill(run.PID, syscall.SIGTERM) != nil {
		t.Fatal("it cannot be told to end", err)
	}
	for check := testkit.HangGuard(t); !strings.Contains(p.readyzText(t), `"phase":"lame_duck"`); check() {
	}
	_, _ = wallet.WriteString(body)
	_ = wallet.Flush()
	wantStatus(wallet, http.StatusOK)
	close(release)
	for asked := 0; !strings.Contains(p.readyzText(t), `"drain":{"finished":2,"refused":0,"aborted":0}`); asked++ {
		if asked == 1000 {
			t.Fatal(p.readyzText(t))
		}
	}
	p.end() // the second signal aborts
	var report struct{ Finished, Refused, Aborted int }
	if err := json.Unmarshal([]byte(p.last.String()), &report, json.MatchCaseInsensitiveNames(true)); err != nil || report.Finished != 2 || report.Refused != 0 || report.Aborted != 3 {
		t.Errorf("%+v, %v of %q", report, err, p.last)
	}
	if text := p.log.String(); !strings.Contains(text, "finished=2 refused=0 aborted=3 ") {
		t.Errorf("%s", text)
	}
}

// readyzText returns the verbose readiness of a node.
func (p process) readyzText(t *testing.T) string {
	t.Helper()
	resp, err := http.Get(p.Admin + "/readyz?verbose") //nolint:noctx // the node ends
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
