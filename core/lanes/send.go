package lanes

import (
	"time"

	"macronode/core/types"
)

// A Send is an attempt to deliver one position.
type Send struct {
	Lane     types.LaneID
	Position uint64
	Row      bool   // the redelivery of a quarantined position
	Attempt  uint32 // from 1
}

// An Outcome is how a send ended.
type Outcome uint8

const (
	OK        Outcome = iota + 1 // the sink has it
	Duplicate                    // the sink had it already
	Retryable                    // the sink is down, or busy, or did not answer: nothing is known
	Permanent                    // the sink rejects this position
)

// A Result is the outcome of a send. Reason and Status are those of a permanent failure.
type Result struct {
	Outcome Outcome
	Reason  types.ExportReason
	Status  uint16
}

// Next returns the next send; false if none is possible now. Each is reported to Sent once.
func (m *Machine) Next(now types.Instant) (s Send, ok bool) {
	m.wake(now)
	if m.stopped || m.inflight >= m.limits.Inflight || m.open && (m.inflight > 0 || now < m.probeAt) {
		return s, false
	}
	at, ok := m.nextTurn()
	if !ok {
		return s, false
	}
	p := m.takeTurn(at)
	m.inflight++
	k, _ := m.keys.Row(p)
	l := &m.lanes[p]
	return Send{Lane: k.lane, Position: l.acked + 1, Row: k.row > 0, Attempt: l.tries + 1}, true
}

// wake makes the lanes ready whose retry is due.
func (m *Machine) wake(now types.Instant) {
	for {
		p, any := m.retries.First()
		if !any || m.lanes[p].due > now {
			return
		}
		m.retries.Remove(p, m.sooner)
		m.lanes[p].stage = idle
		m.schedule(p)
	}
}

// Sent reports how a send ended.
func (m *Machine) Sent(now types.Instant, s Send, r Result) {
	k := key{lane: s.Lane}
	if s.Row {
		k.row = s.Position
	}
	p, known := m.keys.Find(k)
	types.Assert(known && m.lanes[p].stage == sent && m.lanes[p].acked+1 == s.Position, "lanes: the end of a send that does not run")
	l := &m.lanes[p]
	m.inflight--
	at := l.tenant
	m.tenants[at].out--
	l.stage = idle
	m.judgeSink(now, s.Lane.Tenant, r.Outcome)
	switch r.Outcome {
	case OK, Duplicate:
		m.counters.Delivered++
		if r.Outcome == Duplicate {
			m.counters.Duplicates++
		}
		l.acked++
		l.tries, l.permanent, l.blocked = 0, false, false
	case Permanent:
		m.counters.Permanent++
		m.fail(now, p, r)
	default:
		m.counters.Retryable++
		m.delay(now, p)
	}
	m.schedule(p)
	m.rest(at)
}

// fail handles a permanent failure: a retry within the budget, then the quarantine.
func (m *Machine) fail(now types.Instant, p uint32, r Result) {
	l := &m.lanes[p]
	if !l.permanent {
		l.permanent, l.since = true, now
	}
	if now < l.since.Add(m.limits.Budget) {
		m.delay(now, p)
		return
	}
	l.reason, l.status = r.Reason, r.Status
	if !r.Reason.Known() {
		l.reason = types.ExportRejected
	}
}

// delay puts the idle lane at a place off until its next attempt.
func (m *Machine) delay(now types.Instant, p uint32) {
	l := &m.lanes[p]
	l.due = now.Add(m.backoff(l.tries))
	l.tries++
	if !l.leaving {
		l.stage = delayed
		m.retries.Push(p, m.sooner)
	}
}

// backoff returns a random time before the retry after some failures.
func (m *Machine) backoff(failures uint32) time.Duration {
	longest := m.limits.Backoff
	for ; failures > 0 && longest < m.limits.MaxBackoff; failures-- {
		longest *= 2
	}
	return 1 + time.Duration(m.dice.Uint64n(uint64(min(longest, m.limits.MaxBackoff))))
}

// judgeSink takes the sink for down after several retryable failures in a row, of several tenants. Then one probe
// at a time is sent, until one ends in another way.
func (m *Machine) judgeSink(now types.Instant, t types.Tenant, o Outcome) {
	if o != Retryable {
		m.failures, m.several, m.open, m.probes = 0, false, false, 0
		return
	}
	m.several = m.several || m.failures > 0 && t != m.failed
	m.failed = t
	m.failures = min(m.failures+1, m.limits.Failures)
	if m.open || m.several && m.failures >= m.limits.Failures {
		m.open = true
		m.probeAt = now.Add(m.backoff(m.probes))
		m.probes++
	}
}
