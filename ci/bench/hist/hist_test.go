package hist_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"macronode/ci/bench/hist"
)

// TestQuantile: the result is within 1/64 of that of a sorted list.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h hist.Hist
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(r.Uint64N(1 << r.Uint64N(40)))
		h.Add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		want, got := all[int(q*float64(len(all)-1))], h.Quantile(q)
		if off := (got - want).Abs(); off > want/64 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if h.Max() != all[len(all)-1] || h.Count() != uint64(len(all)) {
		t.Errorf("max %v of %d, want %v of %d", h.Max(), h.Count(), all[len(all)-1], len(all))
	}
}

// TestMerge: two halves equal the whole, and the longest duration has a bucket.
func TestMerge(t *testing.T) {
	var a, b, whole hist.Hist
	for i := range 1000 {
		d := time.Duration(i * i)
		whole.Add(d)
		if i%2 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	if a != whole {
		t.Error("two halves are not the whole")
	}
	a.Add(1<<63 - 1)
	if a.Quantile(1) > a.Max() || a.Max() != 1<<63-1 {
		t.Errorf("the longest is %v", a.Quantile(1))
	}
	var one hist.Hist
	if one.Add(1000); one.Quantile(0) < 990 || one.Quantile(0) > 1000 {
		t.Errorf("the least of one is %v", one.Quantile(0))
	}
	if (&hist.Hist{}).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
