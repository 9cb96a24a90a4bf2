package event

import (
	"time"

	"macronode/core/types"
)

// Pick asks for the endpoint of a request. → Picked
type Pick struct {
	Upstream   uint16 // number in the configuration
	Idempotent bool   // its method is idempotent, so it may be sent more than once
	Callers    Callers
	Caller     CallerID // one of the group
}

// Callers is a group of callers. What an upstream does to requests of one group has no effect on
// requests of the other: each group has its circuit breaker, ejected endpoints and retry budget.
type Callers uint8

const (
	Authenticated Callers = iota // callers with a valid API key, and the node itself
	Anonymous                    // callers without a key
	NumCallers
)

func (c Callers) String() string {
	return [...]string{"authenticated", "anonymous", "?"}[min(c, NumCallers)]
}

// CallersOf returns the group of a class.
func CallersOf(c types.Class) Callers {
	if c == types.ClassAnon {
		return Anonymous
	}
	return Authenticated
}

// A CallerID is a caller of a group: a tenant, or for callers without a key a peer. A peer is an address, or for IPv6 a
// network /64.
type CallerID uint64

// CallerOf returns the caller of a flow.
func CallerOf(f types.Flow) CallerID { return CallerID(f.ID) }

// Retry asks for the endpoint of the next attempt, after the wait of its RetryDecision. → Picked
type Retry struct{ Ticket types.Ticket }

// Picked is the endpoint of one attempt. Each attempt with an endpoint must be reported with an AttemptResult.
type Picked struct {
	Ticket     types.Ticket     // of the request, the same for all its attempts
	Endpoint   uint8            // number in the upstream
	NoEndpoint NoEndpointReason // 0: there is an endpoint
	Circuit    CircuitState     // of the upstream for this caller, at the time of the decision
	Ejected    bool             // the endpoint is ejected, because all healthy ones are
	RetryAfter time.Duration    // without an endpoint, until a retry makes sense; 0: unknown
}

// AttemptResult reports the result of an attempt. → RetryDecision. It may arrive twice and late; a ticket is used
// once.
type AttemptResult struct {
	Ticket          types.Ticket
	Outcome         AttemptOutcome
	BodyConsumed    bool          // part of the body is consumed, so the request cannot be sent again
	ResponseStarted bool          // the client got a response header, including 1xx, so the request cannot be sent again
	TimeLeft        time.Duration // until the request's deadline
}

// RetryDecision is the decision after a failed attempt.
type RetryDecision struct {
	Retry   bool          // send a Retry after Wait; otherwise the failure is returned
	NoRetry NoRetryReason // why not
	Wait    time.Duration // before the retry, at least
}

// A NoRetryReason is why a request is not sent again.
type NoRetryReason uint8

const (
	RetryAllowed           NoRetryReason = iota // it may be, or nothing has failed
	NoRetryMethod                               // its method is not idempotent
	NoRetryBodyConsumed                         // part of its body is consumed
	NoRetryResponseStarted                      // the client got an informational response
	NoRetryAttempts                             // it has had all its attempts
	NoRetryCircuitOpen                          // the circuit is open
	NoRetryDeadline                             // the wait would exceed the deadline, or the deadline has passed
	NoRetryBudget                               // the retry budget is used up
	NumNoRetryReasons
)

func (h NoRetryReason) String() string {
	return [...]string{"", "method_not_idempotent", "body_consumed", "response_started", "max_attempts", "circuit_open", "deadline", "retry_budget", "?"}[min(h, NumNoRetryReasons)]
}

// HealthChecked is the result of a health check of an endpoint.
type HealthChecked struct {
	Upstream uint16
	Endpoint uint8
	Healthy  bool
}

// An AttemptOutcome is the outcome of an attempt.
type AttemptOutcome uint8

const (
	AttemptAnswered    AttemptOutcome = iota // a response header arrived: AttemptCompleted or AttemptTruncated follows
	AttemptAnswered5xx                       // the same with status 502, 503 or 504: another outcome follows, unless the request is sent again
	AttemptUnsent                            // no connection: nothing of the request was sent
	AttemptFailed                            // no response, or not HTTP
	AttemptTimedOut                          // no response within the time of the route
	AttemptAbandoned                         // cancelled by the client or by us: says nothing about the endpoint
	AttemptCompleted                         // the response is complete
	AttemptTruncated                         // the endpoint broke the response off
	NumAttemptOutcomes
)

func (e AttemptOutcome) String() string {
	return [...]string{"answered", "answered_5xx", "unsent", "failed", "timed_out", "abandoned", "completed", "truncated", "?"}[min(e, NumAttemptOutcomes)]
}

// A NoEndpointReason is why no endpoint was picked.
type NoEndpointReason uint8

const (
	EndpointPicked        NoEndpointReason = iota
	NoEndpointCircuitOpen                  // the circuit is open
	NoEndpointUnhealthy                    // no endpoint is healthy
	NoEndpointOverflow                     // the limit of concurrent requests to upstreams is reached
	NoEndpointStale                        // the ticket is not valid any more
	NumNoEndpointReasons
)

func (s NoEndpointReason) String() string {
	return [...]string{"picked", "circuit_open", "no_healthy_endpoint", "overflow", "ticket_expired", "?"}[min(s, NumNoEndpointReasons)]
}

// Problem returns the problem of a request without an endpoint.
func (s NoEndpointReason) Problem() Problem {
	return [...]Problem{None, Unavailable, Unavailable, Busy, Internal, Internal}[min(s, NumNoEndpointReasons)]
}

// A CircuitState is the state of a circuit breaker.
type CircuitState uint8

const (
	CircuitClosed   CircuitState = iota // requests pass
	CircuitOpen                         // no requests pass
	CircuitHalfOpen                     // a few requests pass, to test the endpoints
)

func (c CircuitState) String() string {
	return [...]string{"closed", "open", "half-open", "?"}[min(c, 3)]
}

// A UpstreamStats is the state of an upstream.
type UpstreamStats struct {
	Circuits      [NumCallers]CircuitStats
	Retries       uint64            // since the start
	RetriesDenied uint64            // retries denied because the budget was used up
	SeenHealthy   bool              // an endpoint that was healthy is not unhealthy now
	InFlight      uint32            // attempts in progress
	Healthy       uint8             // endpoints that are not unhealthy, and not ejected for authenticated callers
	Ejected       [NumCallers]uint8 // endpoints that are ejected for failures
	Unhealthy     uint8             // endpoints that fail their health checks; an endpoint may be both
	UnhealthyBits uint16            // bit i: endpoint i is unhealthy
}

// CircuitStats is the state of the circuit breaker of an upstream.
type CircuitStats struct {
	State  CircuitState // open may be for one caller only
	Epoch  uint32       // times that it has changed, except at the first failed trial request
	Opened uint64       // times that it has opened
}

// UpstreamQuery is a query of the adapters about upstreams, or a report. → UpstreamReply
type UpstreamQuery struct {
	Slot     uint32 // of the adapter, until the reply
	Kind     UpstreamQueryKind
	Upstream uint16 // number of the upstream
	Pick     Pick
	Retry    Retry
	Result   AttemptResult
}

// A UpstreamQueryKind selects the part of an UpstreamQuery that is used.
type UpstreamQueryKind uint8

const (
	QueryPick UpstreamQueryKind = iota
	QueryRetry
	QueryReport
	QueryStats
)

// UpstreamReply is the answer to an UpstreamQuery.
type UpstreamReply struct {
	Slot   uint32
	Picked Picked        // to a QueryPick or a QueryRetry
	Retry  RetryDecision // to a QueryReport
	Stats  UpstreamStats // to a QueryStats
}
