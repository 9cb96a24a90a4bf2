package graph

import (
	"maps"
	"slices"
	"testing"
)

// GraphSizes are the constants of specs/admission/graph.cfg.
var GraphSizes = AdmissionSizes{Class: [3]int{0, 1, 1}, Flow: [3]int{0, 0, 1}, Facet: [3]int{0, 1, 1}, Slots: []int{0, 1, 1},
	Permits: [2]int{1, 1}, Bound: [2]int{1, 1}, Quota: [2]int{2, 1}, Total: 2, Share: 1, Burst: 1, Asks: 2, Faults: 2}

// A bug is an action with a wrong condition or effect.
type bug struct {
	action string
	before func(s *AdmissionState)
	after  func(s, to *AdmissionState)
}

// by returns a bug of an action with other constants.
func by(action string, change func(*AdmissionSizes)) bug {
	return bug{action, func(s *AdmissionState) {
		z := *s.of
		change(&z)
		s.of = &z
	}, func(_, _ *AdmissionState) {}}
}

// ends returns a bug in the effect on rows that were in a state.
func ends(action, was string, change func(to *AdmissionState, i int)) bug {
	return bug{action, func(*AdmissionState) {}, func(s, to *AdmissionState) {
		for i := range s.row {
			if s.row[i].at == was && to.row[i].at == "free" {
				change(to, i)
			}
		}
	}}
}

// frees frees a slot as soon as its caller has left.
func frees(s, to *AdmissionState) {
	for c, v := range s.caller {
		if to.caller[c].pc != v.pc {
			to.caller[c], to.free[v.slot-1] = visitor{pc: "out"}, true
		}
	}
}

// bugs are those of MCAdmission by name, and others.
func bugs() map[string]bug {
	nothing := func(*AdmissionState) {}
	return map[string]bug{
		"noBoundOfClass": by("Decide", func(z *AdmissionSizes) { z.Bound = [2]int{9, 9} }),
		"noShare":        by("Decide", func(z *AdmissionSizes) { z.Share = 9 }),
		"noQuota":        by("Decide", func(z *AdmissionSizes) { z.Quota = [2]int{9, 9} }),
		"believesClaims": by("Decide", func(z *AdmissionSizes) { z.Flow = [3]int{} }),
		"oneFacet":       by("Dispatch", func(z *AdmissionSizes) { z.Facet = [3]int{} }),
		"neverClosed":    {"Decide", func(s *AdmissionState) { s.phase = "serving" }, func(s, to *AdmissionState) { to.phase = s.phase }},
		"noPermit": {"Dispatch", func(s *AdmissionState) { s.avail[0], s.avail[1] = s.avail[0]+9, s.avail[1]+9 }, func(_, to *AdmissionState) {
			to.avail[0], to.avail[1] = to.avail[0]-9, to.avail[1]-9
		}},
		"noToken":     {"Dispatch", func(s *AdmissionState) { s.tokens += 9 }, func(_, to *AdmissionState) { to.tokens -= 9 }},
		"keepsCharge": ends("Late", "queued", func(to *AdmissionState, i int) { to.used[to.of.Flow[to.row[i].caller]]++ }),
		"givesTwice":  ends("Settle", "lost", func(to *AdmissionState, i int) { to.avail[to.of.Facet[to.row[i].caller]]++ }),
		"staysQueued": ends("Settle", "queued", func(to *AdmissionState, i int) { to.row[i].at = "queued" }),
		"anyUse": {"Settle", func(s *AdmissionState) {
			if len(s.words) == 1 {
				s.row[s.words[0].ticket.slot-1].gen = s.words[0].ticket.gen
			}
		}, func(s, to *AdmissionState) {
			for i := range s.row {
				to.row[i].gen = s.row[i].gen
			}
		}},
		"olderWins": {"Settle", func(s *AdmissionState) {
			for i := range s.row {
				s.row[i].left = 0
			}
		}, func(s, to *AdmissionState) {
			for i := range s.row {
				if to.row[i].left == 0 {
					to.row[i].left = s.row[i].left
				}
			}
		}},
		"forgetsEarly": {"Settle", nothing, func(s, to *AdmissionState) {
			for i := range s.row {
				to.row[i].left = s.row[i].left
			}
		}},
		"freesAtOnce": {"Leave", nothing, frees},
	}
}

// TestConstantsRevealEveryBug: each bug of MCAdmission makes a step that Admission does not have,
// from a state of the compared graph: its constants hide no decision. neverTakesBack lacks the
// step Reclaim.
func TestConstantsRevealEveryBug(t *testing.T) {
	spec, hidden := Admission(GraphSizes), bugs()
	known := map[string]bool{spec.Init.String(): true}
	for left := []*AdmissionState{spec.Init}; len(left) > 0 && len(hidden) > 0; left = left[1:] {
		s, right := left[0], map[string]bool{}
		spec.Next(s, func(action string, to *AdmissionState) {
			text := to.String()
			if right[action+text] = true; !known[text] {
				known[text] = true
				left = append(left, to)
			}
		})
		maps.DeleteFunc(hidden, func(_ string, b bug) (seen bool) {
			from := s.copied()
			b.before(from)
			spec.Next(from, func(action string, to *AdmissionState) {
				if action == b.action && !seen {
					wrong := to.copied()
					b.after(s, wrong)
					seen = !right[action+wrong.String()]
				}
			})
			return seen
		})
	}
	if len(hidden) > 0 {
		t.Errorf("%v: no step of the graph would be another", slices.Sorted(maps.Keys(hidden)))
	}
}
