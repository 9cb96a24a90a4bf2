package types

import (
	"errors"
	"math/bits"
)

// ErrAmount reports a text that is not a canonical amount.
var ErrAmount = errors.New("amount: not canonical")

// An Amount is money in minor units of its asset: unsigned, 128 bits. Its text is
// decimal, without sign and without leading zeros.
type Amount struct{ Hi, Lo uint64 }

// MinorUnits returns n minor units.
func MinorUnits(n uint64) Amount { return Amount{Lo: n} }

// IsZero reports whether a is 0.
func (a Amount) IsZero() bool { return a == Amount{} }

// Less reports whether a < b.
func (a Amount) Less(b Amount) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

// Add returns a+b; ok is false if it does not fit in 128 bits.
func (a Amount) Add(b Amount) (sum Amount, ok bool) {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, carry := bits.Add64(a.Hi, b.Hi, carry)
	return Amount{hi, lo}, carry == 0
}

// Sub returns a-b; ok is false if b is more than a.
func (a Amount) Sub(b Amount) (rest Amount, ok bool) {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	hi, borrow := bits.Sub64(a.Hi, b.Hi, borrow)
	return Amount{hi, lo}, borrow == 0
}

// HashInto mixes a into h.
func (a Amount) HashInto(h Hash64) Hash64 { return h.Mix(a.Hi).Mix(a.Lo) }

// Append appends the canonical text of a.
func (a Amount) Append(to []byte) []byte {
	var digits [39]byte // 2^128-1 has 39
	at := len(digits)
	for {
		var rest uint64
		a.Hi, rest = bits.Div64(0, a.Hi, 10)
		a.Lo, rest = bits.Div64(rest, a.Lo, 10)
		at--
		digits[at] = '0' + byte(rest)
		if a.IsZero() {
			return append(to, digits[at:]...)
		}
	}
}

func (a Amount) String() string { return string(a.Append(nil)) }

// ParseAmount parses canonical text. "0" is an amount.
func ParseAmount[T ~string | ~[]byte](s T) (a Amount, err error) {
	if len(s) == 0 || len(s) > 39 || s[0] == '0' && len(s) > 1 {
		return Amount{}, ErrAmount
	}
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return Amount{}, ErrAmount
		}
		over, lo := bits.Mul64(a.Lo, 10)
		top, hi := bits.Mul64(a.Hi, 10)
		lo, carry := bits.Add64(lo, uint64(digit), 0)
		hi, carry = bits.Add64(hi, over, carry)
		if top != 0 || carry != 0 {
			return Amount{}, ErrAmount
		}
		a = Amount{hi, lo}
	}
	return a, nil
}
