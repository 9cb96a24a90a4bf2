package upstream

import (
	"errors"
	"time"

	"macronode/core/event"
)

// Limits that no configuration moves.
const (
	MaxUpstreams = 64
	MaxEndpoints = 16 // of one upstream
	MaxAttempts  = 10 // of one request
)

// Backoff before the second try is from BackoffLeast to BackoffMost, full jitter; both
// double with each further try, up to BackoffCap.
const (
	MinBackoff      = 50 * time.Millisecond
	MaxFirstBackoff = 100 * time.Millisecond
	MaxBackoff      = 2 * time.Second
)

const (
	buckets        = 10          // buckets in which a breaker counts
	bucketWidth    = time.Second // of each
	refillInterval = time.Second // after which one spare retry is there again
	retryCost      = 100         // of a retry, in hundredths of one
	maxStrikes     = 8           // after so many a rest grows no more
)

// Rules are how one upstream is treated. Without endpoints they are an empty place: nobody
// is sent there, and what was is heard out.
type Rules event.Upstream

// Why rules make no sense.
var (
	ErrTooMany  = errors.New("upstream: more than 64 upstreams")
	ErrAttempts = errors.New("upstream: tries are none, or more than 10")
	ErrBudget   = errors.New("upstream: a share beyond 100, or more retries than are saved up")
	ErrEjection = errors.New("upstream: an endpoint goes out for no failure, or for no time, or for longer than the longest")
	ErrBreaker  = errors.New("upstream: a breaker opens for no failures, or for no time, or lets nobody through to look")
	ErrHealth   = errors.New("upstream: health checks make sick or well, but not both")
)

// Default is the contract's numbers, for so many endpoints.
func Default(endpoints uint8) Rules {
	return Rules{Endpoints: uint16(1<<endpoints - 1), MaxAttempts: 3,
		RetryPercent: 10, RetryPerSecond: 3, RetryBurst: 100,
		EjectAfter: 5, EjectFor: 5 * time.Second, MaxEjectFor: time.Minute,
		BreakerMinAttempts: 20, BreakerFailurePercent: 50, BreakerOpenFor: time.Second, MaxBreakerOpenFor: 30 * time.Second, HalfOpenInFlight: 8, HalfOpenSuccesses: 3,
		UnhealthyAfter: 3, HealthyAfter: 2}
}

// CheckRules says why these cannot be upstreams. Empty places are none.
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

// hasEndpoint reports that an upstream has an endpoint.
func (r *Rules) hasEndpoint(endpoint uint8) bool {
	return endpoint < MaxEndpoints && r.Endpoints>>endpoint&1 == 1
}

// exponential is a time that has doubled so often, up to most.
func exponential(d, most time.Duration, times uint8) time.Duration {
	for range times {
		d = min(2*d, most)
	}
	return d
}
