package upstream

import (
	"macronode/core/event"
	"macronode/core/words"
)

// Renew puts rules in the place of those that are. An endpoint that stays keeps its health,
// its ejection and its calls, an upstream its breaker and what it has saved. Of one that is
// none any more, or fresh, nothing is known from now on: calls that are with it are heard
// out, nothing is learnt of how they end, and where they are tried again, then elsewhere. An
// upstream of which no endpoint stays begins anew; it may be another service, so nothing
// that was with it is tried again. What is out or open ends when it would
// have ended. A breaker that is half-open beyond its new rules looks anew.
//
// It allocates where there are more upstreams than there ever were, and looks at every call.
func (m *Upstreams) Renew(now words.Instant, rules []Rules) {
	words.Assert(CheckRules(rules) == nil, "upstream: rules without sense")
	m.Tick(now)
	for of := range m.upstreams {
		m.upstreams[of].refill(now) // by the rules that were
	}
	for len(m.upstreams) < len(rules) {
		m.add(Rules{})
	}
	var gone [MaxUpstreams]uint16 // endpoints whose calls are past
	for of := range m.upstreams {
		var r Rules
		if of < len(rules) {
			r = rules[of]
		}
		gone[of] = m.renew(&m.upstreams[of], r)
		m.setDown(uint16(of))
	}
	for i := range m.calls {
		c := &m.calls[i]
		if c.phase == free {
			continue
		}
		c.last = c.last || gone[c.of] == 1<<MaxEndpoints-1
		c.past = c.past || c.phase != resting && gone[c.of]>>c.at&1 == 1
		c.tried &^= gone[c.of]
		u := &m.upstreams[c.of]
		if u.most = max(u.most, c.tries); c.phase == resting { // it was told to come again
			u.most = max(u.most, c.tries+1)
		}
	}
	if m.any {
		m.wake(now)
		m.Tick(now)
	}
}

// renew gives one upstream its rules, and says which endpoints are none any more, or others.
func (m *Upstreams) renew(u *upstream, r Rules) (gone uint16) {
	stay := u.rules.Endpoints & r.Endpoints &^ r.Fresh
	if u.rules.Endpoints|r.Endpoints == 0 {
		return 0
	}
	if r.Fresh = 0; r.Endpoints == 0 {
		r = Rules{}
	}
	u.rules, u.most = r, r.Tries
	for n := range m.of(u) {
		e := &m.of(u)[n]
		if stay>>n&1 == 0 {
			*e = endpoint{}
			continue
		}
		if r.Fall == 0 {
			e.sick, e.turn = false, 0
		}
	}
	b := &u.breaker
	switch {
	case stay == 0:
		b.enter(event.Closed)
		b.strikes, u.budget.saved = 0, r.Spare*price
	case b.state == event.HalfOpen && (b.out > r.Floor || b.good >= r.Trials):
		b.enter(event.HalfOpen)
	}
	u.budget.saved = min(u.budget.saved, r.Hoard*price)
	return ^stay
}

// Mix is h after all of r.
func (r *Rules) Mix(h words.Hash64) words.Hash64 {
	h = h.Mix(uint64(r.Endpoints)).Mix(uint64(r.Fresh)).Mix(uint64(r.Tries)).Mix(uint64(r.Share)).Mix(uint64(r.Spare)).Mix(uint64(r.Hoard))
	h = h.Mix(uint64(r.Eject)).Mix(uint64(r.Out)).Mix(uint64(r.OutMost)).Mix(uint64(r.Least)).Mix(uint64(r.Part))
	h = h.Mix(uint64(r.Rest)).Mix(uint64(r.RestMost)).Mix(uint64(r.Floor)).Mix(uint64(r.Trials))
	return h.Mix(uint64(r.Fall)).Mix(uint64(r.Rise))
}
