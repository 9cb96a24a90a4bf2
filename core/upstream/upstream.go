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
	"macronode/core/words"
)

type phase uint8

const (
	free phase = iota
	trying
	resting
	answered
)

// A call is one request to an upstream.
type call struct {
	generation uint32
	phase      phase
	again      bool  // its method is idempotent
	ill        bool  // it was answered, and the answer counted as a failure
	last       bool  // its upstream is none any more, or another: it is not tried again
	past       bool  // its endpoint is none any more, or another: nothing is learnt of what it tells
	tries      uint8 // that have begun
	at         uint8 // endpoint of the last
	of         uint16
	tried      uint16 // endpoints, a bit each
	epoch      uint32 // of the breaker, when the last try began
}

// An endpoint is one of an upstream.
type endpoint struct {
	calls   uint32        // trying or answered
	failed  uint32        // tries in a row
	out     bool          // for its failures
	until   words.Instant // that ends, or ended
	strikes uint8         // times that it was out without a calm between
	sick    bool          // health checks say so
	turn    uint8         // health checks in a row that say otherwise
	proven  bool          // it was seen well once
}

// An upstream is some endpoints that serve the same.
type upstream struct {
	rules   Rules
	most    uint8  // tries of one request: the rules', or what one had been given when they became fewer
	first   uint16 // of its endpoints
	next    uint8  // endpoint whose turn is among equals
	budget  budget
	breaker breaker
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
	dice      words.Dice
	calls     []call
	free      []uint32 // rows
	endpoints []endpoint
	upstreams []upstream
	due       words.Instant
	any       bool   // something is due
	down      uint64 // bit i: health checks fail on every endpoint of upstream i
}

// New is upstreams of which nothing is known, for at most so many requests at once.
func New(calls int, dice words.Dice, rules ...Rules) Upstreams {
	words.Assert(0 < calls && calls <= words.MaxTickets, "upstream: too many")
	words.Assert(CheckRules(rules) == nil, "upstream: rules without sense")
	m := Upstreams{dice: dice, calls: make([]call, calls), free: make([]uint32, 0, calls)}
	for slot := calls - 1; slot >= 0; slot-- {
		m.free = append(m.free, uint32(slot))
	}
	for _, r := range rules {
		m.add(r)
	}
	return m
}

// add makes one more upstream, of which nothing is known.
func (m *Upstreams) add(r Rules) {
	r.Fresh = 0
	m.upstreams = append(m.upstreams, upstream{rules: r, most: r.Tries, first: uint16(len(m.endpoints)), budget: budget{saved: r.Spare * price}})
	m.endpoints = append(m.endpoints, make([]endpoint, MaxEndpoints)...)
}

// Pick lets a request in, and says where its first try goes.
func (m *Upstreams) Pick(now words.Instant, in event.Pick) event.Picked {
	m.Tick(now)
	switch {
	case int(in.Upstream) >= len(m.upstreams):
		return event.Picked{Stop: event.StopSick}
	case len(m.free) == 0:
		return event.Picked{Stop: event.StopFull}
	}
	slot := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	c := &m.calls[slot]
	*c = call{generation: c.generation + 1, phase: resting, of: in.Upstream, again: in.Again}
	m.upstreams[in.Upstream].earn(now)
	return m.begin(now, slot)
}

// Retry says where the next try of a request goes.
func (m *Upstreams) Retry(now words.Instant, in event.Retry) event.Picked {
	m.Tick(now)
	c, ok := m.find(in.Ticket)
	if !ok || c.phase != resting {
		return event.Picked{Ticket: in.Ticket, Stop: event.StopStale}
	}
	if c.last {
		m.drop(in.Ticket.Slot())
		return event.Picked{Ticket: in.Ticket, Stop: event.StopSick, Circuit: m.upstreams[c.of].breaker.state}
	}
	return m.begin(now, in.Ticket.Slot())
}

// begin begins a try, or lets the request go.
func (m *Upstreams) begin(now words.Instant, slot uint32) event.Picked {
	c := &m.calls[slot]
	u := &m.upstreams[c.of]
	said := event.Picked{Ticket: words.NewTicket(slot, c.generation), Circuit: u.breaker.state}
	if b := &u.breaker; b.state == event.Open {
		said.Stop, said.Wait = event.StopBroken, b.rests(now)
	} else if b.state == event.HalfOpen && b.out >= u.rules.Floor {
		said.Stop, said.Wait = event.StopBroken, bucket
	}
	at, any := m.least(u, c.tried)
	if said.Stop == event.Through && !any {
		said.Stop = event.StopSick
	}
	if said.Stop != event.Through {
		m.drop(slot)
		return said
	}
	c.phase, c.at, c.tries, c.epoch, c.past = trying, at, c.tries+1, u.breaker.epoch, false
	c.tried |= 1 << at
	u.next = (at + 1) % MaxEndpoints
	if u.breaker.state == event.HalfOpen {
		u.breaker.out++
	}
	m.at(c).calls++
	said.Endpoint, said.Out = at, m.at(c).out
	return said
}

// least is the endpoint with the fewest calls, of those that are well and were not tried;
// where there is none, of those that are well; where there is none, of those that are out.
// A sick one is none.
func (m *Upstreams) least(u *upstream, tried uint16) (at uint8, any bool) {
	best := uint64(1 << 63)
	for i := range uint8(MaxEndpoints) {
		n := (u.next + i) % MaxEndpoints
		if !u.rules.has(n) {
			continue
		}
		e := &m.endpoints[u.first+uint16(n)]
		rank := uint64(e.calls) | uint64(tried>>n&1)<<32
		if e.out {
			rank |= 1 << 33
		}
		if !e.sick && rank < best {
			at, any, best = n, true, rank
		}
	}
	return at, any
}

// find is the request that a ticket names; ok is false when it is gone.
func (m *Upstreams) find(t words.Ticket) (c *call, ok bool) {
	if int64(t.Slot()) >= int64(len(m.calls)) {
		return nil, false
	}
	c = &m.calls[t.Slot()]
	return c, c.phase != free && words.NewTicket(t.Slot(), c.generation) == t
}

func (m *Upstreams) at(c *call) *endpoint {
	return &m.endpoints[m.upstreams[c.of].first+uint16(c.at)]
}

func (m *Upstreams) drop(slot uint32) {
	m.calls[slot].phase = free
	m.free = append(m.free, slot)
}

// Tick ends what is over.
func (m *Upstreams) Tick(now words.Instant) {
	if !m.any || now < m.due {
		return
	}
	m.any = false
	for i := range m.upstreams {
		u := &m.upstreams[i]
		if b := &u.breaker; b.state == event.Open {
			if b.until <= now {
				b.enter(event.HalfOpen)
			} else {
				m.wake(b.until)
			}
		}
		for n := range m.of(u) {
			e := &m.of(u)[n]
			if e.out && e.until <= now {
				e.out, e.failed = false, 0
			} else if e.out {
				m.wake(e.until)
			}
		}
	}
}

func (m *Upstreams) wake(at words.Instant) {
	if !m.any || at < m.due {
		m.due, m.any = at, true
	}
}

// Due is when something ends by itself next.
func (m *Upstreams) Due() (due words.Instant, any bool) { return m.due, m.any }
