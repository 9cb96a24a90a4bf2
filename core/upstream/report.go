package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

// Report hears what a try has come to, and says whether there is another.
func (m *Upstreams) Report(now words.Instant, in event.Tried) event.Onward {
	m.Tick(now)
	c, ok := m.find(in.Ticket)
	if !ok {
		return event.Onward{}
	}
	switch c.phase {
	case trying:
		return m.tried(now, c, in)
	case answered:
		m.ends(now, c, in)
	case resting:
		if in.Ending == event.Left {
			m.drop(in.Ticket.Slot())
		}
	case free: // not found
	}
	return event.Onward{}
}

// tried: a try has an answer, or will have none.
func (m *Upstreams) tried(now words.Instant, c *call, in event.Tried) (on event.Onward) {
	u, e := &m.upstreams[c.of], m.at(c)
	if in.Ending == event.Whole || in.Ending == event.Cut {
		return on // of an answer that was never told of
	}
	u.breaker.back(c.epoch)
	switch in.Ending {
	case event.Answered:
		if c.phase = answered; !c.past {
			e.failed, e.proven = 0, true
			u.well(now, c.epoch)
		}
		return on
	case event.Left:
	default:
		m.ill(now, c)
	}
	switch on = m.onward(now, c, in); {
	case on.Again:
		m.off(c)
		c.phase = resting
	case in.Ending == event.Turned:
		c.phase, c.ill = answered, true
	default:
		m.off(c)
		m.drop(in.Ticket.Slot())
	}
	return on
}

// off: a call is with its endpoint no more.
func (m *Upstreams) off(c *call) {
	if !c.past {
		m.at(c).calls--
	}
}

// ends: an answer is over, whole or not.
func (m *Upstreams) ends(now words.Instant, c *call, in event.Tried) {
	switch in.Ending {
	case event.Whole, event.Left:
	case event.Cut:
		if !c.ill {
			m.ill(now, c)
		}
	default:
		return // it was answered before
	}
	m.off(c)
	m.drop(in.Ticket.Slot())
}

// ill counts a failure, of the endpoint and of its upstream.
func (m *Upstreams) ill(now words.Instant, c *call) {
	if c.past {
		return
	}
	u, e := &m.upstreams[c.of], m.at(c)
	if e.failed++; e.failed >= u.rules.Eject && !e.out {
		if now > e.until.Plus(u.rules.OutMost) {
			e.strikes = 0
		}
		e.out, e.until = true, now.Plus(grown(u.rules.Out, u.rules.OutMost, e.strikes))
		e.strikes = min(e.strikes+1, strikes)
		m.wake(e.until)
	}
	if u.breaker.epoch == c.epoch && u.fails(now) {
		rest := grown(u.rules.Rest, u.rules.RestMost, u.breaker.strikes)
		rest -= time.Duration(m.dice.Below(uint64(rest / 2)))
		u.breaker.open(now.Plus(rest))
		m.wake(u.breaker.until)
	}
}

// onward says whether a request is tried again, and why not. Only what is idempotent is, when none of
// its body is gone, nothing was said to the client, the breaker lets it through and its upstream has a retry to spare.
func (m *Upstreams) onward(now words.Instant, c *call, in event.Tried) (on event.Onward) {
	u := &m.upstreams[c.of]
	most := grown(BackoffMost, BackoffCap, c.tries-1)
	least := min(grown(BackoffLeast, BackoffCap, c.tries-1), most)
	switch {
	case in.Ending == event.Left:
		return on // nothing failed
	case in.Ending == event.Late:
		on.Halt = event.HaltTime
	case !c.again:
		on.Halt = event.HaltMethod
	case in.Spent:
		on.Halt = event.HaltBody
	case in.Said:
		on.Halt = event.HaltSaid
	case c.tries >= u.rules.Tries || c.last:
		on.Halt = event.HaltTries
	case u.breaker.state == event.Open:
		on.Halt = event.HaltOpen
	case in.Patience <= most:
		on.Halt = event.HaltTime
	case !u.spend(now):
		on.Halt = event.HaltBudget
	}
	if on.Halt != event.NoHalt {
		return on
	}
	return event.Onward{Again: true, Wait: least + time.Duration(m.dice.Below(uint64(most-least)+1))}
}

// Probed hears of a health check.
func (m *Upstreams) Probed(now words.Instant, in event.Probed) {
	m.Tick(now)
	if int(in.Upstream) >= len(m.upstreams) || !m.upstreams[in.Upstream].rules.has(in.Endpoint) {
		return // of an endpoint that is none any more
	}
	u := &m.upstreams[in.Upstream]
	e := &m.endpoints[u.first+uint16(in.Endpoint)]
	e.proven = e.proven || in.Well
	if in.Well != e.sick || u.rules.Fall == 0 {
		e.turn = 0
		return
	}
	need := u.rules.Fall
	if e.sick {
		need = u.rules.Rise
	}
	if e.turn++; e.turn >= need {
		e.sick, e.turn = !e.sick, 0
		m.setDown(in.Upstream)
	}
}
