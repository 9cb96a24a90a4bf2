package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"macronode/core/event"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token      = "the-token-of-run.json"
	otherToken = "another-credential"
)

// A desk is an API, the commands to its node, and its log.
type fixture struct {
	*API
	status event.Status
	wanted []event.SignalKind
	tried  *Attempt // outcome of a change
	lines  bytes.Buffer
}

func build(change func(*Config)) *fixture {
	d := &fixture{tried: &Attempt{Applied: true}, status: event.Status{Phase: types.Ready, Ready: true, ForRead: true, Reads: true, Writes: true}}
	c := Config{
		Status: func() event.Status { return d.status },
		Want:   func(s event.SignalKind) { d.wanted = append(d.wanted, s) },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "metrics")
		}),
		Queues: func() []Queue {
			return []Queue{{Name: "work", Depth: 1, Limit: 2, Unit: "requests", Policy: "reject", Dropped: 3}}
		},
		Effective: func() string { return "data: here\n" },
		Applied:   func() Applied { return Applied{Version: "c0ffee", Last: d.tried} },
		Reload: func() Applied {
			d.wanted = append(d.wanted, event.AcceptClock)
			return Applied{Version: "c0ffee", Changes: 1, Last: d.tried}
		},
		Authorize: func(reported string) (string, bool) { return "other", reported == otherToken },
		Hosts:     func() []string { return []string{"macronode", "*.svc.cluster.local"} },
		Token:     token, Boot: 0xb007, Log: slog.New(slog.NewTextHandler(&d.lines, nil)),
	}
	if change != nil {
		change(&c)
	}
	d.API = New(c)
	return d
}

// A visit is a request with the fields that an adversary can choose or not.
type call struct {
	method, path string
	token        []string
	host         string
	origin       []string
	local        net.Addr
}

func get(path string) call {
	return call{method: "GET", path: path, host: "localhost:8081", local: loopback}
}
func post(path string) call {
	return call{method: "POST", path: path, host: "localhost:8081", local: loopback}
}

func (v call) by(token ...string) call { v.token = token; return v }

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}
	outside  = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8081}
	bearer   = "Bearer " + token
)

func (d *fixture) call(v call) *httptest.ResponseRecorder {
	r := httptest.NewRequest(v.method, v.path, nil)
	r.Host = v.host
	r.Header["Origin"] = v.origin
	r.Header["Authorization"] = v.token
	if v.local != nil {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, v.local))
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

var routes = []struct {
	method, path string
	access       access
	status       int
}{
	{"GET", "/livez", probe, 200},
	{"GET", "/healthz", probe, 200},
	{"GET", "/readyz", probe, 200},
	{"GET", "/readyz?verbose&for=read", probe, 200},
	{"GET", "/metrics", scrape, 200},
	{"GET", "/debug/queues", operate, 200},
	{"GET", "/debug/pprof/", operate, 200},
	{"GET", "/debug/pprof/heap", operate, 200},
	{"GET", "/debug/pprof/goroutine?debug=1", operate, 200},
	{"GET", "/debug/pprof/cmdline", operate, 200},
	{"GET", "/debug/pprof/symbol", operate, 200},
	{"GET", "/config/effective", operate, 200},
	{"GET", "/config/status", operate, 200},
	{"POST", "/config/reload", operate, 200},
	{"POST", "/drain", operate, 202},
	{"POST", "/drain?abort", operate, 202},
	{"POST", "/clock/accept", operate, 202},
}

// TestAccess tries every route with every kind of credential and origin.
func TestAccess(t *testing.T) {
	ways := []struct {
		name  string
		token []string
		local net.Addr
		right bool // whether the token is valid
	}{
		{"no token, on loopback", nil, loopback, false},
		{"no token, on a unix socket", nil, &net.UnixAddr{Name: "sock"}, false},
		{"no token, from outside", nil, outside, false},
		{"no token, unknown address", nil, nil, false},
		{"the token, on loopback", []string{bearer}, loopback, true},
		{"the token, from outside", []string{bearer}, outside, true},
		{"the token, in another case of the scheme", []string{"bearer " + token}, outside, true},
		{"another token", []string{bearer + "x"}, outside, false},
		{"a part of the token", []string{bearer[:20]}, outside, false},
		{"no token", []string{"Bearer "}, outside, false},
		{"another scheme", []string{"Basic " + token}, outside, false},
		{"the token twice", []string{bearer, bearer}, outside, false},
		{"more blanks than one", []string{"Bearer    " + token}, outside, true},
		{"another credential that is accepted", []string{"Bearer " + otherToken}, outside, true},
	}
	for _, route := range routes {
		for _, way := range ways {
			d := build(nil)
			v := call{route.method, route.path, way.token, "127.0.0.1:8081", nil, way.local}
			_, unix := way.local.(*net.UnixAddr)
			local := way.local == net.Addr(loopback) || unix
			want, open := http.StatusUnauthorized, route.access == probe || route.access == scrape && local
			if way.right || open {
				want = route.status
			}
			w := d.call(v)
			if w.Code != want {
				t.Errorf("%s %s with %s: %d", route.method, route.path, way.name, w.Code)
			}
			if done := len(d.wanted) > 0; done && want != route.status {
				t.Errorf("%s with %s: refused and done", route.path, way.name)
			}
			if strings.Contains(d.lines.String(), token) || strings.Contains(d.lines.String(), otherToken) {
				t.Errorf("%s with %s: the token is in the log", route.path, way.name)
			}
			if used := strings.Contains(d.lines.String(), "path="+strings.Split(route.path, "?")[0]); used == open { // probes and open scrapes are not logged
				t.Errorf("%s with %s: logged %q", route.path, way.name, &d.lines)
			}
		}
	}
}

// An empty token is not valid if the configuration has none.
func TestEmptyTokenIsRejected(t *testing.T) {
	d := build(func(c *Config) { c.Token = "" })
	for _, reported := range []string{"", "Bearer", "Bearer "} {
		if w := d.call(post("/drain").by(reported)); w.Code != 401 || !strings.Contains(w.Body.String(), "of the tenant default, without limits on accounts and assets") || len(d.wanted) > 0 {
			t.Errorf("%q: %d", reported, w.Code)
		}
	}
}

// A page of another origin is rejected, with any credential.
func TestForeignPagesAreRejected(t *testing.T) {
	for _, c := range []struct {
		host   string
		origin []string
		local  net.Addr
		ours   bool
	}{
		{"localhost", nil, loopback, true},
		{"LOCALHOST:9999", nil, loopback, true},
		{"127.0.0.1:8081", nil, loopback, true},
		{"127.9.9.9", nil, loopback, true},
		{"[::1]:8081", nil, loopback, true},
		{"[::1]", nil, loopback, true},
		{"10.0.0.7:8081", nil, outside, true},
		{"[::ffff:10.0.0.7]:8081", nil, outside, true},
		{"10.0.0.7:8081", nil, loopback, true},
		{"10.0.0.8:8081", nil, outside, true},
		{"[fd00::8]:8081", nil, outside, true},
		{"macronode:8081", nil, outside, true},
		{"Macronode.", nil, outside, true},
		{"node-0.prod.svc.cluster.local:8081", nil, outside, true},
		{"svc.cluster.local:8081", nil, outside, false},
		{"macronode.evil.example", nil, outside, false},
		{"evilsvc.cluster.local", nil, outside, false},
		{"[::]:8081", nil, loopback, false},
		{"evil.example", nil, loopback, false},
		{"evil.example:8081", nil, loopback, false},
		{"localhost.evil.example", nil, loopback, false},
		{"127.0.0.1.evil.example", nil, loopback, false},
		{"0.0.0.0:8081", nil, loopback, false},
		{"", nil, loopback, false},
		{"localhost:8081", []string{"http://localhost:8081"}, loopback, true},
		{"localhost:8081", []string{"https://LOCALHOST:8081"}, loopback, true},
		{"localhost:8081", []string{"http://localhost:8080"}, loopback, false},
		{"localhost:8081", []string{"http://evil.example"}, loopback, false},
		{"localhost:8081", []string{"null"}, loopback, false},
		{"localhost:8081", []string{""}, loopback, false},
		{"localhost:8081", []string{"http://localhost:8081", "http://localhost:8081"}, loopback, false},
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/nowhere"} {
			d := build(nil)
			w := d.call(call{"GET", path, []string{bearer}, c.host, c.origin, c.local})
			if (w.Code != http.StatusForbidden) != c.ours {
				t.Errorf("%s by Host %q, Origin %q, at %v: %d", path, c.host, c.origin, c.local, w.Code)
			}
		}
	}
}

// TestProbesNeedNoCredential: a probe needs no credential or host name and gets only the state.
// Details need a credential, or a caller on this machine.
func TestProbesNeedNoCredential(t *testing.T) {
	for _, path := range []string{"/livez", "/healthz", "/readyz", "/readyz?for=read", "/readyz?verbose"} {
		for _, host := range []string{"10.1.2.3:8081", "macronode-0.example:8081", "localhost", ""} {
			for _, local := range []net.Addr{outside, loopback} {
				for _, credential := range [][]string{nil, {bearer}, {"Bearer wrong"}} {
					d := build(nil)
					w := d.call(call{"GET", path, credential, host, nil, local})
					if w.Code != http.StatusOK {
						t.Errorf("%s with Host %q at %v: %d %s", path, host, local, w.Code, w.Body)
					}
					mayReadMore := len(credential) > 0 && credential[0] == bearer || local == net.Addr(loopback) && (host == "localhost" || host == "10.1.2.3:8081")
					if more := strings.Contains(w.Body.String(), "durable_lsn"); more != (path == "/readyz?verbose" && mayReadMore) {
						t.Errorf("%s with Host %q and credential %q at %v: details %v", path, host, credential, local, more)
					}
				}
			}
		}
	}
}

// TestOpenMetrics needs no credential; the host name is still checked.
func TestOpenMetrics(t *testing.T) {
	open := false
	d := build(func(c *Config) { c.OpenMetrics = func() bool { return open } })
	for _, step := range []struct {
		open   bool
		host   string
		status int
	}{{false, "10.0.0.7:8081", 401}, {true, "10.0.0.7:8081", 200}, {true, "macronode:8081", 200}, {true, "evil.example", 403}, {false, "macronode:8081", 401}} {
		open = step.open
		if w := d.call(call{"GET", "/metrics", nil, step.host, nil, outside}); w.Code != step.status {
			t.Errorf("open %v, Host %q: %d", step.open, step.host, w.Code)
		}
		if w := d.call(call{"GET", "/debug/queues", nil, "10.0.0.7", nil, outside}); w.Code != 401 {
			t.Errorf("open %v: /debug/queues without a credential: %d", step.open, w.Code)
		}
	}
}

// TestReadinessTable checks the table of phases, row by row.
func TestReadinessTable(t *testing.T) {
	type row struct {
		name         string
		status       event.Status
		ready, reads int
		text         string
	}
	for _, c := range []row{
		{"starting", event.Status{Phase: types.Starting, WaitingFor: types.Conditions(0).With(types.DependencyJournal).With(types.DependencyKey)}, 503, 503,
			`{"ready":false,"phase":"starting","reads":false,"writes":false,"waiting_for":["journal","key"],"degraded_by":[]}`},
		{"starting late", event.Status{Phase: types.Starting, WaitingFor: types.AllDependencies, DegradedBy: types.Conditions(0).With(types.StartTimeout)}, 503, 503,
			`{"ready":false,"phase":"starting","reads":false,"writes":false,"waiting_for":["journal","key","http","admin","sampler","upstreams"],"degraded_by":["start_timeout"]}`},
		{"ready", event.Status{Phase: types.Ready, Ready: true, ForRead: true, Reads: true, Writes: true}, 200, 200,
			`{"ready":true,"phase":"ready","reads":true,"writes":true,"waiting_for":[],"degraded_by":[]}`},
		{"degraded, writes possible", event.Status{Phase: types.Degraded, Ready: true, ForRead: true, Reads: true, Writes: true,
			DegradedBy: types.Conditions(0).With(types.ClockUntrusted).With(types.CrashLoop)}, 200, 200,
			`{"ready":true,"phase":"degraded","reads":true,"writes":true,"waiting_for":[],"degraded_by":["clock_untrusted","crash_loop"]}`},
		{"degraded, journal stalled", event.Status{Phase: types.Degraded, ForRead: true, Reads: true,
			DegradedBy: types.Conditions(0).With(types.JournalStalled)}, 503, 200,
			`{"ready":false,"phase":"degraded","reads":true,"writes":false,"waiting_for":[],"degraded_by":["journal_stalled"]}`},
		{"degraded, disk full", event.Status{Phase: types.Degraded, ForRead: true, Reads: true,
			DegradedBy: types.Conditions(0).With(types.DiskFull)}, 503, 200,
			`{"ready":false,"phase":"degraded","reads":true,"writes":false,"waiting_for":[],"degraded_by":["disk_full"]}`},
		{"lame_duck", event.Status{Phase: types.LameDuck, Reads: true, Writes: true}, 503, 503,
			`{"ready":false,"phase":"lame_duck","reads":true,"writes":true,"waiting_for":[],"degraded_by":[]}`},
		{"draining", event.Status{Phase: types.Draining}, 503, 503,
			`{"ready":false,"phase":"draining","reads":false,"writes":false,"waiting_for":[],"degraded_by":[]}`},
	} {
		d := build(nil)
		d.status = c.status
		live, all, read := d.call(get("/livez")), d.call(get("/readyz")), d.call(get("/readyz?for=read"))
		if write, proxy := d.call(get("/readyz?for=write")), d.call(get("/readyz?for=proxy")); write.Code != c.ready || proxy.Code != c.reads {
			t.Errorf("%s: for=write %d, for=proxy %d", c.name, write.Code, proxy.Code)
		}
		if live.Code != 200 || all.Code != c.ready || read.Code != c.reads {
			t.Errorf("%s: livez %d, readyz %d, for=read %d", c.name, live.Code, all.Code, read.Code)
		}
		if got := strings.TrimSpace(all.Body.String()); got != c.text {
			t.Errorf("%s: %s", c.name, got)
		}
		for _, w := range []*httptest.ResponseRecorder{all, read} {
			if (w.Header().Get("Retry-After") != "") != (w.Code == 503) {
				t.Errorf("%s: %d with Retry-After %q", c.name, w.Code, w.Header().Get("Retry-After"))
			}
		}
	}
}

func TestVerboseShowsDetails(t *testing.T) {
	d := build(func(c *Config) { c.Insecure, c.Turn = true, func() uint64 { return 4096 } })
	d.status = event.Status{Phase: types.Degraded, LSN: 5, Durable: 4, Applied: 3, At: 1_700_000_000_123, Offset: 1500e6, HeldReplies: 2, Keys: 9, Backlog: 77,
		Report: event.DrainReport{Finished: 1, Rejected: 2, Aborted: 3}}
	d.status.Restarts[types.ServiceAdmin], d.status.Fault = 6, event.NoSpace
	const want = `{"ready":false,"phase":"degraded","reads":false,"writes":false,"waiting_for":[],"degraded_by":[],"insecure":true,"journal_fault":"no space","lsn":5,"durable_lsn":4,` +
		`"folded_lsn":3,"at":"2023-11-14T22:13:20.123Z","clock_offset_ms":1500,"held_replies":2,"idempotency_keys":9,"backlog_bytes":77,"turn_bytes":4096,` +
		`"restarts":{"admin":6,"audit":0,"http":0,"indexer":0,"keeper":0,"sampler":0},"drain":{"finished":1,"refused":2,"aborted":3}}` + "\n"
	if got := d.call(get("/readyz?verbose")).Body.String(); got != want {
		t.Fatalf("%s", got)
	}
}

// TestVerboseNamesAwaitedUpstreams while they are awaited.
func TestVerboseNamesAwaitedUpstreams(t *testing.T) {
	d := build(func(c *Config) {
		c.Upstreams = func(set uint64) []string { return []string{fmt.Sprintf("%b", set)} }
	})
	d.status = event.Status{Phase: types.Starting, WaitingFor: types.Conditions(0).With(types.DependencyUpstreams), AwaitedUpstreams: 5}
	if got := d.call(get("/readyz?verbose")).Body.String(); !strings.Contains(got, `"waiting_for":["upstreams"],"degraded_by":[],"awaited_upstreams":["101"],`) {
		t.Error(got)
	}
	if got := d.call(get("/readyz")).Body.String(); strings.Contains(got, "awaited") {
		t.Error(got)
	}
	d.status.AwaitedUpstreams = 0
	if got := d.call(get("/readyz?verbose")).Body.String(); strings.Contains(got, "awaited") {
		t.Error(got)
	}
	d.status.Down = 2
	if got := d.call(get("/readyz?verbose")).Body.String(); !strings.Contains(got, `"degraded_by":[],"unhealthy_upstreams":["10"],`) {
		t.Error(got)
	}
	d.status.Down, d.status.OpenCircuits = 0, [event.NumCallers]uint64{6, 2}
	if got := d.call(get("/readyz?verbose")).Body.String(); !strings.Contains(got, `"degraded_by":[],"broken_upstreams":["110"],"broken_upstreams_anonymous":["10"],`) {
		t.Error(got)
	}
}

// TestVerboseShowsCertificate if there is one; readiness does not depend on it.
func TestVerboseShowsCertificate(t *testing.T) {
	is, there := Proof{Ends: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Age: "over"}, true
	d := build(func(c *Config) { c.Proof = func() (Proof, bool) { return is, there } })
	if got := d.call(get("/readyz?verbose")); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"certificate":{"ends":"2026-01-02T03:04:05Z","age":"over"},`) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	there = false
	if got := d.call(get("/readyz?verbose")).Body.String(); strings.Contains(got, "certificate") {
		t.Error(got)
	}
}

func TestCommandsReachTheNode(t *testing.T) {
	for path, want := range map[string][]event.SignalKind{
		"/drain":        {event.Drain},
		"/drain?abort":  {event.Drain, event.Abort},
		"/clock/accept": {event.AcceptClock},
	} {
		d := build(nil)
		if w := d.call(post(path).by(bearer)); w.Code != 202 || !slices.Equal(d.wanted, want) {
			t.Errorf("%s: %d, wanted %v", path, w.Code, d.wanted)
		}
	}
}

// TestDrainReportsItsLongestTime, so that a client can wait long enough.
func TestDrainReportsItsLongestTime(t *testing.T) {
	d := build(func(c *Config) { c.Longest = 64 * time.Second })
	if w := d.call(post("/drain").by(bearer)); strings.TrimSpace(w.Body.String()) != `{"phase":"ready","longest_ms":64000}` {
		t.Error(w.Body)
	}
}

func TestUnknownQueriesAreRejected(t *testing.T) {
	for _, v := range []call{
		get("/readyz?for=all"), get("/readyz?for="), get("/readyz?for"), get("/readyz?verbos"), get("/readyz?verbose&verbose"), get("/readyz?verbose=no"), get("/readyz?for=read&for=read"), get("/readyz?%zz"),
		post("/drain?force").by(bearer), post("/drain?abort=no").by(bearer), post("/drain?abort&abort").by(bearer),
	} {
		d := build(nil)
		if w := d.call(v); w.Code != 400 || len(d.wanted) > 0 {
			t.Errorf("%s: %d, wanted %v", v.path, w.Code, d.wanted)
		}
	}
}

func TestRejectionsAreProblems(t *testing.T) {
	d := build(nil)
	seen := make(map[string]bool)
	for _, c := range []struct {
		call
		status int
		allow  string
	}{
		{get("/"), 404, ""}, {get("/nowhere"), 404, ""}, {get("/livez/"), 404, ""}, {get("/debug/pprof"), 404, ""}, {get("/debug/vars"), 404, ""},
		{post("/livez"), 405, "GET"}, {get("/drain").by(bearer), 405, "POST"}, {post("/debug/pprof/symbol").by(bearer), 405, "GET"},
		{post("/drain"), 401, ""}, {get("/readyz?x"), 400, ""},
	} {
		w := d.call(c.call)
		var p struct {
			Status   int    `json:"status"`
			Decision string `json:"decision_id"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v in %s", c.path, err, w.Body)
		}
		switch id := w.Header().Get("X-Request-Id"); {
		case w.Code != c.status || p.Status != c.status || w.Header().Get("Allow") != c.allow:
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, w.Code, w.Header().Get("Allow"))
		case w.Header().Get("Content-Type") != "application/problem+json":
			t.Errorf("%s %s: %s", c.method, c.path, w.Header().Get("Content-Type"))
		case p.Decision != id || seen[id] || len(id) != 34:
			t.Errorf("%s %s: decision %s under %s", c.method, c.path, p.Decision, id)
		case (w.Header().Get("WWW-Authenticate") != "") != (c.status == 401):
			t.Errorf("%s %s: WWW-Authenticate %q", c.method, c.path, w.Header().Get("WWW-Authenticate"))
		default:
			seen[id] = true
		}
	}
	if len(d.wanted) > 0 {
		t.Fatalf("wanted %v", d.wanted)
	}
}

func TestStatusPages(t *testing.T) {
	d := build(nil)
	for path, want := range map[string]string{
		"/metrics":             "metrics",
		"/debug/queues":        `[{"name":"work","depth":1,"limit":2,"unit":"requests","policy":"reject","dropped":3}]` + "\n",
		"/config/effective":    "data: here\n",
		"/healthz":             `{"alive":true,"phase":"ready"}` + "\n",
		"/debug/pprof/cmdline": "",
	} {
		w := d.call(get(path).by(bearer))
		if w.Code != 200 || want != "" && w.Body.String() != want || w.Body.Len() == 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be stored", path)
		}
	}
}

func TestPanicIsLogged(t *testing.T) {
	d := build(func(c *Config) { c.Queues = func() []Queue { panic("a bug") } })
	w := d.call(get("/debug/queues").by(bearer))
	if w.Code != 500 || strings.Contains(w.Body.String(), "bug") || !strings.Contains(d.lines.String(), "a bug") {
		t.Fatalf("%d %s, logged %s", w.Code, w.Body, &d.lines)
	}
}

// Over a real listener: loopback is detected from the connection.
func TestLoopbackListenerIsOpen(t *testing.T) {
	server := httptest.NewServer(build(nil))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 401, "/debug/queues": 401} {
		for _, method := range []string{"GET", "HEAD"} {
			r, err := http.NewRequest(method, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
	}
}

func (v call) String() string { return fmt.Sprint(v.method, " ", v.path) }

// TestReloadReportsOutcome: a reload returns its outcome, with 422 if the old configuration
// stays.
func TestReloadReportsOutcome(t *testing.T) {
	d := build(nil)
	if w := d.call(post("/config/reload").by(bearer)); w.Code != 200 || w.Body.String() !=
		`{"version":"c0ffee","since":"0001-01-01T00:00:00Z","changes":1,"refused":0,"last":{"at":"0001-01-01T00:00:00Z","applied":true,"changed":[]}}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d.tried = &Attempt{Version: "bad", Why: []string{"data takes effect at a start"}, Changed: []Changed{{Key: "data", Old: "a", New: "b"}}}
	for _, ask := range []call{post("/config/reload"), get("/config/status")} {
		want := map[string]int{"POST": 422, "GET": 200}[ask.method]
		if w := d.call(ask.by(bearer)); w.Code != want || !strings.Contains(w.Body.String(),
			`"applied":false,"version":"bad","why":["data takes effect at a start"],"changed":[{"key":"data","old":"a","new":"b","hot":false}]`) {
			t.Errorf("%s: %d %s", ask.method, w.Code, w.Body)
		}
	}
}

// TestUnreadBodyEndsConnection: no request of the admin API has a body, and the listener does not wait for one that was announced.
func TestUnreadBodyEndsConnection(t *testing.T) {
	s := httptest.NewServer(New(Config{Status: func() event.Status { return event.Status{} }, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // otherwise the server waits for ever
	_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
	if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") {
		t.Errorf("%v, %q", err, all)
	}
}

// TestAuthenticatedRequestsAreReported: each request with a valid credential is, and no other.
func TestAuthenticatedRequestsAreReported(t *testing.T) {
	reported := 0
	d := build(func(c *Config) { c.Authenticated = func(context.Context) { reported++ } })
	for _, c := range []struct {
		credential string
		want       int
	}{{token, 1}, {otherToken, 1}, {"wrong", 0}, {"", 0}} {
		reported = 0
		r := httptest.NewRequest(http.MethodGet, "http://localhost/config/status", nil)
		r.Header.Set("Authorization", "Bearer "+c.credential)
		d.ServeHTTP(httptest.NewRecorder(), r)
		if reported != c.want {
			t.Errorf("%q is reported %d times, want %d", c.credential, reported, c.want)
		}
	}
}

// TestRejectedRequestsAreReported: each request that is rejected before it is served is, and no other.
func TestRejectedRequestsAreReported(t *testing.T) {
	reported := 0
	d := build(func(c *Config) { c.Rejected = func(context.Context) { reported++ } })
	for _, c := range []struct {
		method, url, credential string
		status, want            int
	}{
		{"GET", "http://localhost/config/status", token, 200, 0},
		{"GET", "http://localhost/readyz?x", "", 400, 0}, // a probe has no more parameters
		{"GET", "http://localhost/config/status", "wrong", 401, 1},
		{"GET", "http://evil.example/config/status", token, 403, 1},
		{"GET", "http://localhost/none", token, 404, 1},
		{"POST", "http://localhost/config/status", token, 405, 1},
	} {
		reported = 0
		r, w := httptest.NewRequest(c.method, c.url, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+c.credential)
		if d.ServeHTTP(w, r); w.Code != c.status || reported != c.want {
			t.Errorf("%s %s: status %d, reported %d times", c.method, c.url, w.Code, reported)
		}
	}
}
