// Package upstream decides which endpoint of an upstream a request goes to, whether it is
// sent again when that fails, and when the upstream is left alone.
//
//	Pick ──► trying ──answered──► answered ──whole, cut──► gone
//	           ▲ └──failed──┬──no more tries────────────► gone
//	           │            └──► resting ──left─────────► gone
//	           └────Retry──────────┘
package upstream

import (
	"macronode/core/event"
	"macronode/core/types"
)

type phase uint8

const (
	free phase = iota
	trying
	waitingToRetry
	answered
)

// A call is one request to an upstream.
type call struct {
	generation       uint32
	phase            phase
	idempotent       bool  // its method is idempotent
	countedAsFailure bool  // it was answered, and the answer counted as a failure
	noMoreAttempts   bool  // its upstream is none any more, or another: it is not tried again
	endpointGone     bool  // its endpoint is none any more, or another: nothing is learnt of what it tells
	attempts         uint8 // that have begun
	endpoint         uint8 // endpoint of the last
	upstream         uint16
	tried            uint16 // endpoints, a bit each
	epoch            uint32 // of the breaker, when the last try began
}

// An endpoint is one of an upstream.
type endpoint struct {
	calls          uint32        // trying or answered
	failuresInARow uint32        // tries in a row
	ejected        bool          // for its failures
	ejectedUntil   types.Instant // that ends, or ended
	timesEjected   uint8         // times that it was out without a calm between
	unhealthy      bool          // health checks say so
	contraryChecks uint8         // health checks in a row that say otherwise
	seenHealthy    bool          // it was seen well once
}

// An upstream is some endpoints that serve the same.
type upstream struct {
	rules         Rules
	maxAttempts   uint8  // tries of one request: the rules', or what one had been given when they became fewer
	firstEndpoint uint16 // of its endpoints
	nextEndpoint  uint8  // endpoint whose turn is among equals
	budget        budget
	breaker       breaker
}

// Upstreams are all there are.
//
// Invariants:
//
//	U1  an endpoint has as many calls as there are rows that try it or are answered by it,
//	    but for those of a past one; one that is none is as if nothing had ever been seen of it
//	U2  no request has more tries than the rules give it, or gave it before a change, and none
//	    is tried again that may not
//	U3  retries cost what requests have brought in, and never more than is saved
//	U4  a breaker that is half-open has no more than Floor tries out, and as many as rows of
//	    its epoch try; one that is open ends in time
//	U5  whatever ends by itself does so at Due, or later
//	U6  a row is free, or one request's
//	U7  an upstream is down if it has endpoints and each is sick
type Upstreams struct {
	rand      types.Rand
	calls     []call
	free      []uint32 // rows
	endpoints []endpoint
	upstreams []upstream
	due       types.Instant
	hasDue    bool   // something is due
	down      uint64 // bit i: health checks fail on every endpoint of upstream i
}

// New is upstreams of which nothing is known, for at most so many requests at once.
func New(calls int, dice types.Rand, rules ...Rules) Upstreams {
	types.Assert(0 < calls && calls <= types.MaxTickets, "upstream: too many")
	types.Assert(CheckRules(rules) == nil, "upstream: rules without sense")
	m := Upstreams{rand: dice, calls: make([]call, calls), free: make([]uint32, 0, calls)}
	for slot := calls - 1; slot >= 0; slot-- {
		m.free = append(m.free, uint32(slot))
	}
	for _, r := range rules {
		m.addUpstream(r)
	}
	return m
}

// addUpstream makes one more upstream, of which nothing is known.
func (m *Upstreams) addUpstream(r Rules) {
	r.ResetEndpoints = 0
	m.upstreams = append(m.upstreams, upstream{rules: r, maxAttempts: r.MaxAttempts, firstEndpoint: uint16(len(m.endpoints)), budget: budget{saved: r.RetryPerSecond * retryCost}})
	m.endpoints = append(m.endpoints, make([]endpoint, MaxEndpoints)...)
}

// Pick lets a request in, and says where its first try goes.
func (m *Upstreams) Pick(now types.Instant, in event.Pick) event.Picked {
	m.Tick(now)
	switch {
	case int(in.Upstream) >= len(m.upstreams):
		return event.Picked{NoEndpoint: event.NoEndpointUnhealthy}
	case len(m.free) == 0:
		return event.Picked{NoEndpoint: event.NoEndpointOverflow}
	}
	slot := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	c := &m.calls[slot]
	*c = call{generation: c.generation + 1, phase: waitingToRetry, upstream: in.Upstream, idempotent: in.Idempotent}
	m.upstreams[in.Upstream].earnRetry(now)
	return m.startAttempt(now, slot)
}

// Retry says where the next try of a request goes.
func (m *Upstreams) Retry(now types.Instant, in event.Retry) event.Picked {
	m.Tick(now)
	c, ok := m.find(in.Ticket)
	if !ok || c.phase != waitingToRetry {
		return event.Picked{Ticket: in.Ticket, NoEndpoint: event.NoEndpointStale}
	}
	if c.noMoreAttempts {
		m.freeCall(in.Ticket.Slot())
		return event.Picked{Ticket: in.Ticket, NoEndpoint: event.NoEndpointUnhealthy, Circuit: m.upstreams[c.upstream].breaker.state}
	}
	return m.startAttempt(now, in.Ticket.Slot())
}

// startAttempt begins a try, or lets the request go.
func (m *Upstreams) startAttempt(now types.Instant, slot uint32) event.Picked {
	c := &m.calls[slot]
	u := &m.upstreams[c.upstream]
	said := event.Picked{Ticket: types.NewTicket(slot, c.generation), Circuit: u.breaker.state}
	if b := &u.breaker; b.state == event.CircuitOpen {
		said.NoEndpoint, said.RetryAfter = event.NoEndpointCircuitOpen, b.openFor(now)
	} else if b.state == event.CircuitHalfOpen && b.inFlight >= u.rules.HalfOpenInFlight {
		said.NoEndpoint, said.RetryAfter = event.NoEndpointCircuitOpen, bucketWidth
	}
	at, any := m.leastLoaded(u, c.tried)
	if said.NoEndpoint == event.EndpointPicked && !any {
		said.NoEndpoint = event.NoEndpointUnhealthy
	}
	if said.NoEndpoint != event.EndpointPicked {
		m.freeCall(slot)
		return said
	}
	c.phase, c.endpoint, c.attempts, c.epoch, c.endpointGone = trying, at, c.attempts+1, u.breaker.epoch, false
	c.tried |= 1 << at
	u.nextEndpoint = (at + 1) % MaxEndpoints
	if u.breaker.state == event.CircuitHalfOpen {
		u.breaker.inFlight++
	}
	m.endpointOf(c).calls++
	said.Endpoint, said.Ejected = at, m.endpointOf(c).ejected
	return said
}

// leastLoaded is the endpoint with the fewest calls, of those that are well and were not tried;
// where there is none, of those that are well; where there is none, of those that are out.
// A sick one is none.
func (m *Upstreams) leastLoaded(u *upstream, tried uint16) (at uint8, any bool) {
	best := uint64(1 << 63)
	for i := range uint8(MaxEndpoints) {
		n := (u.nextEndpoint + i) % MaxEndpoints
		if !u.rules.hasEndpoint(n) {
			continue
		}
		e := &m.endpoints[u.firstEndpoint+uint16(n)]
		rank := uint64(e.calls) | uint64(tried>>n&1)<<32
		if e.ejected {
			rank |= 1 << 33
		}
		if !e.unhealthy && rank < best {
			at, any, best = n, true, rank
		}
	}
	return at, any
}

// find is the request that a ticket names; ok is false when it is gone.
func (m *Upstreams) find(t types.Ticket) (c *call, ok bool) {
	if int64(t.Slot()) >= int64(len(m.calls)) {
		return nil, false
	}
	c = &m.calls[t.Slot()]
	return c, c.phase != free && types.NewTicket(t.Slot(), c.generation) == t
}

func (m *Upstreams) endpointOf(c *call) *endpoint {
	return &m.endpoints[m.upstreams[c.upstream].firstEndpoint+uint16(c.endpoint)]
}

func (m *Upstreams) freeCall(slot uint32) {
	m.calls[slot].phase = free
	m.free = append(m.free, slot)
}

// Tick ends what is over.
func (m *Upstreams) Tick(now types.Instant) {
	if !m.hasDue || now < m.due {
		return
	}
	m.hasDue = false
	for i := range m.upstreams {
		u := &m.upstreams[i]
		if b := &u.breaker; b.state == event.CircuitOpen {
			if b.openUntil <= now {
				b.enter(event.CircuitHalfOpen)
			} else {
				m.setDue(b.openUntil)
			}
		}
		for n := range m.endpointsOf(u) {
			e := &m.endpointsOf(u)[n]
			if e.ejected && e.ejectedUntil <= now {
				e.ejected, e.failuresInARow = false, 0
			} else if e.ejected {
				m.setDue(e.ejectedUntil)
			}
		}
	}
}

func (m *Upstreams) setDue(at types.Instant) {
	if !m.hasDue || at < m.due {
		m.due, m.hasDue = at, true
	}
}

// Due is when something ends by itself next.
func (m *Upstreams) Due() (due types.Instant, any bool) { return m.due, m.hasDue }
