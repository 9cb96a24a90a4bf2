// Package upstream picks the endpoint of an upstream for a request, decides whether a failed
// request is retried, and stops requests to an upstream that fails.
//
//	Pick ──► trying ──answered──► answered ──completed, truncated──► gone
//	           ▲ └──failed──┬──no more attempts────────────────────► gone
//	           │            └──► waiting to retry ──abandoned──────► gone
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
	idempotent       bool // its method is idempotent
	callers          event.Callers
	caller           event.CallerID
	countedAsFailure bool  // the answer counted as a failure
	noMoreAttempts   bool  // its upstream was removed or replaced: the call is not retried
	endpointGone     bool  // its endpoint was removed or is fresh: the result is not counted
	attempts         uint8 // number of attempts begun
	endpoint         uint8 // endpoint of the last attempt
	upstream         uint16
	tried            uint16 // endpoints already tried, a bit each
	epoch            uint32 // epoch of the breaker when the last attempt began
}

// An endpoint is one endpoint of an upstream.
type endpoint struct {
	calls          uint32 // trying or answered, of all callers
	ejections      [event.NumCallers]ejection
	unhealthy      bool  // by health checks
	contraryChecks uint8 // health checks in a row that contradict unhealthy
	seenHealthy    bool  // a health check succeeded at least once
}

// An ejection is the record of an endpoint's failures, as a group of callers saw them.
type ejection struct {
	failuresInARow uint32        // failed attempts in a row
	ejected        bool          // ejected for its failures
	ejectedUntil   types.Instant // end of the ejection, past or future
	timesEjected   uint8         // number of ejections in a row
}

// An upstream is a set of endpoints that serve the same.
type upstream struct {
	rules         Rules
	maxAttempts   uint8 // attempts per request: the rules' limit, or a higher one that a request got before a change
	firstEndpoint uint16
	nextEndpoint  uint8 // first candidate among equally loaded endpoints
	groups        [event.NumCallers]group
}

// A group is what an upstream learns from the requests of a group of callers, and applies to no
// others: a caller without a key can make an endpoint fail, and must not take it from callers
// with a key.
type group struct {
	budget  budget
	breaker breaker
}

// Upstreams are all upstreams.
//
// Invariants:
//
//	U1  an endpoint has as many calls as there are rows that try it or wait for the end of its
//	    answer, except rows of a removed endpoint; an unused endpoint has no state
//	U2  a request has at most the attempts of its rules, or of the rules before a change, and is
//	    retried only if it may be
//	U3  the retry budget never exceeds its limit and is never negative
//	U4  per group of callers, a half-open breaker has at most HalfOpenInFlight attempts in flight, as many as there
//	    are rows of its epoch, and so has one that is open for one caller only; an open breaker ends at a known time
//	U5  a timer expires at Due or later
//	U6  a row is free or belongs to one request
//	U7  an upstream is down if it has endpoints and all are unhealthy
//	U8  only a closed breaker counts attempts; only an open one is open for one caller only
type Upstreams struct {
	rand      types.Rand
	calls     []call
	free      []uint32 // rows
	endpoints []endpoint
	upstreams []upstream
	due       types.Instant
	hasDue    bool   // due is valid
	down      uint64 // bit i: health checks fail on every endpoint of upstream i
}

// New returns upstreams without state, for a number of concurrent requests.
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

// addUpstream adds an upstream without state.
func (m *Upstreams) addUpstream(r Rules) {
	r.ResetEndpoints = 0
	u := upstream{rules: r, maxAttempts: r.MaxAttempts, firstEndpoint: uint16(len(m.endpoints))}
	for by := range u.groups {
		u.groups[by].budget.saved = r.RetryPerSecond * retryCost
	}
	m.upstreams = append(m.upstreams, u)
	m.endpoints = append(m.endpoints, make([]endpoint, MaxEndpoints)...)
}

// Pick starts a request and picks the endpoint of its first attempt.
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
	*c = call{generation: c.generation + 1, phase: waitingToRetry, upstream: in.Upstream, idempotent: in.Idempotent, callers: in.Callers, caller: in.Caller}
	m.groupOf(c).earnRetry(now, &m.upstreams[in.Upstream].rules)
	return m.startAttempt(now, slot)
}

// Retry picks the endpoint of the next attempt of a request.
func (m *Upstreams) Retry(now types.Instant, in event.Retry) event.Picked {
	m.Tick(now)
	c, ok := m.find(in.Ticket)
	if !ok || c.phase != waitingToRetry {
		return event.Picked{Ticket: in.Ticket, NoEndpoint: event.NoEndpointStale}
	}
	if c.noMoreAttempts {
		m.freeCall(in.Ticket.Slot())
		return event.Picked{Ticket: in.Ticket, NoEndpoint: event.NoEndpointUnhealthy, Circuit: m.groupOf(c).breaker.stateFor(c.caller)}
	}
	return m.startAttempt(now, in.Ticket.Slot())
}

// startAttempt begins an attempt, or ends the request.
func (m *Upstreams) startAttempt(now types.Instant, slot uint32) event.Picked {
	c := &m.calls[slot]
	u, b := &m.upstreams[c.upstream], &m.groupOf(c).breaker
	circuit := b.stateFor(c.caller)
	parts := event.Picked{Ticket: types.NewTicket(slot, c.generation), Circuit: circuit}
	if circuit == event.CircuitOpen {
		parts.NoEndpoint, parts.RetryAfter = event.NoEndpointCircuitOpen, b.openFor(now)
	} else if circuit == event.CircuitHalfOpen && b.inFlight >= u.rules.HalfOpenInFlight {
		parts.NoEndpoint, parts.RetryAfter = event.NoEndpointCircuitOpen, bucketWidth
	}
	at, any := m.leastLoaded(u, c.callers, c.tried)
	if parts.NoEndpoint == event.EndpointPicked && !any {
		parts.NoEndpoint = event.NoEndpointUnhealthy
	}
	if parts.NoEndpoint != event.EndpointPicked {
		m.freeCall(slot)
		return parts
	}
	c.phase, c.endpoint, c.attempts, c.epoch, c.endpointGone = trying, at, c.attempts+1, b.epoch, false
	c.tried |= 1 << at
	u.nextEndpoint = (at + 1) % MaxEndpoints
	if circuit == event.CircuitHalfOpen {
		b.inFlight++
	}
	m.endpointOf(c).calls++
	parts.Endpoint, parts.Ejected = at, m.endpointOf(c).ejections[c.callers].ejected
	return parts
}

// leastLoaded returns the endpoint with the fewest calls among the healthy ones that were not
// tried; if there is none, among all healthy ones; if there is none, among those ejected for the
// callers. It never returns an unhealthy endpoint.
func (m *Upstreams) leastLoaded(u *upstream, by event.Callers, tried uint16) (at uint8, any bool) {
	best := uint64(1 << 63)
	for i := range uint8(MaxEndpoints) {
		n := (u.nextEndpoint + i) % MaxEndpoints
		if !u.rules.hasEndpoint(n) {
			continue
		}
		e := &m.endpoints[u.firstEndpoint+uint16(n)]
		rank := uint64(e.calls) | uint64(tried>>n&1)<<32
		if e.ejections[by].ejected {
			rank |= 1 << 33
		}
		if !e.unhealthy && rank < best {
			at, any, best = n, true, rank
		}
	}
	return at, any
}

// find returns the request of a ticket; ok is false if it is gone.
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

func (m *Upstreams) groupOf(c *call) *group { return &m.upstreams[c.upstream].groups[c.callers] }

func (m *Upstreams) freeCall(slot uint32) {
	m.calls[slot].phase = free
	m.free = append(m.free, slot)
}

// Tick handles expired timers.
func (m *Upstreams) Tick(now types.Instant) {
	if !m.hasDue || now < m.due {
		return
	}
	m.hasDue = false
	for i := range m.upstreams {
		u := &m.upstreams[i]
		for by := range u.groups {
			if b := &u.groups[by].breaker; b.state == event.CircuitOpen {
				if b.openUntil <= now {
					b.enter(event.CircuitHalfOpen)
				} else {
					m.setDue(b.openUntil)
				}
			}
			for n := range m.endpointsOf(u) {
				e := &m.endpointsOf(u)[n].ejections[by]
				if e.ejected && e.ejectedUntil <= now {
					e.ejected, e.failuresInARow = false, 0
				} else if e.ejected {
					m.setDue(e.ejectedUntil)
				}
			}
		}
	}
}

func (m *Upstreams) setDue(at types.Instant) {
	if !m.hasDue || at < m.due {
		m.due, m.hasDue = at, true
	}
}

// Due returns when the next timer expires.
func (m *Upstreams) Due() (due types.Instant, any bool) { return m.due, m.hasDue }
