package trace

import (
	"math"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The constants of Clock.tla, repeated here independently of core.
const (
	clockStep   = 500 * time.Millisecond // largest step forward
	clockRest   = time.Minute            // least time between two steps
	clockTrust  = 10 * time.Second       // a larger offset is not trusted while running
	clockGap    = time.Hour              // a larger offset is not trusted across a restart
	clockSteady = time.Minute            // how long an untrusted offset must be steady
	clockWaver  = time.Second            // largest variation of a steady offset
	clockSlew   = 20                     // a slew is this part of the elapsed time
	clockDay    = 86_400_000             // of types.Time
	clockEnd    = math.MaxInt64 / int64(time.Millisecond)
)

// clockState has the variables of Clock. Time is exact here: the node's time is in whole milliseconds,
// but its offset from the machine's clock is not.
type clockState struct {
	read           bool          // the machine's clock was read in this run
	at, seen       time.Duration // since 1970
	mono           types.Instant
	doubted        bool
	since, offset  time.Duration
	stepped        time.Duration // time since the last step
	frame          types.Time
	became         string // the current action
	moved, gone    time.Duration
	believed       bool // after distrust
	behind, slewed time.Duration
}

// claim returns the machine's time, clamped to the valid range.
func claim(t types.Time) time.Duration {
	return time.Duration(min(max(int64(t), 0), clockEnd)) * time.Millisecond
}

// found handles a frame that recovery found.
func (c *clockState) found(body []byte) error {
	h, _, err := record.Open(body)
	if err != nil || h.At < c.frame {
		return broken("NotBehindFrames", "frame %v is of %d, after %d: %v", h.LSN, h.At, c.frame, err)
	}
	c.frame = h.At
	return nil
}

func (c *clockState) step(after *View, s *Step) error {
	was := *c
	wall := claim(s.Now.Wall)
	got := wall - after.Offset
	if after.At != types.Time(got/time.Millisecond) {
		return broken("Read", "it is %d, and %v behind %d", after.At, after.Offset, s.Now.Wall)
	}
	c.reads(s.Now, wall)
	doubts := after.DegradedBy.Has(types.ClockUntrusted)
	if in, ok := s.In.(event.Signal); ok && in.Kind == event.AcceptClock {
		if c.doubted == doubts {
			c.accepts()
			doubts = false
		}
	}
	if got != c.at || doubts != c.doubted {
		return broken(c.rule(&was, got, doubts), "%s: from %v, after %v, at %v of %v: doubted %v; want %v, %v",
			c.became, was.at, c.gone, got, wall, doubts, c.at, c.doubted)
	}
	if ahead := after.DegradedBy.Has(types.ClockAhead); ahead != (after.Offset < -10*time.Second) {
		return broken("Read", "ahead: %v, and the offset is %v", ahead, after.Offset)
	}
	if len(s.Frame) == 0 {
		return nil
	}
	if err := c.found(s.Frame); err != nil {
		return err
	}
	if c.frame != after.At {
		return broken("Vouch", "a frame is of %d, and it is %d", c.frame, after.At)
	}
	return nil
}

// reads is the action Read; at first Crash: the machine's time across a restart.
func (c *clockState) reads(now types.Now, wall time.Duration) {
	was := c.at
	defer func() { c.seen, c.moved = wall, c.at-was }()
	if c.believed = false; !c.read {
		was = claim(c.frame)
		ahead := wall - was
		c.read, c.became, c.mono, c.stepped, c.at, c.gone = true, "Crash", max(0, now.Mono), clockRest, wall, 0
		if far := ahead > clockGap; c.frame > 0 && (ahead < 0 || far) {
			c.at, c.doubted, c.since, c.offset = was, far, 0, ahead
		}
		return
	}
	gone := time.Duration(max(c.mono, now.Mono) - c.mono)
	c.became, c.gone, c.mono, c.slewed = "Read", gone, max(c.mono, now.Mono), gone/clockSlew
	even := c.at + gone
	c.behind = wall - even
	c.stepped = min(clockRest, c.stepped+gone)
	far := clockTrust
	if c.doubted {
		far = clockStep
	}
	if c.behind > far {
		c.doubts(even, wall, now.Synced)
		return
	}
	c.doubted = false
	switch {
	case c.behind < 0:
		c.at = max(even-c.slewed, wall)
	case c.behind > c.slewed && c.behind <= clockStep && c.stepped >= clockRest:
		c.at, c.stepped = wall, 0
	default:
		c.at = min(even+c.slewed, wall)
	}
}

// doubts is the action Doubts.
func (c *clockState) doubts(even, wall time.Duration, synced bool) {
	wavers := max(c.behind-c.offset, c.offset-c.behind) > clockWaver
	if steady := c.doubted && !wavers && synced; !steady {
		c.since, c.offset = 0, c.behind
	} else if c.since += c.gone; c.since >= clockSteady {
		c.at, c.doubted, c.believed = wall, false, true
		return
	}
	c.at, c.doubted = even, true
}

// accepts is the action Accept.
func (c *clockState) accepts() {
	c.became, c.at, c.doubted = "Accept", max(c.at, c.seen), false
}

// rule returns the invariant or action that a step violates.
func (c *clockState) rule(was *clockState, got time.Duration, doubts bool) string {
	moved := got - was.at
	leap := c.gone + max(c.slewed, clockStep)
	switch {
	case c.became == "Crash" && got < claim(c.frame):
		return "NotBehindFrames"
	case c.became == "Crash" && c.frame > 0 && got-claim(c.frame) > clockGap:
		return "RestartWithinGap"
	case c.became == "Crash" || c.became == "Accept":
		return c.became
	case moved < 0:
		return "NeverBack"
	case was.doubted && !c.believed && moved > leap:
		return "BelievedLate"
	case c.seen-got > clockTrust && !doubts:
		return "FarIsDoubted"
	case moved > leap && !c.believed || moved < c.gone-c.slewed:
		return "Rate"
	case c.behind >= 0 && got > c.seen:
		return "NoLeadOfItsOwn"
	case moved-c.gone > c.slewed && was.stepped+c.gone < clockRest:
		return "StepsAreRare"
	case c.gone >= clockSlew:
		return "Settles"
	default:
		return "Read"
	}
}
