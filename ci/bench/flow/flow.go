// Package flow has the load that is offered to a gateway, and its results. One program writes
// plans, another runs them.
package flow

import (
	"time"

	"macronode/ci/bench/sample"
)

// A Plan has flows that run concurrently, for a turn of Warm and then Time. Only requests that
// are due in Time are measured.
type Plan struct {
	Addr       string
	Warm, Time time.Duration
	Flows      []Flow
}

// A Flow has requests of one kind over its own kept connections.
type Flow struct {
	Name  string
	Path  string
	Size  int    // bytes of a 200 answer
	Key   string // the API key; empty: none
	Conns int
	// Rate is requests per second. Each is due at its time regardless of earlier ones (times of a
	// Poisson process, the same in every run), and measured from then on. 0: each connection
	// sends the next request after its answer.
	Rate float64
}

// Patience is how long a request with a rate waits for a connection before it is dropped.
const Patience = 250 * time.Millisecond

// Seen is the result of a flow. Only answers, times and the span of the samples are set.
type Seen struct {
	Name    string
	Offered uint64        // due in the measured time
	Unsent  uint64        // of these, without a free connection within Patience
	Served  sample.Sample // answers of 200
	Refused sample.Sample // of 429
	Other   uint64        // of anything else
	Lost    uint64        // sent requests whose connection ended before a complete answer
	Again   uint64        // reopened connections
	Unasked uint64        // answers without a request, such as 408 on an idle connection; each ended its connection
	Barred  uint64        // connections that could not be opened
}
