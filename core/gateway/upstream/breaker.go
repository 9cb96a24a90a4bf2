package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A breaker stops requests of a group of callers to an upstream that does not answer them. The result of an attempt counts
// only in the epoch in which the attempt began: a late result does not describe the current
// state.
//
// If the first trial request fails while it is half-open, it opens for the tenant of that request only: that tenant may
// be the reason. Trial requests of other tenants close it, or open it for all
// until the same time.
type breaker struct {
	state       event.CircuitState
	openForOne  bool          // it is open for openTenant only
	openTenant  types.Tenant  // 0 unless openForOne
	epoch       uint32        // increases when the results of the attempts in flight no longer count
	opened      uint64        // number of times the circuit opened
	timesOpened uint8         // the same, since it was last closed
	openUntil   types.Instant // end of the open state
	inFlight    uint32        // trial requests without a result
	successes   uint32        // answered trial requests
	counts      attemptCounts // while it is closed
}

func (b *breaker) enter(s event.CircuitState) {
	b.state, b.epoch, b.inFlight, b.successes = s, b.epoch+1, 0, 0
	b.openForOne, b.openTenant = false, 0
	b.counts.clear()
}

// open opens the circuit after a failure of a tenant.
func (b *breaker) open(until types.Instant, t types.Tenant) {
	if b.state == event.CircuitHalfOpen {
		b.state, b.openForOne, b.openTenant = event.CircuitOpen, true, t
	} else {
		b.enter(event.CircuitOpen)
	}
	b.openUntil, b.opened, b.timesOpened = until, b.opened+1, min(b.timesOpened+1, maxStrikes)
}

// stateFor returns the state for the requests of a tenant.
func (b *breaker) stateFor(t types.Tenant) event.CircuitState {
	if b.openForOne && t != b.openTenant {
		return event.CircuitHalfOpen
	}
	return b.state
}

// openFor returns the rest of the open state.
func (b *breaker) openFor(now types.Instant) time.Duration { return time.Duration(b.openUntil - now) }

// attemptReturned handles the end of an attempt of an epoch.
func (b *breaker) attemptReturned(epoch uint32) {
	if b.epoch == epoch && b.state != event.CircuitClosed {
		b.inFlight--
	}
}

// recordSuccess counts an answer to a tenant.
func (b *breaker) recordSuccess(now types.Instant, r *Rules, epoch uint32, t types.Tenant) {
	if b.epoch != epoch {
		return
	}
	switch b.stateFor(t) {
	case event.CircuitClosed:
		b.counts.succeeded(now, t)
	case event.CircuitHalfOpen:
		if b.successes++; b.successes >= r.HalfOpenSuccesses {
			b.enter(event.CircuitClosed)
			b.timesOpened = 0
		}
	case event.CircuitOpen: // a trial request that began before one of the same tenant failed
	}
}

// recordFailure counts a failure of a tenant, and reports whether the circuit must open.
func (b *breaker) recordFailure(now types.Instant, r *Rules, epoch uint32, t types.Tenant) bool {
	if b.epoch != epoch {
		return false
	}
	if b.state == event.CircuitClosed {
		b.counts.failed(now, t)
		return b.counts.mustOpen(r)
	}
	return b.stateFor(t) == event.CircuitHalfOpen
}

func (b *breaker) hashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(b.state)).MixBool(b.openForOne).Mix(uint64(b.openTenant)).Mix(uint64(b.epoch)).Mix(b.opened).Mix(uint64(b.timesOpened)).
		Mix(uint64(b.openUntil)).Mix(uint64(b.inFlight)).Mix(uint64(b.successes))
	return b.counts.hashInto(h)
}
