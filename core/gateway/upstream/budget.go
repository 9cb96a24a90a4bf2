package upstream

import (
	"time"

	"macronode/core/types"
)

// A budget is the retry budget of an upstream for a group of callers. Requests add to it, so that retries are at most a
// share of the requests: failures do not multiply the load.
type budget struct {
	saved      uint32        // hundredths of a retry
	refilledAt types.Instant // spare retries are counted up to this time
	spent      uint64        // total retries
	denied     uint64        // retries rejected for an empty budget
}

// earnRetry adds the share of one request.
func (g *group) earnRetry(now types.Instant, r *Rules) {
	g.refill(now, r)
	g.budget.saved = min(g.budget.saved+r.RetryPercent, r.RetryBurst*retryCost)
}

// spendRetry takes one retry; false if the budget is empty.
func (g *group) spendRetry(now types.Instant, r *Rules) bool {
	g.refill(now, r)
	b := &g.budget
	if b.saved < retryCost {
		b.denied++
		return false
	}
	b.saved -= retryCost
	b.spent++
	return true
}

// refill adds the spare retries of the elapsed time: a few are allowed however rarely the
// upstream is used.
func (g *group) refill(now types.Instant, r *Rules) {
	b := &g.budget
	n := int64(now-b.refilledAt) / int64(refillInterval)
	if n <= 0 {
		return
	}
	b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)
	if most := r.RetryPerSecond * retryCost; b.saved < most {
		b.saved = uint32(min(int64(b.saved)+min(n, int64(r.RetryPerSecond))*retryCost, int64(most)))
	}
}
