package drain

import (
	"testing"

	"macronode/core/types"
)

// TestCheckFinds: Check finds each invalid phase.
func TestCheckFinds(t *testing.T) {
	ends := map[types.Phase]bool{types.Starting: true, types.LameDuck: true, types.Draining: true, types.Aborting: true, types.Stopped: true}
	for p := range types.Phase(255) {
		d := Drain{phase: p}
		if err := d.Check(); (err == nil) != ends[p] {
			t.Errorf("%v: %v", p, err)
		}
	}
}
