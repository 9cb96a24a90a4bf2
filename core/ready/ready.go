// Package ready says whether the node may be given traffic, and why not.
//
//	starting ──all dependencies met──► ready ⇄ degraded
//	    └──too late──► degraded, serving nothing ──all met──► ready
//
// Upstreams that a route cannot be without are a dependency of the start alone: one that
// dies later takes its routes with it, and nothing else that the node does.
package ready

import (
	"errors"
	"time"

	"macronode/core/words"
)

// Ready knows which conditions hold.
//
// Invariants:
//
//	R1  before every dependency was met once, nothing is served
//	R2  a failed or stalled journal, and a full disk, stop writes and never reads
//	R3  upstreams are unmet while one is awaited, and met for ever once none is
type Ready struct {
	deadline words.Instant // for the start
	met      words.Conditions
	ailing   words.Conditions
	awaited  uint64 // bit i: upstream i was never well, and is wanted
	started  bool
}

// A Verdict is what follows from the conditions.
type Verdict struct {
	Phase   words.Phase
	Ready   bool // for all traffic
	ForRead bool // for requests that write nothing: reads, and those sent on to upstreams
	Reads   bool
	Writes  bool
}

// New waits for every dependency; one that is missing at now + patience is an ailment.
// Awaited are the upstreams that must be well once: bit i is upstream i.
func New(now words.Instant, patience time.Duration, awaited uint64) Ready {
	r := Ready{deadline: now.Plus(patience), awaited: awaited}
	r.Await(awaited)
	return r
}

// Await waits for no upstreams but these any more: others were well, or are gone.
func (r *Ready) Await(these uint64) {
	if r.awaited &= these; r.awaited == 0 {
		r.Meet(words.NeedUpstreams)
	}
}

// Awaited are the upstreams that are waited for.
func (r *Ready) Awaited() uint64 { return r.awaited }

// Meet and Miss tell of a dependency.
func (r *Ready) Meet(c words.Condition) {
	words.Assert(words.AllDependencies.Has(c) && (c != words.NeedUpstreams || r.awaited == 0), "ready: not a dependency, or upstreams that are awaited")
	r.met = r.met.With(c)
	if r.met == words.AllDependencies {
		r.started = true
		r.ailing = r.ailing.Without(words.LateStart)
	}
}
func (r *Ready) Miss(c words.Condition) {
	words.Assert(c != words.NeedUpstreams, "ready: upstreams are missed after they were met")
	r.met = r.met.Without(c)
}

// Ail says whether an ailment is there.
func (r *Ready) Ail(c words.Condition, there bool) {
	words.Assert(!words.AllDependencies.Has(c), "ready: not an ailment")
	if there {
		r.ailing = r.ailing.With(c)
	} else {
		r.ailing = r.ailing.Without(c)
	}
}

// Tick notes a start that takes too long.
func (r *Ready) Tick(now words.Instant) {
	if r.late(now) {
		r.ailing = r.ailing.With(words.LateStart)
	}
}

func (r *Ready) late(now words.Instant) bool { return !r.started && r.deadline <= now }

// Due is when Tick would note something.
func (r *Ready) Due() (due words.Instant, any bool) {
	return r.deadline, !r.started && !r.ailing.Has(words.LateStart)
}

// Unmet are the dependencies that are missing, Ailing the ailments that are there.
func (r *Ready) Unmet() words.Conditions    { return words.AllDependencies.Minus(r.met) }
func (r *Ready) Ailing() words.Conditions   { return r.ailing }
func (r *Ready) Has(c words.Condition) bool { return r.ailing.Has(c) }

// Verdict says what follows. A child that is down is no reason to send traffic
// elsewhere, but for the one that would take it.
func (r *Ready) Verdict() Verdict {
	if !r.started {
		if r.ailing.Has(words.LateStart) {
			return Verdict{Phase: words.Degraded}
		}
		return Verdict{Phase: words.Starting}
	}
	listens, writes := r.met.Has(words.NeedHTTP), r.Writes()
	v := Verdict{Phase: words.Ready, Ready: listens && writes, ForRead: listens, Reads: true, Writes: writes}
	if r.Unmet() != 0 || r.ailing != 0 {
		v.Phase = words.Degraded
	}
	return v
}

// Writes reports that nothing is wrong with the journal.
func (r *Ready) Writes() bool {
	return !r.ailing.Has(words.Stalled) && !r.ailing.Has(words.JournalFailed) && !r.ailing.Has(words.DiskFull)
}

// Check returns the first invariant that does not hold.
func (r *Ready) Check() error {
	v := r.Verdict()
	switch {
	case !r.started && (v.Ready || v.ForRead || v.Reads || v.Writes):
		return errors.New("R1: served before everything was there")
	case v.Writes && !r.Writes() || v.Ready && !v.Writes || r.started && !v.Reads:
		return errors.New("R2: writes without a journal, or no reads")
	case (r.awaited == 0) != r.met.Has(words.NeedUpstreams):
		return errors.New("R3: upstreams are awaited and met, or neither")
	}
	return nil
}

// Mix is h after all of r.
func (r *Ready) Mix(h words.Hash64) words.Hash64 {
	return h.Mix(uint64(r.deadline)).Mix(uint64(r.met)).Mix(uint64(r.ailing)).Mix(r.awaited).MixBit(r.started)
}
