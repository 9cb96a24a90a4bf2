// Package quota counts who has had how much, and says no before anything dear is done:
// GCRA, one point in time a counter.
//
//	peer, key, tenant, route:  Enter ──all have room──► charged, all of them ──► go ──► Book each further part
//	                            └──one has not──► none is charged ──► which, and when to come again
//	instance:                  Next ──► when the next one may go; Go when it goes; Onward, Draw for a further part
//	                           Settle: given back what was not used; Undo: all of it
//
// A rule of the instance refuses nobody at the door, where a flood of strangers would
// empty it for everybody: it paces the queue, which decides who is next. One of a route is
// what its service bears, whoever asks; where strangers may ask, a rule of peers is for them.
package quota

import (
	"math"
	"math/bits"
	"time"

	"macronode/core/table"
	"macronode/core/types"
)

// Never is the instant at which a rule that admits nothing admits.
const Never = types.Instant(math.MaxInt64)

// Limits are how many subjects of each scope have counters of their own.
//
// A newcomer takes a free row, or that of a subject all of whose counters are idle, of
// which a hand looks at a few in each step. Where that finds none, it shares one counter of
// each rule with all others for whom there is no room: together they have what one of them
// would have. So memory is bounded, nobody who has a row loses what it counts, and those
// who make up addresses fight over one counter. Each scope has rows of its own: however
// many peers come, no counter of a key or a tenant leaves or is shared for them.
type Limits struct {
	Peers   int
	Keys    int // as many as there may be, and none shares
	Tenants int // the same
	Slots   int // of requests that are in: each may have a tab
}

func (l Limits) rows() [types.NumQuotaScopes]int {
	return [...]int{types.ScopeInstance: 0, types.ScopePeer: l.Peers, types.ScopeKey: l.Keys, types.ScopeTenant: l.Tenants, types.ScopeRoute: 0}
}

// Subject asks, as far as that was verified.
type Subject struct {
	Peer   types.NameHash // digest of the address
	Key    types.KeyID    // that was verified; 0: none was, and no counter of a key or a tenant is looked at
	Tenant types.Tenant   // of that key
	Class  types.Class
	Route  uint16 // number of what is asked for; 0: no rule of a route is for it
}

// A Result is what the rules of all scopes but the instance say of a request.
type Result struct {
	Refused    bool
	Rule       uint8         // from 1: that refused, the longest; or that has used the largest part of its burst; 0: none
	Left       uint32        // of that rule, in its unit, whole ones; no more than fit
	Reset      time.Duration // until it has all of its burst again
	RetryAfter time.Duration // who comes then is admitted, if nobody else comes; 0: admitted, or never
	Shadow     uint16        // bit i: rule i+1 would have refused, if it were not a shadow
}

// Quota is the rules and their counters.
//
// Invariants:
//
//	G1  a row is of one subject of its scope, is found from it, and counts something;
//	    each rule has a counter of its own in it
//	G2  no counter is further ahead than its rule's burst and MaxDebt, of the latest now
//	G3  a counter's parts are fewer than make a nanosecond; a rule without rate counts nothing
//	G4  each table's sum is that of its counters
//	G5  no tab holds more than was charged to it, and those that hold any are counted
//	G6  the sums of held bytes, of each counter, are those of the tabs that hold bytes of it
type Quota struct {
	gauges  []gauge
	applies [types.NumClasses]uint16 // bit i: rule i is for that class, and not of the instance
	keyed   uint16                   // bit i: rule i is of keys or tenants
	routed  uint16                   // bit i: rule i is of a route
	paces   uint16                   // bit i: rule i is of the instance
	bytes   uint16                   // bit i: rule i counts bytes

	limits Limits
	seed   types.Hash64                   // places rows in tables
	latest types.Instant                  // the latest now: time does not go back
	tables [types.NumQuotaScopes]counters // of the instance and of routes none
	common [MaxRules]nanos                // of a rule of the instance or of a route its counter, of others what those share who have no row

	shared [MaxRules]uint64 // how often a rule's common counter was asked: told, never decides
	asked  lookup           // what is asked in this step: nothing of it is read in another

	charges     []charge // of the places of requests
	openCharges int      // tabs that hold something
	heldCommon  [MaxRules]uint64
	heldOf      [types.NumQuotaScopes]heldSums // of the instance and of routes none
}

// New has counted nothing. The rules are checked; seed places rows in tables.
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

// fresh are the counters of a scope that have counted nothing.
func (q *Quota) fresh(scope types.QuotaScope, width int) counters {
	return newCounters(q.limits.rows()[scope], width, q.seed.Mix(uint64(scope)))
}

// install makes gauges of rules, and notes whom each is for.
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

// widthsOf is how many rules of each scope count.
func widthsOf(rules []Rule) (widths [types.NumQuotaScopes]int) {
	for _, r := range rules {
		if r.Rate > 0 {
			widths[r.Scope]++
		}
	}
	return widths
}

// Take asks for one request that says it brings so many bytes. All rules that apply are
// looked at; then all are charged, or, where one refuses, none. More than a burst at once
// is admitted when all of the burst is there, and owed: what comes next waits for it.
func (q *Quota) Take(now types.Instant, who Subject, bytes uint64) (v Result) {
	q.find(now, &who, bytes, q.rulesFor(&who), false)
	q.checkRules(&v)
	switch {
	case !v.Refused:
		q.charge(&who, &v)
	case v.RetryAfter > 0:
		v.RetryAfter += time.Duration(q.latest - now)
	}
	return v
}

// Charge counts bytes that a request turned out to have beyond what Take was told. It
// refuses nobody, for they are had: they are owed, and the next one waits. What is owed is
// not bounded by the burst, or who does not say how much comes would have it for nothing;
// it is by MaxDebt, so that no mistake shuts anybody out for longer than a day.
func (q *Quota) Charge(now types.Instant, who Subject, bytes uint64) {
	q.latest = max(now, q.latest)
	q.owe(&who, bytes, false)
	q.pace(now, bytes, q.bytes)
}

// owe is Charge but for the instance.
func (q *Quota) owe(who *Subject, bytes uint64, common bool) {
	q.find(q.latest, who, bytes, q.rulesFor(who)&q.bytes, common)
	var v Result
	q.checkRules(&v)
	q.charge(who, &v) // whatever it is
}

// Shared is how often those who have no row of their own asked the counter that they share
// under a rule, from 1.
func (q *Quota) Shared(rule int) uint64 { return q.shared[rule-1] }

// Subjects is how many subjects of a scope have counters.
func (q *Quota) Subjects(scope types.QuotaScope) int { return q.tables[scope].rows.Len() }

// rulesFor are the rules that apply to one.
func (q *Quota) rulesFor(who *Subject) uint16 {
	types.Assert(who.Key == 0 || who.Tenant != 0, "quota: a key of nobody")
	rules := q.applies[who.Class]
	if who.Key == 0 {
		rules &^= q.keyed
	}
	for m := rules & q.routed; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros16(m); q.gauges[i].Route != who.Route {
			rules &^= 1 << i
		}
	}
	return rules
}

// lookup is where the counters of a request stand, and where they would.
type lookup struct {
	who         Subject
	bytes       uint64
	rules       uint16
	places      [types.NumQuotaScopes]uint32 // of the row in a scope's table, or one of those below
	afterCharge [MaxRules]nanos              // what would be used of each rule
}

const (
	notSearched = math.MaxUint32     // not looked for
	newRow      = math.MaxUint32 - 1 // there is none, and there is room for one
	sharedRow   = math.MaxUint32 - 2 // there is none, nor room
	ruleRow     = math.MaxUint32 - 3 // the rule has one counter, whoever asks
)

// find looks for the counters of a request, and for room where there are none yet. It
// changes none: only what is idle may leave, and the hand moves. With common, a peer is
// counted by what those share who have no counter of their own.
func (q *Quota) find(now types.Instant, who *Subject, bytes uint64, rules uint16, common bool) {
	q.latest = max(now, q.latest)
	f := &q.asked
	f.who, f.bytes, f.rules = *who, bytes, rules
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
			f.places[g.Scope] = q.tables[g.Scope].find(who.key(g.Scope), q.latest)
		}
		if f.places[g.Scope] == sharedRow {
			q.shared[i]++
		}
	}
}

// used is how much a request's counter of a rule has taken.
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

// checkRules looks at all rules of a request. Of those that refuse it tells the one that
// does so for longest.
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

// report is what callers are told of a rule of which so much is used.
func (v *Result) report(rule int, g *gauge, used nanos) {
	v.Rule, v.Left, v.Reset = uint8(rule+1), uint32(min(g.left(used), math.MaxUint32)), used.ceil()
}

// charge counts a request against all its rules, and tells the one of them that has used
// the largest part of its burst, to the nanosecond.
func (q *Quota) charge(who *Subject, v *Result) {
	f, told := &q.asked, -1
	for m := f.rules; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		g := &q.gauges[i]
		if g.Rate == 0 {
			continue // a shadow's
		}
		if g.Unit == types.UnitRequests || f.bytes > 0 {
			q.put(who, i, f.afterCharge[i])
		}
		if !g.Shadow && (told < 0 || lessOf(f.afterCharge[told], q.gauges[told].full, f.afterCharge[i], g.full)) {
			told = i
		}
	}
	if told >= 0 {
		v.report(told, &q.gauges[told], f.afterCharge[told])
	}
}

// lessOf reports a/ofA < b/ofB, each to the nanosecond.
func lessOf(a, ofA, b, ofB nanos) bool {
	hi, lo := bits.Mul64(uint64(a.ns), uint64(ofB.ns))
	hi2, lo2 := bits.Mul64(uint64(b.ns), uint64(ofA.ns))
	return hi < hi2 || hi == hi2 && lo < lo2
}

// put writes a counter of a request down.
func (q *Quota) put(who *Subject, rule int, used nanos) {
	g := &q.gauges[rule]
	end := nanos{ns: int64(q.latest)}.plus(used, g.Rate)
	t, place := &q.tables[g.Scope], &q.asked.places[g.Scope]
	switch *place {
	case sharedRow, ruleRow:
		q.common[rule] = end
		return
	case newRow:
		*place = t.rows.Put(who.key(g.Scope), noValue{})
	}
	t.set(*place, g.slot, end)
}
