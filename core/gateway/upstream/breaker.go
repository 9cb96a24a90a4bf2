package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A breaker stops requests of a group of callers to an upstream that does not answer them. The result of an attempt counts
// only in the epoch in which the attempt began: a late result does not describe the current
// state.
type breaker struct {
	state             event.CircuitState
	epoch             uint32          // increases with each change of state
	opened            uint64          // number of times the circuit opened
	timesOpened       uint8           // the same, since it was last closed
	openUntil         types.Instant   // end of the open state
	inFlight          uint32          // half-open: attempts without a result
	successes         uint32          // half-open: answered attempts
	newestBucket      int64           // number of the newest bucket
	successesByBucket [buckets]uint32 // answered attempts by bucket
	failures          [buckets]uint32 // failed attempts by bucket
}

func (b *breaker) enter(s event.CircuitState) {
	b.state, b.epoch, b.inFlight, b.successes = s, b.epoch+1, 0, 0
	b.successesByBucket, b.failures = [buckets]uint32{}, [buckets]uint32{}
}

func (b *breaker) open(until types.Instant) {
	b.enter(event.CircuitOpen)
	b.openUntil, b.opened, b.timesOpened = until, b.opened+1, min(b.timesOpened+1, maxStrikes)
}

// openFor returns the rest of the open state.
func (b *breaker) openFor(now types.Instant) time.Duration { return time.Duration(b.openUntil - now) }

// attemptReturned handles the end of an attempt of an epoch.
func (b *breaker) attemptReturned(epoch uint32) {
	if b.epoch == epoch && b.state == event.CircuitHalfOpen {
		b.inFlight--
	}
}

// advanceBuckets clears buckets older than the window.
func (b *breaker) advanceBuckets(now types.Instant) (newest int64) {
	n := int64(now) / int64(bucketWidth)
	for i := max(b.newestBucket+1, n-buckets+1); i <= n; i++ {
		b.successesByBucket[i%buckets], b.failures[i%buckets] = 0, 0
	}
	b.newestBucket = max(b.newestBucket, n)
	return b.newestBucket % buckets
}

// recordSuccess counts an answer.
func (g *group) recordSuccess(now types.Instant, r *Rules, epoch uint32) {
	b := &g.breaker
	if b.epoch != epoch {
		return
	}
	if b.state == event.CircuitHalfOpen {
		if b.successes++; b.successes >= r.HalfOpenSuccesses {
			b.enter(event.CircuitClosed)
			b.timesOpened = 0
		}
		return
	}
	b.successesByBucket[b.advanceBuckets(now)]++
}

// recordFailure counts a failure of the current epoch, and reports whether the circuit must open.
func (g *group) recordFailure(now types.Instant, r *Rules) bool {
	b := &g.breaker
	if b.state == event.CircuitHalfOpen {
		return true
	}
	b.failures[b.advanceBuckets(now)]++
	var wells, ills uint64
	for i := range buckets {
		wells, ills = wells+uint64(b.successesByBucket[i]), ills+uint64(b.failures[i])
	}
	return wells+ills >= uint64(r.BreakerMinAttempts) && ills*100 >= uint64(r.BreakerFailurePercent)*(wells+ills)
}
