package types

import "time"

type (
	// Instant is a point on the machine's monotonic clock, in nanoseconds, which
	// also runs while the machine sleeps. Time-outs and backoff are measured by it.
	Instant int64
	// Time is UTC in milliseconds since 1970, by the node's own durable clock.
	// Expiry, day ceilings and receipts are decided by it.
	Time int64
)

// Now is what the loop reads once a turn. Wall is what the machine claims, in
// milliseconds since 1970; core/clock makes Time of it. Synced says that the
// kernel holds its clock to be synchronised.
type Now struct {
	Mono   Instant
	Wall   Time
	Synced bool
}

// Add is the instant that comes d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Add is the time that comes d later; what is less than a millisecond is lost.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// Day is the number of t's UTC day.
func (t Time) Day() uint32 { return uint32(t / 86_400_000) }
