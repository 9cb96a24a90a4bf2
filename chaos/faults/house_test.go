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

// patience is for states that come as fast as the machine is: nothing is measured.
const patience = time.Minute

// calm has nothing written that nobody asked for, nothing given up that a test holds,
// and no stall because the machine has other work; the tables are small, so that a
// start is fast.
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

// house is a node whose journal is on a disk that fails when it is told to.
type house struct {
	t    *testing.T
	disk *faults.Disk
	*kill.Node
	seen     string // its directory as the node sees it
	launched bool
	probes   int
	known    answer // a receipt, from before all trouble
}

// newHouse mounts the disk; the node is not started. Its settings go before those that
// are given.
func newHouse(t *testing.T, settings ...string) *house {
	t.Helper()
	h := plainHouse(t, settings...)
	below := filepath.Join(filepath.Dir(h.Data), "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	h.disk = mount(t, below, h.journal())
	t.Cleanup(h.raze) // before the disk is closed
	return h
}

// plainHouse has no disk yet.
func plainHouse(t *testing.T, settings ...string) *house {
	t.Helper()
	h := &house{t: t, Node: &kill.Node{Binary: binary(t), Data: filepath.Join(t.TempDir(), "data")}}
	h.seen = h.Data
	h.set(settings...)
	if err := os.MkdirAll(h.journal(), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) set(settings ...string) {
	for _, s := range slices.Concat(calm, settings) {
		h.Args = append(h.Args, "--set", s)
	}
}

// journal is where its disk is.
func (h *house) journal() string { return filepath.Join(h.Data, "journal") }

// raze leaves no process.
func (h *house) raze() {
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
	wanted(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// wanted skips where a disk cannot be had, and says so.
func wanted(t *testing.T, err error) {
	t.Helper()
	if err != nil && !*must && (errors.Is(err, faults.ErrNone) || errors.Is(err, syscall.EPERM)) {
		t.Skipf("NOTHING WAS CHECKED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// launch starts the node and waits for its admin listener alone.
func (h *house) launch() {
	h.t.Helper()
	if err := h.Launch(); err != nil {
		h.t.Fatal(err)
	}
	h.launched = true
	h.until("it listens to operators", func() error {
		if h.Gone() {
			h.t.Fatalf("the node has ended:\n%s", h.Said())
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

// start starts the node until it is ready, and has it know a receipt.
func (h *house) start() {
	h.t.Helper()
	h.launch()
	h.starts()
}

// starts waits until it is ready.
func (h *house) starts() {
	h.t.Helper()
	h.await(wellness)
	h.ready()
	if h.known.status == 0 {
		h.known = h.issue("known", "ann")
		h.wants(h.known, http.StatusOK, "")
	}
	h.is(wellness)
}

// ready finds where the node listens to everybody.
func (h *house) ready() {
	h.t.Helper()
	h.until("it listens", func() error {
		if err := h.Find(); err != nil || h.HTTP != "" {
			return err
		}
		return errors.New("not yet")
	})
}

// stop ends the node as an operator does.
func (h *house) stop() {
	h.t.Helper()
	if said, code := h.Stop(); code != 0 {
		h.t.Fatalf("exit %d:\n%s", code, said)
	}
}

// until tries until it works.
func (h *house) until(what string, try func() error) {
	h.t.Helper()
	end := time.Now().Add(patience)
	err := try()
	for ; err != nil && time.Now().Before(end); err = try() {
		time.Sleep(5 * time.Millisecond) // between two looks at another process
	}
	if err != nil {
		h.t.Fatalf("never: %s: %v\n%s", what, err, h.Said())
	}
}

// says waits for a line of the log with all of these in it.
func (h *house) says(words ...string) {
	h.t.Helper()
	h.until("its log", func() error { return h.said(words...) })
}

// said says how no line of the log has all of these in it.
func (h *house) said(words ...string) error {
	for line := range strings.Lines(h.Said()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return nil
		}
	}
	return fmt.Errorf("no line has %q", words)
}

// answer is what an HTTP request was told.
type answer struct {
	status int
	header http.Header
	body   []byte
	txid   string
	code   string
	err    error
}

func (h *house) ask(method, url, key, body string) answer {
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
	var said struct{ TxID, Code string }
	if json.Unmarshal(a.body, &said) == nil {
		a.txid, a.code = said.TxID, said.Code
	}
	return a
}

// issue lets five minor units come into being for an account, under a key.
func (h *house) issue(key, to string) answer {
	return h.ask(http.MethodPost, h.HTTP+"/v1/issue", key, fmt.Sprintf(`{"to":%q,"asset":"EUR/2","amount_minor":"5"}`, to))
}

// txid is what the first record of a frame is called.
func (h *house) txid(lsn uint64) string {
	const journal = len("tx_") + 16
	return fmt.Sprintf("%s%012x%04x", h.known.txid[:journal], lsn, 0)
}

func (h *house) tx(txid string) answer { return h.ask(http.MethodGet, h.HTTP+"/v1/tx/"+txid, "", "") }

// A tally is a balance as it was told.
type tally struct {
	Amount string `json:"amount_minor"`
	Seq    uint64 `json:"as_of_seq"`
	AsOf   string `json:"as_of"`
	Stale  int64  `json:"stale_ms"`
}

func (h *house) balance(account string) (answer, tally) {
	a := h.ask(http.MethodGet, h.HTTP+"/v1/balance?account="+account+"&asset=EUR/2", "", "")
	var said tally
	_ = json.Unmarshal(a.body, &said) // of a problem it is none
	return a, said
}

// sent is a request on its way. It is in when the node holds its reply.
type sent struct {
	key, to string
	told    chan answer
}

// send sends an issue to an account of its own, and waits until so many replies are held.
func (h *house) send(key string, held int) sent {
	h.t.Helper()
	s := sent{key, key, make(chan answer, 1)}
	go func() { s.told <- h.issue(s.key, s.to) }()
	h.until("its reply is held", func() error {
		if now := h.verbose(); now.Held != held {
			return fmt.Errorf("%d are held", now.Held)
		}
		return nil
	})
	return s
}

// ends waits for its answer.
func (h *house) ends(s sent) answer {
	h.t.Helper()
	select {
	case a := <-s.told:
		return a
	case <-time.After(2 * patience):
		h.t.Fatalf("%s is never told anything\n%s", s.key, h.Said())
	}
	return answer{}
}

// wants holds an answer to a status, and a problem to its code and headers.
func (h *house) wants(a answer, status int, code string) {
	h.t.Helper()
	if a.err != nil || a.status != status || a.code != code {
		h.t.Fatalf("told %d %q (%v), not %d %q: %s\n%s", a.status, a.code, a.err, status, code, a.body, h.Said())
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

// settles asks once more for what nobody knew, again and again, and holds the node to
// one outcome: the same bytes under the key and by its txid, and the money moved once.
// replayed: the outcome had been there.
func (h *house) settles(s sent, replayed bool) {
	h.t.Helper()
	first := h.issue(s.key, s.to)
	h.wants(first, http.StatusOK, "")
	if was := first.header.Get("Idempotency-Replayed") == "true"; was != replayed {
		h.t.Fatalf("%s: replayed %v\n%s", s.key, was, h.Said())
	}
	h.keeps(s, first)
}

// keeps holds the node to what it told for good.
func (h *house) keeps(s sent, told answer) {
	h.t.Helper()
	h.wants(told, http.StatusOK, "")
	again := h.issue(s.key, s.to)
	h.wants(again, http.StatusOK, "")
	shown := h.tx(told.txid)
	h.wants(shown, http.StatusOK, "")
	if !bytes.Equal(again.body, told.body) || !bytes.Equal(shown.body, told.body) || again.header.Get("Idempotency-Replayed") != "true" {
		h.t.Fatalf("%s was told\n%s\nthen\n%s\nand its txid is\n%s", s.key, told.body, again.body, shown.body)
	}
	if a, b := h.balance(s.to); b.Amount != "5" {
		h.t.Fatalf("%s: %s", s.to, a.body)
	}
}

// metric is one sample of what the node counts.
func (h *house) metric(name string) float64 {
	h.t.Helper()
	a := h.ask(http.MethodGet, h.Admin+"/metrics", "", "")
	for line := range strings.Lines(string(a.body)) {
		if said, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
			if err != nil {
				h.t.Fatal(err)
			}
			return v
		}
	}
	return 0 // a counter that has not counted
}

// verify reads the journal as an operator does, when no node runs.
func (h *house) verify() {
	h.t.Helper()
	if out, code := h.command("verify", "--data", h.seen); code != 0 {
		h.t.Fatalf("verify: exit %d\n%s", code, out)
	}
}
