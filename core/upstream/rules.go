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
	MaxTries     = 10 // of one request
)

// Backoff before the second try is from BackoffLeast to BackoffMost, full jitter; both
// double with each further try, up to BackoffCap.
const (
	BackoffLeast = 50 * time.Millisecond
	BackoffMost  = 100 * time.Millisecond
	BackoffCap   = 2 * time.Second
)

const (
	span    = 10          // buckets in which a breaker counts
	bucket  = time.Second // of each
	refill  = time.Second // after which one spare retry is there again
	price   = 100         // of a retry, in hundredths of one
	strikes = 8           // after so many a rest grows no more
)

// Rules are how one upstream is treated. Without endpoints they are an empty place: nobody
// is sent there, and what was is heard out.
type Rules event.Upstream

// Why rules make no sense.
var (
	ErrMany     = errors.New("upstream: more than 64 upstreams")
	ErrTries    = errors.New("upstream: tries are none, or more than 10")
	ErrBudget   = errors.New("upstream: a share beyond 100, or more retries than are saved up")
	ErrEjection = errors.New("upstream: an endpoint goes out for no failure, or for no time, or for longer than the longest")
	ErrBreaker  = errors.New("upstream: a breaker opens for no failures, or for no time, or lets nobody through to look")
	ErrHealth   = errors.New("upstream: health checks make sick or well, but not both")
)

// Default is the contract's numbers, for so many endpoints.
func Default(endpoints uint8) Rules {
	return Rules{Endpoints: uint16(1<<endpoints - 1), Tries: 3,
		Share: 10, Spare: 3, Hoard: 100,
		Eject: 5, Out: 5 * time.Second, OutMost: time.Minute,
		Least: 20, Part: 50, Rest: time.Second, RestMost: 30 * time.Second, Floor: 8, Trials: 3,
		Fall: 3, Rise: 2}
}

// CheckRules says why these cannot be upstreams. Empty places are none.
func CheckRules(all []Rules) error {
	if len(all) > MaxUpstreams {
		return ErrMany
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
	case r.Tries == 0 || r.Tries > MaxTries:
		return ErrTries
	case r.Share > 100 || r.Spare > r.Hoard || r.Hoard > 1<<20:
		return ErrBudget
	case r.Eject == 0 || r.Out <= 0 || r.Out > r.OutMost:
		return ErrEjection
	case r.Part == 0 || r.Part > 100 || r.Rest < 2 || r.Rest > r.RestMost || r.Floor == 0 || r.Trials == 0:
		return ErrBreaker
	case (r.Fall == 0) != (r.Rise == 0):
		return ErrHealth
	}
	return nil
}

// has reports that an upstream has an endpoint.
func (r *Rules) has(endpoint uint8) bool {
	return endpoint < MaxEndpoints && r.Endpoints>>endpoint&1 == 1
}

// grown is a time that has doubled so often, up to most.
func grown(d, most time.Duration, times uint8) time.Duration {
	for range times {
		d = min(2*d, most)
	}
	return d
}
