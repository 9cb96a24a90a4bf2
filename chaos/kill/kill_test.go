package kill_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"macronode/chaos/kill"
	"macronode/core/types"
)

var (
	kills = flag.Int("kills", 20, "how often")
	seed  = flag.Uint64("seed", 1, "of the moments at which it is killed")
)

// TestKill: the real binary is killed under load many times and loses nothing that it acknowledged: every receipt
// and every stored rejection has the same bytes, by txid and under its key, and the journal verifies. Everything
// that clients saw is certified, including unknown outcomes.
func TestKill(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir()}
	all := clients(16)
	dice := types.NewRand(*seed)
	held := make([]int, len(all))
	for run := range *kills + 1 {
		start(t, n)
		for i, c := range all {
			if err := c.Hold(t.Context(), n, held[i]); err != nil {
				t.Fatalf("run %d (go test ./chaos/kill -seed %d): %v", run, *seed, err)
			}
			held[i] = len(c.Known)
		}
		if run == *kills {
			break
		}
		if err := underLoad(t, n, all, &dice); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, c := range all {
		total += len(c.Known)
		if err := c.Hold(t.Context(), n, 0); err != nil {
			t.Fatal(err)
		}
	}
	output, code := n.Stop()
	if code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	out, err := exec.Command(binary, "verify", "--data", n.Data).CombinedOutput()
	if err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	if total < *kills*len(all) {
		t.Fatalf("only %d answers in %d runs: no load", total, *kills)
	}
	sure, err := kill.Certify(n.Data, all)
	if err != nil {
		t.Fatalf("go test ./chaos/kill -seed %d: %v", *seed, err)
	}
	if sure.Writes != total || sure.Reads < total/10 || *kills >= 20 && (sure.Done == 0 || sure.Done == sure.Unknown) {
		t.Fatalf("of %d answers: %+v", total, sure)
	}
	t.Logf("%+v certified", sure)
	t.Logf("%d runs, %d responses hold; %s", *kills+1, total, strings.TrimSpace(string(out)))
	t.Logf("evidence: kill.cycles = %d, with %d responses; certified: %+v", *kills, total, sure)
}

func clients(n uint32) (all []*kill.Client) {
	for i := range n {
		all = append(all, kill.NewClient(i))
	}
	return all
}

// underLoad kills n while all clients send requests and some were answered.
func underLoad(t *testing.T, n *kill.Node, all []*kill.Client, dice *types.Rand) error {
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- kill.Together(ctx, n, all) }()
	awaitFolded(t, n, folded(t, n)+3*uint64(len(all)))
	time.Sleep(time.Duration(dice.Uint64n(180)) * time.Millisecond) // the moment is what is drawn here
	ended := n.Gone()
	n.Kill()
	err := <-done
	if ended {
		err = errors.Join(fmt.Errorf("the node has ended by itself:\n%s", n.Output()), err)
	}
	return err
}

func start(t *testing.T, n *kill.Node) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// folded returns the last applied frame; the greatest number if the node has ended by itself, as some do that have a bug.
func folded(t *testing.T, n *kill.Node) uint64 {
	t.Helper()
	resp, err := http.Get(n.Admin + "/readyz?verbose")
	if err != nil {
		for began := time.Now(); !n.Gone(); time.Sleep(time.Millisecond) { // it is still ending
			if time.Since(began) > 10*time.Second {
				t.Fatal(err)
			}
		}
		return math.MaxUint64
	}
	defer resp.Body.Close()
	var status struct {
		Folded uint64 `json:"folded_lsn"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.Folded == 0 {
		t.Fatalf("readyz: %d, %+v, %v", resp.StatusCode, status, err)
	}
	return status.Folded
}

// patience is longer than a busy machine needs, whose disk stands still for a while: only a hang takes so long.
const patience = 5 * time.Minute

// awaitFolded waits until a frame is applied: on a disk of any speed some request was then answered.
func awaitFolded(t *testing.T, n *kill.Node, lsn uint64) {
	t.Helper()
	for began := time.Now(); folded(t, n) < lsn; time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("still at %d, and not at %d", folded(t, n), lsn)
		}
	}
}
