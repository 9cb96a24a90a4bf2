package upstream

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/words"
)

// Count is how many upstreams there are.
func (m *Upstreams) Count() int { return len(m.upstreams) }

// Broken are the upstreams whose breaker does not let everybody through: bit i is upstream i.
func (m *Upstreams) Broken() (set uint64) {
	for of := range m.upstreams {
		if m.upstreams[of].breaker.state != event.Closed {
			set |= 1 << of
		}
	}
	return set
}

// Down are the upstreams of which health checks fail on every endpoint: bit i is upstream i.
// Requests for them are rejected until a check succeeds.
func (m *Upstreams) Down() (set uint64) { return m.down }

// setDown notes whether an upstream is down.
func (m *Upstreams) setDown(of uint16) {
	m.down &^= 1 << of
	if m.isDown(of) {
		m.down |= 1 << of
	}
}

func (m *Upstreams) isDown(of uint16) bool {
	u := &m.upstreams[of]
	for n, e := range m.of(u) {
		if u.rules.has(uint8(n)) && !e.sick {
			return false
		}
	}
	return u.rules.Endpoints != 0
}

// Look is what an upstream looks like now.
func (m *Upstreams) Look(of uint16) (v event.Standing) {
	if int(of) >= len(m.upstreams) {
		return v
	}
	u := &m.upstreams[of]
	v = event.Standing{Circuit: u.breaker.state, Epoch: u.breaker.epoch, Opened: u.breaker.opened, Retries: u.budget.spent, Dry: u.budget.dry}
	for n, e := range m.of(u) {
		if !u.rules.has(uint8(n)) {
			continue
		}
		v.Calls += e.calls
		v.Proven = v.Proven || e.proven && !e.sick
		if e.out {
			v.Out++
		}
		if e.sick {
			v.Sick++
			v.Which |= 1 << n
		}
		if !e.out && !e.sick {
			v.Well++
		}
	}
	return v
}

// Endpoint is one endpoint: how many calls it has, and whether it is out or sick.
func (m *Upstreams) Endpoint(of uint16, at uint8) (calls uint32, out, sick bool) {
	e := &m.of(&m.upstreams[of])[at]
	return e.calls, e.out, e.sick
}

func (m *Upstreams) of(u *upstream) []endpoint {
	return m.endpoints[u.first : u.first+MaxEndpoints]
}

// CopyTo makes dst, which is of the same rules, the same as m.
func (m *Upstreams) CopyTo(dst *Upstreams) {
	dst.dice, dst.due, dst.any, dst.down = m.dice, m.due, m.any, m.down
	dst.calls = append(dst.calls[:0], m.calls...)
	dst.free = append(dst.free[:0], m.free...)
	dst.endpoints = append(dst.endpoints[:0], m.endpoints...)
	dst.upstreams = append(dst.upstreams[:0], m.upstreams...)
}

// Mix is h after all of m.
func (m *Upstreams) Mix(h words.Hash64) words.Hash64 {
	h = m.dice.Mix(h).Mix(uint64(m.due)).MixBit(m.any).Mix(m.down).Mix(uint64(len(m.free)))
	for i := range m.calls {
		h = m.calls[i].mix(h)
	}
	for _, slot := range m.free {
		h = h.Mix(uint64(slot))
	}
	for i := range m.endpoints {
		h = m.endpoints[i].mix(h)
	}
	for i := range m.upstreams {
		u := &m.upstreams[i]
		h = u.breaker.mix(u.rules.Mix(h).Mix(uint64(u.most)).Mix(uint64(u.next)).Mix(uint64(u.budget.saved)).Mix(uint64(u.budget.filled)).Mix(u.budget.spent).Mix(u.budget.dry))
	}
	return h
}

func (c *call) mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(c.generation)).Mix(uint64(c.phase)).MixBit(c.again).MixBit(c.ill).MixBit(c.past).MixBit(c.last).Mix(uint64(c.tries)).
		Mix(uint64(c.at)).Mix(uint64(c.of)).Mix(uint64(c.tried)).Mix(uint64(c.epoch))
}

func (e *endpoint) mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(e.calls)).Mix(uint64(e.failed)).MixBit(e.out).Mix(uint64(e.until)).Mix(uint64(e.strikes)).
		MixBit(e.sick).Mix(uint64(e.turn)).MixBit(e.proven)
}

func (b *breaker) mix(h words.Hash64) words.Hash64 {
	h = h.Mix(uint64(b.state)).Mix(uint64(b.epoch)).Mix(b.opened).Mix(uint64(b.strikes)).Mix(uint64(b.until)).Mix(uint64(b.out)).Mix(uint64(b.good)).Mix(uint64(b.last))
	for i := range span {
		h = h.Mix(uint64(b.wells[i])).Mix(uint64(b.ills[i]))
	}
	return h
}

// Check returns the first invariant that does not hold.
func (m *Upstreams) Check() error {
	calls, trials, used := make([]uint32, len(m.endpoints)), make([]uint32, len(m.upstreams)), 0
	for i := range m.calls {
		c := &m.calls[i]
		if c.phase == free {
			continue
		}
		used++
		u := &m.upstreams[c.of]
		if c.tries == 0 || c.tries > u.most || c.tries > 1 && !c.again || c.phase == resting && (!c.again || c.tries == u.most) {
			return fmt.Errorf("U2: row %d: %d tries, again %v", i, c.tries, c.again)
		}
		if c.phase != resting && !c.past {
			calls[u.first+uint16(c.at)]++
		}
		if c.phase == trying && c.epoch == u.breaker.epoch {
			trials[c.of]++
		}
	}
	for i := range m.endpoints {
		if m.endpoints[i].calls != calls[i] {
			return fmt.Errorf("U1: endpoint %d: %d calls, and %d rows", i, m.endpoints[i].calls, calls[i])
		}
		if u := &m.upstreams[i/MaxEndpoints]; !u.rules.has(uint8(i%MaxEndpoints)) && m.endpoints[i] != (endpoint{}) {
			return fmt.Errorf("U1: endpoint %d of upstream %d is none, and something is known of it", i%MaxEndpoints, i/MaxEndpoints)
		}
	}
	for i := range m.upstreams {
		if err := m.upstreams[i].check(trials[i]); err != nil {
			return fmt.Errorf("%w: upstream %d", err, i)
		}
		if down := m.down>>i&1 == 1; down != m.isDown(uint16(i)) {
			return fmt.Errorf("U7: upstream %d: down %v", i, down)
		}
	}
	return m.checkRest(used)
}

func (u *upstream) check(trials uint32) error {
	b := &u.breaker
	switch {
	case u.budget.saved > u.rules.Hoard*price:
		return fmt.Errorf("U3: %d saved", u.budget.saved)
	case b.state == event.HalfOpen && (b.out > u.rules.Floor || b.out != trials || b.good >= u.rules.Trials):
		return fmt.Errorf("U4: %d tries out, %d rows, %d answered", b.out, trials, b.good)
	case b.state != event.HalfOpen && b.out+b.good > 0:
		return fmt.Errorf("U4: %v, with %d tries out", b.state, b.out)
	}
	return nil
}

func (m *Upstreams) checkRest(used int) error {
	for i := range m.upstreams {
		if b := &m.upstreams[i].breaker; b.state == event.Open && (!m.any || b.until < m.due) {
			return fmt.Errorf("U5: breaker %d", i)
		}
	}
	for i := range m.endpoints {
		if e := &m.endpoints[i]; e.out && (!m.any || e.until < m.due) {
			return fmt.Errorf("U5: endpoint %d", i)
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
