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

	"macronode/core/words"
)

const (
	Step   = 500 * time.Millisecond // forward, at once
	Rest   = time.Minute            // between two such steps
	Trust  = 10 * time.Second       // an offset beyond is not believed while running
	Gap    = time.Hour              // nor one beyond this across a restart
	Steady = time.Minute            // how long a doubted offset must stand still
	Waver  = time.Second            // what standing still allows
	Slew   = 20                     // it runs fast or slow by one part in so many
)

// End is the last time that can be told, in 2262. It is never passed.
const End = words.Time(math.MaxInt64 / time.Millisecond)

// Clock reads the node's time. The zero value has never been read.
//
// Invariants:
//
//	C1  what it reads never goes back
//	C2  it runs at 0.95..1.05 of Mono, but for steps of at most Step, what was
//	    believed after a doubt, and what has gone by across a restart
type Clock struct {
	at      time.Duration // since 1970; finer than Time, or slewing would round to nothing
	wall    time.Duration // of the last reading
	mono    words.Instant // of the last reading
	stepped words.Instant // the last step
	since   words.Instant // the doubted offset has stood still since then
	offset  time.Duration // where it stands
	set     bool
	did     bool // it has stepped
	doubted bool
}

// From is a clock that goes on at a journaled time.
func From(t words.Time) Clock { return Clock{at: since1970(t)} }

// since1970 is t as far as it can be told: a machine may claim anything.
func since1970(t words.Time) time.Duration {
	return time.Duration(min(max(t, 0), End)) * time.Millisecond
}

// Doubted reports that nothing may expire by this clock now.
func (c *Clock) Doubted() bool { return c.doubted }

// Leads reports that the clock is ahead of what the machine says: a restart must
// find that in the journal.
func (c *Clock) Leads() bool { return c.at > c.wall }

// Offset is how far the machine's clock is ahead of this one.
func (c *Clock) Offset() time.Duration { return c.wall - c.at }

// Time is the last reading.
func (c *Clock) Time() words.Time { return words.Time(c.at / time.Millisecond) }

// Accept believes Wall, however far ahead it is.
func (c *Clock) Accept() { c.at, c.doubted = max(c.at, c.wall), false }

// Read moves the clock to now.
func (c *Clock) Read(now words.Now) words.Time {
	if !c.set {
		c.first(now)
		return c.Time()
	}
	before := c.mono
	c.mono, c.wall = max(c.mono, now.Mono), since1970(now.Wall)
	gone := min(time.Duration(c.mono-before), math.MaxInt64-c.at)
	even, slew := c.at+gone, gone/Slew
	behind := c.wall - even
	if behind > Trust || c.doubted && behind > Step {
		c.at = even
		c.doubt(now, behind)
		return c.Time()
	}
	c.doubted = false
	switch {
	case behind < 0:
		c.at = max(even-slew, c.wall)
	case behind <= slew:
		c.at = c.wall
	case behind <= Step && (!c.did || c.mono-c.stepped >= words.Instant(Rest)):
		c.at, c.stepped, c.did = c.wall, c.mono, true
	default:
		c.at = even + slew
	}
	return c.Time()
}

// first reads across a restart: there is no Mono to go by.
func (c *Clock) first(now words.Now) {
	c.set, c.mono, c.wall = true, max(0, now.Mono), since1970(now.Wall)
	ahead := c.wall - c.at
	if c.at == 0 || 0 <= ahead && ahead <= Gap {
		c.at = c.wall
		return
	}
	if ahead > Gap {
		c.doubted, c.since, c.offset = true, c.mono, ahead
	}
}

// doubt waits until an offset that is too large to believe stands still.
func (c *Clock) doubt(now words.Now, behind time.Duration) {
	wavers := behind-c.offset > Waver || c.offset-behind > Waver
	if !c.doubted || wavers || !now.Synced {
		c.doubted, c.since, c.offset = true, c.mono, behind
		return
	}
	if c.mono-c.since >= words.Instant(Steady) {
		c.Accept()
	}
}

// Mix is h after all of c.
func (c Clock) Mix(h words.Hash64) words.Hash64 {
	h = h.Mix(uint64(c.at)).Mix(uint64(c.wall)).Mix(uint64(c.mono)).Mix(uint64(c.stepped))
	h = h.Mix(uint64(c.since)).Mix(uint64(c.offset))
	return h.MixBit(c.set).MixBit(c.did).MixBit(c.doubted)
}
