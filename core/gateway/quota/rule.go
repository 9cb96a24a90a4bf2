package quota

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Limits that no configuration changes.
const (
	MaxRules = 16
	MaxRate  = 1 << 50              // units in Every
	MaxEvery = 31 * 24 * time.Hour  // a longer quota would have to be durable
	MaxSpan  = 366 * 24 * time.Hour // longest time in which a burst refills
	MaxDebt  = 24 * time.Hour       // largest debt, as the time to pay it back
)

// The sum of any clocks within a hundred years fits in 63 bits.
const _ = uint64(1<<63 - 1 - (100*366*24*time.Hour + MaxSpan + 2*(MaxSpan+MaxDebt)))

// Why a rule is invalid, or rules are invalid together.
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

// ClassSet is a set of classes.
type ClassSet = event.ClassSet

// AllClasses are all classes.
const AllClasses ClassSet = 1<<types.NumClasses - 1

// ClassSetOf returns the set of some classes.
func ClassSetOf(classes ...types.Class) (set ClassSet) {
	for _, c := range classes {
		set |= 1 << c
	}
	return set
}

// A Rule is one quota. The zero Rule is an empty place: it applies to no request.
type Rule event.Quota

// Empty reports whether r is an empty place.
func (r Rule) Empty() bool { return r == Rule{} }

// Check returns why r is invalid.
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

// CheckRules returns why the rules are invalid together. Empty places are skipped.
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

// burstCost returns the cost of the burst: the time in which it refills.
func (r Rule) burstCost() nanos {
	return times(r.Burst, r.Every, r.Rate, nanos{ns: int64(MaxSpan) + 1})
}

// gauge is a rule with its derived values.
type gauge struct {
	Rule
	slot int   // index of the rule's counter in a row of its scope
	one  nanos // cost of one unit
	full nanos // cost of the burst
	most nanos // largest distance of a counter from now: the burst and MaxDebt
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

// cost returns the cost of a request with a number of bytes.
func (g *gauge) cost(bytes uint64) nanos {
	if g.Unit == types.UnitRequests {
		return g.one
	}
	return times(bytes, g.Every, g.Rate, g.most)
}

// used returns the part of the rule that a counter has used and that has not refilled: above full
// it is debt.
func (g *gauge) used(counter nanos, now types.Instant) nanos {
	if at := (nanos{ns: int64(now)}); at.less(counter) {
		return counter.minus(at, g.Rate)
	}
	return nanos{}
}

// take returns the used part after a cost, and how long until the cost may be taken; 0 means now.
// A cost above the burst may be taken when the burst is full; the excess is owed. Debt above
// MaxDebt is dropped.
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

// left returns how many whole units may be taken now.
func (g *gauge) left(used nanos) uint64 {
	if g.full.less(used) || g.Rate == 0 {
		return 0
	}
	return units(g.full.minus(used, g.Rate), g.Every, g.Rate)
}
