package pricing

import (
	"math/bits"

	"macronode/core/types"
)

// A wide is an unsigned integer of 192 bits, the lowest word first. It holds each sum of a price before the division.
type wide [3]uint64

// product returns a times m. It always fits.
func product(a types.Amount, m uint64) (w wide) {
	var low, carry uint64
	low, w[0] = bits.Mul64(a.Lo, m)
	w[2], w[1] = bits.Mul64(a.Hi, m)
	w[1], carry = bits.Add64(w[1], low, 0)
	w[2] += carry
	return w
}

// add returns w plus v; ok is false if the sum does not fit.
func (w wide) add(v wide) (sum wide, ok bool) {
	var carry uint64
	for i := range w {
		sum[i], carry = bits.Add64(w[i], v[i], carry)
	}
	return sum, carry == 0
}

// divide returns w divided by d, which is at least 1, rounded half up; ok is false if the result is larger than an
// amount may be.
func (w wide) divide(d uint64) (a types.Amount, ok bool) {
	var top, rest uint64
	top, rest = bits.Div64(0, w[2], d)
	a.Hi, rest = bits.Div64(rest, w[1], d)
	a.Lo, rest = bits.Div64(rest, w[0], d)
	if rest >= d-rest {
		if a, ok = a.Add(types.MinorUnits(1)); !ok {
			return a, false
		}
	}
	return a, top == 0 && !types.MaxSupply().Less(a)
}
