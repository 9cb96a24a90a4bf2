package repair

import (
	"math/bits"

	"macronode/core/types"
)

const second = 1_000_000_000 // of types.Instant

// budget is a token bucket as one point in time.
type budget struct {
	rate uint64        // bytes per second
	span types.Instant // in which an empty bucket becomes full
	full types.Instant // when it will be
}

// newBudget returns an empty bucket.
func newBudget(now types.Instant, rate, burst uint64) budget {
	b := budget{rate: rate}
	b.span = b.time(burst, 0)
	b.full = now + b.span
	return b
}

// time returns the time that n bytes take, rounded down; up if more is rate-1.
func (b *budget) time(n, more uint64) types.Instant {
	hi, lo := bits.Mul64(n, second)
	lo, carry := bits.Add64(lo, more, 0)
	t, _ := bits.Div64(hi+carry, lo, b.rate)
	return types.Instant(t)
}

// take grants n bytes or returns how long to wait. Rounding never favors the caller.
func (b *budget) take(now types.Instant, n uint64) (wait types.Instant) {
	full := max(b.full, now) + b.time(n, b.rate-1)
	if wait = full - now - b.span; wait > 0 {
		return wait
	}
	b.full = full
	return 0
}
