// Package hist counts durations in buckets that are at most 1/64 of their value wide.
package hist

import (
	"math/bits"
	"time"
)

const sub = 64 // buckets between two powers of two

// Hist is a histogram; its zero value is empty.
type Hist struct {
	buckets [(64 - 5) * sub]uint64
	count   uint64
	max     time.Duration
}

// Add counts a duration; a negative one counts as 0.
func (h *Hist) Add(d time.Duration) {
	d = max(d, 0)
	h.buckets[place(uint64(d))]++
	h.count++
	h.max = max(h.max, d)
}

// Merge adds the counts of o.
func (h *Hist) Merge(o *Hist) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
	h.max = max(h.max, o.max)
}

// Count returns the number of durations.
func (h *Hist) Count() uint64 { return h.count }

// Max returns the longest.
func (h *Hist) Max() time.Duration { return h.max }

// Quantile returns the middle of the bucket at the share q; 0 if the histogram is empty.
func (h *Hist) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	want, seen := uint64(q*float64(h.count-1)), uint64(0)
	for i, n := range h.buckets {
		if seen += n; seen > want {
			return min(middle(i), h.max)
		}
	}
	return h.max
}

// place returns the bucket of v: v itself below sub; above, by the six bits after the first one.
func place(v uint64) int {
	if v < sub {
		return int(v)
	}
	shift := bits.Len64(v) - 7 // v>>shift is in [64, 128)
	return shift*sub + int(v>>shift)
}

func middle(at int) time.Duration {
	if at < 2*sub {
		return time.Duration(at)
	}
	shift := at/sub - 1
	low := uint64(at%sub+sub) << shift
	return time.Duration(low + 1<<shift/2)
}
