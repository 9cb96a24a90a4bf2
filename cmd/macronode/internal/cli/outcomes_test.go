package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/decisions"
	"macronode/adapters/nettest"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// outcome is one request, and what each record must contain about it.
type outcome struct {
	what, method, path, body string

	header []string // names and values, by turns
	key    bool     // with the first API key
	cut    bool     // the response is truncated

	status            int
	code, why, route  string
	outcome, endpoint string
	tries             int
	quota             string
	moves             bool // it creates a record of the wallet
	stored            bool // its key stores the rejection
	upstream, halt    string
}

// accessEntry is a line of log.access.
type accessEntry struct {
	Msg, Decision, Method, Path, Route, Code, Reason, Class, Quota, Upstream, Endpoint, Outcome string

	Status, Tenant, In, Out, Tries int
}

// auditEntry is a line of the audit log.
type auditEntry struct {
	DecisionID string `json:"decision_id"`
	Key        string `json:"key"`
	Route      string `json:"route"`
	Code       string `json:"code"`
	TxID       string `json:"txid"`
	Status     int    `json:"status"`
	Tenant     int    `json:"tenant"`
}

// provoked is what a client got.
type provoked struct {
	*outcome
	id, body string
	code     string // of the problem
	txid     string
	keyID    string
}

// TestOutcomesAgree provokes outcomes on a running node, each twice. The response, the decision, the access log
// and the audit log agree in each field.
func TestOutcomesAgree(t *testing.T) {
	t.Parallel()
	well, down, odd := newUpstream(t), nettest.RefusingAddress(t), notHTTPUpstream(t)
	p := startNode(t, "log.access=true", "log.format=json", "log.level=error",
		fmt.Sprintf(`upstreams={"well":{"url":%q,"max_attempts":1},"down":{"url":%q,"max_attempts":2},"odd":{"url":%q,"max_attempts":1},"tls":{"url":%q,"max_attempts":1}}`,
			well, down, odd, strings.Replace(well, "http:", "https:", 1)),
		`routes=[{"path":"/","upstream":"well","auth":"none"},{"path":"/down","upstream":"down","auth":"none"},{"path":"/odd","upstream":"odd","auth":"none"},`+
			`{"path":"/tls","upstream":"tls","auth":"none"},{"name":"keyed","path":"/keyed","upstream":"well","auth":"key"},{"name":"few","path":"/few","upstream":"well","auth":"none"},`+
			`{"path":"/parts","auth":"none","hydrate":[{"name":"odd","upstream":"well","path":"/odd"}]},{"path":"/hangs","upstream":"well","auth":"none","deadline":"300ms"}]`,
		`quotas=[{"name":"few-bear","scope":"route","route":"few","requests_per_second":0.0001,"burst":2}]`)
	const issue = `{"to":"ann","asset":"EUR/2","amount_minor":"%d"}`
	none := event.RetryAllowed.String()
	all := []outcome{
		{what: "whole", method: "GET", path: "/list", status: 200, why: "admitted", route: "routes[0]", outcome: "ok", endpoint: well, tries: 1, upstream: "well", halt: none},
		{what: "whole, with a body", method: "POST", path: "/x", body: strings.Repeat("b", 70_000), status: 200, why: "admitted", route: "routes[0]", outcome: "ok", endpoint: well, tries: 1, upstream: "well", halt: none},
		{what: "refused, twice", method: "GET", path: "/down/x", status: 502, code: "bad_gateway", why: "admitted", route: "routes[1]", outcome: "connection_refused", endpoint: down, tries: 2, upstream: "down", halt: "max_attempts"},
		{what: "refused, and sent once", method: "PATCH", path: "/down/x", status: 502, code: "bad_gateway", why: "admitted", route: "routes[1]", outcome: "connection_refused", endpoint: down, tries: 1, upstream: "down", halt: "method_not_idempotent"},
		{what: "malformed", method: "GET", path: "/odd", status: 502, code: "bad_gateway", why: "admitted", route: "routes[2]", outcome: "protocol_error", endpoint: odd, tries: 1, upstream: "odd", halt: "max_attempts"},
		{what: "untrusted", method: "GET", path: "/tls", status: 502, code: "bad_gateway", why: "admitted", route: "routes[3]", outcome: "tls_error", endpoint: strings.Replace(well, "http:", "https:", 1), tries: 1, upstream: "tls", halt: "max_attempts"},
		{what: "status", method: "GET", path: "/refuses", status: 503, why: "admitted", route: "routes[0]", outcome: "status", endpoint: well, tries: 1, upstream: "well", halt: "max_attempts"},
		{what: "closed", method: "GET", path: "/closes", status: 502, code: "bad_gateway", why: "admitted", route: "routes[0]", outcome: "connection_reset", endpoint: well, tries: 1, upstream: "well", halt: "max_attempts"},
		{what: "closed midway", method: "GET", path: "/breaks", cut: true, status: 200, why: "admitted", route: "routes[0]", outcome: "connection_reset", endpoint: well, tries: 1, upstream: "well", halt: none},
		{what: "deadline", method: "GET", path: "/hangs", status: 504, code: "timeout", why: "admitted", route: "routes[7]", outcome: "deadline", endpoint: well, tries: 1, upstream: "well", halt: "deadline"},
		{what: "hurried", method: "GET", path: "/hangs", header: []string{"X-Deadline-Ms", "50"}, status: 504, code: "timeout", why: "admitted", route: "routes[7]", outcome: "client_deadline", endpoint: well, tries: 1, upstream: "well"},
		{what: "unfit", method: "GET", path: "/parts", status: 200, why: "admitted", route: "routes[6]", outcome: "invalid_part", endpoint: well, tries: 1, upstream: "well"},
		{what: "no key", method: "GET", path: "/keyed", status: 401, code: "unauthorized", why: "admitted", route: "keyed, routes[4]"},
		{what: "with a key", method: "GET", path: "/keyed", key: true, status: 200, why: "admitted", route: "keyed, routes[4]", outcome: "ok", endpoint: well, tries: 1, upstream: "well", halt: none},
		{what: "bears two", method: "GET", path: "/few", status: 200, why: "admitted", route: "few, routes[5]", outcome: "ok", endpoint: well, tries: 1, upstream: "well", halt: none},
		{what: "bears no more", method: "GET", path: "/few", status: 429, code: "rate_limited", why: "quota_exceeded", route: "few, routes[5]", quota: "few-bear"},
		{what: "unauthorized before its body", method: "POST", path: "/v1/issue", body: "{", status: 401, code: "unauthorized", why: "admitted", route: "issue"},
		{what: "malformed body", method: "POST", path: "/v1/issue", key: true, body: "{", status: 400, code: "bad_request", why: "admitted", route: "issue"},
		{what: "money", method: "POST", path: "/v1/issue", key: true, body: issue, status: 200, why: "admitted", route: "issue", moves: true},
		{what: "too little money", method: "POST", path: "/v1/burn", key: true, body: `{"from":"bob","asset":"EUR/2","amount_minor":"9","nonce":1}`, status: 409, code: "insufficient_funds", why: "admitted", route: "burn", stored: true},
		{what: "nothing there", method: "GET", path: "/v1/nowhere", status: 404, code: "not_found", why: "admitted"},
		{what: "no such method", method: "PUT", path: "/v1/issue", key: true, status: 405, code: "method_not_allowed", why: "admitted"},
	}
	raw, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(raw))
	var saw []provoked
	for i := range all {
		for round := range 2 { // so that a lost one of two is noticed
			saw = append(saw, p.provoke(t, &all[i], key, 2*i+round))
		}
	}
	kept := map[string]decisions.Decision{}
	for i := range saw {
		if text := p.explainText(t, saw[i].id); !strings.Contains(text, saw[i].id) || !strings.Contains(text, strconv.Itoa(saw[i].status)) {
			t.Errorf("%s: explain says\n%s", saw[i].what, text)
		}
		kept[saw[i].id] = p.decision(t, saw[i].id)
	}
	p.end()
	lines, audited := accessLines(t, p.log.String()), auditLines(t, filepath.Join(p.dir, "audit.log"))
	for i := range saw {
		a := &saw[i]
		d, l := kept[a.id], lines[a.id]
		a.compare(t, &d, &l)
		a.compareAudit(t, audited[a.id])
	}
}

// notHTTPUpstream is an upstream that does not respond with HTTP.
func notHTTPUpstream(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail is spoken here\r\n")
			_, _ = c.Read(make([]byte, 4096))
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return "http://" + l.Addr().String()
}

// A patientConn reads the response although the node has closed the connection before it had the whole body. A client that is slow, or
// whose machine is busy, gets an error when it writes; Go's returns that and not the response.
type patientConn struct{ net.Conn }

func (c patientConn) Write(b []byte) (int, error) {
	_, _ = c.Conn.Write(b)
	return len(b), nil
}

func dialPatiently(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return patientConn{c}, err
}

// provoke sends the request of an outcome; n makes its parts unique.
func (p process) provoke(t *testing.T, o *outcome, key string, n int) provoked {
	t.Helper()
	body := o.body
	if strings.Contains(body, "%d") {
		body = fmt.Sprintf(body, 100+n)
	}
	req, err := http.NewRequestWithContext(t.Context(), o.method, p.HTTP+o.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body = http.NoBody
	}
	for i := 0; i+1 < len(o.header); i += 2 {
		req.Header.Set(o.header[i], o.header[i+1])
	}
	if o.key {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k"+strconv.Itoa(n))
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: dialPatiently}}
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", o.what, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if (err != nil) != o.cut {
		t.Fatalf("%s: %v", o.what, err)
	}
	a := provoked{outcome: o, id: resp.Header.Get("X-Decision-Id"), body: string(text), keyID: key[:len("mk_")+16]}
	var problem struct{ Code, TxID string }
	if json.Unmarshal(text, &problem, json.MatchCaseInsensitiveNames(true)) == nil {
		a.code, a.txid = problem.Code, problem.TxID
	}
	if resp.StatusCode != o.status || a.code != o.code || len(a.id) != 34 || (a.txid != "") != o.moves {
		if n%2 == 0 || o.quota == "" {
			t.Errorf("%s: %d %q, decision %q, txid %q\n%s", o.what, resp.StatusCode, a.code, a.id, a.txid, text)
		}
	}
	return a
}

// compare compares a decision and an access line with the response.
func (a *provoked) compare(t *testing.T, d *decisions.Decision, l *accessEntry) {
	t.Helper()
	sent := len(a.outcome.body)
	if strings.Contains(a.outcome.body, "%d") {
		sent += len("100") - len("%d")
	}
	fail := func(field string, decision, line, want any) {
		t.Helper()
		if decision != want || line != want {
			t.Errorf("%s: %s is %v in the decision, %v in the access log, want %v", a.what, field, decision, line, want)
		}
	}
	if l.Msg == "" {
		t.Errorf("%s: the access log has no line of %s", a.what, a.id)
		return
	}
	fail("status", d.Status, l.Status, a.status)
	fail("code", d.Code, l.Code, a.outcome.code)
	fail("why", d.Why, l.Reason, a.why)
	fail("method", d.Method, l.Method, a.method)
	fail("path", d.Path, l.Path, a.path)
	if a.route != "" {
		fail("route", d.Target(), l.Route, a.route)
	}
	if a.quota != "" {
		fail("quota", d.Rule, l.Quota, a.quota)
	}
	if (d.Key != "") != a.key || (l.Tenant != 0) != a.key || (d.Tenant != 0) != a.key {
		t.Errorf("%s: key %q of tenant %d in the decision, tenant %d in the access log", a.what, d.Key, d.Tenant, l.Tenant)
	}
	if d.Cut != a.cut {
		t.Errorf("%s: cut off: %v", a.what, d.Cut)
	}
	if a.upstream == "" {
		if len(d.Legs) > 0 || l.Upstream != "" {
			t.Errorf("%s: it went to an upstream: %+v, %+v", a.what, d.Legs, l)
		}
		return
	}
	if len(d.Legs) != 1 {
		t.Errorf("%s: %d upstreams", a.what, len(d.Legs))
		return
	}
	g := &d.Legs[0]
	fail("upstream", g.Upstream, l.Upstream, a.upstream)
	fail("outcome", g.Outcome, l.Outcome, a.outcome.outcome)
	fail("tries", g.Count, l.Tries, a.tries)
	if len(g.Tries) != a.tries {
		t.Errorf("%s: %d tries are listed, want %d", a.what, len(g.Tries), a.tries)
		return
	}
	if a.tries == 0 {
		return // it was not forwarded
	}
	last := &g.Tries[len(g.Tries)-1]
	fail("endpoint", last.Endpoint, l.Endpoint, a.endpoint)
	fail("outcome of the last try", last.Outcome, l.Outcome, a.outcome.outcome)
	if a.halt != "" && g.Halt != a.halt && (g.Halt != "" || a.halt != event.RetryAllowed.String()) {
		t.Errorf("%s: not sent again for %q, want %q", a.what, g.Halt, a.halt)
	}
	if a.outcome.outcome == "ok" {
		fail("in", l.In, l.In, sent)
		fail("out", l.Out, l.Out, len(a.body))
		if want := uint64(sent + len(a.body)); d.Bytes < want || d.Bytes > want+want/2+1024 {
			t.Errorf("%s: %d bytes in the decision, %d went", a.what, d.Bytes, want)
		}
	}
}

// compareAudit compares the audit lines with the response: there is one for each use of a key that changed
// something or was rejected. A receipt and a stored rejection have a record, from which the decision has its ID.
func (a *provoked) compareAudit(t *testing.T, lines []auditEntry) {
	t.Helper()
	if !a.key || a.status < 400 && !a.moves {
		if len(lines) > 0 {
			t.Errorf("%s: the audit log has %+v", a.what, lines)
		}
		return
	}
	if len(lines) != 1 {
		t.Errorf("%s: %d lines of audit: %+v", a.what, len(lines), lines)
		return
	}
	want := auditEntry{DecisionID: a.id, Key: a.keyID, Route: a.route, Code: a.outcome.code, Status: a.status, Tenant: 1}
	if a.moves || a.stored {
		want.TxID = "tx_" + strings.TrimPrefix(a.id, "d_")
	}
	if want.Route == "" {
		want.Route = lines[0].Route
	}
	if lines[0] != want || a.moves && a.txid != want.TxID {
		t.Errorf("%s: the audit log has %+v, want %+v; its client was told %q", a.what, lines[0], want, a.txid)
	}
}

func accessLines(t *testing.T, text string) map[string]accessEntry {
	t.Helper()
	all := map[string]accessEntry{}
	for one := range strings.Lines(text) {
		var l accessEntry
		if json.Unmarshal([]byte(one), &l, json.MatchCaseInsensitiveNames(true)) != nil || l.Msg != "request" {
			continue
		}
		if _, twice := all[l.Decision]; twice {
			t.Errorf("two access lines of %s", l.Decision)
		}
		all[l.Decision] = l
	}
	return all
}

func auditLines(t *testing.T, path string) map[string][]auditEntry {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]auditEntry{}
	for one := range strings.Lines(string(text)) {
		var l auditEntry
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatalf("%v: %s", err, one)
		}
		all[l.DecisionID] = append(all[l.DecisionID], l)
	}
	return all
}

// recordingUpstream records its requests and answers 503.
type recordingUpstream struct {
	mu       sync.Mutex
	methods  []string
	deadline []int // milliseconds
}

func (a *recordingUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ms, _ := strconv.Atoi(r.Header.Get(proxy.DeadlineHeader))
	a.mu.Lock()
	a.methods, a.deadline = append(a.methods, r.Method), append(a.deadline, ms)
	a.mu.Unlock()
	w.WriteHeader(http.StatusServiceUnavailable)
}

// TestRetriesAreOfSafeMethodsAndShareTheDeadline: GET is retried within the deadline; POST and PATCH are not.
func TestRetriesAreOfSafeMethodsAndShareTheDeadline(t *testing.T) {
	t.Parallel()
	u := new(recordingUpstream)
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	p := startNode(t, fmt.Sprintf(`upstreams={"app":{"url":%q,"max_attempts":2}}`, s.URL), `routes=[{"path":"/","upstream":"app","auth":"none","deadline":"4s"}]`)
	for method, want := range map[string]int{"GET": 2, "POST": 1, "PATCH": 1} {
		u.mu.Lock()
		u.methods, u.deadline = nil, nil
		u.mu.Unlock()
		_, id := p.requestID(t, method, "/x")
		d := p.decision(t, id)
		u.mu.Lock()
		if len(u.methods) != want || len(d.Legs) != 1 || d.Legs[0].Count != want {
			t.Errorf("%s was sent %d times, want %d; the decision has %+v", method, len(u.methods), want, d.Legs)
		}
		for i, ms := range u.deadline {
			if ms <= 0 || ms > 4000 || i > 0 && ms >= u.deadline[i-1] {
				t.Errorf("%s: attempt %d was granted %d ms of %v", method, i+1, ms, u.deadline)
			}
		}
		u.mu.Unlock()
	}
}
