package sim_test

import (
	"fmt"
	"os"
	"testing"

	"macronode/chaos/sim"
	"macronode/chaos/world"
)

// TestCounters plays runs that all have the workload of examples/counter, and requires that what matters occurred.
func TestCounters(t *testing.T) {
	saw := map[string]int{}
	for seed := uint64(1); seed <= 60; seed++ {
		c := world.Given(sim.Choices(seed, *moves), "odds/storage", 0)
		c = world.Given(world.Given(c, "odds/usage", 0), "odds/counter", 1)
		w := sim.New(c)
		if err := w.Run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for what, n := range w.Saw {
			saw[what] += n
		}
	}
	for _, what := range []string{"an add is answered again", "an add is refused: a sum above 64 bits", "an add is refused: quota_exceeded",
		"an add is refused: limits_exceeded", "a counter's key is used for another add", "adds are lost with their frames"} {
		if saw[what] == 0 {
			t.Errorf("never saw %q", what)
		}
	}
	if testing.Verbose() {
		fmt.Fprintln(os.Stderr, saw)
	}
}
