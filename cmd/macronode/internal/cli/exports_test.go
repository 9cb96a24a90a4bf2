package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/cmd/macronode/internal/testkit"
)

// A receiver takes exports. The status of its answers can be changed.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int                        // 0: it does not answer before the client has gone
	before func(gone context.Context) // nil, or called for each item before it is taken
	got    []string
	ids    []string // of the items that it got
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body) // before that, the server does not notice that the client has gone
		if r.before != nil {
			r.before(req.Context())
		}
		r.mu.Lock()
		status := r.status
		if status == http.StatusOK && !strings.Contains(string(body), `"tenant":"`+strings.Split(req.URL.Path, "/")[2]+`"`) {
			status = http.StatusBadRequest // an item names its tenant
		}
		if status == http.StatusOK {
			r.got, r.ids = append(r.got, strings.TrimPrefix(req.URL.Path, "/")), append(r.ids, req.Header.Get("Idempotency-Key"))
		}
		r.mu.Unlock()
		if status == 0 {
			<-req.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) { r.mu.Lock(); r.status = status; r.mu.Unlock() }

// positions returns the positions of a stream in the order in which the receiver got them.
func (r *receiver) positions(stream string) (all []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.got {
		if text, ok := strings.CutPrefix(path, stream+"/"); ok {
			n, _ := strconv.Atoi(text)
			all = append(all, n)
		}
	}
	return all
}

// exportsNode is a node with a receiver and a directory for its exports.
type exportsNode struct {
	process
	t    *testing.T
	out  string
	next int
}

func startExports(t *testing.T, dir, out, url string) *exportsNode {
	p := startInDir(t, dir, "--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set", "exports.quarantine_after=0s", "--set",
		fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["usage","wallet"]},{"name":"files","kind":"file","dir":%q}]`, url, out))
	return &exportsNode{process: p, t: t, out: out}
}

// run runs a command and returns its output.
func (n *exportsNode) run(args string, code int) string {
	n.t.Helper()
	cmd := exec.Command("macronode", append(strings.Fields(args), "--data", n.dir)...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		n.t.Fatalf("%s exits with %d, not %d: %s\n%s", args, got, code, out, n.log)
	}
	return string(out)
}

// use records usage of its own window, and waits for its slice.
func (n *exportsNode) use() {
	n.t.Helper()
	n.next++
	n.run("usage record --dimension requests --value 1", 0)
	testkit.Until(func() bool { return strings.Count(n.run("usage export", 0), "\n") >= n.next })
}

// sink returns the state of the sink of the receiver.
func (n *exportsNode) sink() (s adminapi.Sink) {
	n.t.Helper()
	var is adminapi.Exports
	if err := json.Unmarshal([]byte(n.run("exports status app --json", 0)), &is); err != nil || len(is.Sinks) != 1 {
		n.t.Fatalf("%v: %+v", err, is)
	}
	return is.Sinks[0]
}

// await waits until the sink is in a state.
func (n *exportsNode) await(what string, is func(s adminapi.Sink) bool) {
	n.t.Helper()
	testkit.Until(func() bool { return is(n.sink()) })
	n.t.Log(what)
}

// hasPending reports whether it is known that a number of items is pending.
func hasPending(s adminapi.Sink, n uint64) bool { return s.Pending != nil && *s.Pending == n }

// TestExports follows a sink through the states in which its receiver is.
func TestExports(t *testing.T) {
	t.Parallel()
	r, dir, out := newReceiver(t), t.TempDir(), filepath.Join(t.TempDir(), "out")
	n := startExports(t, dir, out, r.URL)
	delivered := func(s adminapi.Sink) bool {
		i := slices.IndexFunc(s.Lanes, func(l adminapi.Lane) bool { return l.Stream == "usage/requests" })
		return s.State == "ok" && hasPending(s, 0) && s.InFlight == 0 && i >= 0 && int(s.Lanes[i].Head) == n.next
	}

	r.answer(http.StatusInternalServerError)
	n.use()
	n.run("wallet issue --to ann --asset EUR/2 --amount 100", 0)
	n.await("failing", func(s adminapi.Sink) bool {
		return s.State == "failing" && hasPending(s, 2) && s.Quarantined == 0 && s.LagSeconds > 0 && s.Reason == "status 500"
	})
	testkit.Until(func() bool {
		v := n.scrapedValues(t)
		return v[`export_sink_up{sink="app"}`] == 0 && v[`export_sink_up{sink="files"}`] == 1 && v[`export_lag_seconds{sink="app"}`] > 0 && v[`export_pending{sink="app"}`] == 2
	})
	r.answer(http.StatusOK)
	n.await("delivered", delivered)

	r.answer(http.StatusUnprocessableEntity)
	n.use()
	n.await("quarantined", func(s adminapi.Sink) bool { return delivered(s) && s.Quarantined == 1 })
	testkit.Until(func() bool { return n.scrapedValues(t)[`export_quarantined{sink="app"}`] == 1 })
	if got := n.run("exports quarantine app", 0); !strings.Contains(got, "usage/requests            2           rejected    422") {
		t.Fatal(got)
	}
	r.answer(http.StatusInternalServerError)
	n.run("exports redrive app usage/requests 2", 0)
	n.await("failing", func(s adminapi.Sink) bool { return s.State == "failing" && hasPending(s, 0) })
	if s := n.sink(); s.Quarantined != 1 || s.Redriven != 1 || !slices.ContainsFunc(s.Lanes, func(l adminapi.Lane) bool { return l.Redriven == 1 && l.Stream == "usage/requests" }) {
		t.Errorf("an item is redriven: %+v", s)
	}
	if got := strings.Fields(n.run("exports status app", 0)); !slices.Contains(got, "redriven") || got[12] != "1" || got[13] != "1" {
		t.Errorf("%q", got)
	}
	r.answer(http.StatusUnprocessableEntity)
	n.await("rejected again", func(s adminapi.Sink) bool { return delivered(s) && s.Quarantined == 1 && s.Redriven == 0 })
	r.answer(http.StatusOK)
	n.use() // goes on without the item
	n.await("the stream has gone on", delivered)
	if got := r.positions("slices/default/requests"); !slices.Equal(got, []int{1, 3}) {
		t.Fatalf("the receiver has %v", got)
	}
	if got := n.run("exports redrive app", 0); got != "1 quarantined items are delivered again\n" {
		t.Fatal(got)
	}
	n.await("redriven", func(s adminapi.Sink) bool { return delivered(s) && s.Quarantined == 0 })

	n.run("exports backfill app usage/requests 2", 0)
	testkit.Until(func() bool { return len(r.positions("slices/default/requests")) == 5 })
	if got := r.positions("slices/default/requests"); !slices.Equal(got, []int{1, 3, 2, 2, 3}) {
		t.Fatalf("the receiver has %v", got)
	}
	for args, want := range map[string]string{
		"exports skip app usage/requests 99":                 "the stream has no item at the position",
		"exports skip app usage/requests 1":                  "lane_moved",
		"exports skip app usage/none 1":                      "not_found",
		"exports backfill app usage/requests 99":             "lane_moved",
		"exports backfill app usage/requests 0":              "bad_request: The position must be a number from 1\n",
		"exports skip app usage/requests 0":                  "bad_request: The position must be a number from 1\n",
		"exports skip app usage/requests 9007199254740992":   "bad_request: The position must be a number from 1\n",
		"exports skip app usage/requests 1 --tenant ann":     "bad_request: The tenant must be default, or a number\n",
		"exports backfill app usage/requests 1 --tenant ann": "bad_request: The tenant must be default, or a number\n",
		"exports redrive app usage/requests 0":               "bad_request: The position must be a number from 1\n",
		"exports redrive app usage/requests 1 --tenant ann":  "bad_request: The tenant must be default, or a number\n",
		"exports redrive other":                              "not_found",
		"exports resume other":                               "not_found",
		"exports remove other":                               "not_found",
		"exports remove app":                                 "The sink is in the configuration",
		"exports status other":                               "the node has no sink other",
	} {
		code := 1
		if strings.HasPrefix(args, "exports status") {
			code = 2
		}
		if got := n.run(args, code); !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}

	r.answer(http.StatusGone)
	n.use()
	n.await("stopped", func(s adminapi.Sink) bool { return s.State == "stopped" && hasPending(s, 1) })
	n.run("exports skip app usage/requests 4", 0)
	r.answer(http.StatusOK)
	if got := n.run("exports resume app", 0); got != "app is resumed\n" {
		t.Error(got)
	}
	n.await("resumed", delivered)
	if got := n.run("exports resume app", 0); got != "app was not stopped\n" {
		t.Error(got)
	}

	// A drain does not wait for a receiver that does not answer; what it does not have is delivered after the next start.
	r.answer(0)
	n.use()
	n.await("in flight", func(s adminapi.Sink) bool { return s.InFlight == 1 })
	n.end()
	r.answer(http.StatusInternalServerError)
	last := n.next
	n = startExports(t, dir, out, r.URL)
	n.next = last
	n.await("the streams are read after the restart", func(s adminapi.Sink) bool {
		if s.State == "starting" && s.Pending == nil {
			return false
		}
		if !hasPending(s, 1) {
			t.Fatalf("an item waits since before the restart, and the sink is %s with %v pending items", s.State, s.Pending)
		}
		return true
	})
	r.answer(http.StatusOK)
	n.await("delivered after the restart", delivered)
	if got := r.positions("slices/default/requests"); !slices.Equal(got, []int{1, 3, 2, 2, 3, 5}) {
		t.Fatalf("the receiver has %v", got)
	}
	if got := r.positions("movements/default"); !slices.Equal(got, []int{1}) {
		t.Fatalf("the receiver has the movements %v", got)
	}
	testkit.Until(func() bool { return n.scrapedValues(t)[`export_pending{sink="files"}`] == 0 })
	if got := n.run("usage verify "+filepath.Join(out, "usage-00000001.ndjson"), 0); !strings.Contains(got, "5 slices of 1 chains are verified") {
		t.Fatal(got)
	}
	n.end()

	// A sink that the configuration does not have is listed until it is removed.
	n = &exportsNode{process: startInDir(t, dir), t: t}
	if got := n.run("exports status", 0); !strings.Contains(got, "unknown") {
		t.Fatal(got)
	}
	if got := n.run("exports remove app", 0); !strings.HasPrefix(got, "2 streams of app are forgotten") {
		t.Fatal(got)
	}
	if got := n.run("exports status", 0); strings.Contains(got, "app") || !strings.Contains(got, "files") {
		t.Fatal(got)
	}
}

// TestRestoredNodeKeepsIDs: items that a sink delivers again after a restore have the IDs that its receiver knows. An item that takes
// the position of a lost one has another ID.
func TestRestoredNodeKeepsIDs(t *testing.T) {
	t.Parallel()
	r, dir, copied, restored := newReceiver(t), t.TempDir(), filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
	start := func(dir string) *exportsNode {
		return &exportsNode{process: startInDir(t, dir, "--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set",
			fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["usage","wallet"]}]`, r.URL)), t: t}
	}
	issue := func(n *exportsNode, key string) {
		n.run("wallet issue --to ann --asset EUR/2 --amount 100 --key "+key, 0)
	}
	delivered := func(want ...string) (ids []string) {
		t.Helper()
		for check := testkit.HangGuard(t); ; check() {
			r.mu.Lock()
			got := slices.Clone(r.got)
			ids = nil
			for _, path := range want {
				if i := slices.Index(got, path); i >= 0 {
					ids = append(ids, r.ids[i])
				}
			}
			r.mu.Unlock()
			if len(ids) == len(want) {
				return ids
			}
		}
	}
	r.answer(http.StatusServiceUnavailable)
	n := start(dir)
	issue(n, "a")
	n.use()
	n.run("backup "+copied, 0)
	r.answer(http.StatusOK)
	issue(n, "b")
	before := delivered("movements/default/1", "slices/default/requests/1", "movements/default/2")
	n.end()
	r.mu.Lock()
	r.got, r.ids = nil, nil
	r.mu.Unlock()
	if out, err := exec.Command("macronode", "restore", copied, "--data", restored).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n = start(restored)
	issue(n, "c")
	after := delivered("movements/default/1", "slices/default/requests/1", "movements/default/2")
	if !slices.Equal(before[:2], after[:2]) || before[2] == after[2] {
		t.Errorf("items have the IDs %q, and after a restore %q", before, after)
	}
	n.end()
}
