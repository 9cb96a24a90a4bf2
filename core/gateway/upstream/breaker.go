package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A breaker keeps requests from an upstream that does not answer. What a try tells counts
// only in the epoch in which it began: one that comes late is no word of how things are.
type breaker struct {
	state             event.CircuitState
	epoch             uint32          // one more with each change of state
	opened            uint64          // times that it opened
	timesOpened       uint8           // of them, since it was closed
	openUntil         types.Instant   // open ends
	inFlight          uint32          // half-open: tries that have told nothing
	successes         uint32          // half-open: tries that were answered
	newestBucket      int64           // number of the newest bucket
	successesByBucket [buckets]uint32 // tries that were answered, by the bucket
	failures          [buckets]uint32 // tries that failed
}

func (b *breaker) enter(s event.CircuitState) {
	b.state, b.epoch, b.inFlight, b.successes = s, b.epoch+1, 0, 0
	b.successesByBucket, b.failures = [buckets]uint32{}, [buckets]uint32{}
}

func (b *breaker) open(until types.Instant) {
	b.enter(event.CircuitOpen)
	b.openUntil, b.opened, b.timesOpened = until, b.opened+1, min(b.timesOpened+1, maxStrikes)
}

// openFor is what is left of being open.
func (b *breaker) openFor(now types.Instant) time.Duration { return time.Duration(b.openUntil - now) }

// attemptReturned: a try of an epoch is out no more.
func (b *breaker) attemptReturned(epoch uint32) {
	if b.epoch == epoch && b.state == event.CircuitHalfOpen {
		b.inFlight--
	}
}

// advanceBuckets forgets what is older than the span.
func (b *breaker) advanceBuckets(now types.Instant) (newest int64) {
	n := int64(now) / int64(bucketWidth)
	for i := max(b.newestBucket+1, n-buckets+1); i <= n; i++ {
		b.successesByBucket[i%buckets], b.failures[i%buckets] = 0, 0
	}
	b.newestBucket = max(b.newestBucket, n)
	return b.newestBucket % buckets
}

// recordSuccess counts an answer.
func (u *upstream) recordSuccess(now types.Instant, epoch uint32) {
	b := &u.breaker
	if b.epoch != epoch {
		return
	}
	if b.state == event.CircuitHalfOpen {
		if b.successes++; b.successes >= u.rules.HalfOpenSuccesses {
			b.enter(event.CircuitClosed)
			b.timesOpened = 0
		}
		return
	}
	b.successesByBucket[b.advanceBuckets(now)]++
}

// recordFailure counts a failure of this epoch, and reports that it is one too many.
func (u *upstream) recordFailure(now types.Instant) bool {
	b := &u.breaker
	if b.state == event.CircuitHalfOpen {
		return true
	}
	b.failures[b.advanceBuckets(now)]++
	var wells, ills uint64
	for i := range buckets {
		wells, ills = wells+uint64(b.successesByBucket[i]), ills+uint64(b.failures[i])
	}
	return wells+ills >= uint64(u.rules.BreakerMinAttempts) && ills*100 >= uint64(u.rules.BreakerFailurePercent)*(wells+ills)
}
