package graph_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"macronode/chaos/trace/graph"
)

var dumps = flag.String("dumps", "", "a directory with TLC's dumps of specs/…/graph*.cfg: ci/tlc graph makes it")

// specs returns the specifications that exist here and in specs, with the constants of their
// graph*.cfg.
func specs() map[string]func() *graph.Graph {
	return map[string]func() *graph.Graph{
		"admission": func() *graph.Graph { return graph.Explore(graph.Admission(graph.GraphSizes)) },
		"clock": func() *graph.Graph {
			return graph.Explore(graph.Clock(graph.ClockSizes{Step: 2, Rest: 4, Trust: 4, Gap: 5, Steady: 4, Waver: 1, Slew: 2, Day: 4, Ceiling: 1, Gone: 2,
				MaxWall: 10, MaxMono: 8, MaxJumps: 1, MaxCrashes: 1, MaxAccepts: 1, MaxPays: 2}))
		},
		"drain": func() *graph.Graph {
			return graph.Explore(graph.Drain(graph.DrainSizes{Start: 1, Lame: 1, Drain: 1, Abort: 1, Faults: 2, Signals: 2}))
		},
		"drr": func() *graph.Graph {
			return graph.Explore(graph.DRR(graph.DRRSizes{Of: []int{0, 1, 2}, Weights: []int{1, 2, 0}, Quantum: 1, MaxCost: 2, Depth: 2, Drops: true, Both: []int{0, 1}}))
		},
		"drr_flows": func() *graph.Graph {
			return graph.Explore(graph.DRR(graph.DRRSizes{Of: []int{0, 0}, Weights: []int{1}, Quantum: 1, MaxCost: 1, Depth: 2, MaxOut: 2, Drops: true, Two: []int{0, 1}}))
		},
		"idem": func() *graph.Graph {
			return graph.Explore(graph.Idem(graph.IdemSizes{TTL: 1, Time: 1, Asks: 2, Forgets: 1, Crashes: 1,
				Requests: []graph.IdemRequest{{Op: "do", Key: "k2", Ref: "r1"}, {Op: "do", Key: "k3", Ref: "r1"}}}))
		},
		"queue": func() *graph.Graph {
			return graph.Explore(graph.Queue(graph.QueueSizes{Slots: 2, Limit: 2, Share: 1, Asks: 4, Leaves: 2}))
		},
		"wallet": func() *graph.Graph {
			return graph.Explore(graph.Wallet(graph.WalletSizes{TTL: 1, Keys: 2, Time: 1, Asks: 2, Fails: 1, Crashes: 1, Requests: []graph.WalletRequest{
				{Tenant: "t", Key: "k1", Op: "issue", To: "a", Amount: 2},
				{Tenant: "t", Key: "k2", Op: "transfer", From: "a", To: "b", Amount: 1, Nonce: 1},
				{Tenant: "t", Key: "k2", Op: "transfer", From: "a", To: "b", Amount: 2, Nonce: 1},
				{Tenant: "t", Key: "k4", Op: "transfer", From: "a", To: "b", Amount: 1, Nonce: 2},
			}}))
		},
	}
}

func pinned(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestGraphMatchesPinnedDigest: the Go version has the steps that TLC found at the last
// comparison. It does not need Java.
func TestGraphMatchesPinnedDigest(t *testing.T) {
	edges := []string{}
	for name, explore := range specs() {
		g := explore()
		edges = append(edges, fmt.Sprintf("%s %d", name, len(g.Edges)))
		if got, want := g.Digest(), pinned(t, name); got != want {
			t.Errorf("%s: %s\n    TLC: %s\n    where they differ says: ci/tlc graph", name, got, want)
		}
	}
	slices.Sort(edges)
	t.Logf("evidence: trace.edges = %s", strings.Join(edges, ", "))
}

// TestEveryGraphIsCompared: each graph*.cfg in specs has a Go version, and each pinned digest a
// specification.
func TestEveryGraphIsCompared(t *testing.T) {
	here := slices.Sorted(maps.Keys(specs()))
	var there, kept []string
	found, err := filepath.Glob("../../../specs/*/graph*.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		dir, run := filepath.Split(path)
		there = append(there, filepath.Base(dir)+strings.TrimSuffix(strings.TrimPrefix(run, "graph"), ".cfg"))
	}
	pins, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range pins {
		kept = append(kept, pin.Name())
	}
	if slices.Sort(there); !slices.Equal(here, there) || !slices.Equal(here, kept) {
		t.Errorf("here are %v, in specs %v, in testdata %v", here, there, kept)
	}
}

// TestOneStepChangesDigest: a step that only one of two graphs has is reported, and changes the
// digest.
func TestOneStepChangesDigest(t *testing.T) {
	less, more := specs()["drain"](), specs()["drain"]()
	for e := range less.Edges {
		if e.From != e.To {
			delete(less.Edges, e)
			break
		}
	}
	if some, n := more.Minus(less); n != 1 || len(some) != 1 {
		t.Errorf("%d steps more, %v", n, some)
	}
	if some, n := less.Minus(more); n != 0 || len(some) != 0 {
		t.Errorf("%d steps of the one that has less, %v", n, some)
	}
	if is := less.Digest(); is == more.Digest() || is == pinned(t, "drain") {
		t.Error(is)
	}
}

// TestDumpsMatchTLC: TLC's graph and the Go version have the same edges, and the pinned digest is
// that of TLC.
func TestDumpsMatchTLC(t *testing.T) {
	if *dumps == "" {
		t.Skip("no dumps of TLC's: ci/tlc graph makes them and compares. TestGraphMatchesPinnedDigest has compared the digests.")
	}
	for name, explore := range specs() {
		f, err := os.Open(filepath.Join(*dumps, name+".dot"))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := graph.Read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ours := explore()
		if some, n := ours.Minus(theirs); n > 0 {
			t.Errorf("%s: %d edges of %d are ours alone\n%s", name, n, len(ours.Edges), strings.Join(some, "\n"))
		}
		if some, n := theirs.Minus(ours); n > 0 {
			t.Errorf("%s: %d edges of %d are TLC's alone\n%s", name, n, len(theirs.Edges), strings.Join(some, "\n"))
		}
		if got, want := theirs.Digest(), pinned(t, name); got != want {
			t.Errorf("%s: TLC's is %s\n    pinned is %s", name, got, want)
		}
		t.Logf("%s: %s", name, theirs.Digest())
	}
}
