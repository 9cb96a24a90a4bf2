package trace

import (
	"math/big"
	"math/bits"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// A rule is a quota with its buckets. The buckets of keys and tenants are used only for requests
// with a key, so requests without a key do not affect them.
type rule struct {
	quota.Rule
	one, full time.Duration // cost of a unit, and of the burst
	buckets   []bucket      // of subjects with used units
	common    point
}

// A bucket is the used part of one subject: it is full again at a point in time.
type bucket struct {
	of    subject
	whole point
}

// subject is a peer, a key or a tenant. The shared bucket, the instance and a route have one
// subject.
type subject struct {
	peer types.NameHash
	of   uint64
}

// A point is an instant plus a fraction of a nanosecond, in parts of the rule's rate. A unit is
// whole nanoseconds, so fractions come only from changes of the rate.
type point struct {
	at   types.Instant
	part uint64
}

// A span is the used part of a rule: the time until a point.
type span struct {
	ns   time.Duration
	part uint64
}

// had returns the part of a bucket that is not refilled.
func (p point) had(now types.Instant) span {
	if p.at < now {
		return span{}
	}
	return span{time.Duration(p.at - now), p.part}
}

// back returns when a span is refilled.
func (s span) back(now types.Instant) point { return point{now.Add(s.ns), s.part} }

func (s span) none() bool { return s == span{} }

// ceil rounds up to whole nanoseconds.
func (s span) ceil() time.Duration {
	if s.part > 0 {
		return s.ns + 1
	}
	return s.ns
}

// over reports whether a span is longer than ns, most limits it to ns, and less subtracts ns.
func (s span) over(ns time.Duration) bool { return s.ceil() > ns }

func (s span) most(ns time.Duration) span {
	if s.over(ns) {
		return span{ns: ns}
	}
	return s
}

func (s span) less(ns time.Duration) span {
	if s.ns < ns {
		return span{}
	}
	return span{s.ns - ns, s.part}
}

// newRule returns a rule without used units. A unit must cost whole nanoseconds.
func newRule(r quota.Rule) rule {
	q := rule{Rule: r}
	if r.Rate > 0 {
		types.Assert(uint64(r.Every)%r.Rate == 0, "trace: a unit costs a fraction of a nanosecond")
		q.one = r.Every / time.Duration(r.Rate)
		q.full = q.one * time.Duration(r.Burst)
	}
	return q
}

// keeps takes over the used part of the previous rule in its place, unless the rule is another
// one.
func (r *rule) keeps(was *rule, now types.Instant, note func(string)) bool {
	if r.Scope != was.Scope || r.Unit != was.Unit || r.Route != was.Route || r.Rate == 0 || was.Rate == 0 {
		return false
	}
	kept := func(whole point) point {
		used := whole.had(now)
		switch {
		case used.none():
			return point{}
		case used.over(was.full):
			note("a change with debt")
		}
		if r.one != was.one {
			note("a change of rate with used units")
		}
		return r.takesOver(was, used, note).back(now)
	}
	r.common = kept(was.common)
	for _, b := range was.buckets {
		if whole := kept(b.whole); !whole.had(now).none() {
			r.buckets = append(r.buckets, bucket{b.of, whole})
		}
	}
	return true
}

// takesOver converts the used part of another rule to the same number of units, rounded up to
// parts. The used part is at most the burst; the debt at most what refills in a day.
func (r *rule) takesOver(was *rule, used span, note func(string)) span {
	had := used.most(was.full)
	owed := was.parts(used)
	owed.Sub(owed, was.parts(had))
	sum, full := r.of(was, was.parts(had)), r.parts(span{ns: r.full})
	if sum.Cmp(full) > 0 {
		note("a change to a burst below the used units")
		sum = full
	}
	sum.Add(sum, r.of(was, owed))
	most := span{ns: r.full + quota.MaxDebt}
	if sum.Cmp(r.parts(most)) > 0 {
		return most
	}
	ns, part := sum.QuoRem(sum, new(big.Int).SetUint64(r.Rate), new(big.Int))
	return span{time.Duration(ns.Int64()), part.Uint64()}
}

// parts converts a span to parts: a unit has as many as Every has nanoseconds.
func (r *rule) parts(s span) *big.Int {
	n := new(big.Int).Mul(big.NewInt(int64(s.ns)), new(big.Int).SetUint64(r.Rate))
	return n.Add(n, new(big.Int).SetUint64(s.part))
}

// of converts parts of another rule to parts of r, rounded up.
func (r *rule) of(was *rule, parts *big.Int) *big.Int {
	n := new(big.Int).Mul(parts, big.NewInt(int64(r.Every)))
	n.Add(n, big.NewInt(int64(was.Every)-1))
	return n.Quo(n, big.NewInt(int64(was.Every)))
}

// ofInstance reports whether a rule paces the instance; an empty place does not.
func (r *rule) ofInstance() bool { return r.Scope == types.ScopeInstance && r.Classes != 0 }

// subject returns the subject for which a rule counts a request; false if it does not count it.
func (r *rule) subject(in *event.Admit) (s subject, counts bool) {
	switch {
	case !r.Classes.Has(in.Class):
	case r.Scope == types.ScopePeer:
		return subject{peer: in.Peer}, true
	case r.Scope == types.ScopeRoute:
		return subject{}, in.Route == r.Route
	case in.Key == 0:
	case r.Scope == types.ScopeKey:
		return subject{of: uint64(in.Key)}, true
	case r.Scope == types.ScopeTenant:
		return subject{of: uint64(in.Tenant)}, true
	}
	return subject{}, false
}

// cost returns the cost of a request with a number of bytes.
func (r *rule) cost(bytes uint64) time.Duration {
	if r.Unit == types.UnitRequests {
		return r.one
	}
	if bytes > uint64((r.full+quota.MaxDebt)/r.one) {
		return r.full + quota.MaxDebt
	}
	return r.one * time.Duration(bytes)
}

// wants returns the used part after a request, and how long it must wait.
func (r *rule) wants(used span, bytes uint64) (after span, wait time.Duration) {
	cost := r.cost(bytes)
	after = span{used.ns + cost, used.part}.most(r.full + quota.MaxDebt)
	return after, max(0, span{used.ns + min(cost, r.full) - r.full, used.part}.ceil())
}

// tell reports the state of a rule.
func (r *rule) tell(v *event.Decision, number int, used span) {
	v.Rule, v.Left, v.Reset = uint8(number+1), 0, used.ceil()
	if r.Rate > 0 && used.ns < r.full {
		v.Left = uint32((r.full - used.ceil()) / r.one)
	}
}

// more reports whether a larger part of one burst is used than of another, exactly.
func more(a span, of time.Duration, b span, than time.Duration) bool {
	hi, lo := bits.Mul64(uint64(a.ns), uint64(than))
	high, low := bits.Mul64(uint64(b.ns), uint64(of))
	return hi > high || hi == high && lo > low
}
