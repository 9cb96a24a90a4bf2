package charges

import (
	"math"
	"strings"
	"testing"

	"macronode/core/types"
)

// TestRequestsAreBounded: a part of the journal counts as many requests as there can have been, of each label.
func TestRequestsAreBounded(t *testing.T) {
	const a, b = "service=gateway,method=get,route=a", "service=gateway,method=get,route=b"
	j := New(Config{})
	count := func(lsn types.LSN, dimension, labels string, value uint64) {
		j.metered[lsn] = append(j.metered[lsn], Row{Dimension: dimension, Labels: labels, Value: value, Events: value})
	}
	count(3, "requests", a, 2)
	count(3, "bytes_in", a, 70)
	count(5, "requests", b, 1)
	count(8, "requests", a, 4)
	count(8, "requests", "service=wallet,method=get,route=balance", 9)
	all := Bound{Upto: math.MaxUint64, Least: 7, Most: 7}
	rest := Bound{After: 3, Upto: 8, Labels: b, Most: 1}
	for _, c := range []struct {
		bounds []Bound
		why    string // a part; empty: certified
	}{
		{[]Bound{{Upto: 4, Labels: a, Least: 2, Most: 2}, {After: 4, Upto: 9, Labels: a, Least: 4, Most: 5}, rest, all}, ""},
		{[]Bound{{Upto: 4, Labels: a, Most: 1}, {After: 4, Upto: 9, Labels: a, Most: 5}, rest}, "up to @4 count 2 requests, there were 0 to 1"},
		{[]Bound{{Upto: 4, Labels: a, Least: 3, Most: 9}, {After: 4, Upto: 9, Labels: a, Most: 5}, rest}, "up to @4 count 2 requests, there were 3 to 9"},
		{[]Bound{{Upto: 8, Labels: a, Most: 9}}, "frame @5 counts 1 requests of " + b + " without a request"},
		{[]Bound{{Upto: 7, Labels: a, Most: 9}, rest}, "frame @8 counts 4 requests of " + a + " without a request"},
		{[]Bound{{After: 3, Upto: 8, Labels: a, Most: 9}, rest}, "frame @3 counts 2 requests of " + a + " without a request"},
		{[]Bound{all}, "frame @3 counts 2 requests of " + a + " without a request"},
		{[]Bound{{Upto: 9, Labels: a, Most: 9}, rest, {Upto: 4, Least: 3, Most: 9}}, "up to @4 count 2 requests, there were 3 to 9"},
	} {
		counted, err := j.Bounded("gateway", c.bounds)
		if c.why == "" && (err != nil || counted != 7) || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%+v: %d %v, want %q", c.bounds, counted, err, c.why)
		}
	}
}
