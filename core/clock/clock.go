// Package clock makes the node's own time of what the machine's clocks claim.
//
//	ahead of Wall:    runs at 0.95
//	behind ≤ Step:    jumps there, at most once a minute; else runs at 1.05
//	behind ≤ Trust:   runs at 1.05
//	further behind:   doubted: runs at 1, believes Wall only when it has been
//	                  synchronised and steady for a minute, or an operator says so
package clock

import (
	"math"
	"time"

	"macronode/core/types"
)

const (
	MaxStep          = 500 * time.Millisecond // forward, at once
	StepInterval     = time.Minute            // between two such steps
	MaxTrustedOffset = 10 * time.Second       // an offset beyond is not believed while running
	MaxRestartGap    = time.Hour              // nor one beyond this across a restart
	SteadyFor        = time.Minute            // how long a doubted offset must stand still
	SteadyTolerance  = time.Second            // what standing still allows
	SlewDivisor      = 20                     // it runs fast or slow by one part in so many
)

// MaxTime is the last time that can be told, in 2262. It is never passed.
const MaxTime = types.Time(math.MaxInt64 / time.Millisecond)

// Clock reads the node's time. The zero value has never been read.
//
// Invariants:
//
//	C1  what it reads never goes back
//	C2  it runs at 0.95..1.05 of Mono, but for steps of at most Step, what was
//	    believed after a doubt, and what has gone by across a restart
type Clock struct {
	at          time.Duration // since 1970; finer than Time, or slewing would round to nothing
	wall        time.Duration // of the last reading
	mono        types.Instant // of the last reading
	stepped     types.Instant // the last step
	steadySince types.Instant // the doubted offset has stood still since then
	offset      time.Duration // where it stands
	initialized bool
	hasStepped  bool // it has stepped
	untrusted   bool
}

// From is a clock that goes on at a journaled time.
func From(t types.Time) Clock { return Clock{at: since1970(t)} }

// since1970 is t as far as it can be told: a machine may claim anything.
func since1970(t types.Time) time.Duration {
	return time.Duration(min(max(t, 0), MaxTime)) * time.Millisecond
}

// Untrusted reports that nothing may expire by this clock now.
func (c *Clock) Untrusted() bool { return c.untrusted }

// Ahead reports that the clock is ahead of what the machine says: a restart must
// find that in the journal.
func (c *Clock) Ahead() bool { return c.at > c.wall }

// Offset is how far the machine's clock is ahead of this one.
func (c *Clock) Offset() time.Duration { return c.wall - c.at }

// Time is the last reading.
func (c *Clock) Time() types.Time { return types.Time(c.at / time.Millisecond) }

// Accept believes Wall, however far ahead it is.
func (c *Clock) Accept() { c.at, c.untrusted = max(c.at, c.wall), false }

// Read moves the clock to now.
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

// readFirst reads across a restart: there is no Mono to go by.
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

// distrust waits until an offset that is too large to believe stands still.
func (c *Clock) distrust(now types.Now, behind time.Duration) {
	wavers := behind-c.offset > SteadyTolerance || c.offset-behind > SteadyTolerance
	if !c.untrusted || wavers || !now.Synced {
		c.untrusted, c.steadySince, c.offset = true, c.mono, behind
		return
	}
	if c.mono-c.steadySince >= types.Instant(SteadyFor) {
		c.Accept()
	}
}

// HashInto is h after all of c.
func (c Clock) HashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(c.at)).Mix(uint64(c.wall)).Mix(uint64(c.mono)).Mix(uint64(c.stepped))
	h = h.Mix(uint64(c.steadySince)).Mix(uint64(c.offset))
	return h.MixBool(c.initialized).MixBool(c.hasStepped).MixBool(c.untrusted)
}
