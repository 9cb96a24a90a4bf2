package quota

import (
	"math/big"

	"macronode/core/types"
)

// Change puts rules in the place of those that are. What was drawn of a bucket that is kept
// stays drawn, but no more than the new burst; what was owed stays owed, but no more than
// comes back in the time of Debt. What does not come out even in parts of a unit, of which
// a rule's Every in nanoseconds make one, is drawn to the next. A bucket is kept where its
// rule is for the same, is not fresh, and has a rate as it had one.
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
		for _, t := range s.Tabs {
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

// even is the next number of units that is whole in parts.
func (r Rule) even(units *big.Rat) *big.Rat {
	parts := new(big.Rat).Mul(units, number(uint64(r.Every)))
	up := new(big.Int).Add(parts.Num(), new(big.Int).Sub(parts.Denom(), big.NewInt(1)))
	return new(big.Rat).Quo(new(big.Rat).SetInt(up.Div(up, parts.Denom())), number(uint64(r.Every)))
}
