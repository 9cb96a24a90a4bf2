package sim

import "testing"

// TestSlicesAreChargedOnce plays runs whose slices are charged, and requires that what matters occurred.
func TestSlicesAreChargedOnce(t *testing.T) {
	saw, runs := map[string]int{}, 0
	for seed := uint64(1); runs < 80; seed++ {
		if usageOdds(seed) == 0 || prepaidOdds(seed) == 1 || chargeOdds(seed) == 0 {
			continue
		}
		runs++
		w := New(Choices(seed, 400))
		if err := w.Run(); err != nil {
			t.Fatalf("go test ./chaos/sim -run TestRun -seed %d: %v", seed, err)
		}
		for what, n := range w.Saw {
			saw[what] += n
		}
	}
	for _, what := range [...]string{"charge: a slice is charged", "charge: several slices are charged", "charge: a slice makes the usage before it cheaper", "charge: there is too little money",
		"charge: the command charges again what was acknowledged", "charge: the command charges again, and the outcome was unknown", "a correction is sealed"} {
		if saw[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
}
