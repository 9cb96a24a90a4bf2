package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/core/event"
)

// TestEveryCauseHasASentence: whatever keeps a request from its answer, a person is told
// what it is.
func TestEveryCauseHasASentence(t *testing.T) {
	for _, s := range proxy.Symptoms() {
		if symptoms[s] == "" {
			t.Errorf("%s is not explained", s)
		}
	}
	for h := event.RetryAllowed + 1; h < event.NumNoRetryReasons; h++ {
		if halts[h] == "" {
			t.Errorf("%v is not explained", h)
		}
	}
	for s := event.EndpointPicked + 1; s < event.NumNoEndpointReasons; s++ {
		if stops[s] == "" {
			t.Errorf("%v is not explained", s)
		}
	}
	page, err := os.ReadFile("../../docs/how-to/find-the-cause.md")
	if err != nil {
		t.Fatal(err)
	}
	told, want := tabled(string(page), "| outcome, symptom |"), slices.Concat([]string{"ok"}, registry.Symptoms, registry.Stops)
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("docs/how-to/find-the-cause.md tells of %q, and there are %q", told, want)
	}
	for i, s := range proxy.Symptoms() {
		if len(registry.Symptoms) != len(symptoms) || registry.Symptoms[i] != string(s) {
			t.Errorf("%s is not counted", s)
		}
		if slices.Contains(registry.Fails, string(s)) != s.OfEndpoint() {
			t.Errorf("%s is counted as a failure, or is not: %v", s, s.OfEndpoint())
		}
	}
	if len(symptoms) != len(proxy.Symptoms()) || len(halts) != int(event.NumNoRetryReasons)-1 || len(stops) != int(event.NumNoEndpointReasons)-1 {
		t.Error("there are more sentences than causes")
	}
}

// tabled are the words in the first column of the table whose head begins so.
func tabled(page, head string) (words []string) {
	_, rest, _ := strings.Cut(page, "\n"+head)
	rest, _, _ = strings.Cut(rest, "\n\n")
	for line := range strings.SplitSeq(rest, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for i, word := range strings.Split(first, "`") {
			if i%2 == 1 {
				words = append(words, word)
			}
		}
	}
	return words
}

// nobody is an address at which nobody listens: it stays bound, so no other socket gets it.
func nobody(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// service is an upstream that does what its path says.
func service(t *testing.T) string {
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
			_ = http.NewResponseController(w).Flush() // so that it has left
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

// asked sends a request to the public listener: its status, and the id that its answer
// carries.
func (p process) asked(t *testing.T, method, path string, header ...string) (status int, id string) {
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
	_, _ = io.Copy(io.Discard, resp.Body) // one that breaks off is what is wanted
	return resp.StatusCode, resp.Header.Get("X-Request-Id")
}

// why is what the command says of a request, once that is over.
func (p process) why(t *testing.T, id string) string {
	t.Helper()
	for n := 0; ; n++ {
		out, err := exec.CommandContext(t.Context(), "macronode", "explain", id, "--data", p.Data).CombinedOutput()
		if err == nil {
			return string(out)
		}
		if !strings.Contains(string(out), "not_found") || n == 100 {
			t.Fatalf("%v\n%s", err, out) // one that is not kept yet will be
		}
	}
}

// TestFromAFailureToItsCause: whatever fails behind the gate, one command says why.
func TestFromAFailureToItsCause(t *testing.T) {
	down, well := nobody(t), service(t)
	p := serves(t, fmt.Sprintf(`upstreams={"down":{"url":%q,"max_attempts":2},"opens":{"url":%q,"max_attempts":2},"well":{"url":%q,"max_attempts":1},"two":{"urls":[%q,%q],"max_attempts":1},"sick":{"url":%q,"health":{"path":"/","interval":"100ms","timeout":"100ms","fall":1}}}`,
		down, down, well, down, nobody(t), down),
		`routes=[{"path":"/","upstream":"well","auth":"none","deadline":"300ms"},{"path":"/down","upstream":"down","auth":"none"},{"path":"/opens","upstream":"opens","auth":"none"},{"path":"/two","upstream":"two","auth":"none"},{"path":"/sick","upstream":"sick","auth":"none"},`+
			`{"path":"/parts","auth":"none","hydrate":[{"name":"list","upstream":"well","path":"/list"},{"name":"rest","upstream":"down","path":"/x"},{"name":"odd","upstream":"well","path":"/odd"}]}]`)
	const notAgain = "not retried: "
	for _, c := range []struct {
		what, method, path string
		status             int
		says               []string
		header             []string
	}{
		{"is well", "GET", "/list", 200, []string{"/list (routes[0])", "upstream    well: 1 attempt, circuit breaker closed", well + ", ok after", "with status 200", "first byte"}, nil},
		{"is down", "GET", "/down/x", 502, []string{"502 bad_gateway", "upstream    down: 2 attempts", "1: " + down + ", connection_refused after", symptoms[proxy.Refused], notAgain + halts[event.NoRetryAttempts]}, nil},
		{"is down, and the method is sent once", "POST", "/down/x", 502, []string{"1 attempt", notAgain + halts[event.NoRetryMethod]}, nil},
		{"refuses", "GET", "/refuses", 503, []string{"status after", "with status 503: " + symptoms[proxy.BadStatus], notAgain + halts[event.NoRetryAttempts]}, nil},
		{"says too much before its answer", "GET", "/hints", 502, []string{"1 attempt", notAgain + halts[event.NoRetryResponseStarted]}, nil},
		{"hangs", "GET", "/hangs", 504, []string{"504 timeout", well + ", deadline after", symptoms[proxy.Deadline], notAgain + halts[event.NoRetryDeadline]}, nil},
		{"hangs for longer than the client waits", "GET", "/hangs", 504, []string{"client_deadline after", symptoms[proxy.Hurried]}, []string{"X-Deadline-Ms", "50"}},
		{"breaks off midway", "GET", "/breaks", 200, []string{"response    200 aborted", ", connection_reset after", "with status 200: " + symptoms[proxy.Closed], "first byte"}, nil},
		{"closes without an answer", "GET", "/closes", 502, []string{", connection_reset after", symptoms[proxy.Closed]}, nil},
		{"a part is missing", "GET", "/parts", 200, []string{"upstream    well, for the part list: 1 attempt", "upstream    down, for the part rest: ", "missing     rest, for: bad_gateway",
			"missing     odd, for: no JSON", symptoms[proxy.Unfit]}, nil},
	} {
		status, id := p.asked(t, c.method, c.path, c.header...)
		if got := p.why(t, id); status != c.status || !contains(got, c.says) {
			t.Errorf("%s: %d\n%s\nwants %d, %q", c.what, status, got, c.status, c.says)
		}
	}
	if t.Failed() {
		return // what follows waits for what is said
	}
	halted := func(h event.NoRetryReason) func(*decisions.Leg) bool {
		return func(l *decisions.Leg) bool { return l.Halt == h.String() }
	}
	stopped := func(s event.NoEndpointReason) func(*decisions.Leg) bool {
		return func(l *decisions.Leg) bool { return l.Stop == s.String() }
	}
	ejected := func(l *decisions.Leg) bool { return len(l.Tries) > 0 && l.Tries[0].Out }
	<-p.log.await("no requests are sent to it\" upstream=sick")
	for _, c := range []struct {
		what, method, path string
		atOnce             int // of which one is it: what is saved for retries comes again with the time, and second tries come later
		is                 func(*decisions.Leg) bool
		status             int
		says               []string
	}{
		{"the budget is used up", "GET", "/down/x", 8, halted(event.NoRetryBudget), 502, []string{notAgain + halts[event.NoRetryBudget]}},
		{"a failure opens the breaker", "GET", "/opens/x", 24, halted(event.NoRetryCircuitOpen), 502, []string{notAgain + halts[event.NoRetryCircuitOpen]}},
		{"all are ejected", "POST", "/two/x", 1, ejected, 502, []string{"upstream    two: 1 attempt", symptoms[proxy.Refused] + "; it was ejected after failures and used because all endpoints were"}},
		{"the breaker is open", "POST", "/two/x", 1, stopped(event.NoEndpointCircuitOpen), 503, []string{"503 unavailable", "circuit breaker open", "stopped     " + stops[event.NoEndpointCircuitOpen]}},
		{"the checks fail", "GET", "/sick/x", 1, stopped(event.NoEndpointUnhealthy), 503, []string{"stopped     " + stops[event.NoEndpointUnhealthy], "unhealthy   " + down + ", connection_refused"}},
	} {
		d := p.until(t, c.method, c.path, c.atOnce, c.is)
		if got := p.why(t, d.ID); d.Status != c.status || !contains(got, c.says) {
			t.Errorf("%s: %d\n%s\nwants %d, %q", c.what, d.Status, got, c.status, c.says)
		}
	}
	for check := hangGuard(t); !p.ejects(t, "two"); check() { // they are for some seconds
		p.until(t, "POST", "/two/x", 1, ejected)
	}
	p.counts(t)
}

// ejects reports that endpoints of an upstream are shown as ejected.
func (p process) ejects(t *testing.T, upstream string) bool {
	t.Helper()
	_, rest, _ := strings.Cut(p.asks(t, "/metrics"), "\nupstream_endpoints{state=\"ejected\",upstream=\""+upstream+"\"} ")
	n, _, there := strings.Cut(rest, "\n")
	return there && n != "0"
}

// until asks so many at once, again and again, until what became of one of them at its upstream
// is what is waited for.
func (p process) until(t *testing.T, method, path string, atOnce int, is func(*decisions.Leg) bool) decisions.Decision {
	t.Helper()
	for check := hangGuard(t); ; check() {
		var all sync.WaitGroup
		ids := make([]string, atOnce)
		for i := range ids {
			all.Go(func() { _, ids[i] = p.asked(t, method, path) })
		}
		all.Wait()
		for _, id := range ids {
			if d := p.kept(t, id); len(d.Legs) == 1 && is(&d.Legs[0]) {
				return d
			}
		}
	}
}

// kept is what became of a request, once that is over.
func (p process) kept(t *testing.T, id string) (d decisions.Decision) {
	t.Helper()
	for check := hangGuard(t); ; check() {
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
			continue // it will be kept
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", id, resp.StatusCode, err)
		}
		return d
	}
}

// counts holds the series of upstreams to what was just done.
func (p process) counts(t *testing.T) {
	t.Helper()
	text := p.asks(t, "/metrics")
	for _, series := range []string{`upstream_requests_total{outcome="ok",upstream="well"}`, `upstream_requests_total{outcome="connection_refused",upstream="down"}`,
		`upstream_requests_total{outcome="circuit_open",upstream="two"}`, `upstream_requests_total{outcome="no_healthy_endpoint",upstream="sick"}`, `upstream_requests_total{outcome="invalid_part",upstream="well"}`,
		`upstream_fail_total{symptom="deadline",upstream="well"}`, `upstream_fail_total{symptom="connection_reset",upstream="well"}`, `upstream_fail_total{symptom="connection_refused",upstream="down"}`,
		`downstream_latency_seconds_count{upstream="well"}`, `upstream_bytes_total{direction="down",upstream="well"}`, `upstream_endpoints{state="unhealthy",upstream="sick"}`,
		`upstream_retries_total{upstream="down"}`, `upstream_retries_refused_total{upstream="down"}`, `circuit_open_total{upstream="two"}`} {
		_, rest, there := strings.Cut(text, "\n"+series+" ")
		if n, _, _ := strings.Cut(rest, "\n"); !there || n == "0" {
			t.Errorf("%s is %q", series, n)
		}
	}
	for _, series := range []string{`downstream_latency_seconds_count{upstream="down"} 0`, `upstream_inflight{upstream="down"} 0`, `circuit_open_total{upstream="sick"} 0`} {
		if !strings.Contains(text, "\n"+series+"\n") {
			t.Errorf("it is not so that %s", series)
		}
	}
}

func contains(text string, all []string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}
