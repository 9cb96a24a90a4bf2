package sample_test

import (
	"testing"
	"time"

	"macronode/ci/bench/sample"
)

func rates(of ...uint64) (s sample.Series) {
	for _, n := range of {
		s = append(s, sample.Sample{Counted: n, Took: 2 * time.Second, CPU: time.Second, Over: n})
	}
	return s
}

// TestRatioIsPerRound: a slow round of both changes nothing; the median of an even number is
// between the middle two.
func TestRatioIsPerRound(t *testing.T) {
	ours, theirs := rates(600, 60, 400), rates(100, 10, 100)
	if got := ours.Ratio(theirs, sample.Rate); got != (sample.Spread{Least: 4, Median: 6, Most: 6}) {
		t.Errorf("ratio %+v", got)
	}
	if got := rates(600, 200, 400, 100).Spread(sample.Rate); got != (sample.Spread{Least: 50, Median: 150, Most: 300}) {
		t.Errorf("spread %+v", got)
	}
	if got := rates(1000).Spread(sample.CPU); got.Median != 1000 {
		t.Errorf("CPU %+v", got)
	}
	if got := ours.Ratio(nil, sample.Rate); got != (sample.Spread{}) {
		t.Errorf("a ratio to an empty series is %+v", got)
	}
}
