package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"macronode/chaos/sim"
)

var (
	seeds = flag.Int("seeds", 1500, "how many lives")
	base  = flag.Uint64("base", 0, "the seeds are those behind this one")
	seed  = flag.Int("seed", 0, "only this one")
	moves = flag.Int("moves", 500, "of each life")
)

// enough lives come to every cell: in the mean of runs of so many to the rarest ten times.
const enough = 20_000

// kept writes the log of a seed that fails, made small, and is the command that repeats it.
func kept(t *testing.T, seed uint64) string {
	t.Helper()
	l, err := sim.Recorded(sim.Life(seed, *moves))
	small, rule, _ := sim.Shrink(l, 2000)
	if rule != sim.Rule(err) {
		t.Logf("the seed fails with %s, its log with %s", sim.Rule(err), rule)
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("macronode-life-%d.log", seed))
	if err := sim.Save(name, small, fmt.Sprintf("seed %d, %d moves", seed, *moves), rule); err != nil {
		return fmt.Sprintf("%v\ngo run ./cmd/simulate -moves %d -seed %d", err, *moves, seed)
	}
	return fmt.Sprintf("go run ./cmd/simulate -replay %s   # %d choices, %d not dull; all of it: -moves %d -seed %d", name, len(small), small.Surprises(), *moves, seed)
}

// lives plays seeds on all processors. It ends the test with the first that fails.
func lives(t *testing.T, from, to uint64) (saw map[string]int, cells map[sim.Cell]int, gated map[sim.GateCell]int, steps int) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a world is small: it would collect all the time
	saw, cells, gated = map[string]int{}, map[sim.Cell]int{}, map[sim.GateCell]int{}
	var next, failed atomic.Uint64
	next.Store(from)
	failed.Store(to + 1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := next.Add(1) - 1; s < failed.Load(); s = next.Add(1) - 1 {
				w := sim.New(sim.Life(s, *moves))
				err := w.Run()
				mu.Lock()
				if err != nil {
					failed.Store(min(s, failed.Load()))
				}
				steps += w.Steps
				for what, n := range w.Saw {
					saw[what] += n
				}
				for cell, n := range w.Cells {
					cells[cell] += n
				}
				for cell, n := range w.GateCells {
					gated[cell] += n
				}
				mu.Unlock()
			}
		})
	}
	if wg.Wait(); failed.Load() <= to {
		t.Fatalf("%v\n%s", sim.New(sim.Life(failed.Load(), *moves)).Run(), kept(t, failed.Load()))
	}
	return saw, cells, gated, steps
}

// TestSeeds: whatever the disk, the clock, the clients and the power do, nothing
// acknowledged is lost and no answer is ever taken back; and what makes that hard
// was seen to happen.
func TestSeeds(t *testing.T) {
	from, to := *base+1, *base+uint64(*seeds)
	if *seed > 0 {
		from, to = uint64(*seed), uint64(*seed)
	}
	t.Logf("seeds %d to %d; again with: go test ./chaos/sim -run TestSeeds -base %d -seeds %d", from, to, *base, *seeds)
	saw, cells, gated, steps := lives(t, from, to)
	var all []string
	for what, n := range saw {
		all = append(all, fmt.Sprintf("%s %d", what, n))
	}
	sort.Strings(all)
	t.Logf("saw %s", strings.Join(all, ", "))
	if *seed > 0 {
		return
	}
	least := 1 << 30
	for _, p := range sim.Probes() {
		least = min(least, saw[p.Saw])
		if saw[p.Saw] == 0 && (!p.Rare() || *seeds >= enough) {
			t.Errorf("never saw %q, which shows that %q matters", p.Saw, p.Fault)
		}
	}
	// What clients ask for is the whole of what there is to ask: every operation has met every
	// problem that it can meet, in every kind in which it can be asked. Lives are bent to one cell
	// after another: see goal. And every class has come to every facet, and was told all that it
	// can be told there.
	if part := filled(t, "evidence: sim.cells = ", sim.Cells(), cells, enough); part < 50 {
		t.Errorf("%d of a hundred cells are filled: less than half", part)
	}
	filled(t, "evidence: sim.gate = ", sim.GateCells(), gated, enough/4)
	faults := map[string]bool{}
	for _, p := range sim.Probes() {
		faults[p.Fault] = true
	}
	t.Logf("evidence: sim.lives = %d, of seeds behind %d", *seeds, *base)
	t.Logf("evidence: trace.steps = all %d of them", steps)
	t.Logf("evidence: sim.faults = %d, each seen to matter", len(faults))
	t.Logf("evidence: sim.probes = %d, none without a hit; the rarest %d times", len(sim.Probes()), least)
}

// A cell is what can be met, or never, and why.
type cell interface {
	comparable
	String() string
	Never() string
}

// filled: each cell that can be was seen, in as many lives as it takes; what cannot be was never
// seen. It returns of how many, in a hundred, and says it after of.
func filled[C cell](t *testing.T, of string, all []C, seen map[C]int, lives int) (part int) {
	t.Helper()
	whole, filled, least := 0, 0, 1<<30
	for _, c := range all {
		n := seen[c]
		if why := c.Never(); why != "" {
			if n > 0 {
				t.Errorf("%v was seen %d times, and should never be: %s", c, n, why)
			}
			continue
		}
		if whole, least = whole+1, min(least, n); n > 0 {
			filled++
		} else if *seeds >= lives {
			t.Errorf("nobody came to %v", c)
		}
	}
	t.Logf("%s%d of %d that can be; the rarest %d times", of, filled, whole, least)
	return 100 * filled / whole
}
