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
	seeds = flag.Int("seeds", 1500, "number of runs")
	base  = flag.Uint64("base", 0, "the seeds are those behind this one")
	seed  = flag.Int("seed", 0, "only this one")
	moves = flag.Int("moves", 500, "moves of each run")
)

// enough runs reach every cell: ten times the average number that the rarest needs.
const enough = 20_000

// gateEnough runs reach every cell of the gate.
const gateEnough = enough / 4

// extra bounds how often TestSeeds plays its number of seeds again until it saw what it must see.
const extra = 8

// kept writes the shrunk log of a failing seed, and returns the command that repeats it.
func kept(t *testing.T, seed uint64) string {
	t.Helper()
	l, err := sim.Recorded(sim.Choices(seed, *moves))
	small, rule, _ := sim.Shrink(l, 2000)
	if rule != sim.Rule(err) {
		t.Logf("the seed fails with %s, its log with %s", sim.Rule(err), rule)
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("macronode-run-%d.log", seed))
	if err := sim.Save(name, small, fmt.Sprintf("seed %d, %d moves", seed, *moves), rule); err != nil {
		return fmt.Sprintf("%v\ngo run ./cmd/simulate -moves %d -seed %d", err, *moves, seed)
	}
	return fmt.Sprintf("go run ./cmd/simulate -replay %s   # %d choices, %d not dull; all of it: -moves %d -seed %d", name, len(small), small.Surprises(), *moves, seed)
}

// play runs seeds on all processors. It ends the test with the first failure.
func play(t *testing.T, from, to uint64) (saw map[string]int, cells map[sim.Cell]int, gated map[sim.GateCell]int, steps int) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a world is small: the collector would run all the time
	saw, cells, gated = map[string]int{}, map[sim.Cell]int{}, map[sim.GateCell]int{}
	var next, failed atomic.Uint64
	next.Store(from)
	failed.Store(to + 1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := next.Add(1) - 1; s < failed.Load(); s = next.Add(1) - 1 {
				w := sim.New(sim.Choices(s, *moves))
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
		t.Fatalf("%v\n%s", sim.New(sim.Choices(failed.Load(), *moves)).Run(), kept(t, failed.Load()))
	}
	return saw, cells, gated, steps
}

// TestSeeds: whatever the disk, the clock, the clients and the power do, no acknowledged request
// is lost and no answer changes; and the difficult situations occurred.
func TestSeeds(t *testing.T) {
	from, to := *base+1, *base+uint64(*seeds)
	if *seed > 0 {
		from, to = uint64(*seed), uint64(*seed)
	}
	t.Logf("seeds %d to %d; again with: go test ./chaos/sim -run TestSeeds -base %d -seeds %d", from, to, *base, *seeds)
	saw, cells, gated, steps := play(t, from, to)
	if *seed > 0 {
		t.Logf("saw %v", saw)
		return
	}
	// What is rare may not occur in the first runs. More runs follow until all of it did: only what
	// never occurs in many times as many runs is missing.
	for n := 1; n <= extra && len(missing(saw, cells, gated)) > 0; n++ {
		t.Logf("more runs, until these occur: %s", strings.Join(missing(saw, cells, gated), "; "))
		more, moreCells, moreGated, moreSteps := play(t, to+1, to+uint64(*seeds))
		to += uint64(*seeds)
		add(saw, more)
		add(cells, moreCells)
		add(gated, moreGated)
		steps += moreSteps
	}
	var all []string
	for what, n := range saw {
		all = append(all, fmt.Sprintf("%s %d", what, n))
	}
	sort.Strings(all)
	t.Logf("saw %s", strings.Join(all, ", "))
	least := 1 << 30
	for _, p := range sim.Probes() {
		least = min(least, saw[p.Saw])
		if saw[p.Saw] == 0 && demanded(p) {
			t.Errorf("never saw %q, which shows that %q matters", p.Saw, p.Fault)
		}
	}
	// The cells are complete: every operation had every possible problem, in every class. Runs
	// aim at one cell after another: see goal. And every class used every facet with every
	// possible decision.
	if part := filled(t, "evidence: sim.cells = ", sim.Cells(), cells, enough); part < 50 {
		t.Errorf("%d of a hundred cells are filled: less than half", part)
	}
	filled(t, "evidence: sim.admission = ", sim.GateCells(), gated, gateEnough)
	faults := map[string]bool{}
	for _, p := range sim.Probes() {
		faults[p.Fault] = true
	}
	t.Logf("evidence: sim.runs = %d, with seeds after %d", to-from+1, *base)
	t.Logf("evidence: trace.steps = all %d", steps)
	t.Logf("evidence: sim.faults = %d, each with an effect", len(faults))
	t.Logf("evidence: sim.probes = %d, each hit at least %d times", len(sim.Probes()), least)
}

// demanded reports whether so many runs must see p.
func demanded(p sim.Probe) bool { return !p.Rare() || *seeds >= enough }

// missing returns what the runs must see and did not.
func missing(saw map[string]int, cells map[sim.Cell]int, gated map[sim.GateCell]int) (all []string) {
	for _, p := range sim.Probes() {
		if saw[p.Saw] == 0 && demanded(p) {
			all = append(all, p.Saw)
		}
	}
	all = append(all, empty(sim.Cells(), cells, enough)...)
	return append(all, empty(sim.GateCells(), gated, gateEnough)...)
}

// empty returns the cells that that many runs must reach, and that these did not.
func empty[C cell](all []C, seen map[C]int, runs int) (names []string) {
	for _, c := range all {
		if c.Never() == "" && !c.Rare() && seen[c] == 0 && *seeds >= runs {
			names = append(names, c.String())
		}
	}
	return names
}

func add[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

// A cell is a combination that can occur, or that cannot, and why.
type cell interface {
	comparable
	String() string
	Never() string
	Rare() bool
}

// filled checks that each reachable cell occurred, in as many runs as that takes, and no
// unreachable one. It returns the percentage, and logs it after of.
func filled[C cell](t *testing.T, of string, all []C, seen map[C]int, runs int) (part int) {
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
		if c.Rare() {
			continue
		}
		if whole, least = whole+1, min(least, n); n > 0 {
			filled++
		} else if *seeds >= runs {
			t.Errorf("%v never occurred", c)
		}
	}
	t.Logf("%s%d of the %d possible cells; the rarest occurred %d times", of, filled, whole, least)
	return 100 * filled / whole
}
