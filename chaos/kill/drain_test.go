package kill_test

import (
	"context"
	"strings"
	"testing"

	"macronode/chaos/kill"
)

// TestDrain: terminated under load, the node answers every request that was sent, prints a report, closes the
// admin listener last and exits with 0. The next start has everything (ron-node cut requests on TERM).
func TestDrain(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	// All of its times are long: how fast the disk is decides nothing here.
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "node.drain=5s", "--set", "node.commit_timeout=1m",
		"--set", "journal.stall_threshold=10s", "--set", "journal.sync_timeout=1m"}}
	start(t, n)
	all := clients(64)
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- kill.Together(ctx, n, all) }()
	awaitFolded(t, n, folded(t, n)+4*uint64(len(all)))
	output, code := n.Stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, c := range all {
		if total += len(c.Known); c.Cut != nil {
			t.Errorf("client %d: a request was cut: %v", i, c.Cut)
		}
	}
	if total < len(all) || code != 0 {
		t.Fatalf("%d answers, exit %d:\n%s", total, code, output)
	}
	after := -1
	for _, word := range []string{"service=http", "msg=ended", "drained: ", "service=sampler", "service=admin"} {
		at := strings.LastIndex(output, word)
		if at < after {
			t.Fatalf("%q is not said, or too early:\n%s", word, output)
		}
		after = at
	}
	start(t, n)
	for _, c := range all {
		if err := c.Hold(t.Context(), n, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, code := n.Stop(); code != 0 {
		t.Fatalf("the second run: exit %d", code)
	}
	t.Logf("%d answers", total)
}
