package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestAccess: with log.access a request has one line, which tells what an operator asks, and
// nothing that is secret: not what stands in a header, a query or a body.
func TestAccess(t *testing.T) {
	const secret = "s3cret"
	well := service(t)
	p := serves(t, "log.access=true", "log.format=json", "log.level=error", fmt.Sprintf(`upstreams={"app":{"url":%q},"down":{"url":%q,"max_attempts":1}}`, well, nobody(t)),
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

// TestATunnelIsCutInOneLine: what is cut at the end is told of once, and as what it is.
func TestATunnelIsCutInOneLine(t *testing.T) {
	p := serves(t, "log.access=true", "node.drain=1s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, service(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
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

// TestAStreamIsCutByTheEnd: an answer that the end of the node cuts is no fault of its client,
// and is counted in what the drain says.
func TestAStreamIsCutByTheEnd(t *testing.T) {
	p := serves(t, "log.access=true", "node.drain=1s", fmt.Sprintf(`upstreams={"app":{"url":%q}}`, service(t)), `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
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

// TestOpenCircuitDegrades: who reads the log alone learns that an upstream is left alone, and
// that it is not any more, each once.
func TestOpenCircuitDegrades(t *testing.T) {
	var text strings.Builder
	l := &life{log: slog.New(slog.NewTextHandler(&text, nil))}
	l.edition.Store(&edition{numbers: numbering{upstreams: slots{names: []string{"a", "", "c"}}}})
	for _, c := range []struct {
		broken uint64
		says   []string
	}{{0, nil}, {4, []string{"opened", "upstream=c"}}, {4, nil}, {5, []string{"opened", "upstream=a"}}, {1, []string{"closed", "upstream=c"}}, {3, nil}} {
		text.Reset()
		l.watchUpstreams(c.broken)
		if got := text.String(); !contains(got, c.says) || strings.Count(got, "msg=") != len(c.says)/2 {
			t.Errorf("%b: %q", c.broken, got)
		}
	}
}
