package explore

import (
	"strings"
	"testing"
)

// exportScopes are the scopes of exports.
func exportScopes() []struct {
	name string
	plan ExportsPlan
	want []exportsSight
} {
	return []struct {
		name string
		plan ExportsPlan
		want []exportsSight
	}{
		{"a stream and a network that loses", ExportsPlan{positions: [exportsLanes]uint8{3}, rows: 1, powers: 1, losses: 2, delays: 1, waits: 9},
			[]exportsSight{exportsTwice, exportsLate, exportsLost, exportsTail, exportsMany}},
		{"a position that is rejected", ExportsPlan{positions: [exportsLanes]uint8{3}, bad: [exportsLanes]uint8{bit(2)}, rows: 1, powers: 1, losses: 1, redrives: 1, busy: 1, waits: 9},
			[]exportsSight{exportsTwice, exportsQuarantined, exportsResolved, exportsLost, exportsTail, exportsBusy}},
		{"two streams and a full quarantine", ExportsPlan{positions: [exportsLanes]uint8{2, 1}, bad: [exportsLanes]uint8{bit(1), bit(1)}, rows: 1, powers: 1, redrives: 1, waits: 3},
			[]exportsSight{exportsQuarantined, exportsResolved, exportsFull, exportsLost, exportsTail}},
	}
}

// TestExportScopes: every schedule of exports keeps every rule, and ends.
func TestExportScopes(t *testing.T) {
	var sum explored
	for _, s := range exportScopes() {
		if !strings.Contains(s.name, *only) {
			continue
		}
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			w := OpenExports(s.plan)
			if w.h.err != nil {
				t.Fatal(w.h.err)
			}
			r := Run(w, Scope{Name: s.name, Room: 1 << 22})
			t.Logf("%v; %v", r, w.h.Saw)
			checkScope(t, r, s.want, func(one exportsSight) uint64 { return w.h.Saw[one] })
			sum.add(r)
		})
	}
	t.Logf("evidence: explore.exports = %d scopes, each whole, %d transitions", sum.scopes, sum.transitions)
}
