package upstream

import (
	"errors"
	"time"

	"macronode/core/event"
)

// Limits that no configuration changes.
const (
	MaxUpstreams = 64
	MaxEndpoints = 16 // of one upstream
	MaxAttempts  = 10 // of one request
)

// The backoff before the second attempt is between BackoffLeast and BackoffMost, with full
// jitter. Both double with each further attempt, up to BackoffCap.
const (
	MinBackoff      = 50 * time.Millisecond
	MaxFirstBackoff = 100 * time.Millisecond
	MaxBackoff      = 2 * time.Second
)

const (
	buckets        = 10          // number of buckets of a breaker's window
	bucketWidth    = time.Second // length of a bucket
	refillInterval = time.Second // time after which a spare retry returns
	retryCost      = 100         // cost of a retry, in hundredths of one
	maxStrikes     = 8           // number of ejections after which the time grows no more
)

// Rules are the limits of one upstream. Rules without endpoints are an empty place: it gets no
// requests, and calls in progress finish.
type Rules event.Upstream

// Why rules are invalid.
var (
	ErrTooMany  = errors.New("upstream: more than 64 upstreams")
	ErrAttempts = errors.New("upstream: the attempts must be 1 to 10")
	ErrBudget   = errors.New("upstream: a retry share above 100, or more retries than the budget holds")
	ErrEjection = errors.New("upstream: an ejection needs a failure and a time, and the time has a limit")
	ErrBreaker  = errors.New("upstream: a circuit breaker needs failures, an open time and half-open requests")
	ErrHealth   = errors.New("upstream: health checks need a number of failures and a number of successes")
)

// Default returns the default rules for a number of endpoints.
func Default(endpoints uint8) Rules {
	return Rules{Endpoints: uint16(1<<endpoints - 1), MaxAttempts: 3,
		RetryPercent: 10, RetryPerSecond: 3, RetryBurst: 100,
		EjectAfter: 5, EjectFor: 5 * time.Second, MaxEjectFor: time.Minute,
		BreakerMinAttempts: 20, BreakerFailurePercent: 50, BreakerOpenFor: time.Second, MaxBreakerOpenFor: 30 * time.Second, HalfOpenInFlight: 8, HalfOpenSuccesses: 3,
		UnhealthyAfter: 3, HealthyAfter: 2}
}

// CheckRules returns why the upstreams are invalid. Empty places are skipped.
func CheckRules(all []Rules) error {
	if len(all) > MaxUpstreams {
		return ErrTooMany
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rules) check() error {
	switch {
	case r.Endpoints == 0:
		return nil
	case r.MaxAttempts == 0 || r.MaxAttempts > MaxAttempts:
		return ErrAttempts
	case r.RetryPercent > 100 || r.RetryPerSecond > r.RetryBurst || r.RetryBurst > 1<<20:
		return ErrBudget
	case r.EjectAfter == 0 || r.EjectFor <= 0 || r.EjectFor > r.MaxEjectFor:
		return ErrEjection
	case r.BreakerFailurePercent == 0 || r.BreakerFailurePercent > 100 || r.BreakerOpenFor < 2 || r.BreakerOpenFor > r.MaxBreakerOpenFor || r.HalfOpenInFlight == 0 || r.HalfOpenSuccesses == 0:
		return ErrBreaker
	case (r.UnhealthyAfter == 0) != (r.HealthyAfter == 0):
		return ErrHealth
	}
	return nil
}

// hasEndpoint reports whether an upstream has an endpoint.
func (r *Rules) hasEndpoint(endpoint uint8) bool {
	return endpoint < MaxEndpoints && r.Endpoints>>endpoint&1 == 1
}

// exponential returns d doubled a number of times, at most most.
func exponential(d, most time.Duration, times uint8) time.Duration {
	for range times {
		d = min(2*d, most)
	}
	return d
}
