// Package readiness decides whether the node accepts traffic, and reports why not.
//
//	starting ──all dependencies met──► ready ⇄ degraded
//	    └──too late──► degraded, serving nothing ──all met──► ready
//
// Required upstreams are a dependency of the start only: if one fails later, its routes fail and nothing
// else.
package readiness

import (
	"errors"
	"time"

	"macronode/core/types"
)

// Readiness has the conditions that hold.
//
// Invariants:
//
//	R1  nothing is served until all dependencies were met once
//	R2  a failed or stalled journal and a full disk stop writes, never reads; a full disk stops revocations of API keys only when it is exhausted
//	R3  the dependency upstreams is unmet while one is awaited, and met for ever afterwards
type Readiness struct {
	deadline         types.Instant // of the start
	satisfied        types.Conditions
	degradedBy       types.Conditions
	awaitedUpstreams uint64 // bit i: upstream i is required and was never healthy
	started          bool
	exhausted        bool // the disk of the journal has no space for revocations either
}

// A Verdict is the result of the conditions.
type Verdict struct {
	Phase   types.Phase
	Ready   bool // for all traffic
	ForRead bool // for requests that write nothing: reads and proxied requests
	Reads   bool
	Writes  bool
}

// New returns a Readiness that waits for all dependencies. If one is missing after patience, the node is
// degraded. Bit i of awaited is a required upstream i.
func New(now types.Instant, patience time.Duration, awaited uint64) Readiness {
	r := Readiness{deadline: now.Add(patience), awaitedUpstreams: awaited}
	r.AwaitUpstreams(awaited)
	return r
}

// AwaitUpstreams stops waiting for all upstreams except these.
func (r *Readiness) AwaitUpstreams(these uint64) {
	if r.awaitedUpstreams &= these; r.awaitedUpstreams == 0 {
		r.Satisfy(types.DependencyUpstreams)
	}
}

// AwaitedUpstreams returns the upstreams that are awaited.
func (r *Readiness) AwaitedUpstreams() uint64 { return r.awaitedUpstreams }

// Satisfy and Unsatisfy set a dependency.
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

// SetDegraded sets or clears a reason to be degraded.
func (r *Readiness) SetDegraded(c types.Condition, there bool) {
	types.Assert(!types.AllDependencies.Has(c), "readiness: not an ailment")
	if there {
		r.degradedBy = r.degradedBy.With(c)
	} else {
		r.degradedBy = r.degradedBy.Without(c)
	}
}

// reserveParts is how many parts the reserve of the disk has, of which revocations leave one.
const reserveParts = 8

// SetDiskFree notes the free bytes of the journal's disk. With less than the reserve, writes stop. Revocations of API keys are small, and
// each key is revoked once: they may use the reserve down to an eighth of it.
func (r *Readiness) SetDiskFree(free, reserve uint64) {
	r.SetDegraded(types.DiskFull, free < reserve)
	r.exhausted = free < reserve/reserveParts
}

// Tick reports a start that takes too long.
func (r *Readiness) Tick(now types.Instant) {
	if r.startOverdue(now) {
		r.degradedBy = r.degradedBy.With(types.StartTimeout)
	}
}

func (r *Readiness) startOverdue(now types.Instant) bool { return !r.started && r.deadline <= now }

// Due returns when Tick would change something.
func (r *Readiness) Due() (due types.Instant, any bool) {
	return r.deadline, !r.started && !r.degradedBy.Has(types.StartTimeout)
}

// WaitingFor returns the missing dependencies, DegradedBy the reasons to be degraded.
func (r *Readiness) WaitingFor() types.Conditions { return types.AllDependencies.Minus(r.satisfied) }
func (r *Readiness) DegradedBy() types.Conditions { return r.degradedBy }
func (r *Readiness) Has(c types.Condition) bool   { return r.degradedBy.Has(c) }

// Verdict returns the result of the conditions. A service that is down does not make the node unready,
// except the one that would take the traffic.
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

// AcceptsWrites reports whether the journal accepts writes.
func (r *Readiness) AcceptsWrites() bool {
	return !r.degradedBy.Has(types.JournalStalled) && !r.degradedBy.Has(types.JournalFailed) && !r.degradedBy.Has(types.DiskFull)
}

// AcceptsRevocations reports whether the journal accepts revocations of API keys.
func (r *Readiness) AcceptsRevocations() bool {
	return !r.degradedBy.Has(types.JournalStalled) && !r.degradedBy.Has(types.JournalFailed) && !r.exhausted
}

// Check returns the first invariant that does not hold.
func (r *Readiness) Check() error {
	v := r.Verdict()
	switch {
	case !r.started && (v.Ready || v.ForRead || v.Reads || v.Writes):
		return errors.New("R1: served before everything was there")
	case r.AcceptsWrites() && !r.AcceptsRevocations():
		return errors.New("R2: writes without revocations")
	case v.Writes && !r.AcceptsWrites() || v.Ready && !v.Writes || r.started && !v.Reads:
		return errors.New("R2: writes without a journal, or no reads")
	case (r.awaitedUpstreams == 0) != r.satisfied.Has(types.DependencyUpstreams):
		return errors.New("R3: upstreams are awaited and met, or neither")
	}
	return nil
}

// HashInto mixes r into h.
func (r *Readiness) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(r.deadline)).Mix(uint64(r.satisfied)).Mix(uint64(r.degradedBy)).Mix(r.awaitedUpstreams).MixBool(r.started).MixBool(r.exhausted)
}
