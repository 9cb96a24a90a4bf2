package rejection

import (
	"time"

	"macronode/core/types"
)

// Rate is a burst, and a number in each time after it.
type Rate struct {
	Burst int
	Every time.Duration // the time in which the credit for one returns
}

// Credit is what is left of a Rate for one origin of rejected requests. The zero value is a whole one, at instants after 0.
//
// In any time t, at most Burst + t/Every are taken.
type Credit struct {
	whole types.Instant // when it is whole again
}

// Take takes the credit for one. It returns false, and takes nothing, if there is none.
func (c *Credit) Take(now types.Instant, rate Rate) bool {
	whole := max(c.whole, now).Add(rate.Every)
	if whole > now.Add(time.Duration(rate.Burst)*rate.Every) {
		return false
	}
	c.whole = whole
	return true
}
