package quota

import (
	"math/bits"

	"macronode/core/types"
)

// ApplyPolicy puts rules in the place of those that are; bit i of fresh says that the i-th is
// another than before. One whose scope, unit and route are the same keeps what it has counted, in
// units: what was used stays used, and what was owed stays owed. Of what was used no more
// is believed than the new burst, so that nobody owes for what he was let have; of what
// was owed no more than comes back in MaxDebt. Any other rule has counted nothing.
//
// What a request that is in was charged before is given back to rules that were kept alone;
// what it is charged from now on, to all.
//
// So behind a change nobody has more than the new burst and the new rate; and in any time
// around it nobody more than the larger of the bursts, and of each rate its part.
//
// It allocates where counters of a scope change their number, and looks at all of them.
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

// change is the gauges before and behind one.
type change struct {
	was, is [MaxRules]gauge
	kept    [MaxRules]bool
	last    types.Instant
}

// carry is the counter of a rule behind the change.
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

// move gives a scope's counters another width, row by row. One that counts nothing any more
// leaves.
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

// measures reports that two count by the same measure, in the same counter of a row.
func (g *gauge) measures(other *gauge) bool {
	return g.slot == other.slot && g.Rate == other.Rate && g.Every == other.Every && g.Burst == other.Burst
}

// carry is what is used of another gauge when so much is used of g.
func (g *gauge) carry(to *gauge, used nanos) nanos {
	had := smaller(used, g.full)
	owed := used.minus(had, g.Rate)
	return smaller(smaller(g.exchange(to, had), to.full).plus(g.exchange(to, owed), to.Rate), to.most)
}

// exchange is the length of as many units by another gauge: to the part, and where that
// does not come out even the next one; at most the most that it counts to.
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

// wide is a whole number of 192 bits, the lowest 64 first: as many parts as there may be,
// at any measure.
type wide [3]uint64

// times is w × by + more.
func (w wide) times(by, more uint64) wide {
	for i := range w {
		hi, lo := bits.Mul64(w[i], by)
		sum, carry := bits.Add64(lo, more, 0)
		w[i], more = sum, hi+carry
	}
	return w
}

// over is w / by, and what is left.
func (w wide) over(by uint64) (wide, uint64) {
	rest := uint64(0)
	for i := len(w) - 1; i >= 0; i-- {
		w[i], rest = bits.Div64(rest, w[i], by)
	}
	return w, rest
}

// HashInto is h after all of r.
func (r Rule) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(r.Scope)).Mix(uint64(r.Unit)).Mix(r.Rate).Mix(uint64(r.Every)).Mix(r.Burst).Mix(uint64(r.Classes)).Mix(uint64(r.Route)).MixBool(r.Shadow)
}
