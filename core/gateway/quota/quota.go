// Package quota limits rates per subject before any expensive work. It uses GCRA, the generic
// cell rate algorithm: a counter is one point in time.
//
//	peer, key, tenant, route:  Admit ──all rules admit──► all are charged ──► ReservePart for each further part
//	                            └──one rejects──► none is charged ──► which rule, and RetryAfter
//	instance:                  NextAdmit ──► when the next request is admitted; ChargeInstance when it is;
//	                           NextPart, ChargeInstancePart for a further part
//	                           Finish: the unused part is given back; Undo: everything is
//
// A rule of the instance does not reject: a flood of requests without a key would exhaust it for
// every caller. It paces the fair queue, which decides the order. A rule of a route limits the
// load of its service; if callers without a key may use the route, a rule of peers protects it
// from them.
package quota

import (
	"math"
	"math/bits"
	"time"

	"macronode/core/table"
	"macronode/core/types"
)

// Never is the result for a rule that admits nothing.
const Never = types.Instant(math.MaxInt64)

// Limits are the numbers of subjects with their own counters, by scope.
//
// A new subject takes a free row, or the row of a subject all of whose counters are idle; a sweep
// visits a few rows in each step. If there is none, it shares one counter of each rule with all
// other subjects without a row; together they get the rate of one. So memory is bounded, a
// subject with a row loses no counts, and peers with made-up addresses compete for one counter.
// Each scope has its own rows: peers cannot evict the counters of keys or tenants.
type Limits struct {
	Peers   int
	Keys    int // the largest number; a key never shares
	Tenants int // the largest number; a tenant never shares
	Slots   int // of requests in progress: each may have a charge
}

func (l Limits) rows() [types.NumQuotaScopes]int {
	return [...]int{types.ScopeInstance: 0, types.ScopePeer: l.Peers, types.ScopeKey: l.Keys, types.ScopeTenant: l.Tenants, types.ScopeRoute: 0}
}

// Subject identifies the caller of a request, as far as it was verified.
type Subject struct {
	Peer   types.NameHash // digest of the address
	Key    types.KeyID    // verified; 0: no key, so no counter of a key or a tenant applies
	Tenant types.Tenant   // of the key
	Class  types.Class
	Route  uint16 // number of the route; 0: no rule of a route applies
}

// A Result is the outcome of the rules of all scopes but the instance.
type Result struct {
	Refused    bool
	Rule       uint8         // from 1: the rule with the longest wait that rejected; or the one with the largest used part of its burst; 0: none
	Left       uint32        // of that rule, in whole units
	Reset      time.Duration // until its burst is full again
	RetryAfter time.Duration // after it a request is admitted, unless others come first; 0: admitted, or never
	Shadow     uint16        // bit i: shadow rule i+1 would have rejected
}

// Quota is the rules and their counters.
//
// Invariants:
//
//	G1  a row belongs to one subject of its scope, is found by it, and has a nonzero counter;
//	    each rule has its own counter in it
//	G2  a counter is at most its rule's burst and MaxDebt ahead of the latest now
//	G3  a counter's parts are less than a nanosecond; a rule with rate 0 has zero counters
//	G4  each table's sum is the sum of its counters
//	G5  a charge holds at most what was charged to it, and open charges are counted
//	G6  the held bytes of each counter are the sum over the charges that hold bytes of it
type Quota struct {
	gauges  []gauge
	applies [types.NumClasses]uint16 // bit i: rule i applies to that class, and is not of the instance
	keyed   uint16                   // bit i: rule i is of keys or tenants
	routed  uint16                   // bit i: rule i is of a route
	paces   uint16                   // bit i: rule i is of the instance
	bytes   uint16                   // bit i: rule i counts bytes

	limits Limits
	seed   types.Hash64                   // places rows in tables
	latest types.Instant                  // the latest now: time never decreases
	tables [types.NumQuotaScopes]counters // none for the instance and routes
	common [MaxRules]nanos                // of an instance or route rule its counter, of other rules the counter shared by subjects without a row

	shared [MaxRules]uint64 // how often a rule's common counter was used: reported, never decides
	asked  lookup           // of the current step; never read in another

	charges     []charge // by place of the request
	openCharges int      // charges that hold something
	heldCommon  [MaxRules]uint64
	heldOf      [types.NumQuotaScopes]heldSums // none for the instance and routes
}

// New returns a quota without counts. The rules are checked; seed places rows in tables.
func New(rules []Rule, l Limits, seed types.Hash64) Quota {
	types.Assert(CheckRules(rules) == nil, "quota: rules without sense")
	q := Quota{limits: l, seed: seed, gauges: make([]gauge, 0, MaxRules), charges: make([]charge, l.Slots)}
	q.install(rules)
	widths := widthsOf(rules)
	for scope := range types.NumQuotaScopes {
		q.tables[scope] = q.fresh(scope, widths[scope])
		q.heldOf[scope] = newHeldSums(q.heldRows(scope), widths[scope], q.seed.Mix(uint64(scope)))
	}
	return q
}

// fresh returns the empty counters of a scope.
func (q *Quota) fresh(scope types.QuotaScope, width int) counters {
	return newCounters(q.limits.rows()[scope], width, q.seed.Mix(uint64(scope)))
}

// install makes gauges of rules and computes which rules apply to which requests.
func (q *Quota) install(rules []Rule) {
	q.gauges, q.applies, q.keyed, q.routed, q.bytes, q.paces = q.gauges[:0], [types.NumClasses]uint16{}, 0, 0, 0, 0
	for i, r := range rules {
		bit, slots := uint16(1)<<i, widthsOf(rules[:i])
		q.gauges = append(q.gauges, newGauge(r, slots[r.Scope]))
		for c := range types.NumClasses {
			if r.Scope != types.ScopeInstance && r.Classes.Has(c) {
				q.applies[c] |= bit
			}
		}
		switch {
		case r.Empty():
			continue
		case r.Scope == types.ScopeInstance:
			q.paces |= bit
		case r.Scope == types.ScopeKey || r.Scope == types.ScopeTenant:
			q.keyed |= bit
		case r.Scope == types.ScopeRoute:
			q.routed |= bit
		}
		if r.Unit == types.UnitBytes {
			q.bytes |= bit
		}
	}
}

// Bytes is the memory that New takes.
func Bytes(rules []Rule, l Limits) (sum int64) {
	widths := widthsOf(rules)
	for scope, rows := range l.rows() {
		sum += countersBytes(rows, widths[scope]) + heldSumsBytes(heldRowsOf(types.QuotaScope(scope), l), widths[scope])
	}
	return sum + table.SliceBytes[gauge](MaxRules) + table.SliceBytes[charge](l.Slots)
}

// widthsOf returns how many rules of each scope count.
func widthsOf(rules []Rule) (widths [types.NumQuotaScopes]int) {
	for _, r := range rules {
		if r.Rate > 0 {
			widths[r.Scope]++
		}
	}
	return widths
}

// Take decides on one request that declares a number of bytes. All rules that apply are checked;
// then all are charged, or none if one rejects. A request larger than the burst is admitted when
// the burst is full. The excess is owed, and later requests wait for it.
func (q *Quota) Take(now types.Instant, caller Subject, bytes uint64) (v Result) {
	q.find(now, &caller, bytes, q.rulesFor(&caller), false)
	q.checkRules(&v)
	switch {
	case !v.Refused:
		q.charge(&caller, &v)
	case v.RetryAfter > 0:
		v.RetryAfter += time.Duration(q.latest - now)
	}
	return v
}

// Charge charges bytes that a request used in excess of those declared to Take. It never rejects,
// because the bytes are used: they are owed, and later requests wait. The debt is not bounded by
// the burst, otherwise undeclared bytes would be free. It is bounded by MaxDebt, so that a
// mistake blocks a subject for at most a day.
func (q *Quota) Charge(now types.Instant, caller Subject, bytes uint64) {
	q.latest = max(now, q.latest)
	q.owe(&caller, bytes, false)
	q.pace(now, bytes, q.bytes)
}

// owe is Charge without the instance.
func (q *Quota) owe(caller *Subject, bytes uint64, common bool) {
	q.find(q.latest, caller, bytes, q.rulesFor(caller)&q.bytes, common)
	var v Result
	q.checkRules(&v)
	q.charge(caller, &v) // even if it rejects
}

// Shared returns how often the shared counter of a rule, from 1, was used.
func (q *Quota) Shared(rule int) uint64 { return q.shared[rule-1] }

// Subjects returns how many subjects of a scope have counters.
func (q *Quota) Subjects(scope types.QuotaScope) int { return q.tables[scope].rows.Len() }

// rulesFor returns the rules that apply to a request.
func (q *Quota) rulesFor(caller *Subject) uint16 {
	types.Assert(caller.Key == 0 || caller.Tenant != 0, "quota: a key without a tenant")
	rules := q.applies[caller.Class]
	if caller.Key == 0 {
		rules &^= q.keyed
	}
	for m := rules & q.routed; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros16(m); q.gauges[i].Route != caller.Route {
			rules &^= 1 << i
		}
	}
	return rules
}

// lookup is the position of a request's counters.
type lookup struct {
	caller      Subject
	bytes       uint64
	rules       uint16
	places      [types.NumQuotaScopes]uint32 // of the row in a scope's table, or one of those below
	afterCharge [MaxRules]nanos              // the used part of each rule after the charge
}

const (
	notSearched = math.MaxUint32     // not looked for
	newRow      = math.MaxUint32 - 1 // none exists, and a row is free
	sharedRow   = math.MaxUint32 - 2 // none exists, and no row is free
	ruleRow     = math.MaxUint32 - 3 // the rule has a single counter
)

// find finds the counters of a request, and room for missing ones. It changes no counter; only
// idle rows are removed, and the sweep advances. With common, the peer is counted by the shared
// counter.
func (q *Quota) find(now types.Instant, caller *Subject, bytes uint64, rules uint16, common bool) {
	q.latest = max(now, q.latest)
	f := &q.asked
	f.caller, f.bytes, f.rules = *caller, bytes, rules
	f.places = [...]uint32{notSearched, notSearched, notSearched, notSearched, types.ScopeRoute: ruleRow}
	for m := rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.Rate == 0 {
			continue
		}
		if common && g.Scope == types.ScopePeer {
			f.places[g.Scope] = sharedRow
		}
		if f.places[g.Scope] == notSearched {
			f.places[g.Scope] = q.tables[g.Scope].find(caller.key(g.Scope), q.latest)
		}
		if f.places[g.Scope] == sharedRow {
			q.shared[i]++
		}
	}
}

// used returns the used part of a request's counter of a rule.
func (q *Quota) used(rule int) nanos {
	g := &q.gauges[rule]
	if g.Rate == 0 {
		return nanos{}
	}
	switch place := q.asked.places[g.Scope]; place {
	case newRow:
		return nanos{}
	case sharedRow, ruleRow:
		return g.used(q.common[rule], q.latest)
	default:
		return g.used(q.tables[g.Scope].row(place)[g.slot], q.latest)
	}
}

// checkRules checks all rules of a request. Of those that reject, it reports the one with the
// longest wait.
func (q *Quota) checkRules(v *Result) {
	f := &q.asked
	refuses, longest := -1, time.Duration(0)
	for m := f.rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		wait := time.Duration(Never)
		if g.Rate > 0 {
			used, cost := q.used(i), g.cost(f.bytes)
			f.afterCharge[i], _ = g.take(used, cost)
			_, wait = g.take(q.free(i, used), cost)
		}
		switch {
		case wait == 0:
		case g.Shadow:
			v.Shadow |= 1 << i
		case wait > longest:
			refuses, longest = i, wait
		}
	}
	if refuses < 0 {
		return
	}
	if v.Refused = true; longest < time.Duration(Never) {
		v.RetryAfter = longest
	}
	v.report(refuses, &q.gauges[refuses], q.free(refuses, q.used(refuses)))
}

// report sets what callers see of a rule.
func (v *Result) report(rule int, g *gauge, used nanos) {
	v.Rule, v.Left, v.Reset = uint8(rule+1), uint32(min(g.left(used), math.MaxUint32)), used.ceil()
}

// charge charges a request to all its rules and reports the rule with the largest used part of
// its burst.
func (q *Quota) charge(caller *Subject, v *Result) {
	f, reported := &q.asked, -1
	for m := f.rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.Rate == 0 {
			continue // a shadow rule
		}
		if g.Unit == types.UnitRequests || f.bytes > 0 {
			q.put(caller, i, f.afterCharge[i])
		}
		if !g.Shadow && (reported < 0 || lessOf(f.afterCharge[reported], q.gauges[reported].full, f.afterCharge[i], g.full)) {
			reported = i
		}
	}
	if reported >= 0 {
		v.report(reported, &q.gauges[reported], f.afterCharge[reported])
	}
}

// lessOf reports whether a/ofA < b/ofB, exactly.
func lessOf(a, ofA, b, ofB nanos) bool {
	hi, lo := bits.Mul64(uint64(a.ns), uint64(ofB.ns))
	hi2, lo2 := bits.Mul64(uint64(b.ns), uint64(ofA.ns))
	return hi < hi2 || hi == hi2 && lo < lo2
}

// put stores a counter of a request.
func (q *Quota) put(caller *Subject, rule int, used nanos) {
	g := &q.gauges[rule]
	end := nanos{ns: int64(q.latest)}.plus(used, g.Rate)
	t, place := &q.tables[g.Scope], &q.asked.places[g.Scope]
	switch *place {
	case sharedRow, ruleRow:
		q.common[rule] = end
		return
	case newRow:
		*place = t.rows.Put(caller.key(g.Scope), noValue{})
	}
	t.set(*place, g.slot, end)
}
