// Package drain ends the node: it stops taking work, finishes what is in, and
// gives up at a deadline.
//
//	Begin ──► lame duck ──► draining ──quiet──────────────► stopped
//	                            └──deadline──► aborting ──► stopped
package drain

import (
	"errors"
	"time"

	"macronode/core/words"
)

// Times are how long each part may take.
type Times struct {
	LameDuck time.Duration // serving, while telling that it ends
	Drain    time.Duration // finishing what is in
	Abort    time.Duration // giving up the rest
}

// Drain is where the end stands. The zero value but for its times has not begun.
//
// Invariants:
//
//	D1  phases only advance, and each ends at its deadline at the latest
//	D2  nothing new is taken from draining on
type Drain struct {
	times Times
	phase words.Phase // Starting: not begun
	until words.Instant
}

// New has not begun.
func New(t Times) Drain { return Drain{times: t} }

// Begin starts the end; asked again, it changes nothing.
func (d *Drain) Begin(now words.Instant) {
	if d.phase != words.Starting {
		return
	}
	d.enter(now, words.LameDuck, d.times.LameDuck)
	if d.times.LameDuck == 0 {
		d.enter(now, words.Draining, d.times.Drain)
	}
}

// Abort ends the waiting now.
func (d *Drain) Abort(now words.Instant) {
	if d.Begun() && d.phase < words.Aborting {
		d.enter(now, words.Aborting, d.times.Abort)
	}
}

// Move advances as far as now and quiet allow. Quiet: nothing is in any more.
func (d *Drain) Move(now words.Instant, quiet bool) {
	if d.phase == words.LameDuck && d.until <= now {
		d.enter(now, words.Draining, d.times.Drain)
	}
	if d.phase == words.Draining && !quiet && d.until <= now {
		d.enter(now, words.Aborting, d.times.Abort)
	}
	if d.phase == words.Draining && quiet || d.phase == words.Aborting && (quiet || d.until <= now) {
		d.enter(now, words.Stopped, 0)
	}
}

func (d *Drain) enter(now words.Instant, p words.Phase, length time.Duration) {
	words.Assert(p > d.phase, "drain: goes back")
	d.phase, d.until = p, now.Plus(length)
}

// Begun reports that the node is ending; Closed that nothing new is taken.
func (d *Drain) Begun() bool  { return d.phase != words.Starting }
func (d *Drain) Closed() bool { return d.phase >= words.Draining }

// Phase is where the end stands, once it has begun.
func (d *Drain) Phase() words.Phase { return d.phase }

// Due is the deadline of the phase.
func (d *Drain) Due() (due words.Instant, any bool) {
	return d.until, d.Begun() && d.phase != words.Stopped
}

// Check returns the first invariant that does not hold.
func (d *Drain) Check() error {
	switch {
	case d.phase == words.Ready || d.phase == words.Degraded || d.phase > words.Stopped:
		return errors.New("D1: a phase that is none of an end's")
	case d.Closed() && !d.Begun():
		return errors.New("D2: closed and not begun")
	}
	return nil
}

// Mix is h after all of d.
func (d *Drain) Mix(h words.Hash64) words.Hash64 { return h.Mix(uint64(d.phase)).Mix(uint64(d.until)) }
