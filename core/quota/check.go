package quota

import (
	"fmt"

	"macronode/core/words"
)

// Hash identifies the rules and what is counted by them.
func (q *Quota) Hash() words.Hash64 {
	h := words.Hash64(0).Mix(uint64(q.last))
	for i := range q.gauges {
		h = q.gauges[i].Mix(h)
	}
	for i := range q.tables {
		h = h.Mix(uint64(q.tables[i].hash()))
	}
	for _, end := range q.common {
		h = end.Mix(h)
	}
	return q.mixTabs(h)
}

// CopyTo overwrites dst, reusing its memory.
func (q *Quota) CopyTo(dst *Quota) {
	gauges, tabs, tables, heldOf := append(dst.gauges[:0], q.gauges...), append(dst.tabs[:0], q.tabs...), dst.tables, dst.heldOf
	for i := range q.tables {
		q.tables[i].copyTo(&tables[i])
		q.heldOf[i].copyTo(&heldOf[i])
	}
	*dst = *q
	dst.gauges, dst.tabs, dst.tables, dst.heldOf = gauges, tabs, tables, heldOf
}

// Check returns the first invariant that does not hold.
func (q *Quota) Check() error {
	for i, end := range q.common {
		if end.zero() {
			continue // nobody asked it
		}
		if err := q.checkEnd(i, end); err != nil {
			return err
		}
	}
	rules := q.slots()
	for scope := range q.tables {
		err := q.tables[scope].check(func(s subject, slot int, end exact) error {
			if words.Scope(scope) != words.OfPeer && (s.of == 0 || s.rest != 0) {
				return fmt.Errorf("G1: %v %d counts", words.Scope(scope), s.of)
			}
			return q.checkEnd(rules[scope][slot], end)
		})
		if err != nil {
			return fmt.Errorf("quota: %w", err)
		}
	}
	return q.checkTabs()
}

// slots is of each scope the rules that count, in the order of their counters in a row, and
// behind them one that there is not.
func (q *Quota) slots() (rules [words.Scopes][MaxRules]int) {
	for scope := range rules {
		for slot := range rules[scope] {
			rules[scope][slot] = MaxRules
		}
	}
	var counted [words.Scopes]int
	for i := range q.gauges {
		if g := &q.gauges[i]; g.Rate > 0 {
			rules[g.Scope][counted[g.Scope]] = i
			counted[g.Scope]++
		}
	}
	return rules
}

// checkEnd looks at a counter of a rule.
func (q *Quota) checkEnd(rule int, end exact) error {
	switch {
	case rule >= len(q.gauges) || q.gauges[rule].Rate == 0 || end.part >= q.gauges[rule].Rate:
		return fmt.Errorf("G3: rule %d counts to %d ns and %d parts", rule+1, end.ns, end.part)
	case q.gauges[rule].most.less(q.gauges[rule].used(end, q.last)):
		return fmt.Errorf("G2: rule %d counts to %d, and it was %d", rule+1, end.ns, q.last)
	}
	return nil
}
