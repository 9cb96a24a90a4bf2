package quota

import (
	"time"

	"macronode/core/types"
)

// NextAdmit is the earliest instant, not before now, at which the rules of the instance let one
// more request of so many bytes go, and the rule, from 1, that is waited for. Never where
// one has no rate. It is exact: a nanosecond earlier they do not.
func (q *Quota) NextAdmit(now types.Instant, bytes uint64) (at types.Instant, rule uint8) {
	return q.next(now, bytes, 1<<MaxRules-1)
}

// next is Next by some of the rules.
func (q *Quota) next(now types.Instant, bytes uint64, rules uint16) (at types.Instant, rule uint8) {
	at = max(now, q.latest)
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
	return at.Add(longest), rule
}

// Spend counts a request that goes against the rules of the instance, and says which
// shadows would have let it wait: bit i is rule i+1. One that goes before its time is
// owed: those after it wait longer.
func (q *Quota) Spend(now types.Instant, bytes uint64) (shadow uint16) {
	return q.pace(now, bytes, q.paces)
}

// pace charges those of some rules that are of the instance.
func (q *Quota) pace(now types.Instant, bytes uint64, rules uint16) (shadow uint16) {
	q.latest = max(now, q.latest)
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
		after, wait := g.take(g.used(q.common[i], q.latest), cost)
		if g.Shadow && wait > 0 {
			shadow |= 1 << i
		}
		if !cost.zero() {
			q.common[i] = nanos{ns: int64(q.latest)}.plus(after, g.Rate)
		}
	}
	return shadow
}
