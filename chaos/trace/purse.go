package trace

import (
	"time"

	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/words"
)

// A bucket is what one subject has had by one rule: it has all of it again at an instant.
type bucket struct {
	of    subject
	whole words.Instant
}

// subject is a peer, a key or a tenant; of those who share, and of the instance or a route,
// there is one.
type subject struct {
	peer words.ID
	of   uint64
}

// A rule is one quota with its buckets. What is of a key or a tenant is only ever looked at
// for who has shown a key: so what a stranger does is nothing to it.
type rule struct {
	quota.Rule
	one, full time.Duration // a unit, and all of the burst
	buckets   []bucket      // of subjects that have had something
	common    words.Instant
}

// purses are all quotas.
type purses struct {
	rules []rule
	most  [words.Scopes]int
	note  func(what string)
}

// newPurses counts in whole nanoseconds: a rule of which a unit takes a part of one is not
// one to be held to.
func newPurses(rules []quota.Rule, l quota.Limits) (p purses) {
	p.note = unheard
	p.most = [words.Scopes]int{words.OfPeer: l.Peers, words.OfKey: l.Keys, words.OfTenant: l.Tenants}
	for _, r := range rules {
		p.rules = append(p.rules, newRule(r))
	}
	return p
}

func newRule(r quota.Rule) rule {
	q := rule{Rule: r}
	if r.Rate > 0 {
		words.Assert(uint64(r.Every)%r.Rate == 0, "trace: a unit is no whole number of nanoseconds")
		q.one = r.Every / time.Duration(r.Rate)
		q.full = q.one * time.Duration(r.Burst)
	}
	return q
}

// renews puts rules in the place of others. What was had by one that is for the same is had,
// though no more of it than the new burst; what is owed is owed. Of the same pace: of another
// it is not one to be held to. Others are the rules that have had nothing: bit i is rule i+1.
func (p *purses) renews(now words.Instant, g *event.Gate) (others uint16) {
	was := p.rules
	p.rules = nil
	for i, r := range g.Quotas {
		q := newRule(quota.Rule(r))
		if i >= len(was) || g.Fresh>>i&1 == 1 || !q.keeps(&was[i], now, p.note) {
			others |= 1 << i
		}
		p.rules = append(p.rules, q)
	}
	return others
}

// keeps takes over what was had by a rule that was in the same place, unless it is another.
func (r *rule) keeps(was *rule, now words.Instant, note func(string)) bool {
	if r.Scope != was.Scope || r.Unit != was.Unit || r.Route != was.Route || r.Rate == 0 || was.Rate == 0 {
		return false
	}
	words.Assert(r.one == was.one, "trace: a rule of another pace")
	kept := func(whole words.Instant) words.Instant {
		used := had(whole, now)
		spent := min(used, was.full)
		if used > was.full {
			note("a change while somebody owes")
		}
		if spent > r.full {
			note("a change to less than somebody has had")
		}
		return now.Plus(min(min(spent, r.full)+used-spent, r.full+quota.MaxDebt))
	}
	r.common = kept(was.common)
	for _, b := range was.buckets {
		if b.whole > now {
			r.buckets = append(r.buckets, bucket{b.of, kept(b.whole)})
		}
	}
	return true
}

// ofInstance reports that a rule paces the instance: an empty place does not.
func (r *rule) ofInstance() bool { return r.Scope == words.OfInstance && r.Classes != 0 }

// subject is whom a rule counts a request for; false where it does not.
func (r *rule) subject(in *event.Arrive) (s subject, counts bool) {
	switch {
	case !r.Classes.Has(in.Class):
	case r.Scope == words.OfPeer:
		return subject{peer: in.Peer}, true
	case r.Scope == words.OfRoute:
		return subject{}, in.Route == r.Route
	case in.Key == 0:
	case r.Scope == words.OfKey:
		return subject{of: uint64(in.Key)}, true
	case r.Scope == words.OfTenant:
		return subject{of: uint64(in.Tenant)}, true
	}
	return subject{}, false
}

// shares reports that there is no room for a subject of a scope: as many others have had
// something, of any of its rules.
func (p *purses) shares(scope words.Scope, s subject, now words.Instant) bool {
	var met []subject
	for i := range p.rules {
		r := &p.rules[i]
		if r.Scope != scope {
			continue
		}
		for _, b := range r.buckets {
			if b.whole <= now {
				continue
			}
			if b.of == s {
				return false
			}
			known := false
			for _, other := range met {
				known = known || other == b.of
			}
			if !known {
				met = append(met, b.of)
			}
		}
	}
	return len(met) >= p.most[scope]
}

// bucket is where a subject's is, as of now.
func (p *purses) bucket(r *rule, s subject, now words.Instant) *words.Instant {
	if r.Scope == words.OfInstance || r.Scope == words.OfRoute || p.shares(r.Scope, s, now) {
		return &r.common
	}
	rest := r.buckets[:0]
	for _, b := range r.buckets {
		if b.whole > now || b.of == s {
			rest = append(rest, b)
		}
	}
	r.buckets = rest
	for i := range r.buckets {
		if r.buckets[i].of == s {
			return &r.buckets[i].whole
		}
	}
	r.buckets = append(r.buckets, bucket{of: s})
	return &r.buckets[len(r.buckets)-1].whole
}

// had is what of a bucket is not yet back.
func had(whole, now words.Instant) time.Duration { return max(0, time.Duration(whole-now)) }

// cost is what a request of so many bytes takes.
func (r *rule) cost(bytes uint64) time.Duration {
	if r.Unit == words.Requests {
		return r.one
	}
	if bytes > uint64((r.full+quota.MaxDebt)/r.one) {
		return r.full + quota.MaxDebt
	}
	return r.one * time.Duration(bytes)
}

// wants is what of a rule is used behind a request, and how long that waits for it.
func (r *rule) wants(used time.Duration, bytes uint64) (after, wait time.Duration) {
	cost := r.cost(bytes)
	return min(used+cost, r.full+quota.MaxDebt), max(0, used+min(cost, r.full)-r.full)
}

// tell is how somebody stands with a rule.
func (r *rule) tell(v *event.Verdict, number int, used time.Duration) {
	v.Rule, v.Left, v.Reset = uint8(number+1), 0, used
	if r.Rate > 0 && used < r.full {
		v.Left = uint32((r.full - used) / r.one)
	}
}

// take asks all rules that are not of the instance, and charges all or none.
func (p *purses) take(now words.Instant, in *event.Arrive, bytes uint64, held func(int, *event.Arrive) time.Duration) (v event.Verdict) {
	var counts [quota.MaxRules]bool
	var after [quota.MaxRules]time.Duration
	refuses, longest := -1, time.Duration(0)
	for i := range p.rules {
		r := &p.rules[i]
		s, ok := r.subject(in)
		if !ok || r.Scope == words.OfInstance {
			continue
		}
		wait := time.Duration(quota.Never)
		if r.Rate > 0 {
			counts[i] = true
			used := had(*p.bucket(r, s, now), now)
			after[i], _ = r.wants(used, bytes)
			_, wait = r.wants(max(0, used-held(i, in)), bytes)
		}
		if wait > 0 && r.Shadow {
			v.Shadow |= 1 << i
		} else if wait > longest {
			refuses, longest = i, wait
		}
	}
	if refuses >= 0 {
		r := &p.rules[refuses]
		v.Why = event.OverQuota
		if longest < time.Duration(quota.Never) {
			s, _ := r.subject(in)
			v.Retry = longest
			r.tell(&v, refuses, max(0, had(*p.bucket(r, s, now), now)-held(refuses, in)))
		} else {
			r.tell(&v, refuses, 0)
		}
		return v
	}
	p.charge(now, in, bytes, &v, counts, after)
	return v
}

// charge draws from all, and tells that of which the largest part is used.
func (p *purses) charge(now words.Instant, in *event.Arrive, bytes uint64, v *event.Verdict, counts [quota.MaxRules]bool, after [quota.MaxRules]time.Duration) {
	var shares [words.Scopes]bool // as it was before
	for i := range p.rules {
		if r := &p.rules[i]; counts[i] {
			s, _ := r.subject(in)
			shares[r.Scope] = r.Scope == words.OfRoute || p.shares(r.Scope, s, now)
		}
	}
	told := -1
	for i := range p.rules {
		r := &p.rules[i]
		if !counts[i] {
			continue
		}
		s, _ := r.subject(in)
		to := &r.common
		if !shares[r.Scope] {
			to = p.bucket(r, s, now)
		}
		if r.Unit == words.Requests || bytes > 0 {
			*to = now.Plus(after[i])
		}
		if !r.Shadow && (told < 0 || more(after[i], r.full, after[told], p.rules[told].full)) {
			told = i
		}
	}
	if told >= 0 {
		p.rules[told].tell(v, told, after[told])
	}
}

// more reports a/of > b/than.
func more(a, of, b, than time.Duration) bool {
	return float64(a)*float64(than) > float64(b)*float64(of)
}

// paced is how long the rules of the instance let one wait who comes behind so many others.
func (p *purses) paced(now words.Instant, behind int, requests bool) (wait time.Duration) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.ofInstance() || r.Shadow || requests && r.Unit != words.Requests {
			continue
		}
		if r.Rate == 0 {
			return time.Duration(quota.Never)
		}
		_, w := r.wants(had(r.common, now)+r.one*time.Duration(behind), 0)
		wait = max(wait, w)
	}
	return wait
}

// spends is one that goes, with so many bytes: the instance's quotas have that less.
func (p *purses) spends(now words.Instant, bytes uint64) (shadow uint16) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.ofInstance() {
			continue
		}
		after, wait := r.wants(had(r.common, now), bytes)
		if r.Shadow && (wait > 0 || r.Rate == 0) {
			shadow |= 1 << i
		}
		if r.Rate > 0 && (r.Unit == words.Requests || bytes > 0) {
			r.common = now.Plus(after)
		}
	}
	return shadow
}

// part is how much of a body is charged when it comes: a quantum at most, and less where its
// quotas would take long for that.
func (d *door) part(in *event.Arrive) uint64 {
	bytes := min(uint64(max(in.Bytes, 0)), d.limits.Quantum)
	for bytes > d.limits.Least {
		long := false
		for i := range d.purses.rules {
			r := &d.purses.rules[i]
			if _, mine := r.subject(in); r.Unit != words.Bytes || r.Shadow || r.Rate == 0 {
				continue
			} else if r.ofInstance() {
				long = long || r.cost(bytes) > d.limits.Wait/2
			} else if mine {
				long = long || r.cost(bytes) > in.Patience/64
			}
		}
		if !long {
			break
		}
		bytes = max(bytes/2, d.limits.Least)
	}
	return bytes
}

// byBytes reports that any rule counts the bytes of a request; of nobody's: that any does at all.
func (p *purses) byBytes(in *event.Arrive) bool {
	for i := range p.rules {
		r := &p.rules[i]
		if r.Unit != words.Bytes {
			continue
		}
		if in == nil || r.ofInstance() {
			return true
		}
		if _, mine := r.subject(in); mine {
			return true
		}
	}
	return false
}

// sharesPeer reports that what a request is charged as a peer's is charged to what those share
// for whom there is no room.
func (p *purses) sharesPeer(now words.Instant, in *event.Arrive) bool {
	for i := range p.rules {
		r := &p.rules[i]
		if s, counts := r.subject(in); r.Scope == words.OfPeer && counts && r.Rate > 0 {
			return p.shares(words.OfPeer, s, now)
		}
	}
	return false
}

// returns gives back what was charged for a request: of all rules, the request too; or of those
// alone that count bytes.
func (p *purses) returns(now words.Instant, g *guest, bytes uint64, all bool) {
	for i := range p.rules {
		r := &p.rules[i]
		s, counts := r.subject(&g.in)
		if !counts || r.Rate == 0 || r.Scope == words.OfInstance || !all && r.Unit != words.Bytes {
			continue
		}
		back := bytes
		if g.later>>i&1 == 1 {
			if back = min(bytes, g.part-g.old); r.Unit == words.Requests || back == 0 {
				p.note("ends by a rule that never charged it")
				continue
			}
			p.note("given back what a later rule has charged")
		}
		to := &r.common
		if r.Scope == words.OfPeer && g.common {
			p.note("given back to what many share")
		}
		if r.Scope != words.OfRoute && !(r.Scope == words.OfPeer && g.common) {
			to = nil
			for j := range r.buckets {
				if r.buckets[j].of == s {
					to = &r.buckets[j].whole
				}
			}
		}
		if to == nil || *to <= now {
			p.note("given back what had come back by itself")
			continue
		}
		*to = now.Plus(max(0, had(*to, now)-r.cost(back)))
	}
}

// settled is a request that really had so many bytes: what it was charged beyond them comes
// back, and what they are beyond that is owed.
func (p *purses) settled(now words.Instant, g *guest, bytes uint64) {
	if !p.byBytes(nil) {
		return
	}
	if bytes < g.part {
		p.returns(now, g, g.part-bytes, false)
	} else if bytes > g.part {
		p.owes(now, g, bytes-g.part)
	}
	for i := range p.rules {
		r := &p.rules[i]
		if !r.ofInstance() || r.Unit != words.Bytes || r.Rate == 0 {
			continue
		}
		if bytes < g.part {
			if g.later>>i&1 == 0 {
				r.common = now.Plus(max(0, had(r.common, now)-r.cost(g.part-bytes)))
			}
		} else if bytes > g.part {
			after, _ := r.wants(had(r.common, now), bytes-g.part)
			r.common = now.Plus(after)
		}
	}
}

// owes charges further bytes of a request, whatever there is.
func (p *purses) owes(now words.Instant, g *guest, bytes uint64) {
	shares := g.common || p.sharesPeer(now, &g.in)
	for i := range p.rules {
		r := &p.rules[i]
		s, counts := r.subject(&g.in)
		if !counts || r.Rate == 0 || r.Unit != words.Bytes || r.Scope == words.OfInstance {
			continue
		}
		to := &r.common
		if r.Scope != words.OfPeer || !shares {
			to = p.bucket(r, s, now)
		}
		after, _ := r.wants(had(*to, now), bytes)
		if *to = now.Plus(after); after > r.full {
			p.note("owes more than its burst")
		}
	}
}
