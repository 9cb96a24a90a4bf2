// Package quota is the reference model of core/gateway/quota: a list of buckets that are drawn
// from and refill, as fractions. It shares no code with core/gateway/quota, so that both cannot
// have the same bug.
package quota

import (
	"math/big"
	"time"

	"macronode/core/types"
)

// Rule is a quota rule.
type Rule struct {
	Scope       types.QuotaScope
	Unit        types.QuotaUnit
	Rate, Burst uint64
	Every       time.Duration
	For         [types.NumClasses]bool
	Shadow      bool
	Route       uint16
}

// Subject is the subject of a request.
type Subject struct {
	Peer   types.NameHash
	Key    types.KeyID
	Tenant types.Tenant
	Class  types.Class
	Route  uint16
}

// bucket is what one subject has drawn under one rule and what has not refilled.
type bucket struct {
	rule    int
	subject string
	drawn   *big.Rat // in units
	at      types.Instant
}

// State has all buckets that are not full, and for each rule the bucket that subjects without
// room share. A subject with one bucket that is not full has room for all its buckets.
type State struct {
	Rules    []Rule
	Subjects [types.NumQuotaScopes]int // number of subjects of each scope with their own buckets
	Debt     time.Duration

	buckets []*bucket
	common  map[int]*bucket
	Charges []*Charge     // of requests in progress, by place
	Now     types.Instant // the latest time
	Shared  map[int]int
}

// Result is the outcome of a rule for the caller.
type Result struct {
	Refused bool
	Rule    int // from 1
	Left    uint64
	Reset   time.Duration
	Retry   time.Duration
	Shadow  map[int]bool
}

func number(n uint64) *big.Rat               { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }
func (r Rule) takes(units *big.Rat) *big.Rat { return new(big.Rat).Quo(units, r.each()) }
func (r Rule) each() *big.Rat                { return new(big.Rat).Quo(number(r.Rate), number(uint64(r.Every))) }
func (r Rule) brings(span time.Duration) *big.Rat {
	return new(big.Rat).Mul(number(uint64(span)), r.each())
}

// whole returns the least time in which a number of units refill.
func (r Rule) whole(units *big.Rat) time.Duration {
	ns := r.takes(units)
	up := new(big.Int).Add(ns.Num(), new(big.Int).Sub(ns.Denom(), big.NewInt(1)))
	return time.Duration(up.Div(up, ns.Denom()).Int64())
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// Pass advances the time: buckets refill, and full ones are removed.
func (s *State) Pass(now types.Instant) {
	if now < s.Now {
		return
	}
	s.Now = now
	var rest []*bucket
	for _, b := range s.buckets {
		if s.fill(b); b.drawn.Sign() > 0 {
			rest = append(rest, b)
		}
	}
	s.buckets = rest
	for i := range s.Rules {
		if s.common[i] != nil {
			s.fill(s.common[i])
		}
	}
}

func (s *State) fill(b *bucket) {
	b.drawn = new(big.Rat).Sub(b.drawn, s.Rules[b.rule].brings(time.Duration(s.Now-b.at)))
	if b.at = s.Now; b.drawn.Sign() < 0 {
		b.drawn = new(big.Rat)
	}
}

// subject returns the subject for which a rule counts a request, if it counts the request.
func (s *State) subject(rule int, caller Subject) (string, bool) {
	r := s.Rules[rule]
	switch {
	case !r.For[caller.Class], r.Scope == types.ScopeInstance:
		return "", false
	case r.Scope == types.ScopePeer:
		return string(caller.Peer[:]), true
	case r.Scope == types.ScopeRoute:
		return "all", r.Route == caller.Route
	case caller.Key == 0:
		return "", false
	case r.Scope == types.ScopeKey:
		return number(uint64(caller.Key)).String(), true
	}
	return number(uint64(caller.Tenant)).String(), true
}

// own reports whether a subject has a bucket that is not full, under any rule of a scope; many is
// the number of subjects that have.
func (s *State) own(scope types.QuotaScope, subject string) (own bool, many int) {
	met := map[string]bool{}
	for _, b := range s.buckets {
		if s.Rules[b.rule].Scope == scope {
			met[b.subject] = true
		}
	}
	return met[subject], len(met)
}

// find returns the bucket of each rule that applies: the subject's own, a new one that is not
// stored yet, or the shared one.
func (s *State) find(caller Subject, only func(Rule) bool, common bool) []*bucket {
	found := make([]*bucket, len(s.Rules))
	for i, r := range s.Rules {
		name, applies := s.subject(i, caller)
		if !applies || !only(r) {
			continue
		}
		own, many := s.own(r.Scope, name)
		if r.Rate > 0 && r.Scope != types.ScopeRoute && (common && r.Scope == types.ScopePeer || !own && many >= s.Subjects[r.Scope]) {
			found[i] = s.commonOf(i)
			s.Shared[i]++
			continue
		}
		found[i] = &bucket{i, name, new(big.Rat), s.Now}
		for _, b := range s.buckets {
			if b.rule == i && b.subject == name {
				found[i] = b
			}
		}
	}
	return found
}

func (s *State) commonOf(rule int) *bucket {
	if s.common == nil {
		s.common = map[int]*bucket{}
	}
	if s.common[rule] == nil {
		s.common[rule] = &bucket{rule: rule, drawn: new(big.Rat), at: s.Now}
	}
	return s.common[rule]
}

// units returns what a request of a number of bytes draws.
func (r Rule) units(bytes uint64) uint64 {
	if r.Unit == types.UnitRequests {
		return 1
	}
	return bytes
}

// short returns how many units must refill before units may be drawn, or before the bucket is
// full if that is less.
func (s *State) short(b *bucket, drawn *big.Rat, units uint64) *big.Rat {
	burst := number(s.Rules[b.rule].Burst)
	after := new(big.Rat).Add(drawn, least(number(units), burst))
	return after.Sub(after, burst)
}

// draw takes units out of a bucket. The deficit is owed, at most what refills in Debt.
func (s *State) draw(b *bucket, units uint64) {
	r := s.Rules[b.rule]
	most := new(big.Rat).Add(number(r.Burst), r.brings(s.Debt))
	b.drawn = least(new(big.Rat).Add(b.drawn, number(units)), most)
	held := b == s.common[b.rule] || b.drawn.Sign() == 0
	for _, other := range s.buckets {
		held = held || other == b
	}
	if !held {
		s.buckets = append(s.buckets, b)
	}
}

// left returns how many whole units are left.
func (s *State) left(b *bucket, drawn *big.Rat) uint64 {
	r := new(big.Rat).Sub(number(s.Rules[b.rule].Burst), drawn)
	if s.Rules[b.rule].Rate == 0 || r.Sign() <= 0 {
		return 0
	}
	return floor(r).Uint64()
}

// Take checks every rule; if none rejects, it draws from all.
func (s *State) Take(now types.Instant, caller Subject, bytes uint64) Result {
	s.Pass(now)
	result := Result{Shadow: map[int]bool{}}
	found := s.find(caller, func(Rule) bool { return true }, false)
	never := false
	for i, b := range found {
		if b == nil {
			continue
		}
		r := s.Rules[i]
		drawn := s.freeOf(b, caller)
		short := s.short(b, drawn, r.units(bytes))
		switch {
		case r.Rate > 0 && short.Sign() <= 0:
		case r.Shadow:
			result.Shadow[i+1] = true
		case r.Rate == 0:
			if !never {
				result.Refused, result.Rule, result.Left, result.Reset, result.Retry = true, i+1, 0, 0, 0
			}
			never = true
		case !never && r.whole(short) > result.Retry:
			result.Refused, result.Rule, result.Left, result.Reset, result.Retry = true, i+1, s.left(b, drawn), r.whole(drawn), r.whole(short)
		}
	}
	if result.Refused {
		if result.Retry > 0 {
			result.Retry += time.Duration(s.Now - now)
		}
		return result
	}
	s.drawAll(found, bytes, &result)
	return result
}

func (s *State) drawAll(found []*bucket, bytes uint64, result *Result) {
	used, whole := new(big.Int), new(big.Int) // nanoseconds, of the reported rule
	for i, b := range found {
		r := s.Rules[i]
		if b == nil || r.Rate == 0 {
			continue
		}
		s.draw(b, r.units(bytes))
		u, w := floor(r.takes(b.drawn)), floor(r.takes(number(r.Burst)))
		larger := new(big.Int).Mul(u, whole).Cmp(new(big.Int).Mul(used, w)) > 0
		if !r.Shadow && (result.Rule == 0 || larger) {
			used, whole = u, w
			result.Rule, result.Left, result.Reset = i+1, s.left(b, b.drawn), r.whole(b.drawn)
		}
	}
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }

// Charge draws bytes that were used, without rejecting.
func (s *State) Charge(now types.Instant, caller Subject, bytes uint64) {
	s.Pass(now)
	s.drawAll(s.find(caller, counts, false), bytes, &Result{})
	s.pace(bytes)
}

func counts(r Rule) bool { return r.Unit == types.UnitBytes }

func (s *State) pace(bytes uint64) {
	for i, r := range s.Rules {
		if r.Scope == types.ScopeInstance && counts(r) && r.Rate > 0 {
			s.draw(s.commonOf(i), bytes)
		}
	}
}

// Next returns how long the rules of the instance delay a request, and the rule with the longest
// delay; ok is false if it waits for ever.
func (s *State) Next(now types.Instant, bytes uint64) (wait time.Duration, rule int, ok bool) {
	s.Pass(now)
	for i, r := range s.Rules {
		if r.Scope != types.ScopeInstance || r.Shadow {
			continue
		}
		if r.Rate == 0 {
			return 0, i + 1, false
		}
		short := s.short(s.commonOf(i), s.commonOf(i).drawn, r.units(bytes))
		if short.Sign() > 0 && r.whole(short) > wait {
			wait, rule = r.whole(short), i+1
		}
	}
	return wait, rule, true
}

// Spend draws from the buckets of the instance, and returns the shadow rules that were short.
func (s *State) Spend(now types.Instant, bytes uint64) map[int]bool {
	s.Pass(now)
	shadow := map[int]bool{}
	for i, r := range s.Rules {
		if r.Scope != types.ScopeInstance {
			continue
		}
		if r.Shadow && (r.Rate == 0 || s.short(s.commonOf(i), s.commonOf(i).drawn, r.units(bytes)).Sign() > 0) {
			shadow[i+1] = true
		}
		if r.Rate > 0 {
			s.draw(s.commonOf(i), r.units(bytes))
		}
	}
	return shadow
}
