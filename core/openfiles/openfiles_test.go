package openfiles_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/openfiles"
)

// TestShares: a table of shares that are computed by hand.
func TestShares(t *testing.T) {
	public, admin := openfiles.Use{Most: 8192, Least: 64, Each: 1}, openfiles.Use{Most: 256, Least: 16, Each: 2}
	for name, c := range map[string]struct {
		limit uint64
		own   int
		uses  []openfiles.Use
		want  []int // nil: it is too low
	}{
		"all that is needed":        {8704 + 700, 700, []openfiles.Use{public, admin}, []int{8192, 256}},
		"no limit":                  {math.MaxUint64, 700, []openfiles.Use{public, admin}, []int{8192, 256}},
		"one file less":             {8704 + 699, 700, []openfiles.Use{public, admin}, []int{8191, 255}},
		"half of the rest":          {700 + 96 + 4304, 700, []openfiles.Use{public, admin}, []int{64 + 4064, 16 + 120}},
		"the least":                 {700 + 96, 700, []openfiles.Use{public, admin}, []int{64, 16}},
		"less than that":            {700 + 95, 700, []openfiles.Use{public, admin}, nil},
		"only the node":             {700, 700, nil, []int{}},
		"a use that is not there":   {1000, 700, []openfiles.Use{public, {Most: 256, Least: 16}}, []int{64 + 8128*236/8128, 16 + 240*236/8128}},
		"a use that is small":       {1000, 700, []openfiles.Use{public, {Most: 8, Least: 8, Each: 2}}, []int{64 + 220, 8}},
		"two listeners of one kind": {1000, 700, []openfiles.Use{{Most: 8192, Least: 64, Each: 2}}, []int{150}},
	} {
		units, ok := openfiles.Share(c.limit, c.own, c.uses...)
		if ok != (c.want != nil) || ok && !slices.Equal(units, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, units, ok, c.want)
		}
	}
}

// TestSharesFit: whatever the limit, the shares fit, each is between the least and the most, and no file is left that a use could have:
// what is left is less than one unit of each use that has not all. A higher limit takes nothing away. Above Required there are shares, and
// at Needed and above all that was wanted.
func TestSharesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.IntRange(0, 5000).Draw(t, "own")
		uses := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) openfiles.Use {
			most := rapid.IntRange(0, 70_000).Draw(t, "most")
			return openfiles.Use{Most: most, Least: rapid.IntRange(0, min(most, 100)).Draw(t, "least"), Each: rapid.IntRange(0, 16).Draw(t, "each")}
		}), 0, 6).Draw(t, "uses")
		most, least := uint64(own), uint64(own)
		for _, u := range uses {
			most += uint64(u.Most * u.Each)
			least += uint64(u.Least * u.Each)
		}
		limit := rapid.Uint64Range(0, most+10).Draw(t, "limit")
		units, ok := openfiles.Share(limit, own, uses...)
		if ok != (limit >= least) || least != openfiles.Required(own, uses...) || most != openfiles.Needed(own, uses...) {
			t.Fatalf("%d of %d: %v", limit, least, ok)
		}
		if !ok {
			return
		}
		more, _ := openfiles.Share(limit+1, own, uses...)
		used, spare := uint64(own), uint64(0)
		for i, u := range uses {
			if units[i] < u.Least || units[i] > u.Most || units[i] > more[i] || limit >= most && units[i] != u.Most {
				t.Fatalf("%+v gets %d of %d, and %d of one more", u, units[i], limit, more[i])
			}
			if used += uint64(units[i] * u.Each); units[i] < u.Most {
				spare += uint64(u.Each)
			}
		}
		if used > limit || limit < most && limit-used > spare {
			t.Fatalf("%d of %d are used, with room for %d", used, limit, spare)
		}
	})
}

// TestSharesAreEqual: of two uses that are configured alike, none gets more.
func TestSharesAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(64, 70_000).Draw(t, "most")
		u := openfiles.Use{Most: most, Least: 64, Each: 1}
		limit := rapid.Uint64Range(128, uint64(2*most)).Draw(t, "limit")
		if units, ok := openfiles.Share(limit, 0, u, u); !ok || units[0] != units[1] || units[0] != int(min(limit/2, uint64(most))) {
			t.Fatalf("%d: %v", limit, units)
		}
	})
}
