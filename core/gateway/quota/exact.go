package quota

import (
	"math/bits"
	"time"

	"macronode/core/types"
)

// nanos is a point or a length of time by a rule's own measure: whole nanoseconds, and
// parts of one, of which the rule's Rate make one. What a unit costs is so a whole number
// of parts for every rule, and nothing is ever rounded: after a hundred years a rate is
// still what it says.
type nanos struct {
	ns   int64
	part uint64
}

// HashInto is h after all of e.
func (e nanos) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(e.ns)).Mix(e.part) }

func (e nanos) zero() bool { return e == nanos{} }

func (e nanos) less(than nanos) bool {
	return e.ns < than.ns || e.ns == than.ns && e.part < than.part
}

// plus is e and d, by the measure of a rate.
func (e nanos) plus(d nanos, rate uint64) nanos {
	e.ns, e.part = e.ns+d.ns, e.part+d.part
	if e.part >= rate {
		e.ns, e.part = e.ns+1, e.part-rate
	}
	return e
}

// minus is e without d, which is no more.
func (e nanos) minus(d nanos, rate uint64) nanos {
	if e.part < d.part {
		e.ns, e.part = e.ns-1, e.part+rate
	}
	return nanos{e.ns - d.ns, e.part - d.part}
}

// smaller of two.
func smaller(a, b nanos) nanos {
	if b.less(a) {
		return b
	}
	return a
}

// larger of two.
func larger(a, b nanos) nanos {
	if a.less(b) {
		return b
	}
	return a
}

// ceil is the first whole nanosecond that is not before e.
func (e nanos) ceil() time.Duration {
	if e.part > 0 {
		return time.Duration(e.ns + 1)
	}
	return time.Duration(e.ns)
}

// times is what so many units cost, at every / rate each, or most where that is more.
func times(many uint64, every time.Duration, rate uint64, most nanos) nanos {
	hi, lo := bits.Mul64(many, uint64(every))
	if hi >= rate {
		return most
	}
	ns, part := bits.Div64(hi, lo, rate)
	if ns > uint64(most.ns) {
		return most
	}
	return nanos{int64(ns), part}
}

// units is how many whole ones e pays for, at every / rate each: the other way round.
// The caller has seen that e is no more than a burst costs.
func units(e nanos, every time.Duration, rate uint64) uint64 {
	hi, lo := bits.Mul64(uint64(e.ns), rate)
	lo, carry := bits.Add64(lo, e.part, 0)
	many, _ := bits.Div64(hi+carry, lo, uint64(every))
	return many
}
