package kill_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/chaos/kill"
)

var rounds = flag.Int("rounds", 6, "batches of 1,000 that each of 8 clients sends, beside the rest")

// small is a configuration with small limits.
var small = []string{"wallet.limits.accounts=20000", "wallet.limits.holdings=20000", "wallet.limits.assets=10", "wallet.limits.tenants=10",
	"wallet.limits.tenant_accounts=20000", "wallet.limits.tenant_holdings=20000", "wallet.limits.tenant_holds=20000",
	"wallet.limits.holds=20000", "wallet.idempotency.keys=20000", "api_keys=10", "listen.max_conns=64", "node.in_flight=64",
	"index.cache_bytes=8MiB", "journal.max_unsynced_bytes=4MiB", "journal.snapshot_interval_bytes=16MiB"}

// TestMemoryStaysBelowTheBound: the peak memory of the program, under payments, holds, the largest batches, their
// statements and snapshots, stays below the bound of macronode explain memory.
func TestMemoryStaysBelowTheBound(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir()}
	for _, s := range small {
		n.Args = append(n.Args, "--set", s)
	}
	bound := memoryBound(t, binary, n.Args)
	start(t, n)
	pid := process(t, n)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { busy(t, n, i) })
	}
	wg.Wait()
	for !strings.Contains(n.Output(), "snapshot written") && !n.Gone() { // it is due: a second at most
		time.Sleep(5 * time.Millisecond)
	}
	had := resident(t, pid)
	output, code := n.Stop()
	if code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if had > bound || had < 16<<20 {
		t.Fatalf("%d bytes were resident at most, the bound is %d", had, bound)
	}
	t.Logf("%.0f MiB were resident at most, the bound is %.0f MiB", float64(had)/(1<<20), float64(bound)/(1<<20))
}

// busy is one client whose batches have the largest body, and whose names have the longest length.
func busy(t *testing.T, n *kill.Node, client int) {
	account, memo := fmt.Sprintf("user:%d:%s", client, strings.Repeat("x", 200)), strings.Repeat("m", 250)
	ask := func(path, key, body string) bool {
		for {
			status, answer, err := n.Post(t.Context(), path, key, body)
			switch {
			case err == nil && status == 200:
				return true
			case err == nil && (status == 429 || status >= 503): // it comes again, under its key
				time.Sleep(time.Millisecond)
			default:
				t.Errorf("%s: %d %s, %v", path, status, answer, err)
				return false
			}
		}
	}
	nonce := 0
	for round := range *rounds {
		var b strings.Builder
		b.WriteString(`{"atomic":false,"items":[`)
		for i := range 1000 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"op":"issue","to":"%s:%d","asset":"EUR/2","amount_minor":"100","memo":"%s"}`, account, i, memo)
		}
		b.WriteString(`]}`)
		if !ask("/v1/batch", fmt.Sprintf("b:%d:%d", client, round), b.String()) {
			return
		}
		for i := range 20 {
			nonce++
			path, more := "/v1/transfer", fmt.Sprintf(`,"to":"%s:1"`, account)
			if i%4 == 0 {
				path, more = "/v1/holds", `,"expires_at":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"`
			}
			body := fmt.Sprintf(`{"from":"%s:0","asset":"EUR/2","amount_minor":"1","nonce":%d%s}`, account, nonce, more)
			if !ask(path, fmt.Sprintf("o:%d:%d", client, nonce), body) {
				return
			}
		}
		if status, _, err := n.Get(t.Context(), "/v1/changes?limit=1000&after_seq="+strconv.Itoa(round*1000)); err != nil || status != 200 && status != 429 {
			t.Errorf("changes: %d, %v", status, err)
		}
	}
}

// memoryBound returns the bound that the program prints for its settings.
func memoryBound(t *testing.T, binary string, sets []string) int64 {
	t.Helper()
	out, err := exec.Command(binary, append([]string{"explain", "memory", "--json"}, sets...)...).Output()
	var report struct {
		Memory int64 `json:"memory_bytes"`
	}
	if err == nil {
		err = json.Unmarshal(out, &report)
	}
	if err != nil || report.Memory <= 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return report.Memory
}

func process(t *testing.T, n *kill.Node) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(n.Data, "run.json"))
	var run struct{ PID int }
	if err == nil {
		err = json.Unmarshal(raw, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run.PID
}

// resident returns the peak resident memory of a process.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(raw, []byte("VmHWM:"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.SplitN(rest, []byte("kB"), 2)[0])), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
