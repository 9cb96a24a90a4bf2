package upstream

import (
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

// A breaker keeps requests from an upstream that does not answer. What a try tells counts
// only in the epoch in which it began: one that comes late is no word of how things are.
type breaker struct {
	state   event.Circuit
	epoch   uint32        // one more with each change of state
	opened  uint64        // times that it opened
	strikes uint8         // of them, since it was closed
	until   words.Instant // open ends
	out     uint32        // half-open: tries that have told nothing
	good    uint32        // half-open: tries that were answered
	last    int64         // number of the newest bucket
	wells   [span]uint32  // tries that were answered, by the bucket
	ills    [span]uint32  // tries that failed
}

func (b *breaker) enter(s event.Circuit) {
	b.state, b.epoch, b.out, b.good = s, b.epoch+1, 0, 0
	b.wells, b.ills = [span]uint32{}, [span]uint32{}
}

func (b *breaker) open(until words.Instant) {
	b.enter(event.Open)
	b.until, b.opened, b.strikes = until, b.opened+1, min(b.strikes+1, strikes)
}

// rests is what is left of being open.
func (b *breaker) rests(now words.Instant) time.Duration { return time.Duration(b.until - now) }

// back: a try of an epoch is out no more.
func (b *breaker) back(epoch uint32) {
	if b.epoch == epoch && b.state == event.HalfOpen {
		b.out--
	}
}

// roll forgets what is older than the span.
func (b *breaker) roll(now words.Instant) (newest int64) {
	n := int64(now) / int64(bucket)
	for i := max(b.last+1, n-span+1); i <= n; i++ {
		b.wells[i%span], b.ills[i%span] = 0, 0
	}
	b.last = max(b.last, n)
	return b.last % span
}

// well counts an answer.
func (u *upstream) well(now words.Instant, epoch uint32) {
	b := &u.breaker
	if b.epoch != epoch {
		return
	}
	if b.state == event.HalfOpen {
		if b.good++; b.good >= u.rules.Trials {
			b.enter(event.Closed)
			b.strikes = 0
		}
		return
	}
	b.wells[b.roll(now)]++
}

// fails counts a failure of this epoch, and reports that it is one too many.
func (u *upstream) fails(now words.Instant) bool {
	b := &u.breaker
	if b.state == event.HalfOpen {
		return true
	}
	b.ills[b.roll(now)]++
	var wells, ills uint64
	for i := range span {
		wells, ills = wells+uint64(b.wells[i]), ills+uint64(b.ills[i])
	}
	return wells+ills >= uint64(u.rules.Least) && ills*100 >= uint64(u.rules.Part)*(wells+ills)
}
