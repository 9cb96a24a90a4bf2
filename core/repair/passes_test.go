package repair_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/repair"
	model "macronode/models/repair"
)

// TestPassesAgreeWithModel: a rebalance ends when nothing is left, or when the last passes have moved nothing.
func TestPassesAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, moved, history := repair.Passes{}, uint64(0), []uint64(nil)
		for again := true; again && len(history) < 20; {
			of := rapid.SampledFrom([]uint64{0, 0, 0, 1, 5}).Draw(t, "moved")
			left := rapid.SampledFrom([]uint64{0, 1, 1, 1, 7}).Draw(t, "left")
			moved, history = moved+of, append(history, of)
			again = p.Again(moved, left)
			if want := left > 0 && !model.IsStuck(history, repair.MaxIdlePasses); again != want {
				t.Fatalf("after %v with %d left: %v, want %v", history, left, again, want)
			}
		}
	})
}
