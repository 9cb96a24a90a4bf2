// Package drain ends the node: it stops taking work, finishes what is in, and
// gives up at a deadline.
//
//	Begin ──► lame duck ──► draining ──quiet──────────────► stopped
//	                            └──deadline──► aborting ──► stopped
package drain

import (
	"errors"
	"time"

	"macronode/core/types"
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
	times    Times
	phase    types.Phase // Starting: not begun
	deadline types.Instant
}

// New has not begun.
func New(t Times) Drain { return Drain{times: t} }

// Start starts the end; asked again, it changes nothing.
func (d *Drain) Start(now types.Instant) {
	if d.phase != types.Starting {
		return
	}
	d.enter(now, types.LameDuck, d.times.LameDuck)
	if d.times.LameDuck == 0 {
		d.enter(now, types.Draining, d.times.Drain)
	}
}

// Abort ends the waiting now.
func (d *Drain) Abort(now types.Instant) {
	if d.Started() && d.phase < types.Aborting {
		d.enter(now, types.Aborting, d.times.Abort)
	}
}

// Advance advances as far as now and quiet allow. Quiet: nothing is in any more.
func (d *Drain) Advance(now types.Instant, quiet bool) {
	if d.phase == types.LameDuck && d.deadline <= now {
		d.enter(now, types.Draining, d.times.Drain)
	}
	if d.phase == types.Draining && !quiet && d.deadline <= now {
		d.enter(now, types.Aborting, d.times.Abort)
	}
	if d.phase == types.Draining && quiet || d.phase == types.Aborting && (quiet || d.deadline <= now) {
		d.enter(now, types.Stopped, 0)
	}
}

func (d *Drain) enter(now types.Instant, p types.Phase, length time.Duration) {
	types.Assert(p > d.phase, "drain: goes back")
	d.phase, d.deadline = p, now.Add(length)
}

// Started reports that the node is ending; Closed that nothing new is taken.
func (d *Drain) Started() bool  { return d.phase != types.Starting }
func (d *Drain) Refusing() bool { return d.phase >= types.Draining }

// Phase is where the end stands, once it has begun.
func (d *Drain) Phase() types.Phase { return d.phase }

// Due is the deadline of the phase.
func (d *Drain) Due() (due types.Instant, any bool) {
	return d.deadline, d.Started() && d.phase != types.Stopped
}

// Check returns the first invariant that does not hold.
func (d *Drain) Check() error {
	switch {
	case d.phase == types.Ready || d.phase == types.Degraded || d.phase > types.Stopped:
		return errors.New("D1: a phase that is none of an end's")
	case d.Refusing() && !d.Started():
		return errors.New("D2: closed and not begun")
	}
	return nil
}

// HashInto is h after all of d.
func (d *Drain) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(d.phase)).Mix(uint64(d.deadline))
}
