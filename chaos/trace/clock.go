package trace

import (
	"math"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The constants of Clock.tla, as the node is said to have them: not core's.
const (
	clockStep   = 500 * time.Millisecond // forward at once
	clockRest   = time.Minute            // between two of those
	clockTrust  = 10 * time.Second       // beyond, an offset is not believed while running
	clockGap    = time.Hour              // nor across a restart
	clockSteady = time.Minute            // how long a doubted offset must stand still
	clockWaver  = time.Second            // give or take
	clockSlew   = 20                     // fast or slow by one part in so many
	clockDay    = 86_400_000             // of words.Time
	clockEnd    = math.MaxInt64 / int64(time.Millisecond)
)

// hours are Clock's variables. Time is exact here: what the node says is in whole
// milliseconds, but its offset from the machine's clock is not.
type hours struct {
	read           bool          // the machine's clock, in this life
	at, seen       time.Duration // since 1970
	mono           types.Instant
	doubted        bool
	since, offset  time.Duration
	stepped        time.Duration // since the last step
	frame          types.Time
	became         string // the action at hand
	moved, gone    time.Duration
	believed       bool // after a doubt
	behind, slewed time.Duration
}

// claim is what the machine says, as far as it can be told.
func claim(t types.Time) time.Duration {
	return time.Duration(min(max(int64(t), 0), clockEnd)) * time.Millisecond
}

// found is a frame that recovery found.
func (c *hours) found(body []byte) error {
	h, _, err := record.Open(body)
	if err != nil || h.At < c.frame {
		return broken("NotBehindFrames", "frame %v is of %d, after %d: %v", h.LSN, h.At, c.frame, err)
	}
	c.frame = h.At
	return nil
}

func (c *hours) step(after *View, s *Step) error {
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

// reads is Read; at first, Crash: what the machine says across a restart.
func (c *hours) reads(now types.Now, wall time.Duration) {
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

// doubts is Doubts.
func (c *hours) doubts(even, wall time.Duration, synced bool) {
	wavers := max(c.behind-c.offset, c.offset-c.behind) > clockWaver
	if steady := c.doubted && !wavers && synced; !steady {
		c.since, c.offset = 0, c.behind
	} else if c.since += c.gone; c.since >= clockSteady {
		c.at, c.doubted, c.believed = wall, false, true
		return
	}
	c.at, c.doubted = even, true
}

// accepts is Accept.
func (c *hours) accepts() {
	c.became, c.at, c.doubted = "Accept", max(c.at, c.seen), false
}

// rule is what a step breaks that c has otherwise: the invariant, or else the action.
func (c *hours) rule(was *hours, got time.Duration, doubts bool) string {
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
