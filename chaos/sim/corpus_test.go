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

// TestCorpus plays logs that failed in the past, with a mutant or before a bug was fixed: none
// may fail now. That a mutant's log fails with the mutant is tested in chaos/mutants, which also
// makes the logs. A log that diverges is from another version: that is logged, and the run is
// played with world.Loose. It must still keep every rule; what it was stored for may no longer
// happen, so only logs without a mutant may stay so.
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
		err = New(Replay(l)).Run()
		var d world.Diverged
		if errors.As(err, &d) {
			strayed++
			t.Logf("%s: %v", filepath.Base(name), d)
			err = New(world.Loose(l, Steps()...)).Run()
		}
		if err != nil {
			t.Errorf("%s fails: %v\ngo run ./cmd/simulate -timeline chaos/sim/%s -o run.svg", name, err, name)
		}
	}
	if strayed > 0 {
		t.Logf("%d logs of %d have diverged, and are played loosely. Make them again: go test ./chaos/mutants -mutants -run Corpus -again", strayed, len(names))
	}
}

// TestCorpusLogsAreSmall: each log has a line that describes it, and few choices other than 0.
func TestCorpusLogsAreSmall(t *testing.T) {
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
	t.Logf("evidence: sim.shrunk = %d, over %d logs; the maximum is %d", left[len(left)/2], len(left), left[len(left)-1])
}
