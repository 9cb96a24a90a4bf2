package quota

import (
	"math/big"

	"macronode/core/types"
)

// Change replaces the rules. The drawn part of a bucket that is kept stays drawn, at most the new
// burst; the debt stays, at most what refills in Debt. Fractions are rounded up to parts of a
// unit, of which a rule's Every in nanoseconds are one. A bucket is kept if its rule has the same
// scope, is not fresh, and had and has a rate.
func (s *State) Change(now types.Instant, rules []Rule, fresh map[int]bool) {
	s.Pass(now)
	was := s.Rules
	s.Rules = rules
	same := func(rule int) bool {
		if rule >= len(was) || rule >= len(rules) || fresh[rule] {
			return false
		}
		old, is := was[rule], rules[rule]
		return old.Scope == is.Scope && old.Unit == is.Unit && old.Route == is.Route && old.Rate > 0 && is.Rate > 0
	}
	kept := func(b *bucket) bool {
		if !same(b.rule) {
			return false
		}
		old, is := was[b.rule], rules[b.rule]
		had := least(b.drawn, number(old.Burst))
		owes := new(big.Rat).Sub(b.drawn, had)
		drawn := new(big.Rat).Add(least(is.even(had), number(is.Burst)), is.even(owes))
		b.drawn = least(drawn, new(big.Rat).Add(number(is.Burst), is.brings(s.Debt)))
		return b.drawn.Sign() > 0
	}
	var rest []*bucket
	for _, b := range s.buckets {
		if kept(b) {
			rest = append(rest, b)
		}
	}
	s.buckets = rest
	for rule := range 16 {
		for _, t := range s.Charges {
			if t == nil {
				continue
			}
			if t.Old, t.OldPaced = t.Had, t.Paced; !same(rule) {
				t.Others[rule] = true
			}
		}
		if b := s.common[rule]; b != nil && !kept(b) {
			delete(s.common, rule)
		}
	}
}

// even rounds units up to whole parts.
func (r Rule) even(units *big.Rat) *big.Rat {
	parts := new(big.Rat).Mul(units, number(uint64(r.Every)))
	up := new(big.Int).Add(parts.Num(), new(big.Int).Sub(parts.Denom(), big.NewInt(1)))
	return new(big.Rat).Quo(new(big.Rat).SetInt(up.Div(up, parts.Denom())), number(uint64(r.Every)))
}
