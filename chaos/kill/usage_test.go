package kill_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// TestKillUsage kills the real binary while clients report usage, repeat what was acknowledged, and send again what was not. No
// event is lost or counted twice: at the end the sums are those of the clients, and each chain of slices has no gap.
func TestKillUsage(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s"}}
	var all []*kill.UsageClient
	for i := range uint64(6) {
		all = append(all, kill.NewUsageClient(i+1))
	}
	dice := types.NewRand(*seed)
	for range *kills/2 + 1 {
		start(t, n)
		killUnderLoad(t, n, all, &dice, func() {})
	}
	start(t, n)
	batches, repeats, cut, unknown := 0, 0, 0, 0
	for _, c := range all {
		if err := c.Settle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		batches, repeats, cut, unknown = batches+c.Batches, repeats+c.Repeats, cut+c.Cut, unknown+c.Unknown
	}
	sums, err := kill.SumUsage(t.Context(), n, "subject", "")
	if err != nil {
		t.Fatal(err)
	}
	open := uint64(0)
	for _, c := range all {
		got := sums[c.Subject]
		if open += got.Open; got.Value != c.Value || got.Events != c.Events {
			t.Errorf("%s reported %d in %d events, the node has %+v", c.Subject, c.Value, c.Events, got)
		}
	}
	slices := checkChains(t, n)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if batches < *kills || repeats == 0 || cut == 0 || unknown == 0 || slices == 0 {
		t.Fatalf("%d batches, %d repeats, %d cut, %d sent again: no load", batches, repeats, cut, unknown)
	}
	t.Logf("%d runs, %d batches, %d repeats, %d cut, %d sent again, %d slices, %d units are open", *kills/2+1, batches, repeats, cut, unknown, slices, open)
}

// checkChains checks that the slices of each dimension have no gap and name the one before. It returns how many there are.
func checkChains(t *testing.T, n *kill.Node) (count int) {
	t.Helper()
	type slice struct {
		Seq              uint64
		Previous, Digest string
	}
	chains := map[string]map[uint64]slice{}
	for cursor := ""; ; {
		status, body, err := n.GetIndexed(t.Context(), "/v1/usage-slices?limit=100"+cursor)
		var page struct {
			Slices []struct {
				slice
				Dimension string
			}
			Next string `json:"next_cursor"`
		}
		if err != nil || status != http.StatusOK || json.Unmarshal(body, &page) != nil {
			t.Fatalf("slices: %d %.200s %v", status, body, err)
		}
		for _, s := range page.Slices {
			if chains[s.Dimension] == nil {
				chains[s.Dimension] = map[uint64]slice{0: {Digest: fmt.Sprintf("%064d", 0)}}
			}
			chains[s.Dimension][s.Seq] = s.slice
			count++
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	for dimension, chain := range chains {
		for seq := uint64(1); seq < uint64(len(chain)); seq++ {
			if s, ok := chain[seq]; !ok || s.Previous != chain[seq-1].Digest {
				t.Errorf("%s: slice %d of %d does not follow the one before: %+v", dimension, seq, len(chain)-1, s)
			}
		}
	}
	return count
}
