// Package flow is what is offered to a gateway, and what was seen of it. One program
// writes plans, another carries them out.
package flow

import (
	"time"

	"macronode/ci/bench/sample"
)

// A Plan is flows that are offered side by side, in a turn of Warm and then Time. Only
// what is due in Time is measured.
type Plan struct {
	Addr       string
	Warm, Time time.Duration
	Flows      []Flow
}

// A Flow is requests of one kind, over connections of its own that are kept.
type Flow struct {
	Name  string
	Path  string
	Size  int    // bytes of an answer of 200
	Key   string // the API key; empty: none
	Conns int
	// Rate is so many requests a second, each due at its moment whatever became of those
	// before it (the moments are those of a Poisson process, the same each time), and
	// measured from then on. 0: each connection asks again when it is answered.
	Rate float64
}

// Patience is how long a request of a rate waits for a connection: then it is given up, as
// its client would.
const Patience = 250 * time.Millisecond

// Seen is what became of a flow. Of the samples only answers, times and the span are set.
type Seen struct {
	Name    string
	Offered uint64        // that were due in the measured time
	Unsent  uint64        // of them, those that found no connection free within Patience
	Served  sample.Sample // answers of 200
	Refused sample.Sample // of 429
	Other   uint64        // of anything else
	Lost    uint64        // requests that were sent, and whose connection ended before a whole answer
	Again   uint64        // connections that were made anew, since the last one ended
	Unasked uint64        // answers to no request, as 408 on an idle connection; each ended its connection
	Barred  uint64        // connections that could not be made any more
}
