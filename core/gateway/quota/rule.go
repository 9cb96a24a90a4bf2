package quota

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Limits that no configuration moves.
const (
	MaxRules = 16
	MaxRate  = 1 << 50              // units in Every
	MaxEvery = 31 * 24 * time.Hour  // a quota of longer is an allowance, which wants to be durable
	MaxSpan  = 366 * 24 * time.Hour // in which a whole burst comes back
	MaxDebt  = 24 * time.Hour       // for which a caller may have had beyond the burst
)

// With clocks of a hundred years, no sum of them leaves 63 bits.
const _ = uint64(1<<63 - 1 - (100*366*24*time.Hour + MaxSpan + 2*(MaxSpan+MaxDebt)))

// Why a rule makes no sense, or rules do not together.
var (
	ErrTooMany         = errors.New("quota: more than 16 rules")
	ErrScope           = errors.New("quota: scope is none of instance, peer, key, tenant, route")
	ErrUnit            = errors.New("quota: unit is none of requests, bytes")
	ErrRoute           = errors.New("quota: a rule of a route names one, and no other does")
	ErrNoSubject       = errors.New("quota: no class that it names can have such a counter")
	ErrInstanceClasses = errors.New("quota: a rule of the instance is for all classes")
	ErrRate            = errors.New("quota: rate is more than 2^50")
	ErrEvery           = errors.New("quota: every must be more than 0, and at most 31 days")
	ErrNoBurst         = errors.New("quota: a rate without burst admits nothing; say rate 0 where that is meant")
	ErrSpan            = errors.New("quota: the burst takes more than 366 days to come back")
)

// ClassSet is a set of them.
type ClassSet = event.ClassSet

// AllClasses are all classes.
const AllClasses ClassSet = 1<<types.NumClasses - 1

// ClassSetOf is the set of some.
func ClassSetOf(classes ...types.Class) (set ClassSet) {
	for _, c := range classes {
		set |= 1 << c
	}
	return set
}

// A Rule is one quota. The zero Rule is an empty place: it applies to nobody.
type Rule event.Quota

// Empty reports that no rule stands in this place.
func (r Rule) Empty() bool { return r == Rule{} }

// Check says why r makes no sense.
func (r Rule) Check() error {
	keyed := r.Scope == types.ScopeKey || r.Scope == types.ScopeTenant
	switch {
	case r.Scope >= types.NumQuotaScopes:
		return ErrScope
	case r.Unit > types.UnitBytes:
		return ErrUnit
	case (r.Scope == types.ScopeRoute) != (r.Route != 0):
		return ErrRoute
	case r.Classes&^AllClasses != 0, r.Classes == 0, keyed && r.Classes == ClassSetOf(types.ClassAnon):
		return ErrNoSubject
	case r.Scope == types.ScopeInstance && r.Classes != AllClasses:
		return ErrInstanceClasses
	case r.Rate == 0:
		return nil
	case r.Rate > MaxRate:
		return ErrRate
	case r.Every <= 0 || r.Every > MaxEvery:
		return ErrEvery
	case r.Burst == 0:
		return ErrNoBurst
	case r.burstCost().ns > int64(MaxSpan):
		return ErrSpan
	}
	return nil
}

// CheckRules says why these cannot be rules together. Empty places are none.
func CheckRules(rules []Rule) error {
	for _, r := range rules {
		if err := r.Check(); err != nil && !r.Empty() {
			return err
		}
	}
	if len(rules) > MaxRules {
		return ErrTooMany
	}
	return nil
}

// burstCost is what the burst costs: the time in which all of it comes back.
func (r Rule) burstCost() nanos {
	return times(r.Burst, r.Every, r.Rate, nanos{ns: int64(MaxSpan) + 1})
}

// gauge is a rule with what it takes to measure by it.
type gauge struct {
	Rule
	slot int   // which of the counters in a row of its scope is the rule's
	one  nanos // what one unit costs
	full nanos // what the burst costs
	most nanos // how far ahead of now a counter is ever put: the burst, and MaxDebt
}

func newGauge(r Rule, slot int) gauge {
	if r.Rate == 0 {
		return gauge{Rule: r}
	}
	g := gauge{Rule: r, slot: slot, full: r.burstCost()}
	g.most = g.full.plus(nanos{ns: int64(MaxDebt)}, r.Rate)
	g.one = times(1, r.Every, r.Rate, g.most)
	return g
}

// cost is what a request of so many bytes takes of the rule.
func (g *gauge) cost(bytes uint64) nanos {
	if g.Unit == types.UnitRequests {
		return g.one
	}
	return times(bytes, g.Every, g.Rate, g.most)
}

// used is how much of the rule a counter has taken that is not yet back: beyond full it
// is debt.
func (g *gauge) used(counter nanos, now types.Instant) nanos {
	if at := (nanos{ns: int64(now)}); at.less(counter) {
		return counter.minus(at, g.Rate)
	}
	return nanos{}
}

// take is what is used after a cost, and how long it takes until that may be taken; 0: it
// may now. What costs more than the burst may when all of the burst is there: it is owed,
// and the next one waits. Debt beyond MaxDebt is forgiven.
func (g *gauge) take(used, cost nanos) (after nanos, wait time.Duration) {
	after = used.plus(cost, g.Rate)
	full := after
	if g.full.less(cost) {
		full = used.plus(g.full, g.Rate)
	}
	if g.full.less(full) {
		wait = full.minus(g.full, g.Rate).ceil()
	}
	return smaller(after, g.most), wait
}

// left is how many whole units may be taken now.
func (g *gauge) left(used nanos) uint64 {
	if g.full.less(used) || g.Rate == 0 {
		return 0
	}
	return units(g.full.minus(used, g.Rate), g.Every, g.Rate)
}
