package event

import (
	"time"

	"macronode/core/words"
)

// Pick asks where a request to an upstream goes. → Picked
type Pick struct {
	Upstream uint16 // number in the configuration
	Again    bool   // it may be sent more than once: its method is idempotent
}

// Retry asks where the next try of a request goes, once the wait of its Onward is
// over. → Picked
type Retry struct{ Ticket words.Ticket }

// Picked is where one try of a request goes. Each that is not stopped wants a Tried.
type Picked struct {
	Ticket   words.Ticket  // of the request, whatever the try
	Endpoint uint8         // number in the upstream
	Stop     Stop          // Through: it goes
	Circuit  Circuit       // of the upstream, as it was found
	Out      bool          // the endpoint is out for its failures, as all are that no check calls sick
	Wait     time.Duration // where it does not, until it is worth to come again; 0: it is not known
}

// Tried tells what a try has come to. → Onward. It may come twice, and late: a ticket
// is of one use.
type Tried struct {
	Ticket   words.Ticket
	Ending   Ending
	Spent    bool          // some of the body is gone, so the request cannot be sent again
	Said     bool          // nor can it where the client was told something, be it a 1xx
	Patience time.Duration // what is left of the request's deadline
}

// Onward is what becomes of a request after a try that failed.
type Onward struct {
	Again bool          // a Retry, after Wait; otherwise what was seen is told
	Halt  Halt          // why not
	Wait  time.Duration // at least
}

// A Halt is why a request is not sent again after a try that failed.
type Halt uint8

const (
	NoHalt     Halt = iota // it is, or nothing has failed
	HaltMethod             // its method is not idempotent
	HaltBody               // some of its body is gone
	HaltSaid               // the client was told something before the answer
	HaltTries              // it has had all that it is given
	HaltOpen               // the breaker is open
	HaltTime               // the pause would be longer than what is left of its deadline, or nothing is left
	HaltBudget             // its upstream has no retry to spare
	Halts
)

func (h Halt) String() string {
	return [...]string{"", "method", "body", "said", "tries", "breaker", "time", "budget", "?"}[min(h, Halts)]
}

// Probed is what a health check saw of an endpoint.
type Probed struct {
	Upstream uint16
	Endpoint uint8
	Well     bool
}

// An Ending is what a try has come to.
type Ending uint8

const (
	Answered Ending = iota // the header of an answer is there: Whole or Cut follows
	Turned                 // the same, and it says 502, 503 or 504: Whole or Cut follows, unless it is sent again
	Unsent                 // no connection: nothing of the request was seen
	Failed                 // no answer, or none of HTTP
	Late                   // no answer in all the time that the route gives
	Left                   // given up for a reason of its own or of the client's: nothing is learnt of the endpoint
	Whole                  // the answer is whole
	Cut                    // the endpoint broke it off
	Endings
)

func (e Ending) String() string {
	return [...]string{"answered", "turned", "unsent", "failed", "late", "left", "whole", "cut", "?"}[min(e, Endings)]
}

// A Stop is why a request goes to no endpoint.
type Stop uint8

const (
	Through    Stop = iota
	StopBroken      // the breaker is open
	StopSick        // no endpoint is well
	StopFull        // as many requests are with upstreams as may be
	StopStale       // its ticket is over
	Stops
)

func (s Stop) String() string {
	return [...]string{"through", "broken", "sick", "full", "stale", "?"}[min(s, Stops)]
}

// Problem is what a client is told of s.
func (s Stop) Problem() Problem {
	return [...]Problem{None, Unavailable, Unavailable, Busy, Internal, Internal}[min(s, Stops)]
}

// A Circuit is where the breaker of an upstream stands.
type Circuit uint8

const (
	Closed   Circuit = iota // requests pass
	Open                    // none does
	HalfOpen                // some do, to see whether it may be closed
)

func (c Circuit) String() string {
	return [...]string{"closed", "open", "half-open", "?"}[min(c, 3)]
}

// A Standing is how an upstream looks now.
type Standing struct {
	Circuit Circuit
	Epoch   uint32 // times that the circuit has changed
	Opened  uint64 // times that it has opened
	Retries uint64 // ever
	Dry     uint64 // retries that there was no budget for
	Proven  bool   // an endpoint that was seen well is not sick
	Calls   uint32 // with it now
	Well    uint8  // endpoints that are neither out nor sick
	Out     uint8  // that are out for their failures
	Sick    uint8  // that health checks call so; one may be both
	Which   uint16 // endpoints are sick, a bit each
}

// Ask is what the shell wants to know about upstreams, or tells of them. → Told
type Ask struct {
	Slot  uint32 // of the shell, until it is told
	What  Question
	Look  uint16 // number of the upstream
	Pick  Pick
	Retry Retry
	Tried Tried
}

// A Question is which part of an Ask counts.
type Question uint8

const (
	AskPick Question = iota
	AskRetry
	AskTried
	AskLook
)

// Told is the answer to an Ask.
type Told struct {
	Slot     uint32
	Picked   Picked   // to a Pick or a Retry
	Onward   Onward   // to a Tried
	Standing Standing // to a Look
}
