package quota

import (
	"math/bits"
	"time"

	"macronode/core/types"
)

// nanos is a point or a length of time in the measure of a rule: whole nanoseconds, and parts of
// one. The rule's Rate parts are one nanosecond. So the cost of a unit is a whole number of parts
// for every rule, and nothing is rounded: a rate is exact for a century.
type nanos struct {
	ns   int64
	part uint64
}

// HashInto mixes e into h.
func (e nanos) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(e.ns)).Mix(e.part) }

func (e nanos) zero() bool { return e == nanos{} }

func (e nanos) less(than nanos) bool {
	return e.ns < than.ns || e.ns == than.ns && e.part < than.part
}

// plus returns e + d in the measure of a rate.
func (e nanos) plus(d nanos, rate uint64) nanos {
	e.ns, e.part = e.ns+d.ns, e.part+d.part
	if e.part >= rate {
		e.ns, e.part = e.ns+1, e.part-rate
	}
	return e
}

// minus returns e - d. d is at most e.
func (e nanos) minus(d nanos, rate uint64) nanos {
	if e.part < d.part {
		e.ns, e.part = e.ns-1, e.part+rate
	}
	return nanos{e.ns - d.ns, e.part - d.part}
}

// smaller returns the smaller of two.
func smaller(a, b nanos) nanos {
	if b.less(a) {
		return b
	}
	return a
}

// larger returns the larger of two.
func larger(a, b nanos) nanos {
	if a.less(b) {
		return b
	}
	return a
}

// ceil returns the first whole nanosecond that is not before e.
func (e nanos) ceil() time.Duration {
	if e.part > 0 {
		return time.Duration(e.ns + 1)
	}
	return time.Duration(e.ns)
}

// times returns the cost of a number of units at every / rate each, at most most.
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

// units returns how many whole units e pays for at every / rate each: the inverse of times. e is
// at most the cost of a burst.
func units(e nanos, every time.Duration, rate uint64) uint64 {
	hi, lo := bits.Mul64(uint64(e.ns), rate)
	lo, carry := bits.Add64(lo, e.part, 0)
	many, _ := bits.Div64(hi+carry, lo, uint64(every))
	return many
}
