package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
)

// isSlow is the header of a request whose client sends its body slowly.
const isSlow = "Content-Length: 1000000\r\n"

// sendSlowly sends a body just fast enough, until stop.
func sendSlowly(conn net.Conn, stop <-chan struct{}) {
	const part = 200 * time.Millisecond
	for {
		select {
		case <-time.After(part):
			if _, err := conn.Write(make([]byte, 2000)); err != nil {
				return
			}
		case <-stop:
			return
		}
	}
}

// lasting are requests of a key that last, with the facet of their permit and what their client gets when the key ends.
var lasting = []struct{ request, facet, gets string }{
	{"GET /tunnel HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n", "streams", "101 cut"},
	{"GET /endless HTTP/1.1\r\nAccept: text/event-stream\r\n", "streams", "200 cut"},
	{"GET /hangs HTTP/1.1\r\nAccept: text/event-stream\r\n", "streams", "401 unauthorized"},
	{"GET /gathered HTTP/1.1\r\n", "proxy", "401 unauthorized"},
	{"POST /hangs HTTP/1.1\r\n" + isSlow, "proxy", "401 unauthorized"},
	{"POST /hangs HTTP/1.1\r\nContent-Length: 0\r\n", "proxy", "cut"}, // it may have been done
	{"GET /v1/changes?wait=60000 HTTP/1.1\r\n", "streams", "401 unauthorized"},
	{"GET /v1/balance?account=ann&asset=EUR/2&min_seq=9 HTTP/1.1\r\n", "streams", "401 unauthorized"},
	{"GET /v1/changes HTTP/1.1\r\nAccept: text/event-stream\r\n", "streams", `200 event: end data: {"reason":"unauthorized"}`},
	{"POST /v1/issue HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: a\r\nContent-Length: 10\r\n", "wallet", "401 unauthorized"},
	{"POST /o HTTP/1.1\r\n" + isSlow, "storage", "401 unauthorized"},
}

// TestEndedKeyEndsItsRequests: a key that is revoked, or that expires, ends all that it still runs. A tunnel of another key stays.
func TestEndedKeyEndsItsRequests(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"revoked", "expired"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newRejected(t, fmt.Sprintf(`upstreams={"well":{"url":%q}}`, newUpstream(t)), "http.request_deadline=1m", "http.read_timeout=1m", "node.drain=10ms",
				`routes=[{"path":"/","upstream":"well","deadline":"1m"},{"path":"/gathered","deadline":"1m","hydrate":[{"name":"a","upstream":"well","path":"/hangs"}]}]`)
			raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
			testkit.Must(t, err)
			admin := strings.TrimSpace(string(raw))
			expires, stop := "", make(chan struct{})
			if how == "expired" {
				const in = 30 * time.Second // all requests begin before, also on a busy machine
				expires = `,"expires_at":"` + time.Now().Add(in).UTC().Format(time.RFC3339Nano) + `"`
				time.AfterFunc(in-time.Second, func() { close(stop) })
			}
			key, id := p.makeKey(t, admin, `{"name":"stolen","scopes":["read","issue","store"]`+expires+`}`)
			other, _ := p.makeKey(t, admin, `{"name":"other","scopes":["read"]}`)
			permits := map[string]int{}
			start := func(request, key, facet string) net.Conn {
				conn := p.dial(request + "Host: a\r\nAuthorization: Bearer " + key + "\r\n\r\n")
				if strings.Contains(request, isSlow) {
					go sendSlowly(conn, stop)
				}
				permits[facet]++
				p.await(fmt.Sprintf(`semaphore_inflight{facet=%q} %d`, facet, permits[facet]))
				return conn
			}
			stays := start(lasting[0].request, other, lasting[0].facet)
			var conns []net.Conn
			for _, l := range lasting {
				conns = append(conns, start(l.request, key, l.facet))
			}
			if how == "revoked" {
				close(stop)
				p.revokeKey(t, admin, id)
			}
			for n, l := range lasting {
				got, decision := theEnd(t, conns[n])
				if got != l.gets {
					t.Fatalf("%q gets %q, want %q", l.request, got, l.gets)
				}
				if decision == "" {
					continue
				}
				text := p.explainText(t, decision)
				if !strings.Contains(text, "admission   "+explain.Reasons["key_ended"]+"\n") || !strings.HasPrefix(l.request[5:], "v1") && !strings.HasPrefix(l.request, "POST /o") && !strings.Contains(text, explain.Symptoms[proxy.KeyEnded]) && l.facet == "streams" {
					t.Errorf("%q: explain says\n%s", l.request, text)
				}
			}
			p.await(fmt.Sprintf(`admission_refused_total{class="authed",reason="key_ended"} %d`, len(lasting)))
			p.await(`semaphore_inflight{facet="streams"} 1`)
			_, err = io.WriteString(stays, "ping")
			testkit.Must(t, err)
			text, err := io.ReadAll(io.LimitReader(stays, int64(len("HTTP/1.1 101 "))))
			if err != nil || string(text) != "HTTP/1.1 101 " {
				t.Errorf("the tunnel of another key: %q, %v", text, err)
			}
			_ = stays.Close()
			p.end()
		})
	}
}

// TestEndedKeyReservesNothing: what an upload of a key has reserved is released when the key is revoked.
func TestEndedKeyReservesNothing(t *testing.T) {
	t.Parallel()
	p := newRejected(t, "storage.price.asset=EUR/2", "storage.price.per_mib=1", "http.request_deadline=1m")
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	admin := strings.TrimSpace(string(raw))
	held := func(want string) {
		t.Helper()
		testkit.Until(func() bool {
			resp := p.callJSON(t, http.MethodGet, p.HTTP+"/v1/balance?account=storage:prepaid&asset=EUR/2", admin, "")
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && strings.Contains(string(text), `"held_minor":"`+want+`"`)
		})
	}
	if out, err := exec.Command("macronode", "wallet", "issue", "--to", "storage:prepaid", "--asset", "EUR/2", "--amount", "100", "--data", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key, id := p.makeKey(t, admin, `{"name":"stolen","scopes":["store"]}`)
	conn := p.dial("POST /o HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\nAuthorization: Bearer " + key + "\r\n\r\ncontent")
	held("9")
	p.revokeKey(t, admin, id)
	if got, _ := theEnd(t, conn); got != "401 unauthorized" {
		t.Errorf("the upload gets %q", got)
	}
	held("0")
	p.end()
}

// theEnd reads a response until its connection ends or has a problem. It returns the status with the code of the problem, the text of the
// stream, or "cut"; and the decision, if there is one.
func theEnd(t *testing.T, conn net.Conn) (what, decision string) {
	t.Helper()
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if isTimeout(err) {
		return "nothing", ""
	}
	if err != nil {
		return "cut", ""
	}
	decision = resp.Header.Get("X-Decision-Id")
	body := io.Reader(resp.Body)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		body = reader
	}
	text, err := io.ReadAll(body)
	_, code, _ := strings.Cut(string(text), `"code":"`)
	code, _, isProblem := strings.Cut(code, `"`)
	switch {
	case isTimeout(err):
		return fmt.Sprint(resp.StatusCode, " stays"), decision
	case isProblem:
		return fmt.Sprint(resp.StatusCode, " ", code), decision
	case err != nil, resp.StatusCode == http.StatusSwitchingProtocols:
		return fmt.Sprint(resp.StatusCode, " cut"), decision
	}
	return fmt.Sprint(resp.StatusCode, " ", strings.Join(strings.Fields(strings.TrimLeft(string(text), ":\n")), " ")), decision
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // of this connection
	return ok && timeout.Timeout()
}
