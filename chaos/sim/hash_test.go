package sim

import (
	"flag"
	"runtime"
	"testing"

	"macronode/chaos/world"
	"macronode/core/types"
)

var twice = flag.Int("twice", 60, "number of runs that are played twice")

// watching mixes the whole world into h at every choice: every change happens between two of
// them.
type watching struct {
	world.Chooser
	w     *World
	h     types.Hash64
	asked int
}

func (c *watching) Choose(site string, n int) int {
	got := c.Chooser.Choose(site, n)
	c.asked++
	for _, b := range []byte(site) {
		c.h = c.h.Mix(uint64(b))
	}
	c.h = c.h.Mix(uint64(n)).Mix(uint64(got))
	if w := c.w; w != nil && w.node != nil {
		c.h = c.h.Mix(uint64(w.node.Hash())).Mix(uint64(w.fol.Hash())).Mix(uint64(w.index.mark)).Mix(uint64(w.disk.Ops)).Mix(uint64(w.now.Mono)).Mix(uint64(w.now.Wall))
		if w.storage != nil && w.storage.files != nil {
			for _, p := range w.storage.files.ports {
				c.h = c.h.Mix(uint64(p.disk.Ops)).Mix(uint64(p.harms))
			}
		}
	}
	return got
}

func hashed(t *testing.T, seed uint64) (types.Hash64, int) {
	t.Helper()
	c := &watching{Chooser: Choices(seed, 300)}
	if seed%6 == 5 { // uploads sync their copies in goroutines
		c.Chooser = world.Given(world.Given(world.Given(world.Given(c.Chooser, "odds/usage", 0), "odds/counter", 0), "odds/storage", storageFree), "odds/files", 2+int(seed/6%2))
		c.Chooser = world.Given(c.Chooser, "odds/shards", int(seed/12%4))
	}
	c.w = New(c)
	if err := c.w.Run(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return c.h, c.asked
}

// TestSeedIsDeterministic: a seed gives the same run, step by step, independent of processors and
// memory addresses.
func TestSeedIsDeterministic(t *testing.T) {
	for seed := range uint64(*twice) {
		was, asked := hashed(t, seed)
		runtime.GC()
		before := runtime.GOMAXPROCS(1 + int(seed%2))
		is, again := hashed(t, seed)
		if runtime.GOMAXPROCS(before); was != is || asked != again || asked < 300 {
			t.Fatalf("seed %d: %d choices to %x, then %d to %x", seed, asked, was, again, is)
		}
	}
}
