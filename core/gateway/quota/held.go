package quota

import (
	"errors"
	"math/bits"

	"macronode/core/table"
	"macronode/core/types"
)

// heldSums adds up, for each counter of one scope, the bytes that are held of it. A request
// that arrives reads one sum per rule; it does not visit the requests that are held.
//
// A row exists while one of its sums is not zero. A held request is in at most one row of
// each scope, so there are as many rows as places of requests.
type heldSums struct {
	rows  table.Pool[subjectKey, noValue]
	width int      // rules of the scope that count
	sums  []uint64 // width of each place of a row, in bytes
}

func newHeldSums(rows, width int, seed types.Hash64) heldSums {
	if width == 0 {
		rows = 0
	}
	return heldSums{rows: table.NewPool[subjectKey, noValue](rows, seed), width: width, sums: make([]uint64, rows*width)}
}

func heldSumsBytes(rows, width int) int64 {
	if width == 0 {
		rows = 0
	}
	return table.PoolBytes[subjectKey, noValue](rows) + table.SliceBytes[uint64](rows*width)
}

// row returns the sums at a place.
func (h *heldSums) row(place uint32) []uint64 {
	return h.sums[int(place)*h.width : (int(place)+1)*h.width]
}

// of returns the bytes that are held of a subject's counter.
func (h *heldSums) of(s subjectKey, slot int) uint64 {
	if place, ok := h.rows.Find(s); ok {
		return h.row(place)[slot]
	}
	return 0
}

// add counts bytes, at least one, that begin to be held of a subject's counter.
func (h *heldSums) add(s subjectKey, slot int, bytes uint64) {
	place, ok := h.rows.Find(s)
	if !ok {
		place = h.rows.Put(s, noValue{})
	}
	h.row(place)[slot] += bytes
}

// remove uncounts bytes that add has counted. A row whose sums are all zero is freed.
func (h *heldSums) remove(s subjectKey, slot int, bytes uint64) {
	place, ok := h.rows.Find(s)
	types.Assert(ok && h.row(place)[slot] >= bytes, "quota: removes held bytes that were not added")
	h.row(place)[slot] -= bytes
	for _, sum := range h.row(place) {
		if sum > 0 {
			return
		}
	}
	h.rows.Drop(place)
}

func (h *heldSums) copyTo(dst *heldSums) {
	sums := dst.sums
	if len(sums) != len(h.sums) {
		sums = make([]uint64, len(h.sums))
	}
	touched := max(h.rows.Capacity()*h.width, min(dst.rows.Capacity()*dst.width, len(sums)))
	copy(sums[:touched], h.sums)
	h.rows.CopyTo(&dst.rows)
	dst.width, dst.sums = h.width, sums
}

// startHolding holds the last bytes, at least one, that a request was charged.
func (q *Quota) startHolding(t *charge, bytes uint64) {
	t.held = bytes
	q.openCharges++
	for m := q.heldRules(t); m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.isCommonTo(t) {
			q.heldCommon[i] += bytes
			continue
		}
		q.heldOf[g.Scope].add(t.caller.key(g.Scope), g.slot, bytes)
	}
}

// stopHolding releases the held bytes of a request, if there are any.
func (q *Quota) stopHolding(t *charge) {
	if t.held == 0 {
		return
	}
	for m := q.heldRules(t); m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.isCommonTo(t) {
			q.heldCommon[i] -= t.held
			continue
		}
		q.heldOf[g.Scope].remove(t.caller.key(g.Scope), g.slot, t.held)
	}
	t.held = 0
	q.openCharges--
}

// heldRules returns the rules, bit i is rule i, of whose counters a request holds bytes. Shadow
// rules hold nothing; neither does a rule that was changed after the bytes were charged.
func (q *Quota) heldRules(t *charge) (rules uint16) {
	for m := q.rulesFor(&t.caller) & q.bytes; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.Shadow || g.Rate == 0 || t.since>>i&1 == 1 && t.new(t.held) < t.held {
			continue
		}
		rules |= 1 << i
	}
	return rules
}

// isCommonTo reports whether a request is counted by the rule's single counter, and not by the
// counter of a subject.
func (g *gauge) isCommonTo(t *charge) bool {
	return g.Scope == types.ScopeRoute || g.Scope == types.ScopePeer && t.common
}

// heldBytes returns how many bytes are held of the counter of a rule that counts the current
// request.
func (q *Quota) heldBytes(rule int) uint64 {
	g, f := &q.gauges[rule], &q.asked
	if g.Scope == types.ScopeRoute || g.Scope == types.ScopePeer && f.places[types.ScopePeer] == sharedRow {
		return q.heldCommon[rule]
	}
	return q.heldOf[g.Scope].of(f.caller.key(g.Scope), g.slot)
}

// rebuildHeld recomputes all sums after the rules have changed.
func (q *Quota) rebuildHeld(widths [types.NumQuotaScopes]int) {
	if q.openCharges == 0 && q.hasHeldWidths(widths) {
		return
	}
	q.heldCommon = [MaxRules]uint64{}
	for scope := range types.NumQuotaScopes {
		q.heldOf[scope] = newHeldSums(q.heldRows(scope), widths[scope], q.seed.Mix(uint64(scope)))
	}
	q.openCharges = 0
	for i := range q.charges {
		if t := &q.charges[i]; t.held > 0 {
			q.startHolding(t, t.held)
		}
	}
}

func (q *Quota) hasHeldWidths(widths [types.NumQuotaScopes]int) bool {
	for scope := range types.NumQuotaScopes {
		if q.heldOf[scope].width != widths[scope] {
			return false
		}
	}
	return true
}

// heldRows returns how many subjects of a scope may hold bytes at once.
func (q *Quota) heldRows(scope types.QuotaScope) int {
	return heldRowsOf(scope, q.limits)
}

// heldRowsOf returns the limit of heldSums of a scope: all places, or none if the scope has no
// counters of subjects.
func heldRowsOf(scope types.QuotaScope, l Limits) int {
	if scope == types.ScopeInstance || scope == types.ScopeRoute {
		return 0
	}
	return l.Slots
}

// checkHeld subtracts what each request holds from a copy of the sums; the result must be zero.
func (q *Quota) checkHeld() error {
	left, common := [types.NumQuotaScopes]heldSums{}, q.heldCommon
	for scope := range types.NumQuotaScopes {
		q.heldOf[scope].copyTo(&left[scope])
	}
	for i := range q.charges {
		t := &q.charges[i]
		if t.held == 0 {
			continue
		}
		for m := q.heldRules(t); m != 0; m &= m - 1 {
			rule := bits.TrailingZeros16(m)
			g := &q.gauges[rule]
			of, whose := &left[g.Scope], t.caller.key(g.Scope)
			switch {
			case g.isCommonTo(t):
				common[rule] -= t.held
			case of.of(whose, g.slot) < t.held:
				return errors.New("G6: less is held of a subject than its charges hold")
			default:
				of.remove(whose, g.slot, t.held)
			}
		}
	}
	if common != [MaxRules]uint64{} {
		return errors.New("G6: a rule's held bytes differ from those of the charges")
	}
	for scope := range left {
		if err := left[scope].rows.Check(); err != nil {
			return err
		}
		if left[scope].rows.Len() > 0 {
			return errors.New("G6: more is held of a subject than its charges hold")
		}
	}
	return nil
}
