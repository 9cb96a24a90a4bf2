package event

import (
	"time"

	"macronode/core/types"
)

// Pick asks where a request to an upstream goes. → Picked
type Pick struct {
	Upstream   uint16 // number in the configuration
	Idempotent bool   // it may be sent more than once: its method is idempotent
}

// Retry asks where the next try of a request goes, once the wait of its Onward is
// over. → Picked
type Retry struct{ Ticket types.Ticket }

// Picked is where one try of a request goes. Each that is not stopped wants a Tried.
type Picked struct {
	Ticket     types.Ticket     // of the request, whatever the try
	Endpoint   uint8            // number in the upstream
	NoEndpoint NoEndpointReason // Through: it goes
	Circuit    CircuitState     // of the upstream, as it was found
	Ejected    bool             // the endpoint is out for its failures, as all are that no check calls sick
	RetryAfter time.Duration    // where it does not, until it is worth to come again; 0: it is not known
}

// AttemptResult tells what a try has come to. → Onward. It may come twice, and late: a ticket
// is of one use.
type AttemptResult struct {
	Ticket          types.Ticket
	Outcome         AttemptOutcome
	BodyConsumed    bool          // some of the body is gone, so the request cannot be sent again
	ResponseStarted bool          // nor can it where the client was told something, be it a 1xx
	TimeLeft        time.Duration // what is left of the request's deadline
}

// RetryDecision is what becomes of a request after a try that failed.
type RetryDecision struct {
	Retry   bool          // a Retry, after Wait; otherwise what was seen is told
	NoRetry NoRetryReason // why not
	Wait    time.Duration // at least
}

// A NoRetryReason is why a request is not sent again after a try that failed.
type NoRetryReason uint8

const (
	RetryAllowed           NoRetryReason = iota // it is, or nothing has failed
	NoRetryMethod                               // its method is not idempotent
	NoRetryBodyConsumed                         // some of its body is gone
	NoRetryResponseStarted                      // the client was told something before the answer
	NoRetryAttempts                             // it has had all that it is given
	NoRetryCircuitOpen                          // the breaker is open
	NoRetryDeadline                             // the pause would be longer than what is left of its deadline, or nothing is left
	NoRetryBudget                               // its upstream has no retry to spare
	NumNoRetryReasons
)

func (h NoRetryReason) String() string {
	return [...]string{"", "method_not_idempotent", "body_consumed", "response_started", "max_attempts", "circuit_open", "deadline", "retry_budget", "?"}[min(h, NumNoRetryReasons)]
}

// HealthChecked is what a health check saw of an endpoint.
type HealthChecked struct {
	Upstream uint16
	Endpoint uint8
	Healthy  bool
}

// An AttemptOutcome is what a try has come to.
type AttemptOutcome uint8

const (
	AttemptAnswered    AttemptOutcome = iota // the header of an answer is there: Whole or Cut follows
	AttemptAnswered5xx                       // the same, and it says 502, 503 or 504: Whole or Cut follows, unless it is sent again
	AttemptUnsent                            // no connection: nothing of the request was seen
	AttemptFailed                            // no answer, or none of HTTP
	AttemptTimedOut                          // no answer in all the time that the route gives
	AttemptAbandoned                         // given up for a reason of its own or of the client's: nothing is learnt of the endpoint
	AttemptCompleted                         // the answer is whole
	AttemptTruncated                         // the endpoint broke it off
	NumAttemptOutcomes
)

func (e AttemptOutcome) String() string {
	return [...]string{"answered", "answered_5xx", "unsent", "failed", "timed_out", "abandoned", "completed", "truncated", "?"}[min(e, NumAttemptOutcomes)]
}

// A NoEndpointReason is why a request goes to no endpoint.
type NoEndpointReason uint8

const (
	EndpointPicked        NoEndpointReason = iota
	NoEndpointCircuitOpen                  // the breaker is open
	NoEndpointUnhealthy                    // no endpoint is well
	NoEndpointOverflow                     // as many requests are with upstreams as may be
	NoEndpointStale                        // its ticket is over
	NumNoEndpointReasons
)

func (s NoEndpointReason) String() string {
	return [...]string{"picked", "circuit_open", "no_healthy_endpoint", "overflow", "ticket_expired", "?"}[min(s, NumNoEndpointReasons)]
}

// Problem is what a client is told of s.
func (s NoEndpointReason) Problem() Problem {
	return [...]Problem{None, Unavailable, Unavailable, Busy, Internal, Internal}[min(s, NumNoEndpointReasons)]
}

// A CircuitState is where the breaker of an upstream stands.
type CircuitState uint8

const (
	CircuitClosed   CircuitState = iota // requests pass
	CircuitOpen                         // none does
	CircuitHalfOpen                     // some do, to see whether it may be closed
)

func (c CircuitState) String() string {
	return [...]string{"closed", "open", "half-open", "?"}[min(c, 3)]
}

// A UpstreamStats is how an upstream looks now.
type UpstreamStats struct {
	Circuit       CircuitState
	Epoch         uint32 // times that the circuit has changed
	Opened        uint64 // times that it has opened
	Retries       uint64 // ever
	RetriesDenied uint64 // retries that there was no budget for
	SeenHealthy   bool   // an endpoint that was seen well is not sick
	InFlight      uint32 // with it now
	Healthy       uint8  // endpoints that are neither out nor sick
	Ejected       uint8  // that are out for their failures
	Unhealthy     uint8  // that health checks call so; one may be both
	UnhealthyBits uint16 // endpoints are sick, a bit each
}

// UpstreamQuery is what the shell wants to know about upstreams, or tells of them. → Told
type UpstreamQuery struct {
	Slot     uint32 // of the shell, until it is told
	Kind     UpstreamQueryKind
	Upstream uint16 // number of the upstream
	Pick     Pick
	Retry    Retry
	Result   AttemptResult
}

// A UpstreamQueryKind is which part of an Ask counts.
type UpstreamQueryKind uint8

const (
	QueryPick UpstreamQueryKind = iota
	QueryRetry
	QueryReport
	QueryStats
)

// UpstreamReply is the answer to an Ask.
type UpstreamReply struct {
	Slot   uint32
	Picked Picked        // to a Pick or a Retry
	Retry  RetryDecision // to a Tried
	Stats  UpstreamStats // to a Look
}
