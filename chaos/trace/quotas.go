package trace

import (
	"time"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// quotaState has all quotas.
type quotaState struct {
	rules []rule
	most  [types.NumQuotaScopes]int
	note  func(what string)
}

func newPurses(rules []quota.Rule, l quota.Limits) (p quotaState) {
	p.note = ignoreNote
	p.most = [types.NumQuotaScopes]int{types.ScopePeer: l.Peers, types.ScopeKey: l.Keys, types.ScopeTenant: l.Tenants}
	for _, r := range rules {
		p.rules = append(p.rules, newRule(r))
	}
	return p
}

// renews replaces the rules. The used part of a kept rule stays used, in units, at most the new
// burst; the debt stays. The result has the rules that start empty: bit i is rule i+1.
func (p *quotaState) renews(now types.Instant, g *event.Policy) (others uint16) {
	was := p.rules
	p.rules = nil
	for i, r := range g.Quotas {
		q := newRule(quota.Rule(r))
		if i >= len(was) || g.ResetQuotas>>i&1 == 1 || !q.keeps(&was[i], now, p.note) {
			others |= 1 << i
		}
		p.rules = append(p.rules, q)
	}
	return others
}

// shares reports whether there is no room for a subject of a scope: the limit of subjects with
// used units is reached.
func (p *quotaState) shares(scope types.QuotaScope, s subject, now types.Instant) bool {
	var met []subject
	for i := range p.rules {
		r := &p.rules[i]
		if r.Scope != scope {
			continue
		}
		for _, b := range r.buckets {
			if b.whole.had(now).none() {
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

// bucket returns a subject's bucket.
func (p *quotaState) bucket(r *rule, s subject, now types.Instant) *point {
	if r.Scope == types.ScopeInstance || r.Scope == types.ScopeRoute || p.shares(r.Scope, s, now) {
		return &r.common
	}
	rest := r.buckets[:0]
	for _, b := range r.buckets {
		if b.of == s || !b.whole.had(now).none() {
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

// take checks all rules except those of the instance, and charges all or none.
func (p *quotaState) take(now types.Instant, in *event.Admit, bytes uint64, held func(types.Instant, int, *event.Admit) time.Duration) (v event.Decision) {
	var counts [quota.MaxRules]bool
	var after [quota.MaxRules]span
	refuses, longest := -1, time.Duration(0)
	for i := range p.rules {
		r := &p.rules[i]
		s, ok := r.subject(in)
		if !ok || r.Scope == types.ScopeInstance {
			continue
		}
		wait := time.Duration(quota.Never)
		if r.Rate > 0 {
			counts[i] = true
			used := p.bucket(r, s, now).had(now)
			after[i], _ = r.wants(used, bytes)
			_, wait = r.wants(used.less(held(now, i, in)), bytes)
		}
		if wait > 0 && r.Shadow {
			v.Shadow |= 1 << i
		} else if wait > longest {
			refuses, longest = i, wait
		}
	}
	if refuses >= 0 {
		r := &p.rules[refuses]
		v.Reason = event.RejectQuotaExceeded
		if longest < time.Duration(quota.Never) {
			s, _ := r.subject(in)
			v.RetryAfter = longest
			r.tell(&v, refuses, p.bucket(r, s, now).had(now).less(held(now, refuses, in)))
		} else {
			r.tell(&v, refuses, span{})
		}
		return v
	}
	p.charge(now, in, bytes, &v, counts, after)
	return v
}

// charge charges all rules, and reports the one with the largest used part.
func (p *quotaState) charge(now types.Instant, in *event.Admit, bytes uint64, v *event.Decision, counts [quota.MaxRules]bool, after [quota.MaxRules]span) {
	var shares [types.NumQuotaScopes]bool // before the charge
	for i := range p.rules {
		if r := &p.rules[i]; counts[i] {
			s, _ := r.subject(in)
			shares[r.Scope] = r.Scope == types.ScopeRoute || p.shares(r.Scope, s, now)
		}
	}
	got := -1
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
		if r.Unit == types.UnitRequests || bytes > 0 {
			*to = after[i].back(now)
		}
		if !r.Shadow && (got < 0 || more(after[i], r.full, after[got], p.rules[got].full)) {
			got = i
		}
	}
	if got >= 0 {
		p.rules[got].tell(v, got, after[got])
	}
}

// paced returns how long the rules of the instance delay a request behind a number of others.
func (p *quotaState) paced(now types.Instant, behind int, of func(types.QuotaUnit) bool) (wait time.Duration) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.ofInstance() || r.Shadow || !of(r.Unit) {
			continue
		}
		if r.Rate == 0 {
			return time.Duration(quota.Never)
		}
		used := r.common.had(now)
		used.ns += r.one * time.Duration(behind)
		_, w := r.wants(used, 0)
		wait = max(wait, w)
	}
	return wait
}

func inAll(types.QuotaUnit) bool         { return true }
func inRequests(of types.QuotaUnit) bool { return of == types.UnitRequests }
func inBytes(of types.QuotaUnit) bool    { return of == types.UnitBytes }

// spends charges an admitted request, or further bytes of it, to the instance.
func (p *quotaState) spends(now types.Instant, bytes uint64, of func(types.QuotaUnit) bool) (shadow uint16) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.ofInstance() || !of(r.Unit) {
			continue
		}
		if r.Rate == 0 {
			if r.Shadow {
				shadow |= 1 << i
			}
			continue
		}
		after, wait := r.wants(r.common.had(now), bytes)
		if r.Shadow && wait > 0 {
			shadow |= 1 << i
		}
		if r.Unit == types.UnitRequests || bytes > 0 {
			r.common = after.back(now)
		}
	}
	return shadow
}

// part returns the bytes charged on arrival: at most a quantum, and less if its quotas are slow.
func (d *gate) part(in *event.Admit) uint64 {
	bytes := min(uint64(max(in.DeclaredBytes, 0)), d.limits.Quantum)
	for bytes > d.limits.Least {
		long := false
		for i := range d.quotaState.rules {
			r := &d.quotaState.rules[i]
			if _, mine := r.subject(in); r.Unit != types.UnitBytes || r.Shadow || r.Rate == 0 {
				continue
			} else if r.ofInstance() {
				long = long || r.cost(bytes) > d.limits.Wait/2
			} else if mine {
				long = long || r.cost(bytes) > in.TimeLeft/64
			}
		}
		if !long {
			break
		}
		bytes = max(bytes/2, d.limits.Least)
	}
	return bytes
}

// byBytes reports whether a rule counts the bytes of a request; for nil, whether any rule does.
func (p *quotaState) byBytes(in *event.Admit) bool {
	for i := range p.rules {
		r := &p.rules[i]
		if r.Unit != types.UnitBytes {
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

// ofInstance reports whether a rule of the instance counts bytes: then parts of bodies take
// turns.
func (p *quotaState) ofInstance() bool {
	for i := range p.rules {
		if r := &p.rules[i]; r.ofInstance() && r.Unit == types.UnitBytes {
			return true
		}
	}
	return false
}

// sharesPeer reports whether the peer of a request is charged to the shared bucket, by rules of
// some units.
func (p *quotaState) sharesPeer(now types.Instant, in *event.Admit, of func(types.QuotaUnit) bool) bool {
	for i := range p.rules {
		r := &p.rules[i]
		if s, counts := r.subject(in); r.Scope == types.ScopePeer && counts && r.Rate > 0 && of(r.Unit) {
			return p.shares(types.ScopePeer, s, now)
		}
	}
	return false
}

// returns gives back the charge of a request: everything, or the bytes only. A changed rule has
// charged at most the last bytes; the shared bucket has what was charged since the peer lost its
// own.
func (p *quotaState) returns(now types.Instant, g *gateRequest, bytes uint64, all bool) {
	late, peer := min(bytes, g.part-g.old), min(bytes, g.peer)
	for i := range p.rules {
		r := &p.rules[i]
		s, counts := r.subject(&g.in)
		if !counts || r.Rate == 0 || r.Scope == types.ScopeInstance || !all && r.Unit != types.UnitBytes {
			continue
		}
		back := bytes
		if r.Scope == types.ScopePeer {
			back = peer
		}
		if g.later>>i&1 == 1 {
			if back = min(back, late); r.Unit == types.UnitRequests || back == 0 {
				p.note("ends by a rule that never charged it")
				continue
			}
			p.note("given back what a later rule has charged")
		}
		to := &r.common
		if r.Scope == types.ScopePeer && g.common {
			p.note("given back to what many share")
		}
		if r.Scope != types.ScopeRoute && !(r.Scope == types.ScopePeer && g.common) {
			to = r.known(s)
		}
		if to == nil || to.had(now).none() {
			p.note("given back what had come back by itself")
			continue
		}
		*to = to.had(now).less(r.cost(back)).back(now)
	}
	g.part, g.peer = g.part-bytes, g.peer-peer
	g.old = min(g.old, g.part)
}

// known returns the bucket of a subject, if it has one.
func (r *rule) known(s subject) *point {
	for i := range r.buckets {
		if r.buckets[i].of == s {
			return &r.buckets[i].whole
		}
	}
	return nil
}

// settled corrects the charge of a request to the bytes that it used: the rest is given back, the
// excess is owed. Bytes that did not pass were not charged to the instance.
func (p *quotaState) settled(now types.Instant, g *gateRequest, bytes uint64) {
	if !p.byBytes(nil) {
		return
	}
	if bytes < g.part {
		p.returns(now, g, g.part-bytes, false)
	} else if bytes > g.part {
		p.owes(now, g, bytes-g.part)
	}
	if bytes >= g.paced {
		p.spends(now, bytes-g.paced, inBytes)
		return
	}
	for i := range p.rules {
		r, down := &p.rules[i], bytes
		if !r.ofInstance() || r.Unit != types.UnitBytes || r.Rate == 0 {
			continue
		}
		if g.later>>i&1 == 1 {
			down = max(bytes, g.oldPaced)
		}
		if down < g.paced {
			r.common = r.common.had(now).less(r.cost(g.paced - down)).back(now)
		}
	}
}

// owes charges further bytes of a request without checking.
func (p *quotaState) owes(now types.Instant, g *gateRequest, bytes uint64) {
	shares := g.common || p.sharesPeer(now, &g.in, inBytes)
	for i := range p.rules {
		r := &p.rules[i]
		s, counts := r.subject(&g.in)
		if !counts || r.Rate == 0 || r.Unit != types.UnitBytes || r.Scope == types.ScopeInstance {
			continue
		}
		to := &r.common
		if r.Scope != types.ScopePeer || !shares {
			to = p.bucket(r, s, now)
		}
		after, _ := r.wants(to.had(now), bytes)
		if *to = after.back(now); after.over(r.full) {
			p.note("owes more than its burst")
		}
	}
}
