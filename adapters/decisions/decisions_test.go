package decisions_test

import (
	"fmt"
	"testing"

	"macronode/adapters/decisions"
)

// TestRingKeepsMostRecent checks that the ring keeps the most recent decisions, and that Find
// returns the latest one of an ID.
func TestRingKeepsMostRecent(t *testing.T) {
	r := decisions.New()
	if _, ok := r.Find("d_0"); ok {
		t.Error("an empty ring has a decision")
	}
	for i := range decisions.Room + 10 {
		r.Keep(decisions.Decision{ID: fmt.Sprintf("d_%d", i), Status: i})
	}
	r.Keep(decisions.Decision{ID: "d_50", Status: 1})
	for id, want := range map[string]bool{"d_10": false, "d_11": true, "d_50": true, fmt.Sprintf("d_%d", decisions.Room+9): true} {
		if d, ok := r.Find(id); ok != want || ok && d.ID != id {
			t.Errorf("%s: %v %+v", id, ok, d)
		}
	}
	if d, _ := r.Find("d_50"); d.Status != 1 {
		t.Errorf("%+v", d)
	}
	if depth, limit := r.Kept(); depth != decisions.Room || limit != decisions.Room {
		t.Errorf("%d of %d", depth, limit)
	}
}
