package upstream

import (
	"time"

	"macronode/core/words"
)

// A budget is what an upstream's requests have saved up for retries, so that these are
// never more than a share of them: what fails is not asked ever more often.
type budget struct {
	saved  uint32        // hundredths of a retry
	filled words.Instant // spare retries were counted up to here
	spent  uint64        // retries ever
	dry    uint64        // that there was nothing for
}

// earn saves for a request.
func (u *upstream) earn(now words.Instant) {
	u.refill(now)
	u.budget.saved = min(u.budget.saved+u.rules.Share, u.rules.Hoard*price)
}

// spend pays for a retry; false when there is nothing to pay with.
func (u *upstream) spend(now words.Instant) bool {
	u.refill(now)
	b := &u.budget
	if b.saved < price {
		b.dry++
		return false
	}
	b.saved -= price
	b.spent++
	return true
}

// refill counts the spare retries that are there again: those few that an upstream may
// have however seldom it is asked.
func (u *upstream) refill(now words.Instant) {
	b := &u.budget
	n := int64(now-b.filled) / int64(refill)
	if n <= 0 {
		return
	}
	b.filled = b.filled.Plus(time.Duration(n) * refill)
	if most := u.rules.Spare * price; b.saved < most {
		b.saved = uint32(min(int64(b.saved)+min(n, int64(u.rules.Spare))*price, int64(most)))
	}
}
