// Package readiness says whether the node may be given traffic, and why not.
//
//	starting ──all dependencies met──► ready ⇄ degraded
//	    └──too late──► degraded, serving nothing ──all met──► ready
//
// Upstreams that a route cannot be without are a dependency of the start alone: one that
// dies later takes its routes with it, and nothing else that the node does.
package readiness

import (
	"errors"
	"time"

	"macronode/core/types"
)

// Readiness knows which conditions hold.
//
// Invariants:
//
//	R1  before every dependency was met once, nothing is served
//	R2  a failed or stalled journal, and a full disk, stop writes and never reads
//	R3  upstreams are unmet while one is awaited, and met for ever once none is
type Readiness struct {
	deadline         types.Instant // for the start
	satisfied        types.Conditions
	degradedBy       types.Conditions
	awaitedUpstreams uint64 // bit i: upstream i was never well, and is wanted
	started          bool
}

// A Verdict is what follows from the conditions.
type Verdict struct {
	Phase   types.Phase
	Ready   bool // for all traffic
	ForRead bool // for requests that write nothing: reads, and those sent on to upstreams
	Reads   bool
	Writes  bool
}

// New waits for every dependency; one that is missing at now + patience is an ailment.
// Awaited are the upstreams that must be well once: bit i is upstream i.
func New(now types.Instant, patience time.Duration, awaited uint64) Readiness {
	r := Readiness{deadline: now.Add(patience), awaitedUpstreams: awaited}
	r.AwaitUpstreams(awaited)
	return r
}

// AwaitUpstreams waits for no upstreams but these any more: others were well, or are gone.
func (r *Readiness) AwaitUpstreams(these uint64) {
	if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {
		r.Satisfy(types.DependencyUpstreams)
	}
}

// AwaitedUpstreams are the upstreams that are waited for.
func (r *Readiness) AwaitedUpstreams() uint64 { return r.awaitedUpstreams }

// Satisfy and Miss tell of a dependency.
func (r *Readiness) Satisfy(c types.Condition) {
	types.Assert(types.AllDependencies.Has(c) && (c != types.DependencyUpstreams || r.awaitedUpstreams == 0), "readiness: not a dependency, or upstreams that are awaited")
	r.satisfied = r.satisfied.With(c)
	if r.satisfied == types.AllDependencies {
		r.started = true
		r.degradedBy = r.degradedBy.Without(types.StartTimeout)
	}
}
func (r *Readiness) Unsatisfy(c types.Condition) {
	types.Assert(c != types.DependencyUpstreams, "readiness: upstreams are missed after they were met")
	r.satisfied = r.satisfied.Without(c)
}

// SetDegraded says whether an ailment is there.
func (r *Readiness) SetDegraded(c types.Condition, there bool) {
	types.Assert(!types.AllDependencies.Has(c), "readiness: not an ailment")
	if there {
		r.degradedBy = r.degradedBy.With(c)
	} else {
		r.degradedBy = r.degradedBy.Without(c)
	}
}

// Tick notes a start that takes too long.
func (r *Readiness) Tick(now types.Instant) {
	if r.startOverdue(now) {
		r.degradedBy = r.degradedBy.With(types.StartTimeout)
	}
}

func (r *Readiness) startOverdue(now types.Instant) bool { return !r.started && r.deadline <= now }

// Due is when Tick would note something.
func (r *Readiness) Due() (due types.Instant, any bool) {
	return r.deadline, !r.started && !r.degradedBy.Has(types.StartTimeout)
}

// WaitingFor are the dependencies that are missing, Ailing the ailments that are there.
func (r *Readiness) WaitingFor() types.Conditions { return types.AllDependencies.Minus(r.satisfied) }
func (r *Readiness) DegradedBy() types.Conditions { return r.degradedBy }
func (r *Readiness) Has(c types.Condition) bool   { return r.degradedBy.Has(c) }

// Verdict says what follows. A child that is down is no reason to send traffic
// elsewhere, but for the one that would take it.
func (r *Readiness) Verdict() Verdict {
	if !r.started {
		if r.degradedBy.Has(types.StartTimeout) {
			return Verdict{Phase: types.Degraded}
		}
		return Verdict{Phase: types.Starting}
	}
	listens, writes := r.satisfied.Has(types.DependencyHTTP), r.AcceptsWrites()
	v := Verdict{Phase: types.Ready, Ready: listens && writes, ForRead: listens, Reads: true, Writes: writes}
	if r.WaitingFor() != 0 || r.degradedBy != 0 {
		v.Phase = types.Degraded
	}
	return v
}

// AcceptsWrites reports that nothing is wrong with the journal.
func (r *Readiness) AcceptsWrites() bool {
	return !r.degradedBy.Has(types.JournalStalled) && !r.degradedBy.Has(types.JournalFailed) && !r.degradedBy.Has(types.DiskFull)
}

// Check returns the first invariant that does not hold.
func (r *Readiness) Check() error {
	v := r.Verdict()
	switch {
	case !r.started && (v.Ready || v.ForRead || v.Reads || v.Writes):
		return errors.New("R1: served before everything was there")
	case v.Writes && !r.AcceptsWrites() || v.Ready && !v.Writes || r.started && !v.Reads:
		return errors.New("R2: writes without a journal, or no reads")
	case (r.awaitedUpstreams == 0) != r.satisfied.Has(types.DependencyUpstreams):
		return errors.New("R3: upstreams are awaited and met, or neither")
	}
	return nil
}

// HashInto is h after all of r.
func (r *Readiness) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(r.deadline)).Mix(uint64(r.satisfied)).Mix(uint64(r.degradedBy)).Mix(r.awaitedUpstreams).MixBool(r.started)
}
