package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/nettest"
)

// TestAccess: with log.access a request has one line with what an operator needs, and without secrets of headers,
// queries or bodies.
func TestAccess(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	well := newUpstream(t)
	p := startNode(t, "log.access=true", "log.format=json", "log.level=error", fmt.Sprintf(`upstreams={"app":{"url":%q},"down":{"url":%q,"max_attempts":1}}`, well, nettest.RefusingAddress(t)),
		`routes=[{"path":"/app","upstream":"app","auth":"none"},{"path":"/down","upstream":"down","auth":"none"}]`)
	for _, path := range []string{"/app/x", "/down/y", "/v1/nowhere", "/v1/balance"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.HTTP+path+"?token="+secret, strings.NewReader(secret))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer mk_0123456789abcdef_"+secret)
		req.Header.Set("Cookie", secret)
		req.Header.Set("X-Api-Key", secret)
		req.Header.Set("Idempotency-Key", secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.log.String())
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	p.end()
	text := p.log.String()
	if strings.Contains(text, secret) {
		t.Errorf("a secret is told:\n%s", text)
	}
	type line struct {
		Msg, Decision, Method, Path, Route, Code, Class, Peer, Upstream, Endpoint, Outcome string

		Status, In, Tries int
		Took              float64 `json:"took_ms"`
	}
	found := map[string]line{}
	for one := range strings.SplitSeq(text, "\n") {
		var l line
		if json.Unmarshal([]byte(one), &l, json.MatchCaseInsensitiveNames(true)) == nil && l.Msg == "request" {
			if _, twice := found[l.Path]; twice || len(l.Decision) != 34 || l.Took <= 0 || l.Method != "POST" || l.Peer != "127.0.0.1" || l.Class != "anon" {
				t.Errorf("%+v", l)
			}
			found[l.Path] = l
		}
	}
	app, down, nowhere := found["/app/x"], found["/down/y"], found["/v1/nowhere"]
	switch {
	case len(found) != 4:
		t.Errorf("%d lines:\n%s", len(found), text)
	case app.Status != 200 || app.Route != "routes[0]" || app.Upstream != "app" || app.Endpoint != well || app.Tries != 1 || app.In != len(secret) || app.Outcome != "ok":
		t.Errorf("%+v", app)
	case down.Status != 502 || down.Code != "bad_gateway" || down.Upstream != "down" || down.Outcome != "connection_refused":
		t.Errorf("%+v", down)
	case nowhere.Status != 404 || nowhere.Code != "not_found" || nowhere.Upstream != "":
		t.Errorf("%+v", nowhere)
	}
}

// TestCutTunnelIsLoggedOnce: a tunnel that the shutdown cuts has one line, with that reason.
func TestCutTunnelIsLoggedOnce(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.access=true", "node.drain=1s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, newUpstream(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || len(resp.Header.Get("X-Request-Id")) != 34 {
		t.Fatalf("%+v, %v", resp, err)
	}
	p.end()
	text := p.log.String()
	if strings.Count(text, "closed by shutdown") != 1 || !strings.Contains(text, `msg="tunnels closed by shutdown" tunnels=1`) || !strings.Contains(text, "status=101") || !strings.Contains(text, "outcome=shutdown") || !strings.Contains(text, "finished=0 refused=0 aborted=1 ") {
		t.Errorf("%s", text)
	}
}

// TestShutdownCutsStream: a response that the shutdown cuts does not count as an error of the client, and is in
// the drain report.
func TestShutdownCutsStream(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.access=true", "node.drain=1s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, newUpstream(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	p.end()
	text := p.log.String()
	if !strings.Contains(text, "outcome=shutdown") || !strings.Contains(text, "finished=0 refused=0 aborted=1 ") {
		t.Errorf("%s", text)
	}
}
