package sim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"macronode/chaos/world"
)

// TestCorpus: what once failed, with a mutant in the house or before it was mended, does
// not fail. That a log of a mutant fails with it on is chaos/mutants' TestCorpus, which also
// makes it again. A log that diverges is of another version of the house: that is said, and its
// life is played as far as it goes, dull where the log has nothing to say. Such a life is a
// lawful one all the same, of choices that each could be: so no rule may break in it. What it
// was kept for it need not meet any more, which is why only what has no mutant may stay so.
func TestCorpus(t *testing.T) {
	names, err := filepath.Glob("testdata/corpus/*.log")
	if err != nil || len(names) < 30 {
		t.Fatalf("%d logs, %v", len(names), err)
	}
	strayed := 0
	for _, name := range names {
		l, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		err = New(world.Replay(l)).Run()
		var d world.Diverged
		if errors.As(err, &d) {
			strayed++
			t.Logf("%s: %v", filepath.Base(name), d)
			err = New(world.Loose(l, Steps()...)).Run()
		}
		if err != nil {
			t.Errorf("%s fails: %v\ngo run ./cmd/simulate -timeline chaos/sim/%s -o life.svg", name, err, name)
		}
	}
	if strayed > 0 {
		t.Logf("%d logs of %d have diverged, and are played loosely. Make them again: go test ./chaos/mutants -mutants -run Corpus -again", strayed, len(names))
	}
}

// TestCorpusIsSmall: each log has a line that says what it is of, and few surprises.
func TestCorpusIsSmall(t *testing.T) {
	names, _ := filepath.Glob("testdata/corpus/*.log")
	var left []int
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s does not say what it is of: %v", name, err)
		}
		l, err := Load(name)
		if err != nil || l.Surprises() > 80 {
			t.Errorf("%s has %d surprises, %v", name, l.Surprises(), err)
		}
		left = append(left, l.Surprises())
	}
	slices.Sort(left)
	t.Logf("evidence: sim.shrunk = %d of %d logs; %d at most", left[len(left)/2], len(left), left[len(left)-1])
}
