package types

import "time"

type (
	// Instant is a point on the machine's monotonic clock, in nanoseconds, which
	// also runs while the machine sleeps. Timeouts and backoff are measured by it.
	Instant int64
	// Time is UTC in milliseconds since 1970, by the node's own durable clock.
	// Expiry, day ceilings and receipts are decided by it.
	Time int64
)

// Now is the time of a step. Wall is the wall clock of the machine in milliseconds since 1970, from
// which core/clock derives Time. Synced reports whether the kernel considers the clock synchronised.
type Now struct {
	Mono   Instant
	Wall   Time
	Synced bool
}

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Add returns the time d later, rounded down to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// Day returns the number of the UTC day of t.
func (t Time) Day() uint32 { return uint32(t / 86_400_000) }
