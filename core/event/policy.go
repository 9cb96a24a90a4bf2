package event

import (
	"time"

	"macronode/core/types"
)

// ApplyPolicy replaces the policy as a whole, in one step. Requests decided under the old policy keep their
// decisions. If a waiting request is not allowed any more, it gets a Decision in the same step.
//
// A policy that node.Config.CheckPolicy rejects changes nothing: Status.PolicyVersion is the version of the applied
// policy.
type ApplyPolicy struct{ Policy Policy }

// A Policy is the part of the configuration that decides which requests are admitted and how upstreams are used.
//
// Quotas, routes, upstreams and endpoints are named by their positions. A number in use (Admit.Route,
// Decision.Rule, Pick.Upstream, Picked.Endpoint) means the same before and after a change. So each entry keeps its
// position for as long as it exists, and a removed one leaves its position empty. If a position gets another
// entry, it is marked as reset, unless it was empty before. The slices are read in the step and not kept.
type Policy struct {
	Version uint64 // shown in Status

	Quotas      []Quota // at most quota.MaxRules; the zero Quota is an empty position
	ResetQuotas uint16  // bit i: Quotas[i] is a new quota and has counted nothing

	Facets         [types.NumFacets]FacetLimits
	Quantum        uint64                   // bytes that a flow gets with its turn
	Weights        [types.NumClasses]uint64 // quanta of a class per round; 0: the class is not served
	MaxWait        time.Duration            // longest wait in a queue, for requests that arrive from now on
	GiveWayAfter   time.Duration            // age at which a request without a key gives way to one of a peer without a permit; 0: never
	MaxPacingDelay time.Duration            // longest wait for the instance quota of a request of the class with the least weight, if other requests wait
	Routes         []RouteLimits            // by route number; the zero value is an empty position

	Upstreams []Upstream // at most upstream.MaxUpstreams; one without endpoints is an empty position
}

// A Quota allows each subject of its scope Rate units in every Every, and Burst units at once after an idle time.
// After a change, a position with the same scope, unit and route keeps what was used, in units.
type Quota struct {
	Scope   types.QuotaScope
	Unit    types.QuotaUnit
	Rate    uint64 // 0 admits nothing, whatever Every and Burst are
	Every   time.Duration
	Burst   uint64
	Classes ClassSet // the classes that it applies to
	Route   uint16   // of scope OfRoute: the route number, from 1
	Shadow  bool     // rejects nothing, and reports what it would have rejected
}

// ClassSet is a set of classes.
type ClassSet uint8

// Has reports whether c is in the set.
func (s ClassSet) Has(c types.Class) bool { return s>>c&1 == 1 }

// RouteLimits are the limits of the requests of one route, waiting or in progress.
type RouteLimits struct {
	Requests int // 0: no limit
	PerFlow  int // of one flow; 0: another request only while it has fewer than are left
}

// FacetLimits are the limits of one facet's requests. The permits and queues of all facets are at most the slots
// with which the node was created.
type FacetLimits struct {
	Permits  int                   // requests in progress
	Queue    int                   // requests that wait for a permit
	PerClass [types.NumClasses]int // of Queue, for a class
	PerFlow  int                   // of Queue, for a flow

	// Of the permits, those that a class may use together with the lower classes, and those that a flow may use;
	// 0: all of them.
	ClassPermits [types.NumClasses]int
	FlowPermits  int
}

// An Upstream has the settings of one upstream.
type Upstream struct {
	Endpoints      uint16 // bit i: it has endpoint i
	ResetEndpoints uint16 // bit i: endpoint i is a new endpoint without history
	MaxAttempts    uint8  // attempts of one request, including the first; 1: no retries

	RetryPercent   uint32 // retries per hundred requests
	RetryPerSecond uint32 // additional retries per second
	RetryBurst     uint32 // retries that can be saved up

	EjectAfter  uint32        // consecutive failures that eject an endpoint
	EjectFor    time.Duration // duration of an ejection; it doubles
	MaxEjectFor time.Duration // limit of that duration

	BreakerMinAttempts    uint32        // attempts within ten seconds below which the circuit breaker stays closed
	BreakerFailurePercent uint32        // share of failed attempts that opens it
	BreakerOpenFor        time.Duration // it stays open for this long, at random as little as half of it; it doubles
	MaxBreakerOpenFor     time.Duration // limit of that duration
	HalfOpenInFlight      uint32        // concurrent attempts while it is half-open
	HalfOpenSuccesses     uint32        // of them, successes that close it

	UnhealthyAfter uint8 // consecutive failed health checks that make an endpoint unhealthy; 0: no health checks
	HealthyAfter   uint8 // consecutive successful ones that make it healthy again
}
