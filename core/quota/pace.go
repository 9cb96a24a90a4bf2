package quota

import (
	"time"

	"macronode/core/words"
)

// Next is the earliest instant, not before now, at which the rules of the instance let one
// more request of so many bytes go, and the rule, from 1, that is waited for. Never where
// one has no rate. It is exact: a nanosecond earlier they do not.
func (q *Quota) Next(now words.Instant, bytes uint64) (at words.Instant, rule uint8) {
	return q.next(now, bytes, 1<<MaxRules-1)
}

// next is Next by some of the rules.
func (q *Quota) next(now words.Instant, bytes uint64, rules uint16) (at words.Instant, rule uint8) {
	at = max(now, q.last)
	var longest time.Duration
	for i := range q.gauges {
		g := &q.gauges[i]
		if rules&q.paces>>i&1 == 0 || g.Shadow {
			continue
		}
		if g.Rate == 0 {
			return Never, uint8(i + 1)
		}
		if _, wait := g.take(g.used(q.common[i], at), g.cost(bytes)); wait > longest {
			longest, rule = wait, uint8(i+1)
		}
	}
	if longest == 0 {
		return now, 0
	}
	return at.Plus(longest), rule
}

// Spend counts a request that goes against the rules of the instance, and says which
// shadows would have let it wait: bit i is rule i+1. One that goes before its time is
// owed: those after it wait longer.
func (q *Quota) Spend(now words.Instant, bytes uint64) (shadow uint16) {
	return q.pace(now, bytes, q.paces)
}

// pace charges those of some rules that are of the instance.
func (q *Quota) pace(now words.Instant, bytes uint64, rules uint16) (shadow uint16) {
	q.last = max(now, q.last)
	for i := range q.gauges {
		g := &q.gauges[i]
		if rules&q.paces>>i&1 == 0 {
			continue
		}
		if g.Rate == 0 {
			if g.Shadow {
				shadow |= 1 << i
			}
			continue
		}
		cost := g.cost(bytes)
		after, wait := g.take(g.used(q.common[i], q.last), cost)
		if g.Shadow && wait > 0 {
			shadow |= 1 << i
		}
		if !cost.zero() {
			q.common[i] = exact{ns: int64(q.last)}.plus(after, g.Rate)
		}
	}
	return shadow
}
