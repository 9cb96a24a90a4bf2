package settings

import "testing"

// TestPlanesAreDescribed checks the descriptions of this program. With the tag examples it has those of examples too.
func TestPlanesAreDescribed(t *testing.T) {
	seen := map[any]bool{}
	for _, d := range Planes() {
		if err := d.Check(); err != nil || seen[d.ID] {
			t.Errorf("%v, described before: %v", err, seen[d.ID])
		}
		seen[d.ID] = true
	}
}
