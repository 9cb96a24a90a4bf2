package trace

import (
	"math/big"
	"math/bits"
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// A rule is one quota with its buckets. What is of a key or a tenant is only ever looked at
// for who has shown a key: so what a stranger does is nothing to it.
type rule struct {
	quota.Rule
	one, full time.Duration // a unit, and all of the burst
	buckets   []bucket      // of subjects that have had something
	common    point
}

// A bucket is what one subject has had by one rule: it has all of it again at a point.
type bucket struct {
	of    subject
	whole point
}

// subject is a peer, a key or a tenant; of those who share, and of the instance or a route,
// there is one.
type subject struct {
	peer types.NameHash
	of   uint64
}

// A point is an instant, or parts of a nanosecond behind it: of as many as its rule's rate. A
// unit is whole nanoseconds, so that only a change of its pace leaves any.
type point struct {
	at   types.Instant
	part uint64
}

// A span is what is used of a rule: until a point.
type span struct {
	ns   time.Duration
	part uint64
}

// had is what of a bucket is not yet back.
func (p point) had(now types.Instant) span {
	if p.at < now {
		return span{}
	}
	return span{time.Duration(p.at - now), p.part}
}

// back is when so much is back.
func (s span) back(now types.Instant) point { return point{now.Add(s.ns), s.part} }

func (s span) none() bool { return s == span{} }

// ceil is the first whole nanosecond behind it.
func (s span) ceil() time.Duration {
	if s.part > 0 {
		return s.ns + 1
	}
	return s.ns
}

// over reports that it is more than so many nanoseconds, most is no more than they are, and
// less is without them.
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

// newRule is a rule that nobody has had anything by. One of which a unit takes a part of a
// nanosecond is not one to be held to.
func newRule(r quota.Rule) rule {
	q := rule{Rule: r}
	if r.Rate > 0 {
		types.Assert(uint64(r.Every)%r.Rate == 0, "trace: a unit is no whole number of nanoseconds")
		q.one = r.Every / time.Duration(r.Rate)
		q.full = q.one * time.Duration(r.Burst)
	}
	return q
}

// keeps takes over what was had by a rule that was in the same place, unless it is another.
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
			note("a change while somebody owes")
		}
		if r.one != was.one {
			note("a change of pace, and somebody has had something")
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

// takesOver is what is used of r when so much was used of another rule: as many units, and to the
// next part where they do not come out even. Of those that were had it is no more than the burst,
// with those that are owed no more than comes back in a day.
func (r *rule) takesOver(was *rule, used span, note func(string)) span {
	had := used.most(was.full)
	owed := was.parts(used)
	owed.Sub(owed, was.parts(had))
	sum, full := r.of(was, was.parts(had)), r.parts(span{ns: r.full})
	if sum.Cmp(full) > 0 {
		note("a change to less than somebody has had")
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

// parts is a span as a number of parts: a unit is as many as Every has nanoseconds.
func (r *rule) parts(s span) *big.Int {
	n := new(big.Int).Mul(big.NewInt(int64(s.ns)), new(big.Int).SetUint64(r.Rate))
	return n.Add(n, new(big.Int).SetUint64(s.part))
}

// of is as many units in parts of r, where they are so many parts of another rule: the next
// whole number.
func (r *rule) of(was *rule, parts *big.Int) *big.Int {
	n := new(big.Int).Mul(parts, big.NewInt(int64(r.Every)))
	n.Add(n, big.NewInt(int64(was.Every)-1))
	return n.Quo(n, big.NewInt(int64(was.Every)))
}

// ofInstance reports that a rule paces the instance: an empty place does not.
func (r *rule) ofInstance() bool { return r.Scope == types.ScopeInstance && r.Classes != 0 }

// subject is whom a rule counts a request for; false where it does not.
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

// cost is what a request of so many bytes takes.
func (r *rule) cost(bytes uint64) time.Duration {
	if r.Unit == types.UnitRequests {
		return r.one
	}
	if bytes > uint64((r.full+quota.MaxDebt)/r.one) {
		return r.full + quota.MaxDebt
	}
	return r.one * time.Duration(bytes)
}

// wants is what of a rule is used behind a request, and how long that waits for it.
func (r *rule) wants(used span, bytes uint64) (after span, wait time.Duration) {
	cost := r.cost(bytes)
	after = span{used.ns + cost, used.part}.most(r.full + quota.MaxDebt)
	return after, max(0, span{used.ns + min(cost, r.full) - r.full, used.part}.ceil())
}

// tell is how somebody stands with a rule.
func (r *rule) tell(v *event.Decision, number int, used span) {
	v.Rule, v.Left, v.Reset = uint8(number+1), 0, used.ceil()
	if r.Rate > 0 && used.ns < r.full {
		v.Left = uint32((r.full - used.ceil()) / r.one)
	}
}

// more reports that a larger part of one burst is used than of another, to the nanosecond.
func more(a span, of time.Duration, b span, than time.Duration) bool {
	hi, lo := bits.Mul64(uint64(a.ns), uint64(than))
	high, low := bits.Mul64(uint64(b.ns), uint64(of))
	return hi > high || hi == high && lo > low
}
