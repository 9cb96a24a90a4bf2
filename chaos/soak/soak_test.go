package soak_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/index"
	"macronode/chaos/kill"
	"macronode/chaos/soak"
	"macronode/core/types"
)

var (
	length = flag.Duration("for", 20*time.Second, "duration of the test")
	seed   = flag.Uint64("seed", 1, "seed of the faults")
)

// TestSoak runs several processes one after another. Each ends with a check while it is idle, and then with a
// drain or a kill. In the end all responses of the wallet are certified.
func TestSoak(t *testing.T) {
	s := newSoakRun(t)
	for began, run := time.Now(), 0; run < 3 || time.Since(began) < *length; run++ {
		if s.start(); t.Failed() {
			return
		}
		s.runTraffic(max(2*time.Second, *length/8))
		s.awaitIdle()
		if !s.end() || t.Failed() {
			t.Fatalf("run %d (go test ./chaos/soak -seed %d -for %v)", run, *seed, *length)
		}
		s.runs++
	}
	s.certify()
}

// A soakRun has the node, its upstream and its clients.
type soakRun struct {
	*kill.Node
	t      *testing.T
	dice   types.Rand
	far    *soak.Service
	file   string
	money  []*kill.Client
	guests []*soak.Visitor
	bound  float64 // of memory
	first  map[string]float64

	runs, changes, refused, drains int
}

func newSoakRun(t *testing.T) *soakRun {
	t.Helper()
	binary, err := kill.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &soakRun{t: t, dice: types.NewRand(*seed), far: soak.NewService(), file: filepath.Join(t.TempDir(), "macronode.yaml"),
		guests: soak.Visitors(4, *seed), first: map[string]float64{}}
	t.Cleanup(func() { h.far.CloseClientConnections(); h.far.Close() })
	for i := range uint32(6) {
		h.money = append(h.money, kill.NewClient(i))
	}
	h.write(0)
	// Times of the disk are long: how fast it is decides nothing here.
	h.Node = &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--config", h.file, "--set", "node.drain=5s",
		"--set", "journal.stall_threshold=10s", "--set", "journal.sync_timeout=1m", "--set", "journal.snapshot_interval_bytes=4MiB", "--set", "wallet.limits.accounts=10000",
		"--set", "wallet.limits.holdings=20000", "--set", "wallet.idempotency.keys=100000", "--set", "listen.max_conns=256"}}
	out, err := exec.Command(binary, append([]string{"explain", "memory", "--json"}, h.Args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var memory struct {
		Total float64 `json:"memory_bytes"`
	}
	if err := json.Unmarshal(out, &memory); err != nil || memory.Total == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	h.bound = memory.Total
	return h
}

// write writes one of the configurations; the last one is invalid.
func (h *soakRun) write(which int) {
	h.t.Helper()
	app, more := "app", []string{
		"quotas: [{ scope: instance, requests_per_second: 4000, burst: 100 }]\n",
		"quotas: [{ scope: peer, requests_per_second: 1500, burst: 50, classes: [anon] }]\nqueue: { max_wait: 50ms, weights: { anon: 3 } }\n",
		"queue: { quantum_bytes: 16KiB, max_wait: 5ms }\n",
		"node: { in_flight: 77 }\n",
	}[which]
	if which == 2 {
		app = "ape"
	}
	text := fmt.Sprintf("upstreams:\n  %[1]s: { url: %[2]q }\nroutes:\n  - { path: /open, upstream: %[1]s, auth: none }\n  - { path: /keyed, upstream: %[1]s }\n%[3]s",
		app, h.far.URL, more)
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *soakRun) start() {
	h.t.Helper()
	h.write(int(h.dice.Uint64n(3)))
	ctx, stop := context.WithTimeout(h.t.Context(), time.Minute)
	defer stop()
	if err := h.Start(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// runTraffic runs all clients at once, while the upstream changes its mood and the configuration is reloaded.
func (h *soakRun) runTraffic(span time.Duration) {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), span)
	defer stop()
	var wg sync.WaitGroup
	for _, g := range h.guests {
		wg.Go(func() {
			if err := g.Run(ctx, h.Node); err != nil {
				h.t.Error(err)
			}
		})
	}
	wg.Go(func() { // what is certified is kept in memory: not all the time, in a long life
		for ctx.Err() == nil {
			burst, over := context.WithTimeout(ctx, 2*time.Second)
			if err := kill.Together(burst, h.Node, h.money); err != nil {
				h.t.Error(err)
			}
			over()
			wait(ctx, span/4-2*time.Second)
		}
	})
	for ctx.Err() == nil {
		h.far.SetMood([...]soak.Mood{soak.Well, soak.Well, soak.Well, soak.Slow, soak.Hangs, soak.Cuts, soak.Gone, soak.Turns}[h.dice.Uint64n(8)])
		wait(ctx, time.Duration(50+h.dice.Uint64n(400))*time.Millisecond)
		if h.dice.Uint64n(3) == 0 {
			h.reload(int(h.dice.Uint64n(4)))
		}
	}
	wg.Wait()
	h.far.SetMood(soak.Well)
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// reload makes the node reload its file.
func (h *soakRun) reload(which int) {
	h.t.Helper()
	h.write(which)
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.Admin+"/config/reload", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Error(err)
		return
	}
	defer resp.Body.Close()
	output, _ := io.ReadAll(resp.Body)
	want := http.StatusOK
	if h.changes++; which == 3 {
		want = http.StatusUnprocessableEntity
		h.refused++
	}
	if resp.StatusCode != want {
		h.t.Errorf("configuration %d: %d %s", which, resp.StatusCode, output)
	}
}

// awaitIdle waits until no request is in progress, and checks what must not have grown.
func (h *soakRun) awaitIdle() {
	h.t.Helper()
	var busy []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // between two looks at another process
		is := h.gauges()
		if busy = grown(is, h.first); len(busy) == 0 {
			break
		}
		if time.Now().After(end) {
			h.t.Errorf("never quiet: %v", busy)
			return
		}
	}
	is := h.gauges()
	if is["process_resident_memory_bytes"] > h.bound {
		h.t.Errorf("%.0f bytes in memory, beyond the %.0f that are told", is["process_resident_memory_bytes"], h.bound)
	}
	if len(h.first) == 0 {
		h.first = is
	}
}

// tables returns the number of tables of the index, which are kept open, up to index.MaxFiles: an hour makes more than a hundred.
func (h *soakRun) tables() int {
	h.t.Helper()
	all, err := filepath.Glob(filepath.Join(h.Data, "index", "tables", "*.sst"))
	if err != nil {
		h.t.Fatal(err)
	}
	return min(len(all), index.MaxFiles)
}

// grown returns the gauges that are not as in an idle node: no requests in progress, and process resources close
// to those of the first idle moment.
func grown(is, first map[string]float64) (all []string) {
	for name, v := range is {
		most := 0.0
		switch {
		case strings.HasPrefix(name, "process_resident"):
			continue
		case strings.HasPrefix(name, "go_goroutines"), strings.HasPrefix(name, "process_open_fds"):
			most = 300 // connections to the service that are kept for a while are among them
			if was, ok := first[name]; ok {
				most = was + 150
			}
		}
		if v > most {
			all = append(all, fmt.Sprintf("%s %v of %v", name, v, most))
		}
	}
	slices.Sort(all)
	return all
}

// gauges returns the gauges of admission and of the process. Tables of the index are not among its open files.
func (h *soakRun) gauges() map[string]float64 {
	h.t.Helper()
	all, err := h.Gauges(h.t.Context(), append(kill.AtGate(), "go_goroutines", "process_open_fds", "process_resident_memory_bytes")...)
	if err != nil || len(all) < 12 {
		h.t.Fatalf("%d gauges, %v", len(all), err)
	}
	all["process_open_fds"] -= float64(h.tables())
	return all
}

// end drains or kills the node while requests of the wallet are in progress.
func (h *soakRun) end() bool {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), time.Minute)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- kill.Together(ctx, h.Node, h.money) }()
	wait(ctx, time.Duration(20+h.dice.Uint64n(100))*time.Millisecond) // the moment is what is drawn here
	if h.dice.Uint64n(2) == 0 {
		h.Kill()
	} else if output, code := h.Stop(); code != 0 {
		h.t.Errorf("exit %d:\n%s", code, output)
	} else {
		h.drains++
	}
	if err := <-done; err != nil {
		h.t.Error(err)
		return false
	}
	return true
}

// certify compares all responses of the wallet with the final journal.
func (h *soakRun) certify() {
	h.t.Helper()
	if h.start(); h.t.Failed() {
		return
	}
	answers := 0
	for _, c := range h.money {
		answers += len(c.Known)
		if err := c.Hold(h.t.Context(), h.Node, 0); err != nil {
			h.t.Fatal(err)
		}
	}
	if output, code := h.Stop(); code != 0 {
		h.t.Fatalf("exit %d:\n%s", code, output)
	}
	if out, err := exec.Command(h.Binary, "verify", "--data", h.Data).CombinedOutput(); err != nil {
		h.t.Fatalf("verify: %v\n%s", err, out)
	}
	sure, err := kill.Certify(h.Data, h.money)
	if err != nil {
		h.t.Fatal(err)
	}
	var whole, problems, cut int64
	for _, g := range h.guests {
		whole, problems, cut = whole+g.Whole.Load(), problems+g.Problems.Load(), cut+g.Cut.Load()
	}
	if whole == 0 || problems == 0 || cut == 0 || h.changes == 0 || sure.Writes != answers || answers == 0 {
		h.t.Errorf("%d whole, %d told, %d cut, %d changes, %d answers, %+v", whole, problems, cut, h.changes, answers, sure)
	}
	h.t.Logf("evidence: soak.runs = %d in %v, %d drained; %d configuration changes, %d of them rejected; %d complete responses, %d problems, %d aborted or cut; %d wallet responses certified",
		h.runs, *length, h.drains, h.changes, h.refused, whole, problems, cut, answers)
}
