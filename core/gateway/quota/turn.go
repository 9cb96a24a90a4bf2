package quota

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Turn returns the bytes of one turn in the fair queue: quantum, or less if the quotas of the
// instance are so slow that a round of all classes would last longer than wait. Otherwise the turn
// of callers without a key could last longer than others may wait, and their requests would be
// rejected although their class has a higher weight. A turn is never less than least, which is the
// cost of the smallest request: then each class is served weight requests a round.
func Turn(rules []event.Quota, weights [types.NumClasses]uint64, quantum, least uint64, wait time.Duration) uint64 {
	turns := uint64(0)
	for _, w := range weights {
		turns += w
	}
	for quantum > least && roundTime(rules, turns, quantum, least) > wait {
		quantum = max(quantum/2, least)
	}
	return quantum
}

// roundTime returns how long the quotas of the instance take for so many turns of quantum bytes each,
// all of them in requests of the least size.
func roundTime(rules []event.Quota, turns, quantum, least uint64) (longest time.Duration) {
	for _, r := range rules {
		if r.Scope != types.ScopeInstance || r.Shadow || r.Rate == 0 {
			continue
		}
		units := turns * quantum
		if r.Unit == types.UnitRequests {
			units = turns * (quantum / max(least, 1))
		}
		longest = max(longest, time.Duration(times(units, r.Every, r.Rate, nanos{ns: int64(MaxSpan)}).ns))
	}
	return longest
}
