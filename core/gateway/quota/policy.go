package quota

import (
	"math/bits"

	"macronode/core/types"
)

// ApplyPolicy replaces the rules; bit i of fresh marks rule i as a different one. A rule that
// keeps its scope, unit and route keeps its counters, in units: what was used stays used, and
// what was owed stays owed. The used part is cut to the new burst, and the debt to what refills
// in MaxDebt. Any other rule starts without counters.
//
// What a request was charged before the change is given back only to rules that were kept; what
// it is charged afterwards is given back to all.
//
// So after a change, a subject gets at most the new burst and the new rate. In any time around
// the change, it gets at most the larger burst and, of each rate, its part.
//
// It allocates if the number of counters of a scope changes, and visits all counters.
func (q *Quota) ApplyPolicy(now types.Instant, rules []Rule, fresh uint16) {
	types.Assert(CheckRules(rules) == nil, "quota: rules without sense")
	q.latest = max(now, q.latest)
	c := change{last: q.latest}
	copy(c.was[:], q.gauges)
	q.install(rules)
	copy(c.is[:], q.gauges)
	var moved [types.NumQuotaScopes]bool
	others := uint16(0)
	for i := range MaxRules {
		was, is := &c.was[i], &c.is[i]
		c.kept[i] = was.Rate > 0 && is.Rate > 0 && was.Scope == is.Scope && was.Unit == is.Unit && was.Route == is.Route && fresh>>i&1 == 0
		q.common[i] = c.carry(i, q.common[i])
		if !c.kept[i] {
			others |= 1 << i
		}
		if !c.kept[i] || !was.measures(is) {
			moved[was.Scope] = moved[was.Scope] || was.Rate > 0
			moved[is.Scope] = moved[is.Scope] || is.Rate > 0
		}
	}
	for i := range q.charges {
		if t := &q.charges[i]; t.open {
			t.since, t.old, t.oldest = t.since|others, t.had, t.paced
		}
	}
	widths := widthsOf(rules)
	for scope := range types.NumQuotaScopes {
		of := &q.tables[scope]
		switch {
		case !moved[scope]:
		case of.width == 0 || widths[scope] == 0:
			*of = q.fresh(scope, widths[scope])
		default:
			*of = c.move(*of, widths[scope], scope)
		}
	}
	q.rebuildHeld(widths)
}

// change is the gauges before and after a change.
type change struct {
	was, is [MaxRules]gauge
	kept    [MaxRules]bool
	last    types.Instant
}

// carry returns the counter of a rule after the change.
func (c *change) carry(rule int, end nanos) nanos {
	was, is := &c.was[rule], &c.is[rule]
	used := nanos{}
	if c.kept[rule] {
		used = was.carry(is, was.used(end, c.last))
	}
	if used.zero() {
		return used
	}
	return nanos{ns: int64(c.last)}.plus(used, is.Rate)
}

// move gives the counters of a scope another width, row by row. It removes rows whose counters
// are all zero.
func (c *change) move(from counters, width int, scope types.QuotaScope) counters {
	to := counters{rows: from.rows, width: width, times: make([]nanos, len(from.times)/from.width*width), sweepAt: from.sweepAt}
	for place := range uint32(from.rows.Capacity()) {
		if !from.taken(place) {
			continue
		}
		for rule := range MaxRules {
			if !c.kept[rule] || c.is[rule].Scope != scope {
				continue
			}
			if end := c.carry(rule, from.row(place)[c.was[rule].slot]); !end.zero() {
				to.set(place, c.is[rule].slot, end)
			}
		}
		if !to.taken(place) {
			to.rows.Drop(place)
		}
	}
	return to
}

// measures reports whether two gauges have the same measure, and their counters the same slot.
func (g *gauge) measures(other *gauge) bool {
	return g.slot == other.slot && g.Rate == other.Rate && g.Every == other.Every && g.Burst == other.Burst
}

// carry converts the used part of g to the measure of another gauge.
func (g *gauge) carry(to *gauge, used nanos) nanos {
	had := smaller(used, g.full)
	owed := used.minus(had, g.Rate)
	return smaller(smaller(g.exchange(to, had), to.full).plus(g.exchange(to, owed), to.Rate), to.most)
}

// exchange converts e to the same number of units of another gauge, rounded up to a part and
// limited to its largest value.
func (g *gauge) exchange(to *gauge, e nanos) nanos {
	if e.zero() {
		return e
	}
	parts := wide{uint64(e.ns)}.times(g.Rate, e.part)
	if g.Every != to.Every {
		rest := uint64(0)
		if parts, rest = parts.times(uint64(to.Every), 0).over(uint64(g.Every)); rest > 0 {
			parts = parts.times(1, 1)
		}
	}
	ns, part := parts.over(to.Rate)
	if ns[2] > 0 || ns[1] > 0 || ns[0] > uint64(to.most.ns) {
		return to.most
	}
	return nanos{int64(ns[0]), part}
}

// wide is an unsigned integer of 192 bits, the lowest 64 first: it holds any number of parts in
// any measure.
type wide [3]uint64

// times returns w × by + more.
func (w wide) times(by, more uint64) wide {
	for i := range w {
		hi, lo := bits.Mul64(w[i], by)
		sum, carry := bits.Add64(lo, more, 0)
		w[i], more = sum, hi+carry
	}
	return w
}

// over returns w / by and the remainder.
func (w wide) over(by uint64) (wide, uint64) {
	rest := uint64(0)
	for i := len(w) - 1; i >= 0; i-- {
		w[i], rest = bits.Div64(rest, w[i], by)
	}
	return w, rest
}

// HashInto mixes r into h.
func (r Rule) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(r.Scope)).Mix(uint64(r.Unit)).Mix(r.Rate).Mix(uint64(r.Every)).Mix(r.Burst).Mix(uint64(r.Classes)).Mix(uint64(r.Route)).MixBool(r.Shadow)
}
