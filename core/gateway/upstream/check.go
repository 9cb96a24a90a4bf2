package upstream

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/types"
)

// Count returns the number of upstreams.
func (m *Upstreams) Count() int { return len(m.upstreams) }

// OpenCircuits returns, for each group of callers, the upstreams whose circuit is open or
// half-open: bit i is upstream i.
func (m *Upstreams) OpenCircuits() (sets [event.NumCallers]uint64) {
	for of := range m.upstreams {
		for by := range sets {
			if m.upstreams[of].groups[by].breaker.state != event.CircuitClosed {
				sets[by] |= 1 << of
			}
		}
	}
	return sets
}

// Down returns the upstreams whose endpoints all fail their health checks: bit i is upstream i.
// Requests for them are rejected until a check succeeds.
func (m *Upstreams) Down() (set uint64) { return m.down }

// setDown updates whether an upstream is down.
func (m *Upstreams) setDown(of uint16) {
	m.down &^= 1 << of
	if m.isDown(of) {
		m.down |= 1 << of
	}
}

func (m *Upstreams) isDown(of uint16) bool {
	u := &m.upstreams[of]
	for n, e := range m.endpointsOf(u) {
		if u.rules.hasEndpoint(uint8(n)) && !e.unhealthy {
			return false
		}
	}
	return u.rules.Endpoints != 0
}

// Stats returns the current state of an upstream.
func (m *Upstreams) Stats(of uint16) (v event.UpstreamStats) {
	if int(of) >= len(m.upstreams) {
		return v
	}
	u := &m.upstreams[of]
	for by := range u.groups {
		g := &u.groups[by]
		v.Circuits[by] = event.CircuitStats{State: g.breaker.state, Epoch: g.breaker.epoch, Opened: g.breaker.opened}
		v.Retries, v.RetriesDenied = v.Retries+g.budget.spent, v.RetriesDenied+g.budget.denied
	}
	for n, e := range m.endpointsOf(u) {
		if !u.rules.hasEndpoint(uint8(n)) {
			continue
		}
		v.InFlight += e.calls
		v.SeenHealthy = v.SeenHealthy || e.seenHealthy && !e.unhealthy
		for by := range e.ejections {
			if e.ejections[by].ejected {
				v.Ejected[by]++
			}
		}
		if e.unhealthy {
			v.Unhealthy++
			v.UnhealthyBits |= 1 << n
		}
		if !e.ejections[event.Authenticated].ejected && !e.unhealthy {
			v.Healthy++
		}
	}
	return v
}

// Endpoint returns the state of an endpoint: its calls, and whether it is ejected for a group of
// callers or unhealthy.
func (m *Upstreams) Endpoint(of uint16, at uint8, by event.Callers) (calls uint32, out, sick bool) {
	e := &m.endpointsOf(&m.upstreams[of])[at]
	return e.calls, e.ejections[by].ejected, e.unhealthy
}

func (m *Upstreams) endpointsOf(u *upstream) []endpoint {
	return m.endpoints[u.firstEndpoint : u.firstEndpoint+MaxEndpoints]
}

// CopyTo overwrites dst, which has the same rules.
func (m *Upstreams) CopyTo(dst *Upstreams) {
	dst.rand, dst.due, dst.hasDue, dst.down = m.rand, m.due, m.hasDue, m.down
	dst.calls = append(dst.calls[:0], m.calls...)
	dst.free = append(dst.free[:0], m.free...)
	dst.endpoints = append(dst.endpoints[:0], m.endpoints...)
	dst.upstreams = append(dst.upstreams[:0], m.upstreams...)
}

// HashInto mixes m into h.
func (m *Upstreams) HashInto(h types.Hash64) types.Hash64 {
	h = m.rand.HashInto(h).Mix(uint64(m.due)).MixBool(m.hasDue).Mix(m.down).Mix(uint64(len(m.free)))
	for i := range m.calls {
		h = m.calls[i].hashInto(h)
	}
	for _, slot := range m.free {
		h = h.Mix(uint64(slot))
	}
	for i := range m.endpoints {
		h = m.endpoints[i].hashInto(h)
	}
	for i := range m.upstreams {
		u := &m.upstreams[i]
		h = u.rules.HashInto(h).Mix(uint64(u.maxAttempts)).Mix(uint64(u.nextEndpoint))
		for by := range u.groups {
			b := &u.groups[by].budget
			h = u.groups[by].breaker.hashInto(h.Mix(uint64(b.saved)).Mix(uint64(b.refilledAt)).Mix(b.spent).Mix(b.denied))
		}
	}
	return h
}

func (c *call) hashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(c.generation)).Mix(uint64(c.phase)).Mix(uint64(c.callers)).MixBool(c.idempotent).MixBool(c.countedAsFailure).MixBool(c.endpointGone).MixBool(c.noMoreAttempts).Mix(uint64(c.attempts)).
		Mix(uint64(c.caller)).Mix(uint64(c.endpoint)).Mix(uint64(c.upstream)).Mix(uint64(c.tried)).Mix(uint64(c.epoch))
}

func (e *endpoint) hashInto(h types.Hash64) types.Hash64 {
	for i := range e.ejections {
		j := &e.ejections[i]
		h = h.Mix(uint64(j.failuresInARow)).MixBool(j.ejected).Mix(uint64(j.ejectedUntil)).Mix(uint64(j.timesEjected))
	}
	return h.Mix(uint64(e.calls)).MixBool(e.unhealthy).Mix(uint64(e.contraryChecks)).MixBool(e.seenHealthy)
}

// Check returns the first invariant that does not hold.
func (m *Upstreams) Check() error {
	calls, trials, used := make([]uint32, len(m.endpoints)), make([][event.NumCallers]uint32, len(m.upstreams)), 0
	for i := range m.calls {
		c := &m.calls[i]
		if c.phase == free {
			continue
		}
		used++
		u := &m.upstreams[c.upstream]
		if c.attempts == 0 || c.attempts > u.maxAttempts || c.attempts > 1 && !c.idempotent || c.phase == waitingToRetry && (!c.idempotent || c.attempts == u.maxAttempts) {
			return fmt.Errorf("U2: row %d: %d tries, again %v", i, c.attempts, c.idempotent)
		}
		if c.phase != waitingToRetry && !c.endpointGone {
			calls[u.firstEndpoint+uint16(c.endpoint)]++
		}
		if c.phase == trying && c.epoch == m.groupOf(c).breaker.epoch {
			trials[c.upstream][c.callers]++
		}
	}
	for i := range m.endpoints {
		if m.endpoints[i].calls != calls[i] {
			return fmt.Errorf("U1: endpoint %d: %d calls, and %d rows", i, m.endpoints[i].calls, calls[i])
		}
		if u := &m.upstreams[i/MaxEndpoints]; !u.rules.hasEndpoint(uint8(i%MaxEndpoints)) && m.endpoints[i] != (endpoint{}) {
			return fmt.Errorf("U1: endpoint %d of upstream %d is unused but has state", i%MaxEndpoints, i/MaxEndpoints)
		}
	}
	for i := range m.upstreams {
		for by := range event.NumCallers {
			if err := m.upstreams[i].groups[by].check(&m.upstreams[i].rules, trials[i][by]); err != nil {
				return fmt.Errorf("%w: upstream %d, %v callers", err, i, by)
			}
		}
		if down := m.down>>i&1 == 1; down != m.isDown(uint16(i)) {
			return fmt.Errorf("U7: upstream %d: down %v", i, down)
		}
	}
	return m.checkTimers(used)
}

func (g *group) check(r *Rules, trials uint32) error {
	b := &g.breaker
	switch {
	case g.budget.saved > r.RetryBurst*retryCost:
		return fmt.Errorf("U3: %d saved", g.budget.saved)
	case b.openForOne && b.state != event.CircuitOpen, !b.openForOne && b.openCaller != 0:
		return fmt.Errorf("U8: %v for caller %d alone: %v", b.state, b.openCaller, b.openForOne)
	case (b.state == event.CircuitHalfOpen || b.openForOne) && (b.inFlight > r.HalfOpenInFlight || b.inFlight != trials || b.successes >= r.HalfOpenSuccesses):
		return fmt.Errorf("U4: %d tries out, %d rows, %d answered", b.inFlight, trials, b.successes)
	case b.state != event.CircuitHalfOpen && !b.openForOne && b.inFlight+b.successes > 0:
		return fmt.Errorf("U4: %v, with %d tries out", b.state, b.inFlight)
	case b.state != event.CircuitClosed && !b.counts.isEmpty():
		return fmt.Errorf("U8: %v, and it counts attempts", b.state)
	}
	return nil
}

func (m *Upstreams) checkTimers(used int) error {
	for by := range event.NumCallers {
		for i := range m.upstreams {
			if b := &m.upstreams[i].groups[by].breaker; b.state == event.CircuitOpen && (!m.hasDue || b.openUntil < m.due) {
				return fmt.Errorf("U5: breaker %d, %v callers", i, by)
			}
		}
		for i := range m.endpoints {
			if e := &m.endpoints[i].ejections[by]; e.ejected && (!m.hasDue || e.ejectedUntil < m.due) {
				return fmt.Errorf("U5: endpoint %d, %v callers", i, by)
			}
		}
	}
	seen := make([]bool, len(m.calls))
	for _, slot := range m.free {
		if m.calls[slot].phase != free || seen[slot] {
			return fmt.Errorf("U6: row %d", slot)
		}
		seen[slot] = true
	}
	if used+len(m.free) != len(m.calls) {
		return fmt.Errorf("U6: %d used, %d free of %d", used, len(m.free), len(m.calls))
	}
	return nil
}
