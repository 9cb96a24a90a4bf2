package sim_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"macronode/chaos/sim"
	"macronode/chaos/world"
)

// TestFiles plays runs in which all objects have files, and TestShards runs in which the larger ones have shards. Both require that what matters
// occurred.
func TestFiles(t *testing.T) {
	playFiles(t, 300, "files: ", sim.Probe.Rare, func(c world.Chooser, seed int) world.Chooser {
		return world.Given(world.Given(c, "odds/files", 1+seed%3), "odds/shards", 0)
	})
}

func TestShards(t *testing.T) {
	rare := func(p sim.Probe) bool {
		return strings.Contains(p.Saw, "is lost") || strings.Contains(p.Saw, "is left")
	}
	playFiles(t, 100, "shards: ", rare, func(c world.Chooser, seed int) world.Chooser {
		return world.Given(world.Given(c, "odds/files", 1), "odds/shards", 1+seed%3)
	})
}

// playFiles plays some runs with files, and requires each probe with a prefix that is not rare in them.
func playFiles(t *testing.T, runs int, prefix string, rare func(sim.Probe) bool, with func(world.Chooser, int) world.Chooser) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // as in TestSeeds
	saw := map[string]int{}
	for seed := 1; seed <= runs; seed++ {
		c := world.Given(world.Given(sim.Choices(uint64(seed), *moves), "odds/usage", 0), "odds/counter", 0)
		w := sim.New(with(world.Given(c, "odds/storage", 1+seed%2), seed))
		if err := w.Run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for what, n := range w.Saw {
			saw[what] += n
		}
	}
	for _, p := range sim.Probes() {
		if saw[p.Saw] == 0 && strings.HasPrefix(p.Saw, prefix) && !rare(p) {
			t.Errorf("never saw %q, which shows that %q matters", p.Saw, p.Fault)
		}
	}
	if testing.Verbose() {
		fmt.Fprintln(os.Stderr, saw)
	}
}
