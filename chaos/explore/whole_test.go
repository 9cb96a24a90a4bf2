package explore

import "testing"

// explored counts the scopes of a test, and their transitions.
type explored struct {
	scopes      int
	transitions uint64
}

func (e *explored) add(r Report) {
	e.scopes++
	e.transitions += r.Transitions
}

// checkScope requires that a scope was explored to its end without a finding, and that all of want was seen in it.
func checkScope[S any](t *testing.T, r Report, want []S, saw func(S) uint64) {
	t.Helper()
	if r.Found != nil {
		t.Fatalf("%s\n%v", r.Name, r.Found)
	}
	if !r.Whole {
		t.Fatal("incomplete: the table of states is full")
	}
	for _, one := range want {
		if saw(one) == 0 {
			t.Errorf("never seen: %v", one)
		}
	}
}
