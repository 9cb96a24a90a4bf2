package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/chaos/faults"
	"macronode/chaos/kill"
)

var must = flag.Bool("must", false, "fail where no disk that fails can be mounted, instead of skipping")

// patience is the time limit for states that are reached at once; it measures nothing.
const patience = time.Minute

// calm are settings without heartbeats, without timeouts of requests that a test holds, and without stalls on a
// busy machine. The tables are small, so that a start is fast.
var calm = []string{"journal.heartbeat_interval=1m", "journal.stall_threshold=2s", "journal.sync_timeout=1m", "node.commit_timeout=1m", "http.request_deadline=1m",
	"wallet.limits.accounts=4096", "wallet.limits.holdings=4096", "wallet.idempotency.keys=65536"}

var built struct {
	once   sync.Once
	binary string
	err    error
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(hands); dir != "" && len(os.Args) == 1 {
		if err := work(fs.Dir(dir)); err != nil {
			panic(err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		panic(err)
	}
	built.binary = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// faultyNode is a node whose journal is on a disk that fails on request.
type faultyNode struct {
	t    *testing.T
	disk *faults.Disk
	*kill.Node
	seen     string // its directory as the node sees it
	launched bool
	probes   int
	known    answer // a receipt, from before all trouble
}

// newFaultyNode mounts the disk; the node is not started. The settings are added to the default ones.
func newFaultyNode(t *testing.T, settings ...string) *faultyNode {
	t.Helper()
	h := newPlainNode(t, settings...)
	below := filepath.Join(filepath.Dir(h.Data), "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	h.disk = mount(t, below, h.journal())
	t.Cleanup(h.killAll) // before the disk is closed
	return h
}

// newPlainNode has no disk yet.
func newPlainNode(t *testing.T, settings ...string) *faultyNode {
	t.Helper()
	h := &faultyNode{t: t, Node: &kill.Node{Binary: binary(t), Data: filepath.Join(t.TempDir(), "data")}}
	h.seen = h.Data
	h.set(settings...)
	if err := os.MkdirAll(h.journal(), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *faultyNode) set(settings ...string) {
	for _, s := range slices.Concat(calm, settings) {
		h.Args = append(h.Args, "--set", s)
	}
}

// journal returns the directory of the journal.
func (h *faultyNode) journal() string { return filepath.Join(h.Data, "journal") }

// killAll ends the process and unmounts the disk.
func (h *faultyNode) killAll() {
	if !h.launched {
		return
	}
	h.Signal(syscall.SIGKILL)
	if h.disk != nil {
		h.disk.Heal()
	}
	h.Wait()
}

func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.binary, built.err = kill.Build(built.binary) })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.binary
}

func mount(t *testing.T, dir, at string) *faults.Disk {
	t.Helper()
	d, err := faults.Mount(dir, at)
	skipWithoutDisk(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// skipWithoutDisk skips the test if no disk can be mounted, with the reason.
func skipWithoutDisk(t *testing.T, err error) {
	t.Helper()
	if err != nil && !*must && (errors.Is(err, faults.ErrNone) || errors.Is(err, syscall.EPERM)) {
		t.Skipf("NOTHING WAS CHECKED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// launch starts the node and waits only for its admin listener.
func (h *faultyNode) launch() {
	h.t.Helper()
	if err := h.Launch(); err != nil {
		h.t.Fatal(err)
	}
	h.launched = true
	h.until("it listens to operators", func() error {
		if h.Gone() {
			h.t.Fatalf("the node has ended:\n%s", h.Output())
		}
		if err := h.Find(); err != nil {
			return err
		}
		if h.Admin == "" {
			return errors.New("not yet")
		}
		return nil
	})
}

// start starts the node, waits until it is ready, and stores a receipt.
func (h *faultyNode) start() {
	h.t.Helper()
	h.launch()
	h.awaitReady()
}

// awaitReady waits until the node is ready.
func (h *faultyNode) awaitReady() {
	h.t.Helper()
	h.await(wellness)
	h.findListener()
	if h.known.status == 0 {
		h.known = h.issue("known", "ann")
		h.checkAnswer(h.known, http.StatusOK, "")
	}
	h.checkRow(wellness)
}

// findListener waits for the address of the public listener.
func (h *faultyNode) findListener() {
	h.t.Helper()
	h.until("it listens", func() error {
		if err := h.Find(); err != nil || h.HTTP != "" {
			return err
		}
		return errors.New("not yet")
	})
}

// stop ends the node like an operator.
func (h *faultyNode) stop() {
	h.t.Helper()
	if value, code := h.Stop(); code != 0 {
		h.t.Fatalf("exit %d:\n%s", code, value)
	}
}

// until repeats try until it succeeds.
func (h *faultyNode) until(what string, try func() error) {
	h.t.Helper()
	end := time.Now().Add(patience)
	err := try()
	for ; err != nil && time.Now().Before(end); err = try() {
		time.Sleep(5 * time.Millisecond) // between two looks at another process
	}
	if err != nil {
		h.t.Fatalf("never: %s: %v\n%s", what, err, h.Output())
	}
}

// awaitLogLine waits for a log line that contains all words.
func (h *faultyNode) awaitLogLine(words ...string) {
	h.t.Helper()
	h.until("its log", func() error { return h.missingLogLine(words...) })
}

// missingLogLine returns an error if no log line contains all words.
func (h *faultyNode) missingLogLine(words ...string) error {
	for line := range strings.Lines(h.Output()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return nil
		}
	}
	return fmt.Errorf("no line has %q", words)
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	txid   string
	code   string
	err    error
}

func (h *faultyNode) ask(method, url, key, body string) answer {
	ctx, stop := context.WithTimeout(context.Background(), 2*patience)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+h.Key)
	if key != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{err: err}
	}
	return read(resp)
}

func read(resp *http.Response) answer {
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(resp.Body)
	var value struct{ TxID, Code string }
	if json.Unmarshal(a.body, &value) == nil {
		a.txid, a.code = value.TxID, value.Code
	}
	return a
}

// issue issues five minor units to an account, under a key.
func (h *faultyNode) issue(key, to string) answer {
	return h.ask(http.MethodPost, h.HTTP+"/v1/issue", key, fmt.Sprintf(`{"to":%q,"asset":"EUR/2","amount_minor":"5"}`, to))
}

// txid returns the txid of the first record of a frame.
func (h *faultyNode) txid(lsn uint64) string {
	const journal = len("tx_") + 16
	return fmt.Sprintf("%s%012x%04x", h.known.txid[:journal], lsn, 0)
}

func (h *faultyNode) tx(txid string) answer {
	return h.ask(http.MethodGet, h.HTTP+"/v1/tx/"+txid, "", "")
}

// A balanceAnswer is the response to a balance request.
type balanceAnswer struct {
	Amount string `json:"amount_minor"`
	Seq    uint64 `json:"as_of_seq"`
	AsOf   string `json:"as_of"`
	Stale  int64  `json:"stale_ms"`
}

func (h *faultyNode) balance(account string) (answer, balanceAnswer) {
	a := h.ask(http.MethodGet, h.HTTP+"/v1/balance?account="+account+"&asset=EUR/2", "", "")
	var value balanceAnswer
	_ = json.Unmarshal(a.body, &value) // a problem has no balance
	return a, value
}

// sent is a request in progress. It is admitted when the node holds its reply.
type sent struct {
	key, to string
	reply   chan answer
}

// send sends an issue to its own account, and waits until a number of replies are held.
func (h *faultyNode) send(key string, held int) sent {
	h.t.Helper()
	s := sent{key, key, make(chan answer, 1)}
	go func() { s.reply <- h.issue(s.key, s.to) }()
	h.until("its reply is held", func() error {
		if now := h.verbose(); now.Held != held {
			return fmt.Errorf("%d are held", now.Held)
		}
		return nil
	})
	return s
}

// awaitAnswer waits for the response.
func (h *faultyNode) awaitAnswer(s sent) answer {
	h.t.Helper()
	select {
	case a := <-s.reply:
		return a
	case <-time.After(2 * patience):
		h.t.Fatalf("%s is never told anything\n%s", s.key, h.Output())
	}
	return answer{}
}

// checkAnswer checks the status of a response, and the code and headers of a problem.
func (h *faultyNode) checkAnswer(a answer, status int, code string) {
	h.t.Helper()
	if a.err != nil || a.status != status || a.code != code {
		h.t.Fatalf("told %d %q (%v), not %d %q: %s\n%s", a.status, a.code, a.err, status, code, a.body, h.Output())
	}
	kind, retry := "application/json", ""
	if code != "" {
		kind = "application/problem+json"
	}
	if status == http.StatusServiceUnavailable {
		retry = "1"
	}
	if a.header.Get("Content-Type") != kind || a.header.Get("Retry-After") != retry {
		h.t.Fatalf("%d %q with %v", a.status, a.code, a.header)
	}
}

// checkSettled retries a request with an unknown outcome until it is known. It checks that there is one outcome:
// the same bytes under the key and by txid, and one movement. replayed: the outcome existed before.
func (h *faultyNode) checkSettled(s sent, replayed bool) {
	h.t.Helper()
	first := h.issue(s.key, s.to)
	h.checkAnswer(first, http.StatusOK, "")
	if was := first.header.Get("Idempotency-Replayed") == "true"; was != replayed {
		h.t.Fatalf("%s: replayed %v\n%s", s.key, was, h.Output())
	}
	h.checkKept(s, first)
}

// checkKept checks that an acknowledged outcome has not changed.
func (h *faultyNode) checkKept(s sent, want answer) {
	h.t.Helper()
	h.checkAnswer(want, http.StatusOK, "")
	again := h.issue(s.key, s.to)
	h.checkAnswer(again, http.StatusOK, "")
	shown := h.tx(want.txid)
	h.checkAnswer(shown, http.StatusOK, "")
	if !bytes.Equal(again.body, want.body) || !bytes.Equal(shown.body, want.body) || again.header.Get("Idempotency-Replayed") != "true" {
		h.t.Fatalf("%s was told\n%s\nthen\n%s\nand its txid is\n%s", s.key, want.body, again.body, shown.body)
	}
	if a, b := h.balance(s.to); b.Amount != "5" {
		h.t.Fatalf("%s: %s", s.to, a.body)
	}
}

// metric returns a sample of a metric.
func (h *faultyNode) metric(name string) float64 {
	h.t.Helper()
	a := h.ask(http.MethodGet, h.Admin+"/metrics", "", "")
	for line := range strings.Lines(string(a.body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				h.t.Fatal(err)
			}
			return v
		}
	}
	return 0 // a counter that has not counted
}

// verify runs the command verify on the stopped node.
func (h *faultyNode) verify() {
	h.t.Helper()
	if out, code := h.command("verify", "--data", h.seen); code != 0 {
		h.t.Fatalf("verify: exit %d\n%s", code, out)
	}
}
