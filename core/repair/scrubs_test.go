package repair_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/repair"
	model "macronode/models/repair"
)

// TestScrubsAgreeWithModel: a request gets the number of the first scrub that begins after it, and that scrub has what was found since.
func TestScrubsAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, h := repair.Scrubs{}, model.ScrubHistory(nil)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if s.IsWanted() != h.IsWanted() {
					t.Fatalf("wanted %v after %v", s.IsWanted(), h)
				}
			},
			"request": func(t *rapid.T) {
				h = append(h, model.ScrubRequested)
				if got := s.Request(); got != h.Next() {
					t.Fatalf("number %d, want %d after %v", got, h.Next(), h)
				}
			},
			"begin": func(t *rapid.T) {
				if h.Runs() {
					t.Skip()
				}
				if got := s.Begin(); got != h.Found() {
					t.Fatalf("%d found, want %d after %v", got, h.Found(), h)
				}
				h = append(h, model.ScrubBegins)
			},
			"find": func(t *rapid.T) {
				if !h.Runs() {
					t.Skip()
				}
				s.Found()
				h = append(h, model.ScrubFinds)
			},
			"end": func(t *rapid.T) {
				if !h.Runs() {
					t.Skip()
				}
				if got := s.End(); got != h.Next()-1 {
					t.Fatalf("scrub %d ends, want %d", got, h.Next()-1)
				}
				h = append(h, model.ScrubEnds)
			},
		})
	})
}
