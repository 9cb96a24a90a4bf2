// Package pricing is the reference model of prices: fractions of any size, and each unit is looked at by its number.
package pricing

import "math/big"

// A Tier is the price of the units up to End; nil: all.
type Tier struct {
	End         *big.Int
	Price, Flat *big.Rat // minor units, for Per units and once
}

// Linear returns what units cost if all have one price, which is for per units.
func Linear(units *big.Int, price *big.Rat, per *big.Int) *big.Rat {
	sum := new(big.Rat).Mul(new(big.Rat).SetInt(units), price)
	return sum.Quo(sum, new(big.Rat).SetInt(per))
}

// Graduated returns what units cost if the n-th unit has the price of the tier that n is in.
func Graduated(units *big.Int, tiers []Tier, per *big.Int) *big.Rat {
	sum, begin := new(big.Rat), new(big.Int)
	for _, t := range tiers {
		if units.Cmp(begin) <= 0 {
			return sum
		}
		end := units
		if t.End != nil && t.End.Cmp(units) < 0 {
			end = t.End
		}
		sum.Add(sum, t.Flat)
		sum.Add(sum, Linear(new(big.Int).Sub(end, begin), t.Price, per))
		begin = end
	}
	return sum
}

// Volume returns what units cost if all have the price of the tier that the last one is in.
func Volume(units *big.Int, tiers []Tier, per *big.Int) *big.Rat {
	if units.Sign() == 0 {
		return new(big.Rat)
	}
	at := 0
	for tiers[at].End != nil && tiers[at].End.Cmp(units) < 0 {
		at++
	}
	return new(big.Rat).Add(tiers[at].Flat, Linear(units, tiers[at].Price, per))
}

// Round returns the integer that is nearest to r, which is not negative; of two, the larger one.
func Round(r *big.Rat) *big.Int {
	half := new(big.Rat).Add(r, big.NewRat(1, 2))
	return new(big.Int).Quo(half.Num(), half.Denom())
}
