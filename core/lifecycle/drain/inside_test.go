package drain

import (
	"testing"

	"macronode/core/types"
)

// TestCheckSees: every phase that is none of an end's.
func TestCheckSees(t *testing.T) {
	ends := map[types.Phase]bool{types.Starting: true, types.LameDuck: true, types.Draining: true, types.Aborting: true, types.Stopped: true}
	for p := range types.Phase(255) {
		d := Drain{phase: p}
		if err := d.Check(); (err == nil) != ends[p] {
			t.Errorf("%v: %v", p, err)
		}
	}
}
