package types

import "math/bits"

// A Phase is a phase in the life of the node.
type Phase uint8

const (
	Starting Phase = iota // a dependency is missing
	Ready
	Degraded // serving, with a reason in DegradedBy
	LameDuck // serving, but not ready: load balancers move away
	Draining // finishing requests, rejecting new ones
	Aborting // ending what did not finish in time
	Stopped  // done
)

func (p Phase) String() string {
	return [...]string{"starting", "ready", "degraded", "lame_duck", "draining", "aborting", "stopped"}[p]
}

// A Condition is a dependency of readiness, or a reason to be degraded.
type Condition uint8

// The first ones are dependencies, the others reasons to be degraded.
const (
	DependencyJournal   Condition = iota // the journal is recovered
	DependencyKey                        // an admin API key is known
	DependencyHTTP                       // the public listener is up
	DependencyAdmin                      // the admin listener is up
	DependencySampler                    // the disk and the clock are sampled
	DependencyUpstreams                  // each required upstream has passed a health check

	JournalStalled     // a flush takes longer than journal.stall_threshold
	JournalFailed      // a flush failed: no write until a restart
	DiskFull           // less than journal.min_free_bytes is free
	ClockUntrusted     // the machine's clock is not trusted
	CrashLoop          // a service restarts too often
	StartTimeout       // a dependency missed the start deadline
	IndexBehind        // the index is down or behind, or the idempotency window fills because the index is slow
	CircuitOpen        // the circuit breaker of an upstream is open or half-open
	ConfigRejected     // the last configuration was rejected
	NoEndpoint         // all endpoints of an upstream fail their health checks
	JournalDamaged     // a durable frame that is not needed for the state could not be read
	ObjectsUnavailable // the files of objects cannot be read
	UploadsRefused     // the files of objects cannot be written
	ProviderFailed     // a provider of objects cannot be used
	CopiesMissing      // objects lack copies
	ClockAhead         // the node's time is further ahead of the machine's clock than may be trusted
	ObjectsLost        // objects are lost or damaged in all their copies
	ArchiveFailed      // segments could not be moved into the archive

	numConditions // number of conditions
)

func (c Condition) String() string {
	return [numConditions]string{"journal", "key", "http", "admin", "sampler", "upstreams",
		"journal_stalled", "journal_failed", "disk_full", "clock_untrusted", "crash_loop", "start_timeout", "index_behind", "circuit_open", "config_rejected", "no_healthy_endpoint", "journal_damaged",
		"objects_unavailable", "uploads_refused", "provider_failed", "copies_missing", "clock_ahead", "objects_lost", "archive_failed"}[c]
}

// Conditions is a set of conditions.
type Conditions uint32

// AllDependencies are the dependencies of readiness.
const AllDependencies = Conditions(1)<<JournalStalled - 1

// Has reports whether c is in s. With and Without return s with and without c.
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

// A Service is a supervised part of the process that is restarted if it ends.
type Service uint8

const (
	ServiceHTTP Service = iota
	ServiceAdmin
	ServiceSampler
	ServiceIndex     // views of the journal
	ServiceSnapshots // snapshots, and the archive
	ServiceAudit     // the audit log
	NumServices      // number of services
)

func (c Service) String() string {
	return [NumServices]string{"http", "admin", "sampler", "indexer", "keeper", "audit"}[c]
}

// Dependency returns the dependency that c provides, if readiness depends on it.
func (c Service) Dependency() (need Condition, ok bool) {
	if c > ServiceSampler {
		return 0, false
	}
	return [...]Condition{DependencyHTTP, DependencyAdmin, DependencySampler}[c], true
}
