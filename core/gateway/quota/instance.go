package quota

import (
	"time"

	"macronode/core/types"
)

// NextAdmit returns the earliest instant, not before now, at which the rules of the instance
// admit one more request with a number of bytes, and the rule, from 1, that determines it. It
// returns Never if a rule has rate 0. The instant is exact to the nanosecond.
func (q *Quota) NextAdmit(now types.Instant, bytes uint64) (at types.Instant, rule uint8) {
	return q.next(now, bytes, 1<<MaxRules-1)
}

// next is NextAdmit for some of the rules.
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

// Spend charges an admitted request to the rules of the instance. It returns the shadow rules
// that would have delayed it: bit i is rule i+1. If a request is admitted too early, the
// difference is owed: later ones wait longer.
func (q *Quota) Spend(now types.Instant, bytes uint64) (shadow uint16) {
	return q.pace(now, bytes, q.paces)
}

// pace charges some rules of the instance.
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
