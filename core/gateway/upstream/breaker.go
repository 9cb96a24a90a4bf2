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
// If only one caller, a tenant or a peer, has sent requests, or the first trial request fails while it is half-open, it
// opens for that caller only: that caller may be the reason. Trial requests of other callers close it, or open it for
// all until the same time.
type breaker struct {
	state       event.CircuitState
	openForOne  bool           // it is open for openCaller only
	openCaller  event.CallerID // 0 unless openForOne
	epoch       uint32         // increases when the results of the attempts in flight no longer count
	opened      uint64         // number of times the circuit opened
	timesOpened uint8          // the same, since it was last closed
	openUntil   types.Instant  // end of the open state
	inFlight    uint32         // trial requests without a result
	successes   uint32         // answered trial requests
	counts      attemptCounts  // while it is closed
}

func (b *breaker) enter(s event.CircuitState) {
	b.state, b.epoch, b.inFlight, b.successes = s, b.epoch+1, 0, 0
	b.openForOne, b.openCaller = false, 0
	b.counts.clear()
}

// open opens the circuit after a failure of a caller. It opens for that caller only if the failure is the first one of
// the trial requests, or if there are only attempts of that caller.
func (b *breaker) open(until types.Instant, c event.CallerID) {
	forOne := b.state == event.CircuitHalfOpen || b.counts.isOfOneCaller()
	if b.state == event.CircuitHalfOpen {
		b.state = event.CircuitOpen // the trial requests of others still count
	} else {
		b.enter(event.CircuitOpen)
	}
	if forOne {
		b.openForOne, b.openCaller = true, c
	}
	b.openUntil, b.opened, b.timesOpened = until, b.opened+1, min(b.timesOpened+1, maxStrikes)
}

// stateFor returns the state for the requests of a caller.
func (b *breaker) stateFor(c event.CallerID) event.CircuitState {
	if b.openForOne && c != b.openCaller {
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

// recordSuccess counts an answer to a caller.
func (b *breaker) recordSuccess(now types.Instant, r *Rules, epoch uint32, c event.CallerID) {
	if b.epoch != epoch {
		return
	}
	switch b.stateFor(c) {
	case event.CircuitClosed:
		b.counts.succeeded(now, c)
	case event.CircuitHalfOpen:
		if b.successes++; b.successes >= r.HalfOpenSuccesses {
			b.enter(event.CircuitClosed)
			b.timesOpened = 0
		}
	case event.CircuitOpen: // a trial request that began before one of the same caller failed
	}
}

// recordFailure counts a failure of a caller, and reports whether the circuit must open.
func (b *breaker) recordFailure(now types.Instant, r *Rules, epoch uint32, c event.CallerID) bool {
	if b.epoch != epoch {
		return false
	}
	if b.state == event.CircuitClosed {
		b.counts.failed(now, c)
		return b.counts.mustOpen(r)
	}
	return b.stateFor(c) == event.CircuitHalfOpen
}

func (b *breaker) hashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(b.state)).MixBool(b.openForOne).Mix(uint64(b.openCaller)).Mix(uint64(b.epoch)).Mix(b.opened).Mix(uint64(b.timesOpened)).
		Mix(uint64(b.openUntil)).Mix(uint64(b.inFlight)).Mix(uint64(b.successes))
	return b.counts.hashInto(h)
}
