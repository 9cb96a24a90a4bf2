package repair_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/repair"
	model "macronode/models/repair"
)

// TestLostAgreesWithModel finds objects lost, clears them and scrubs in any order: what is found is kept as long as there is room, else it is
// counted once, until a scrub that began later has ended.
func TestLostAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		l, want := repair.NewLost(limit), &model.Lost{Limit: limit}
		file := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(1, 8).Draw(t, "file") * rapid.SampledFrom([]uint64{1, 64, 1000}).Draw(t, "apart")
		})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				kept, others := want.Kept()
				var got []uint64
				for _, o := range l.Kept() {
					if got = append(got, o.File); o.Size != 10*o.File || !l.Has(o.File) {
						t.Fatalf("%+v is kept, and is there: %v", o, l.Has(o.File))
					}
				}
				if !slices.Equal(got, kept) || l.Others() != len(others) || l.Count() != len(kept)+len(others) {
					t.Fatalf("%v are kept and %d others, %d in all; want %v and %v", got, l.Others(), l.Count(), kept, others)
				}
			},
			"find": func(t *rapid.T) {
				f := file.Draw(t, "found")
				l.Find(repair.LostObject{File: f, Size: 10 * f})
				want.Find(f)
			},
			"clear": func(t *rapid.T) {
				f := file.Draw(t, "cleared")
				l.Clear(f)
				want.Clear(f)
			},
			"retain": func(t *rapid.T) {
				deleted := rapid.SliceOfN(file, 0, 3).Draw(t, "deleted")
				l.Retain(func(o repair.LostObject) bool { return !slices.Contains(deleted, o.File) })
				for _, f := range deleted {
					want.Clear(f)
				}
			},
			"begin scrub": func(*rapid.T) { l.BeginScrub(); want.BeginScrub() },
			"end scrub":   func(*rapid.T) { l.EndScrub(); want.EndScrub() },
		})
	})
}

// TestOtherLostObjectsAreCounted: two objects whose numbers share a bit count as one, so the count is never too high.
func TestOtherLostObjectsAreCounted(t *testing.T) {
	l := repair.NewLost(1)
	for _, file := range []uint64{1, 2, 2 + 1<<16, 3} {
		l.Find(repair.LostObject{File: file})
	}
	if l.Others() != 2 || l.Count() != 3 {
		t.Errorf("%d others, %d in all", l.Others(), l.Count())
	}
}
