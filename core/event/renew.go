package event

import (
	"time"

	"macronode/core/words"
)

// Renew puts another gate in the place of the one that is, whole, in one step. What was
// asked by the old one is answered by it, what comes is judged by the new one; whoever
// waits and may not any more is told so by a Verdict in the same step.
//
// A gate that the node does not take, as node.Config.Takes says beforehand, changes
// nothing: Status.Gate says which one is applied.
type Renew struct{ Gate Gate }

// A Gate is all that configuration says of who may come in, and of where requests go on
// to.
//
// Quotas, routes, upstreams and endpoints are named by their places here: a number that is
// on its way (Arrive.Route, Verdict.Rule, Pick.Upstream, Picked.Endpoint) means the same
// before a change and behind it. So whoever makes gates gives each a place of its own for
// as long as it is there, and leaves a place empty where one is gone. A place that is
// filled anew is marked as fresh, unless it was empty in the gate before: then it is
// anyhow. The slices are read in the step, and not kept.
type Gate struct {
	Version uint64 // what it is called: told in Status, and means nothing here

	Quotas []Quota // at most quota.MaxRules; the zero Quota is an empty place
	Fresh  uint16  // bit i: Quotas[i] is another than before, and has counted nothing

	Facets  [words.Facets]FacetRoom
	Quantum uint64                // bytes that a flow is given when its turn comes
	Weights [words.Classes]uint64 // of a class: how many quanta it is given; 0: it is not served
	Wait    time.Duration         // in a queue, at most: of those who come from now on
	Pace    time.Duration         // for the instance's quota, of one who is not alone and of the class of the least weight
	Routes  []int                 // of each, how many may wait and be at work; 0: as many as there is room for, or an empty place

	Upstreams []Upstream // at most upstream.MaxUpstreams; one without endpoints is an empty place
}

// A Quota lets each subject of its scope have Rate units in every Every, and Burst at once
// when it has been idle. Behind a change a place whose scope, unit and route are the same still
// knows what was used, in units.
type Quota struct {
	Scope   words.Scope
	Unit    words.Unit
	Rate    uint64 // 0 admits nothing, also when idle, whatever Every and Burst
	Every   time.Duration
	Burst   uint64
	Classes Classes // whom it is for
	Route   uint16  // of scope OfRoute: its number, from 1
	Shadow  bool    // refuses nobody, and says whom it would have refused
}

// Classes is a set of them.
type Classes uint8

// Has reports that c is in the set.
func (s Classes) Has(c words.Class) bool { return s>>c&1 == 1 }

// FacetRoom is how many requests of one facet may be in. The permits and the queues of all
// facets are no more than the places that the node was made with.
type FacetRoom struct {
	Permits int                // requests at work at once
	Queue   int                // requests that wait for one
	Class   [words.Classes]int // of them, of a class
	Flow    int                // of them, of a flow

	// Of the permits, those that a class may have together with the classes behind it, and
	// those that a flow may have; 0: all of them.
	ClassPermits [words.Classes]int
	FlowPermits  int
}

// An Upstream is how one service is treated.
type Upstream struct {
	Endpoints uint16 // bit i: it has endpoint i
	Fresh     uint16 // bit i: endpoint i is another than before, and nothing is known of it
	Tries     uint8  // of one request, the first among them; 1: none is sent again

	Share uint32 // retries for a hundred requests
	Spare uint32 // retries, beyond that, which are there again one a second
	Hoard uint32 // retries that are saved up at most

	Eject   uint32        // failures in a row that take an endpoint out
	Out     time.Duration // for so long, doubling
	OutMost time.Duration // up to this

	Least    uint32        // tries within ten seconds, below which the breaker believes no share
	Part     uint32        // of a hundred tries: as many failures open it
	Rest     time.Duration // it stays open so long, or down to half of it by chance, doubling
	RestMost time.Duration // up to this
	Floor    uint32        // tries that may be out at once while it is half-open
	Trials   uint32        // of them that must be answered, for it to close: another number than Floor

	Fall uint8 // health checks in a row that make an endpoint sick; 0: nobody checks, and none is sick
	Rise uint8 // and well again
}
