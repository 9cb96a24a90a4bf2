// Package clock derives the node's own time from the machine's clocks.
//
//	ahead of the wall clock:    runs at 0.95
//	behind ≤ MaxStep:           steps forward, at most once a minute; otherwise runs at 1.05
//	behind ≤ MaxTrustedOffset:  runs at 1.05
//	further behind:             untrusted: runs at 1 until the wall clock has been synchronised
//	                            and steady for a minute, or an operator accepts it
package clock

import (
	"math"
	"time"

	"macronode/core/types"
)

const (
	MaxStep          = 500 * time.Millisecond // largest step forward
	StepInterval     = time.Minute            // least time between two steps
	MaxTrustedOffset = 10 * time.Second       // a larger offset is not trusted while running
	MaxRestartGap    = time.Hour              // a larger offset is not trusted across a restart
	SteadyFor        = time.Minute            // how long an untrusted offset must be steady
	SteadyTolerance  = time.Second            // largest variation of a steady offset
	SlewDivisor      = 20                     // a slew is this part of the elapsed time
)

// MaxTime is the largest time, in 2262. The clock never passes it.
const MaxTime = types.Time(math.MaxInt64 / time.Millisecond)

// The times at which a journal may begin, in milliseconds since 1970. The time of a journal never goes back, so a machine's clock that
// was never set would determine it for ever.
const (
	EarliestStart types.Time = 1_767_225_600_000 // 2026-01-01, before the first version
	LatestStart   types.Time = 4_102_444_800_000 // 2100-01-01
)

// MayBegin reports whether a journal may begin at a time.
func MayBegin(t types.Time) bool { return EarliestStart <= t && t <= LatestStart }

// Clock is the node's time. The zero value is ready; its first Read adopts the wall clock.
//
// Invariants:
//
//	C1  its readings never decrease
//	C2  it runs at 0.95..1.05 of Mono, except for steps of at most MaxStep, an offset
//	    that is accepted after distrust, and the time across a restart
type Clock struct {
	at          time.Duration // since 1970; finer than Time, so that a slew is not rounded to 0
	wall        time.Duration // at the last reading
	mono        types.Instant // at the last reading
	stepped     types.Instant // the last step
	steadySince types.Instant // start of the steady untrusted offset
	offset      time.Duration // the untrusted offset
	initialized bool
	hasStepped  bool
	untrusted   bool
}

// From returns a clock that continues from a journaled time.
func From(t types.Time) Clock { return Clock{at: since1970(t)} }

// since1970 clamps t to [0, MaxTime]: the machine's clock may have any value.
func since1970(t types.Time) time.Duration {
	return time.Duration(min(max(t, 0), MaxTime)) * time.Millisecond
}

// Untrusted reports whether the clock is untrusted. While it is, nothing expires.
func (c *Clock) Untrusted() bool { return c.untrusted }

// Ahead reports whether the clock is ahead of the machine's clock. If so, a restart must
// find the time in the journal.
func (c *Clock) Ahead() bool { return c.at > c.wall }

// FarAhead reports whether the clock is ahead of the machine's clock by more than MaxTrustedOffset: an earlier reading of that was wrong.
func (c *Clock) FarAhead() bool { return c.Offset() < -MaxTrustedOffset }

// Offset returns how far the machine's clock is ahead of this clock.
func (c *Clock) Offset() time.Duration { return c.wall - c.at }

// Time returns the last reading.
func (c *Clock) Time() types.Time { return types.Time(c.at / time.Millisecond) }

// NotBefore returns an instant before which the clock does not read t, unless it steps forward meanwhile. As time goes by without a
// step, it comes closer to the instant at which it does.
func (c *Clock) NotBefore(t types.Time) types.Instant {
	left := max(0, since1970(t)-c.at)
	return c.mono.Add(left - left/(SlewDivisor+1))
}

// Accept trusts the wall clock, however far ahead it is.
func (c *Clock) Accept() { c.at, c.untrusted = max(c.at, c.wall), false }

// Read advances the clock to now and returns its time.
func (c *Clock) Read(now types.Now) types.Time {
	if !c.initialized {
		c.readFirst(now)
		return c.Time()
	}
	before := c.mono
	c.mono, c.wall = max(c.mono, now.Mono), since1970(now.Wall)
	gone := min(time.Duration(c.mono-before), math.MaxInt64-c.at)
	even, slew := c.at+gone, gone/SlewDivisor
	behind := c.wall - even
	if behind > MaxTrustedOffset || c.untrusted && behind > MaxStep {
		c.at = even
		c.distrust(now, behind)
		return c.Time()
	}
	c.untrusted = false
	switch {
	case behind < 0:
		c.at = max(even-slew, c.wall)
	case behind <= slew:
		c.at = c.wall
	case behind <= MaxStep && (!c.hasStepped || c.mono-c.stepped >= types.Instant(StepInterval)):
		c.at, c.stepped, c.hasStepped = c.wall, c.mono, true
	default:
		c.at = even + slew
	}
	return c.Time()
}

// readFirst is the first reading after a restart, when the monotonic clock is not comparable.
func (c *Clock) readFirst(now types.Now) {
	c.initialized, c.mono, c.wall = true, max(0, now.Mono), since1970(now.Wall)
	ahead := c.wall - c.at
	if c.at == 0 || 0 <= ahead && ahead <= MaxRestartGap {
		c.at = c.wall
		return
	}
	if ahead > MaxRestartGap {
		c.untrusted, c.steadySince, c.offset = true, c.mono, ahead
	}
}

// distrust accepts an offset that is too large once it has been steady and synchronised for SteadyFor.
func (c *Clock) distrust(now types.Now, behind time.Duration) {
	unsteady := behind-c.offset > SteadyTolerance || c.offset-behind > SteadyTolerance
	if !c.untrusted || unsteady || !now.Synced {
		c.untrusted, c.steadySince, c.offset = true, c.mono, behind
		return
	}
	if c.mono-c.steadySince >= types.Instant(SteadyFor) {
		c.Accept()
	}
}

// HashInto mixes every field of c into h.
func (c Clock) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(c.at)).Mix(uint64(c.wall)).Mix(uint64(c.mono)).Mix(uint64(c.stepped))
	h = h.Mix(uint64(c.steadySince)).Mix(uint64(c.offset))
	return h.MixBool(c.initialized).MixBool(c.hasStepped).MixBool(c.untrusted)
}
