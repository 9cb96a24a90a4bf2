package sim_test

import (
	"flag"
	"fmt"
	"sort"
	"strings"
	"testing"

	"macronode/chaos/sim"
	"macronode/chaos/world"
	"macronode/core/words"
)

var (
	seeds = flag.Int("seeds", 1500, "how many lives")
	seed  = flag.Int("seed", 0, "only this one")
	moves = flag.Int("moves", 500, "of each life")
)

// TestSeeds: whatever the disk, the clock, the clients and the power do, nothing
// acknowledged is lost and no answer is ever taken back; and what makes that hard
// was seen to happen.
func TestSeeds(t *testing.T) {
	saw := map[string]int{}
	from, to := 1, *seeds
	if *seed > 0 {
		from, to = *seed, *seed
	}
	for s := from; s <= to; s++ {
		w := sim.New(&world.Seeded{Dice: words.NewDice(uint64(s))})
		if err := w.Run(*moves); err != nil {
			t.Fatalf("%v\ngo test ./chaos/sim -run TestSeeds -moves %d -seed %d", err, *moves, s)
		}
		for what, n := range w.Saw {
			saw[what] += n
		}
	}
	var all []string
	for what, n := range saw {
		all = append(all, fmt.Sprintf("%s %d", what, n))
	}
	sort.Strings(all)
	t.Logf("saw %s", strings.Join(all, ", "))
	if *seed > 0 {
		return
	}
	for _, must := range []string{"told ", "told nonce_conflict", "told limits_exceeded", "told idempotency_conflict",
		"told in_progress", "told busy", "told unavailable", "told unknown", "told forbidden", "told idempotency_full", "replayed",
		"stored 403", "stored 409", "flush failed", "killed", "power lost", "crash in recovery", "recovery failed", "tail cut",
		"frames beyond the durable", "forgot", "clock moved", "child died", "client left", "damage said", "rot that did no harm", "lie found out", "lie that nobody can know"} {
		if saw[must] == 0 {
			t.Errorf("never saw %q", must)
		}
	}
}
