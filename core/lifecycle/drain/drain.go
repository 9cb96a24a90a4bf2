// Package drain shuts the node down: it stops taking requests, finishes those that run, and aborts at a
// deadline.
//
//	Start ──► lame duck ──► draining ──quiet──────────────► stopped
//	                            └──deadline──► aborting ──► stopped
package drain

import (
	"errors"
	"time"

	"macronode/core/types"
)

// Times are the durations of the phases.
type Times struct {
	LameDuck time.Duration // serving, but not ready
	Drain    time.Duration // finishing requests
	Abort    time.Duration // aborting the rest
}

// Drain is the state of a shutdown, which has not started in the zero value.
//
// Invariants:
//
//	D1  phases only advance, and each ends at its deadline at the latest
//	D2  no request is admitted from draining on
type Drain struct {
	times    Times
	phase    types.Phase // Starting: not started
	deadline types.Instant
}

// New returns a Drain that has not started.
func New(t Times) Drain { return Drain{times: t} }

// Start starts the drain. A second call changes nothing.
func (d *Drain) Start(now types.Instant) {
	if d.phase != types.Starting {
		return
	}
	d.enter(now, types.LameDuck, d.times.LameDuck)
	if d.times.LameDuck == 0 {
		d.enter(now, types.Draining, d.times.Drain)
	}
}

// Abort ends the wait for requests.
func (d *Drain) Abort(now types.Instant) {
	if d.Started() && d.phase < types.Aborting {
		d.enter(now, types.Aborting, d.times.Abort)
	}
}

// Advance advances the phase as far as now and quiet permit; quiet reports that no work is left.
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

// Started reports whether a drain has started, Refusing whether new requests are rejected.
func (d *Drain) Started() bool  { return d.phase != types.Starting }
func (d *Drain) Refusing() bool { return d.phase >= types.Draining }

// Phase returns the phase of the drain.
func (d *Drain) Phase() types.Phase { return d.phase }

// Due returns the deadline of the phase.
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

// HashInto mixes d into h.
func (d *Drain) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(d.phase)).Mix(uint64(d.deadline))
}
