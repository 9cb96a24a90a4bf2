package types

import "math/bits"

// A Phase is where in its life the node is.
type Phase uint8

const (
	Starting Phase = iota // not everything it needs is there yet
	Ready
	Degraded // serving, with a named reason to worry
	LameDuck // serving, and saying that it will not for long
	Draining // finishing what is in, taking nothing new
	Aborting // giving up what did not finish in time
	Stopped  // nothing is left to do
)

func (p Phase) String() string {
	return [...]string{"starting", "ready", "degraded", "lame_duck", "draining", "aborting", "stopped"}[p]
}

// A Condition is a named reason for or against being ready.
type Condition uint8

// Dependencies are unmet until something is there; ailments are there or not.
const (
	DependencyJournal   Condition = iota // recovered, and what was read back is durable
	DependencyKey                        // somebody can be let in
	DependencyHTTP                       // the public listener is up
	DependencyAdmin                      // the admin listener is up
	DependencySampler                    // somebody watches the disk and the clock
	DependencyUpstreams                  // each that a route cannot be without was well once

	JournalStalled // a flush takes too long
	JournalFailed  // a flush failed: no write until a restart has looked
	DiskFull       // only the reserve is left
	ClockUntrusted // the machine's clock is not believed
	CrashLoop      // a child restarts too often
	StartTimeout   // a dependency missed the start deadline
	IndexBehind    // the index is down or catches up, or the window of keys fills because the index is too slow
	CircuitOpen    // an upstream's breaker does not let everybody through
	ConfigRejected // the last configuration that was read is not applied
	NoEndpoint     // health checks fail on every endpoint of an upstream

	numConditions // how many there are
)

func (c Condition) String() string {
	return [numConditions]string{"journal", "key", "http", "admin", "sampler", "upstreams",
		"journal_stalled", "journal_failed", "disk_full", "clock_untrusted", "crash_loop", "start_timeout", "index_behind", "circuit_open", "config_rejected", "no_healthy_endpoint"}[c]
}

// Conditions is a set of them.
type Conditions uint32

// AllDependencies is what a node needs before it is ready.
const AllDependencies = Conditions(1)<<JournalStalled - 1

// Has reports that c is in s; With and Without are s after a change.
func (s Conditions) Has(c Condition) bool              { return s>>c&1 == 1 }
func (s Conditions) With(c Condition) Conditions       { return s | 1<<c }
func (s Conditions) Without(c Condition) Conditions    { return s &^ (1 << c) }
func (s Conditions) Minus(other Conditions) Conditions { return s &^ other }

// Each yields the conditions of s in their order.
func (s Conditions) Each(yield func(Condition) bool) {
	for s != 0 {
		c := Condition(bits.TrailingZeros32(uint32(s)))
		if !yield(c) {
			return
		}
		s = s.Without(c)
	}
}

// A Service is a part of the shell that is restarted when it ends.
type Service uint8

const (
	ServiceHTTP Service = iota
	ServiceAdmin
	ServiceSampler
	ServiceIndex     // views of the journal
	ServiceSnapshots // snapshots, and the archive
	ServiceAudit     // its file
	NumServices      // how many there are
)

func (c Service) String() string {
	return [NumServices]string{"http", "admin", "sampler", "indexer", "keeper", "audit"}[c]
}

// Dependency is the dependency that c is; without the others the node is ready all the same.
func (c Service) Dependency() (need Condition, ok bool) {
	if c > ServiceSampler {
		return 0, false
	}
	return [...]Condition{DependencyHTTP, DependencyAdmin, DependencySampler}[c], true
}
