package event

import (
	"time"

	"macronode/core/types"
)

// ApplyPolicy puts another gate in the place of the one that is, whole, in one step. What was
// asked by the old one is answered by it, what comes is judged by the new one; whoever
// waits and may not any more is told so by a Verdict in the same step.
//
// A gate that the node does not take, as node.Config.Takes says beforehand, changes
// nothing: Status.Gate says which one is applied.
type ApplyPolicy struct{ Policy Policy }

// A Policy is all that configuration says of who may come in, and of where requests go on
// to.
//
// Quotas, routes, upstreams and endpoints are named by their places here: a number that is
// on its way (Arrive.Route, Verdict.Rule, Pick.Upstream, Picked.Endpoint) means the same
// before a change and behind it. So whoever makes gates gives each a place of its own for
// as long as it is there, and leaves a place empty where one is gone. A place that is
// filled anew is marked as fresh, unless it was empty in the gate before: then it is
// anyhow. The slices are read in the step, and not kept.
type Policy struct {
	Version uint64 // what it is called: told in Status, and means nothing here

	Quotas      []Quota // at most quota.MaxRules; the zero Quota is an empty place
	ResetQuotas uint16  // bit i: Quotas[i] is another than before, and has counted nothing

	Facets         [types.NumFacets]FacetLimits
	Quantum        uint64                   // bytes that a flow is given when its turn comes
	Weights        [types.NumClasses]uint64 // of a class: how many quanta it is given; 0: it is not served
	MaxWait        time.Duration            // in a queue, at most: of those who come from now on
	MaxPacingDelay time.Duration            // for the instance's quota, of one who is not alone and of the class of the least weight
	Routes         []int                    // of each, how many may wait and be at work; 0: as many as there is room for, or an empty place

	Upstreams []Upstream // at most upstream.MaxUpstreams; one without endpoints is an empty place
}

// A Quota lets each subject of its scope have Rate units in every Every, and Burst at once
// when it has been idle. Behind a change a place whose scope, unit and route are the same still
// knows what was used, in units.
type Quota struct {
	Scope   types.QuotaScope
	Unit    types.QuotaUnit
	Rate    uint64 // 0 admits nothing, also when idle, whatever Every and Burst
	Every   time.Duration
	Burst   uint64
	Classes ClassSet // whom it is for
	Route   uint16   // of scope OfRoute: its number, from 1
	Shadow  bool     // refuses nobody, and says whom it would have refused
}

// ClassSet is a set of them.
type ClassSet uint8

// Has reports that c is in the set.
func (s ClassSet) Has(c types.Class) bool { return s>>c&1 == 1 }

// FacetLimits is how many requests of one facet may be in. The permits and the queues of all
// facets are no more than the places that the node was made with.
type FacetLimits struct {
	Permits  int                   // requests at work at once
	Queue    int                   // requests that wait for one
	PerClass [types.NumClasses]int // of them, of a class
	PerFlow  int                   // of them, of a flow

	// Of the permits, those that a class may have together with the classes behind it, and
	// those that a flow may have; 0: all of them.
	ClassPermits [types.NumClasses]int
	FlowPermits  int
}

// An Upstream is how one service is treated.
type Upstream struct {
	Endpoints      uint16 // bit i: it has endpoint i
	ResetEndpoints uint16 // bit i: endpoint i is another than before, and nothing is known of it
	MaxAttempts    uint8  // of one request, the first among them; 1: none is sent again

	RetryPercent   uint32 // retries for a hundred requests
	RetryPerSecond uint32 // retries, beyond that, which are there again one a second
	RetryBurst     uint32 // retries that are saved up at most

	EjectAfter  uint32        // failures in a row that take an endpoint out
	EjectFor    time.Duration // for so long, doubling
	MaxEjectFor time.Duration // up to this

	BreakerMinAttempts    uint32        // tries within ten seconds, below which the breaker believes no share
	BreakerFailurePercent uint32        // of a hundred tries: as many failures open it
	BreakerOpenFor        time.Duration // it stays open so long, or down to half of it by chance, doubling
	MaxBreakerOpenFor     time.Duration // up to this
	HalfOpenInFlight      uint32        // tries that may be out at once while it is half-open
	HalfOpenSuccesses     uint32        // of them that must be answered, for it to close: another number than Floor

	UnhealthyAfter uint8 // health checks in a row that make an endpoint sick; 0: nobody checks, and none is sick
	HealthyAfter   uint8 // and well again
}
