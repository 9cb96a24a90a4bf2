package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/decisions"
	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/explain"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
)

// newUpstream starts an upstream whose behaviour depends on the path.
func newUpstream(t *testing.T) string {
	t.Helper()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			<-over
		case "/endless":
			_ = http.NewResponseController(w).Flush()
			<-over
		case "/hints":
			for range 6 {
				w.Header().Set("Link", "</a>")
				w.WriteHeader(http.StatusEarlyHints)
			}
		case "/refuses":
			w.Header().Set("X-Request-Id", "theirs")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/breaks":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush() // sends the first part
			panic(http.ErrAbortHandler)
		case "/closes":
			panic(http.ErrAbortHandler)
		case "/tunnel":
			conn, with, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = with.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = with.Flush()
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		case "/list":
			_, _ = io.WriteString(w, "[1,2]")
		default:
			_, _ = io.WriteString(w, "no JSON")
		}
	}))
	t.Cleanup(func() { close(over); s.CloseClientConnections(); s.Close() })
	return s.URL
}

// requestID sends a request to the public listener, and returns the status and the request ID of the response.
func (p process) requestID(t *testing.T, method, path string, header ...string) (status int, id string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // a truncated body is expected
	return resp.StatusCode, resp.Header.Get("X-Request-Id")
}

// explainText returns the output of explain for a request, once it has ended.
func (p process) explainText(t *testing.T, id string, flags ...string) string {
	t.Helper()
	for n := 0; ; n++ {
		out, err := exec.CommandContext(t.Context(), "macronode", append([]string{"explain", id, "--data", p.Data}, flags...)...).CombinedOutput()
		if err == nil {
			return string(out)
		}
		if !strings.Contains(string(out), "not_found") || n == 100 {
			t.Fatalf("%v\n%s", err, out) // the decision may not be recorded yet
		}
	}
}

// TestExplainShowsCause: explain shows the cause of each failure after admission.
func TestExplainShowsCause(t *testing.T) {
	t.Parallel()
	down, well := nettest.RefusingAddress(t), newUpstream(t)
	p := startNode(t, fmt.Sprintf(`upstreams={"down":{"url":%q,"max_attempts":2},"opens":{"url":%q,"max_attempts":2},"well":{"url":%q,"max_attempts":1},"two":{"urls":[%q,%q],"max_attempts":1},"sick":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}}}`,
		down, down, well, down, nettest.RefusingAddress(t), down),
		`routes=[{"path":"/","upstream":"well","auth":"none"},{"path":"/down","upstream":"down","auth":"none"},{"path":"/opens","upstream":"opens","auth":"none"},{"path":"/two","upstream":"two","auth":"none"},{"path":"/sick","upstream":"sick","auth":"none"},{"path":"/hangs","upstream":"well","auth":"none","deadline":"300ms"},`+
			`{"path":"/parts","auth":"none","hydrate":[{"name":"list","upstream":"well","path":"/list"},{"name":"rest","upstream":"down","path":"/x"},{"name":"odd","upstream":"well","path":"/odd"}]}]`)
	const notAgain = "not retried: "
	for _, c := range []struct {
		what, method, path string
		status             int
		contains           []string
		header             []string
	}{
		{"is well", "GET", "/list", 200, []string{"/list (routes[0])", "upstream    well: 1 attempt, circuit breaker closed", well + ", ok after", "with status 200", "first byte"}, nil},
		{"is down", "GET", "/down/x", 502, []string{"502 bad_gateway", "upstream    down: 2 attempts", "1: " + down + ", connection_refused after", explain.Symptoms[proxy.ConnectionRefused], notAgain + explain.NoRetry[event.NoRetryAttempts]}, nil},
		{"is down, and the method is sent once", "POST", "/down/x", 502, []string{"1 attempt", notAgain + explain.NoRetry[event.NoRetryMethod]}, nil},
		{"refuses", "GET", "/refuses", 503, []string{"status after", "with status 503: " + explain.Symptoms[proxy.BadStatus], notAgain + explain.NoRetry[event.NoRetryAttempts]}, nil},
		{"says too much before its answer", "GET", "/hints", 502, []string{"1 attempt", notAgain + explain.NoRetry[event.NoRetryResponseStarted]}, nil},
		{"hangs", "GET", "/hangs", 504, []string{"504 timeout", well + ", deadline after", explain.Symptoms[proxy.DeadlineExceeded], notAgain + explain.NoRetry[event.NoRetryDeadline]}, nil},
		{"hangs for longer than the client waits", "GET", "/hangs", 504, []string{"client_deadline after", explain.Symptoms[proxy.ClientDeadline]}, []string{"X-Deadline-Ms", "50"}},
		{"breaks off midway", "GET", "/breaks", 200, []string{"response    200 aborted", ", connection_reset after", "with status 200: " + explain.Symptoms[proxy.ConnectionReset], "first byte"}, nil},
		{"closes without an answer", "GET", "/closes", 502, []string{", connection_reset after", explain.Symptoms[proxy.ConnectionReset]}, nil},
		{"a part is missing", "GET", "/parts", 200, []string{"upstream    well, for the part list: 1 attempt", "upstream    down, for the part rest: ", "missing     rest, for: bad_gateway",
			"missing     odd, for: no JSON", explain.Symptoms[proxy.InvalidPart]}, nil},
	} {
		status, id := p.requestID(t, c.method, c.path, c.header...)
		if got := p.explainText(t, id); status != c.status || !testkit.ContainsAll(got, c.contains) {
			t.Errorf("%s: %d\n%s\nwants %d, %q", c.what, status, got, c.status, c.contains)
		}
	}
	if t.Failed() {
		return // the remaining checks need the outputs
	}
	halted := func(h event.NoRetryReason) func(*decisions.Leg) bool {
		return func(l *decisions.Leg) bool { return l.Halt == h.String() }
	}
	stopped := func(s event.NoEndpointReason) func(*decisions.Leg) bool {
		return func(l *decisions.Leg) bool { return l.Stop == s.String() }
	}
	ejected := func(l *decisions.Leg) bool { return len(l.Tries) > 0 && l.Tries[0].Out }
	<-p.log.Await("no requests are sent to it\" upstream=sick")
	for _, c := range []struct {
		what, method, path string
		atOnce             int // requests at the same time: the retry budget refills with time, and retries come later
		is                 func(*decisions.Leg) bool
		status             int
		contains           []string
	}{
		{"the budget is used up", "GET", "/down/x", 8, halted(event.NoRetryBudget), 502, []string{notAgain + explain.NoRetry[event.NoRetryBudget]}},
		{"a failure opens the breaker", "GET", "/opens/x", 24, halted(event.NoRetryCircuitOpen), 502, []string{notAgain + explain.NoRetry[event.NoRetryCircuitOpen]}},
		{"all are ejected", "POST", "/two/x", 1, ejected, 502, []string{"upstream    two: 1 attempt", explain.Symptoms[proxy.ConnectionRefused] + "; it was ejected after failures and used because all endpoints were"}},
		{"the breaker is open", "POST", "/two/x", 1, stopped(event.NoEndpointCircuitOpen), 503, []string{"503 unavailable", "circuit breaker open", "stopped     " + explain.NoEndpoint[event.NoEndpointCircuitOpen]}},
		{"the checks fail", "GET", "/sick/x", 1, stopped(event.NoEndpointUnhealthy), 503, []string{"stopped     " + explain.NoEndpoint[event.NoEndpointUnhealthy], "unhealthy   " + down + ", connection_refused"}},
	} {
		d := p.until(t, c.method, c.path, c.atOnce, c.is)
		if got := p.explainText(t, d.ID); d.Status != c.status || !testkit.ContainsAll(got, c.contains) {
			t.Errorf("%s: %d\n%s\nwants %d, %q", c.what, d.Status, got, c.status, c.contains)
		}
	}
	p.checkCounters(t)
}

// isEjected reports whether an endpoint of an upstream is shown as ejected.
func (p process) isEjected(t *testing.T, upstream string) bool {
	t.Helper()
	_, rest, _ := strings.Cut(p.adminText(t, "/metrics"), "\nupstream_endpoints{state=\"ejected_anonymous\",upstream=\""+upstream+"\"} ")
	n, _, there := strings.Cut(rest, "\n")
	return there && n != "0"
}

// until sends groups of requests until one of them has a wanted upstream outcome.
func (p process) until(t *testing.T, method, path string, atOnce int, is func(*decisions.Leg) bool) decisions.Decision {
	t.Helper()
	for check := testkit.HangGuard(t); ; check() {
		var all sync.WaitGroup
		ids := make([]string, atOnce)
		for i := range ids {
			all.Go(func() { _, ids[i] = p.requestID(t, method, path) })
		}
		all.Wait()
		for _, id := range ids {
			if d := p.decision(t, id); len(d.Legs) == 1 && is(&d.Legs[0]) {
				return d
			}
		}
	}
}

// decision returns the decision on a request, once it has ended.
func (p process) decision(t *testing.T, id string) (d decisions.Decision) {
	t.Helper()
	for check := testkit.HangGuard(t); ; check() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Admin+"/v1/decisions/"+id, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+p.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		err = json.UnmarshalRead(resp.Body, &d)
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			continue // not recorded yet
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", id, resp.StatusCode, err)
		}
		return d
	}
}

// checkCounters compares the series of upstreams with the requests that were sent.
func (p process) checkCounters(t *testing.T) {
	t.Helper()
	text := p.adminText(t, "/metrics")
	for _, series := range []string{`upstream_requests_total{outcome="ok",upstream="well"}`, `upstream_requests_total{outcome="connection_refused",upstream="down"}`,
		`upstream_requests_total{outcome="circuit_open",upstream="two"}`, `upstream_requests_total{outcome="no_healthy_endpoint",upstream="sick"}`, `upstream_requests_total{outcome="invalid_part",upstream="well"}`,
		`upstream_fail_total{symptom="deadline",upstream="well"}`, `upstream_fail_total{symptom="connection_reset",upstream="well"}`, `upstream_fail_total{symptom="connection_refused",upstream="down"}`,
		`downstream_latency_seconds_count{upstream="well"}`, `upstream_bytes_total{direction="down",upstream="well"}`, `upstream_endpoints{state="unhealthy",upstream="sick"}`,
		`upstream_retries_total{upstream="down"}`, `upstream_retries_refused_total{upstream="down"}`, `circuit_open_total{callers="anonymous",upstream="two"}`} {
		_, rest, there := strings.Cut(text, "\n"+series+" ")
		if n, _, _ := strings.Cut(rest, "\n"); !there || n == "0" {
			t.Errorf("%s is %q", series, n)
		}
	}
	for _, series := range []string{`downstream_latency_seconds_count{upstream="down"} 0`, `upstream_inflight{upstream="down"} 0`, `circuit_open_total{callers="anonymous",upstream="sick"} 0`, `circuit_open_total{callers="authenticated",upstream="two"} 0`} {
		if !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("it is not so that %s", series)
		}
	}
}

// TestExplainEscapesPath: characters of a path that are not printable are escaped, in the text and in JSON. A path that is not UTF-8 is explained
// as well.
func TestExplainEscapesPath(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	for _, c := range []struct{ path, text, json string }{
		{"/a%C2%9B%E2%80%AE%1B%0Ax", `GET /a\u009b\u202e\x1b\nx (`, `"path":"/a\u009b\u202e\u001b\nx"`},
		{"/b%7F%F3%A0%81%81", `GET /b\x7f\U000e0041 (`, `"path":"/b\u007f\udb40\udc41"`},
		{"/c%FF%C3%A9", "GET /c\ufffd\u00e9 (", "\"path\":\"/c\ufffd\u00e9\""},
	} {
		_, id := p.requestID(t, http.MethodGet, c.path)
		if got := p.explainText(t, id); !strings.Contains(got, c.text) {
			t.Errorf("%s: %q, want %s", c.path, got, c.text)
		}
		if got := p.explainText(t, id, "--json"); !strings.Contains(got, c.json) {
			t.Errorf("%s: %q, want %s", c.path, got, c.json)
		}
	}
}

// TestExplainWithoutNode: without a node, there is no answer about a decision.
func TestExplainWithoutNode(t *testing.T) {
	t.Parallel()
	wantProgram(t, exit.CodeUnable, []string{"no node is running"}, "explain", "decision", "d_44abdbbed012c8bb00000000000000ad", "--data", t.TempDir())
}
