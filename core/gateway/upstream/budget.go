package upstream

import (
	"time"

	"macronode/core/types"
)

// A budget is what an upstream's requests have saved up for retries, so that these are
// never more than a share of them: what fails is not asked ever more often.
type budget struct {
	saved      uint32        // hundredths of a retry
	refilledAt types.Instant // spare retries were counted up to here
	spent      uint64        // retries ever
	denied     uint64        // that there was nothing for
}

// earnRetry saves for a request.
func (u *upstream) earnRetry(now types.Instant) {
	u.refill(now)
	u.budget.saved = min(u.budget.saved+u.rules.RetryPercent, u.rules.RetryBurst*retryCost)
}

// spendRetry pays for a retry; false when there is nothing to pay with.
func (u *upstream) spendRetry(now types.Instant) bool {
	u.refill(now)
	b := &u.budget
	if b.saved < retryCost {
		b.denied++
		return false
	}
	b.saved -= retryCost
	b.spent++
	return true
}

// refill counts the spare retries that are there again: those few that an upstream may
// have however seldom it is asked.
func (u *upstream) refill(now types.Instant) {
	b := &u.budget
	n := int64(now-b.refilledAt) / int64(refillInterval)
	if n <= 0 {
		return
	}
	b.refilledAt = b.refilledAt.Add(time.Duration(n) * refillInterval)
	if most := u.rules.RetryPerSecond * retryCost; b.saved < most {
		b.saved = uint32(min(int64(b.saved)+min(n, int64(u.rules.RetryPerSecond))*retryCost, int64(most)))
	}
}
