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

// Add counts one duration; a negative one counts as nothing.
func (h *Hist) Add(d time.Duration) {
	d = max(d, 0)
	h.buckets[place(uint64(d))]++
	h.count++
	h.max = max(h.max, d)
}

// Merge adds what o has counted.
func (h *Hist) Merge(o *Hist) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
	h.max = max(h.max, o.max)
}

// Count is how many were added.
func (h *Hist) Count() uint64 { return h.count }

// Max is the longest.
func (h *Hist) Max() time.Duration { return h.max }

// Quantile is the middle of the bucket below which the share q of all lies; of
// nothing it is nothing.
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

// place is v itself below sub; above, the six bits after the first one.
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
