package drain

import (
	"testing"

	"macronode/core/words"
)

// TestCheckSees: every phase that is none of an end's.
func TestCheckSees(t *testing.T) {
	ends := map[words.Phase]bool{words.Starting: true, words.LameDuck: true, words.Draining: true, words.Aborting: true, words.Stopped: true}
	for p := range words.Phase(255) {
		d := Drain{phase: p}
		if err := d.Check(); (err == nil) != ends[p] {
			t.Errorf("%v: %v", p, err)
		}
	}
}
