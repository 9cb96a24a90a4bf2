package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/exit"
)

// testConsole is a console with a simulated clock, and its output.
type testConsole struct {
	*Console
	out, err  bytes.Buffer
	time      time.Time
	waits     []time.Duration
	mostWaits int // after these no attempt follows; 0: no limit. Near the end of --timeout an attempt has hardly any time
}

func newTestConsole() *testConsole {
	d := &testConsole{time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d.Console = &Console{out: &d.out, err: &d.err,
		now:    func() time.Time { return d.time },
		random: func() float64 { return 0.5 },
		newKey: func() string { return "drawn" },
		sleep: func(_ context.Context, w time.Duration) error {
			d.waits, d.time = append(d.waits, w), d.time.Add(w)
			if d.mostWaits > 0 && len(d.waits) > d.mostWaits {
				return context.DeadlineExceeded
			}
			return nil
		}}
	return d
}

// peer is a fake node with scripted responses that records its requests.
type peer struct {
	*httptest.Server
	header  http.Header
	answers []string // "status body", in order; the last one repeats; "cut" closes the connection

	mu       sync.Mutex
	received []string // "method path key auth body"
}

// requests returns all requests.
func (p *peer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.received)
}

func newPeer(t *testing.T, answers ...string) *peer {
	p := &peer{answers: answers, header: http.Header{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// limitAttempts sets ten seconds between the attempts of a command line with a timeout: an attempt may take as
// long as is left, in real time.
func (p *peer) limitAttempts(line string) {
	if strings.Contains(line, "--timeout") {
		p.header.Set("Retry-After", "10")
	}
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = append(p.received, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"),
		r.Header.Get("Authorization"), body)))
	answer := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	if answer == "cut" {
		panic(http.ErrAbortHandler)
	}
	for name, v := range p.header {
		w.Header()[name] = v
	}
	var status int
	text := answer
	if _, err := fmt.Sscanf(answer, "%d", &status); err == nil {
		text = strings.TrimPrefix(answer[3:], " ")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

const (
	moved   = `200 {"txid":"tx_1","op":"transfer","from":"ann","to":"bob","asset":"EUR/2","amount_minor":"5","nonce":3,"seq":9}`
	minted  = `200 {"txid":"tx_1","op":"issue","to":"ann","asset":"EUR/2","amount_minor":"5","seq":1}`
	has     = `200 {"account":"ann","asset":"EUR/2","amount_minor":"7","available_minor":"6","next_nonce":3}`
	busy    = `429 {"code":"busy","detail":"Full.","retryable":true}`
	late    = `503 {"code":"unavailable","detail":"Draining.","retryable":true}`
	unclear = `504 {"code":"outcome_unknown","detail":"Not known yet.","retryable":true}`
	poor    = `409 {"code":"insufficient_funds","detail":"Too little."}`
	ahead   = `409 {"code":"nonce_conflict","detail":"Ahead.","expected_nonce":3}`
	barred  = `403 {"code":"forbidden","detail":"May not."}`
)

// wantOutput runs a command line against p and compares the output.
func (d *testConsole) wantOutput(t *testing.T, p *peer, line string, code int, want string) {
	t.Helper()
	args := append(strings.Fields(line), "--url", p.URL, "--api-key", "secret")
	got := Run(args, d.Console)
	if output := fmt.Sprintf("%s%s", &d.out, &d.err); got != code || output != want {
		t.Errorf("%s: %d\n%swant %d\n%s", line, got, output, code, want)
	}
}

const issue = "wallet issue --to ann --asset EUR/2 --amount 5"

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []string
		line    string
		code    int
		want    string
		asked   int
	}{
		{"done", []string{minted}, issue, 0, "tx_1: issued 5 EUR/2 to ann, seq 1\n", 1},
		{"the bytes as they came", []string{minted}, issue + " --json", 0, minted[4:] + "\n", 1},
		{"busy, then done", []string{busy, late, minted}, issue, 0, "tx_1: issued 5 EUR/2 to ann, seq 1\n", 3},
		{"cut, then done", []string{"cut", minted}, issue, 0, "tx_1: issued 5 EUR/2 to ann, seq 1\n", 2},
		{"refused", []string{poor}, issue, 1, "macronode: insufficient_funds: Too little\n", 1},
		{"refused in JSON", []string{poor}, issue + " --json", 1, poor[4:] + "\nmacronode: insufficient_funds: Too little\n", 1},
		{"the nonce is ahead", []string{ahead}, issue, 1, "macronode: nonce_conflict: Ahead (the next nonce is 3)\n", 1},
		{"in doubt, then refused for good", []string{unclear, poor}, issue, 1, "macronode: insufficient_funds: Too little\n", 2},
		{"in doubt, then not let in", []string{"cut", barred}, issue, 3,
			"macronode: outcome unknown (forbidden: May not): retry with --key drawn\n", 2},
		{"not let in", []string{barred}, issue, 1, "macronode: forbidden: May not\n", 1},
		{"in doubt to the end", []string{unclear}, issue + " --key k1 --timeout 45s", 3,
			"macronode: outcome unknown (outcome_unknown: Not known yet): retry with --key k1\n", 5},
		{"in doubt to the end, in JSON", []string{unclear}, issue + " --key k1 --timeout 45s --json", 3,
			`{"outcome":"unknown","idempotency_key":"k1"}` + "\nmacronode: outcome unknown (outcome_unknown: Not known yet): retry with --key k1\n", 5},
		{"busy to the end", []string{busy}, issue + " --timeout 45s", 1, "macronode: busy: Full\n", 5},
		{"in doubt, then busy to the end", []string{unclear, busy}, issue + " --timeout 45s", 3,
			"macronode: outcome unknown (busy: Full): retry with --key drawn\n", 5},
		{"no node of ours", []string{"404 nothing"}, issue, 1, "macronode: what answers is no node of ours: 404 Not Found\n", 1},
		{"a bug", []string{`500 {"code":"internal","detail":"A bug."}`}, issue, 3,
			"macronode: outcome unknown (internal: A bug): retry with --key drawn\n", 1},
		{"a nonce is asked for", []string{has, moved}, "wallet transfer --from ann --to bob --asset EUR/2 --amount 5", 0,
			"tx_1: moved 5 EUR/2 from ann to bob, seq 9\n", 2},
		{"a nonce is asked for, and kept in doubt", []string{has, unclear}, "wallet transfer --from ann --to bob --asset EUR/2 --amount 5 --timeout 5s", 3,
			"macronode: outcome unknown (outcome_unknown: Not known yet): retry with --key drawn --nonce 3\n", 2},
		{"no nonce to be had", []string{barred}, "wallet burn --from ann --asset EUR/2 --amount 5", 1, "macronode: forbidden: May not\n", 1},
		{"a nonce is given", []string{moved}, "wallet transfer --from ann --to bob --asset EUR/2 --amount 5 --nonce 3", 0,
			"tx_1: moved 5 EUR/2 from ann to bob, seq 9\n", 1},
		{"a balance", []string{late, has}, "wallet balance ann EUR/2", 0, "ann has 7 EUR/2, 6 of it available; its next nonce is 3\n", 2},
		{"a balance in JSON", []string{has}, "wallet balance ann EUR/2 --json", 0, has[4:] + "\n", 1},
		{"no balance", []string{late}, "wallet balance ann EUR/2 --timeout 25s", 1, "macronode: unavailable: Draining\n", 3},
		{"a receipt", []string{moved}, "wallet tx tx_1", 0, "tx_1: moved 5 EUR/2 from ann to bob, seq 9\n", 1},
		{"no receipt", []string{`404 {"code":"not_found","detail":"Nothing."}`}, "wallet tx tx_2 --json", 1,
			`{"code":"not_found","detail":"Nothing."}` + "\nmacronode: not_found: Nothing\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := newPeer(t, c.answers...), newTestConsole()
			p.limitAttempts(c.line)
			d.wantOutput(t, p, c.line, c.code, c.want)
			if len(p.requests()) != c.asked {
				t.Errorf("asked %d times: %q", len(p.requests()), p.requests())
			}
		})
	}
}

func TestAllAttemptsAreOneRequest(t *testing.T) {
	t.Parallel()
	p, d := newPeer(t, busy, "cut", unclear, late, minted), newTestConsole()
	p.header.Set("Retry-After", "2")
	d.wantOutput(t, p, issue+" --memo m&m", 0, "tx_1: issued 5 EUR/2 to ann, seq 1\n")
	const one = `POST /v1/issue drawn Bearer secret {"amount_minor":"5","asset":"EUR/2","memo":"m&m","to":"ann"}`
	if want := slices.Repeat([]string{one}, 5); !slices.Equal(p.requests(), want) {
		t.Errorf("asked %q", p.requests())
	}
	ms := time.Millisecond
	if want := []time.Duration{2025 * ms, 50 * ms, 2100 * ms, 2200 * ms}; !slices.Equal(d.waits, want) {
		t.Errorf("waited %v, not %v", d.waits, want)
	}
}

func TestNoAttemptAfterTimeout(t *testing.T) {
	t.Parallel()
	p, d := newPeer(t, busy), newTestConsole()
	p.header.Set("Retry-After", "3")
	d.wantOutput(t, p, issue+" --timeout 10s", 1, "macronode: busy: Full\n")
	if len(p.requests()) != 4 || len(d.waits) != 3 {
		t.Fatalf("asked %d times, waited %v", len(p.requests()), d.waits)
	}
}

func TestReplayIsReported(t *testing.T) {
	t.Parallel()
	p, d := newPeer(t, minted), newTestConsole()
	p.header.Set("Idempotency-Replayed", "true")
	d.wantOutput(t, p, issue, 0, "tx_1: issued 5 EUR/2 to ann, already applied with this key, seq 1\n")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := newPeer(t, minted)
	p, d := newPeer(t, "307"), newTestConsole()
	p.header.Set("Location", other.URL)
	d.wantOutput(t, p, issue, 3, "macronode: outcome unknown (what answers is no node of ours: 307 Temporary Redirect): retry with --key drawn\n")
	if len(other.requests()) > 0 {
		t.Fatal("followed")
	}
}

// Nothing listens, so nothing was sent and the outcome is known.
func TestNoListener(t *testing.T) {
	t.Parallel()
	p, d := newPeer(t, minted), newTestConsole()
	p.Close()
	at := strings.TrimPrefix(p.URL, "http://")
	d.wantOutput(t, p, issue, 1, "macronode: the node does not answer: dial tcp "+at+": connect: connection refused\n")
	if len(d.waits) > 0 {
		t.Fatal(d.waits)
	}
}

// The node stops during a request and does not come back in time.
func TestNodeStopsDuringRequest(t *testing.T) {
	t.Parallel()
	d := newTestConsole()
	p := newPeer(t, "cut")
	real := d.sleep
	d.Console.sleep = func(ctx context.Context, w time.Duration) error { p.Close(); return real(ctx, w) }
	at := strings.TrimPrefix(p.URL, "http://")
	d.wantOutput(t, p, issue, 3, "macronode: outcome unknown (the node does not answer: dial tcp "+at+
		": connect: connection refused): retry with --key drawn\n")
	if len(p.requests()) != 1 || len(d.waits) < 10 {
		t.Fatalf("asked %d times, waited %v", len(p.requests()), d.waits)
	}
}

// lockForNode locks a directory in place of its node, and names no process.
func lockForNode(t *testing.T, dir string) {
	t.Helper()
	held, err := fs.Lock(fs.Dir(dir), "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	if err := os.Remove(filepath.Join(dir, fs.LockName)); err != nil {
		t.Fatal(err)
	}
}

// writeRunFiles writes the files of a node that runs on a directory.
func writeRunFiles(t *testing.T, pid int, http, admin string) (dir, key string) {
	t.Helper()
	dir = t.TempDir()
	k, err := nodedir.Bootstrap(dir, strings.NewReader(strings.Repeat("k", 40)))
	if err != nil {
		t.Fatal(err)
	}
	r := nodedir.Run{PID: pid, Version: "v1", Token: "token", Listen: nodedir.Listen{HTTP: http, Admin: admin}}
	if err := nodedir.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if pid > 1 {
		lockForNode(t, dir)
	}
	return dir, k.Text()
}

func TestNodeIsFoundByDirectory(t *testing.T) {
	t.Parallel()
	p, d := newPeer(t, has), newTestConsole()
	dir, key := writeRunFiles(t, os.Getpid(), p.Listener.Addr().String(), "")
	if code := Run([]string{"wallet", "balance", "ann", "EUR/2", "--data", dir}, d.Console); code != 0 {
		t.Fatal(code, &d.err)
	}
	if want := "GET /v1/balance?account=ann&asset=EUR%2F2  Bearer " + key; p.requests()[0] != want {
		t.Fatalf("asked %q, not %q", p.requests()[0], want)
	}
}

func TestNodeIsFoundByUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p, d := &peer{answers: []string{has}}, newTestConsole()
	p.Server = httptest.NewUnstartedServer(p)
	p.Listener = l
	p.Start()
	defer p.Close()
	dir, _ := writeRunFiles(t, os.Getpid(), "unix:"+path, "")
	if code := Run([]string{"wallet", "balance", "ann", "EUR/2", "--data", dir}, d.Console); code != 0 {
		t.Fatal(code, &d.err)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	p := newPeer(t, has)
	dir, _ := writeRunFiles(t, os.Getpid(), p.Listener.Addr().String(), "")
	starting, _ := writeRunFiles(t, os.Getpid(), "", "")
	dead, _ := writeRunFiles(t, -1, "", "")
	keyless, _ := writeRunFiles(t, os.Getpid(), p.Listener.Addr().String(), "")
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(keyless, "bootstrap.key")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string // the last word of the request, or the output
	}{
		{[]string{"--data", dir, "--api-key", "given"}, 0, "Bearer given"},
		{[]string{"--data", dir, "--api-key-file", file}, 0, "Bearer from a file"},
		{[]string{"--data", dir, "--api-key-file", file, "--api-key", "given"}, 0, "Bearer given"},
		{[]string{"--data", dir, "--api-key-file", file + "x"}, 2, "macronode: cannot read the API key: open " + file + "x: no such file or directory\n"},
		{[]string{"--url", p.URL}, 2, "macronode: --url needs --api-key or --api-key-file: the key of a data directory is not sent to other addresses\n"},
		{[]string{"--url", "127.0.0.1:8080", "--api-key", "x"}, 2, "macronode: --url 127.0.0.1:8080 must be http://host:port, https://host:port or unix:path\n"},
		{[]string{"--data", dir, "--timeout", "0s"}, 2, "macronode: --timeout 0s must be more than 0\n"},
		{[]string{"--data", keyless}, 1, "macronode: no API key was given, and there is none in " + keyless + ": nodedir: no bootstrap.key here\n"},
		{[]string{"--data", starting}, 1, "macronode: the node on " + starting + " is starting and does not listen yet\n"},
		{[]string{"--data", dead}, 1, "macronode: the node on " + dead + " (process -1) is not running any more: start it again with macronode serve\n"},
		{[]string{"--data", dir + "/none"}, 1, "macronode: no node is running on " + dir + "/none: start one with macronode serve\n"},
		{[]string{"--set", "node.drain=9h"}, 2, "macronode: node.drain (flag --set node.drain=9h) is 9h: must be a duration such as 200ms, 5s or 24h, from 0s to 30m\n"},
	} {
		d := newTestConsole()
		p.received = nil
		code := Run(append([]string{"wallet", "balance", "ann", "EUR/2"}, c.args...), d.Console)
		output := d.err.String()
		if len(p.requests()) > 0 {
			output = p.requests()[0][strings.Index(p.requests()[0], "Bearer"):]
		}
		if code != c.code || output != c.want {
			t.Errorf("%q: %d %q, not %d %q", c.args, code, output, c.code, c.want)
		}
	}
}

// TestLockedDirectoryIsReported: if no node answers but a process holds the directory, the error names it.
func TestLockedDirectoryIsReported(t *testing.T) {
	t.Parallel()
	none, starting := t.TempDir(), t.TempDir()
	dead, _ := writeRunFiles(t, -1, "", "")
	if err := nodedir.Write(starting, nodedir.Run{PID: os.Getpid(), Listen: nodedir.Listen{HTTP: "h:1"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir        string
		held, free string
	}{
		{none, "no node answers on DIR, but process PID, v7 uses it: a node that is starting or stopping, or another command",
			"no node is running on DIR: start one with macronode serve"},
		{dead, "no node answers on DIR, but process PID, v7 uses it: a node that is starting or stopping, or another command",
			"the node on DIR (process -1) is not running any more: start it again with macronode serve"},
		{starting, "the node (process PID) is starting: its admin listener is not up yet",
			"the node on DIR (process PID) is not running any more: start it again with macronode serve"}, // another process has its PID
	} {
		status := func() string {
			d := newTestConsole()
			if code := Run([]string{"status", "--data", c.dir}, d.Console); code != exit.CodeFailed {
				t.Errorf("%s: %d", c.dir, code)
			}
			return d.err.String()
		}
		output := func(want string) string {
			return "macronode: " + strings.NewReplacer("DIR", c.dir, "PID", strconv.Itoa(os.Getpid())).Replace(want) + "\n"
		}
		lock, err := fs.Lock(fs.Dir(c.dir), "v7")
		if err != nil {
			t.Fatal(err)
		}
		if got := status(); got != output(c.held) {
			t.Errorf("held: %s", got)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != output(c.free) {
			t.Errorf("free: %s", got)
		}
	}
}

// A proxy is used for a named address, never for a node of this machine, because it would see an API key.
func TestLocalNodeUsesNoProxy(t *testing.T) {
	t.Parallel()
	if newTestConsole().node().clientOptions(clientFlags{}).Proxy != nil {
		t.Error("a local node is spoken to through a proxy")
	}
	if newTestConsole().node().clientOptions(clientFlags{URL: "http://192.0.2.1:1"}).Proxy == nil {
		t.Error("a named address is not spoken to through the proxy that the environment names")
	}
}
