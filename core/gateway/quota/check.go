package quota

import (
	"fmt"

	"macronode/core/types"
)

// Hash identifies the rules and their counters.
func (q *Quota) Hash() types.Hash64 {
	h := types.Hash64(0).Mix(uint64(q.latest))
	for i := range q.gauges {
		h = q.gauges[i].HashInto(h)
	}
	for i := range q.tables {
		h = h.Mix(uint64(q.tables[i].hash()))
	}
	for _, end := range q.common {
		h = end.HashInto(h)
	}
	return q.hashCharges(h)
}

// CopyTo overwrites dst, reusing its memory.
func (q *Quota) CopyTo(dst *Quota) {
	gauges, charges, tables, heldOf := append(dst.gauges[:0], q.gauges...), append(dst.charges[:0], q.charges...), dst.tables, dst.heldOf
	for i := range q.tables {
		q.tables[i].copyTo(&tables[i])
		q.heldOf[i].copyTo(&heldOf[i])
	}
	*dst = *q
	dst.gauges, dst.charges, dst.tables, dst.heldOf = gauges, charges, tables, heldOf
}

// Check returns the first invariant that does not hold.
func (q *Quota) Check() error {
	for i, end := range q.common {
		if end.zero() {
			continue // not used
		}
		if err := q.checkEnd(i, end); err != nil {
			return err
		}
	}
	rules := q.slots()
	for scope := range q.tables {
		err := q.tables[scope].check(func(s subjectKey, slot int, end nanos) error {
			if types.QuotaScope(scope) != types.ScopePeer && (s.of == 0 || s.rest != 0) {
				return fmt.Errorf("G1: %v %d counts", types.QuotaScope(scope), s.of)
			}
			return q.checkEnd(rules[scope][slot], end)
		})
		if err != nil {
			return fmt.Errorf("quota: %w", err)
		}
	}
	return q.checkCharges()
}

// slots returns, for each scope, the rules that count, in the order of their counters in a row,
// followed by an invalid rule.
func (q *Quota) slots() (rules [types.NumQuotaScopes][MaxRules]int) {
	for scope := range rules {
		for slot := range rules[scope] {
			rules[scope][slot] = MaxRules
		}
	}
	var counted [types.NumQuotaScopes]int
	for i := range q.gauges {
		if g := &q.gauges[i]; g.Rate > 0 {
			rules[g.Scope][counted[g.Scope]] = i
			counted[g.Scope]++
		}
	}
	return rules
}

// checkEnd checks a counter of a rule.
func (q *Quota) checkEnd(rule int, end nanos) error {
	switch {
	case rule >= len(q.gauges) || q.gauges[rule].Rate == 0 || end.part >= q.gauges[rule].Rate:
		return fmt.Errorf("G3: rule %d counts to %d ns and %d parts", rule+1, end.ns, end.part)
	case q.gauges[rule].most.less(q.gauges[rule].used(end, q.latest)):
		return fmt.Errorf("G2: rule %d counts to %d, and it was %d", rule+1, end.ns, q.latest)
	}
	return nil
}
