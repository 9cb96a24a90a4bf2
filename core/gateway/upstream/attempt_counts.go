package upstream

import (
	"macronode/core/event"
	"macronode/core/types"
)

// countedCallers is the number of callers whose attempts a breaker counts apart. It counts those of all others
// together.
const countedCallers = 7

// attemptCounts are the attempts in the window of a breaker, by caller. The last element is the common one: it counts
// those of all callers that had no element of their own at the time of the attempt.
type attemptCounts struct {
	newestBucket int64 // number of the newest bucket
	byCaller     [countedCallers + 1]callerCounts
}

// callerCounts are attempts by bucket.
type callerCounts struct {
	caller    event.CallerID
	successes [buckets]uint32 // answered
	failures  [buckets]uint32
}

func (c *callerCounts) isEmpty() bool {
	return c.successes == [buckets]uint32{} && c.failures == [buckets]uint32{}
}

// clear removes all attempts. The buckets keep their numbers.
func (a *attemptCounts) clear() { a.byCaller = [countedCallers + 1]callerCounts{} }

func (a *attemptCounts) isEmpty() bool {
	for at := range a.byCaller {
		if !a.byCaller[at].isEmpty() {
			return false
		}
	}
	return true
}

// isOfOneCaller reports whether all attempts are of one caller.
func (a *attemptCounts) isOfOneCaller() bool {
	var callers int
	for at := range a.byCaller[:countedCallers] {
		if !a.byCaller[at].isEmpty() {
			callers++
		}
	}
	return callers == 1 && a.byCaller[countedCallers].isEmpty()
}

// advance clears buckets older than the window, and returns the place of the newest one.
func (a *attemptCounts) advance(now types.Instant) (newest int64) {
	n := int64(now) / int64(bucketWidth)
	for i := max(a.newestBucket+1, n-buckets+1); i <= n; i++ {
		for at := range a.byCaller {
			a.byCaller[at].successes[i%buckets], a.byCaller[at].failures[i%buckets] = 0, 0
		}
	}
	a.newestBucket = max(a.newestBucket, n)
	return a.newestBucket % buckets
}

// of returns the counts of a caller. An element without attempts is given to the next caller that has none. Earlier
// attempts of this caller may stay in the common element.
func (a *attemptCounts) of(id event.CallerID) *callerCounts {
	var unused *callerCounts
	for i := range a.byCaller[:countedCallers] {
		switch c := &a.byCaller[i]; {
		case c.caller == id && !c.isEmpty():
			return c
		case unused == nil && c.isEmpty():
			unused = c
		}
	}
	if unused == nil {
		return &a.byCaller[countedCallers]
	}
	unused.caller = id
	return unused
}

// succeeded and failed count an attempt of a caller.
func (a *attemptCounts) succeeded(now types.Instant, id event.CallerID) {
	newest := a.advance(now)
	a.of(id).successes[newest]++
}

func (a *attemptCounts) failed(now types.Instant, id event.CallerID) {
	newest := a.advance(now)
	a.of(id).failures[newest]++
}

// mustOpen reports whether the attempts open the circuit: there are enough of them, enough of them failed, and also
// without the attempts of any one caller enough of the others failed. So the failures of one caller take no upstream
// from callers whose requests succeed. The common element may contain attempts of each caller, so it is left out with
// each. If only that leaves nothing, it is not known whether others are served, and the circuit stays closed.
func (a *attemptCounts) mustOpen(r *Rules) bool {
	var all totals
	var by [countedCallers + 1]totals
	for at := range a.byCaller {
		by[at] = a.byCaller[at].totals()
		all.attempts, all.failures = all.attempts+by[at].attempts, all.failures+by[at].failures
	}
	if all.attempts < uint64(r.BreakerMinAttempts) || !all.exceed(r) {
		return false
	}
	common := by[countedCallers]
	for _, one := range by[:countedCallers] {
		others := totals{all.attempts - one.attempts - common.attempts, all.failures - one.failures - common.failures}
		if !others.exceed(r) || others.attempts == 0 && common.attempts > 0 {
			return false
		}
	}
	return true
}

// totals are the attempts of the window.
type totals struct{ attempts, failures uint64 }

func (c *callerCounts) totals() (sum totals) {
	for i := range buckets {
		sum.failures += uint64(c.failures[i])
		sum.attempts += uint64(c.successes[i]) + uint64(c.failures[i])
	}
	return sum
}

// exceed reports whether enough of the attempts failed. No attempts exceed.
func (n totals) exceed(r *Rules) bool {
	return n.failures*100 >= uint64(r.BreakerFailurePercent)*n.attempts
}

func (a *attemptCounts) hashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(a.newestBucket))
	for at := range a.byCaller {
		c := &a.byCaller[at]
		h = h.Mix(uint64(c.caller))
		for i := range buckets {
			h = h.Mix(uint64(c.successes[i])).Mix(uint64(c.failures[i]))
		}
	}
	return h
}
