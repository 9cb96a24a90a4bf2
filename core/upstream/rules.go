package upstream

import (
	"time"

	"macronode/core/words"
)

// Limits that no configuration moves.
const (
	MaxUpstreams = 256
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

// Rules are how one upstream is treated.
type Rules struct {
	Endpoints uint8 // how many it has
	Tries     uint8 // of one request, the first among them; 1: none is sent again

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

	Fall uint8 // health checks in a row that make an endpoint sick
	Rise uint8 // and well again
}

// Default is the contract's numbers, for so many endpoints.
func Default(endpoints uint8) Rules {
	return Rules{Endpoints: endpoints, Tries: 3,
		Share: 10, Spare: 3, Hoard: 100,
		Eject: 5, Out: 5 * time.Second, OutMost: time.Minute,
		Least: 20, Part: 50, Rest: time.Second, RestMost: 30 * time.Second, Floor: 8, Trials: 3,
		Fall: 3, Rise: 2}
}

func (r *Rules) check() {
	words.Assert(0 < r.Endpoints && r.Endpoints <= MaxEndpoints && 0 < r.Tries && r.Tries <= MaxTries, "upstream: endpoints or tries")
	words.Assert(r.Share <= 100 && r.Spare <= r.Hoard && r.Hoard <= 1<<20, "upstream: budget")
	words.Assert(r.Eject > 0 && 0 < r.Out && r.Out <= r.OutMost, "upstream: ejection")
	words.Assert(0 < r.Part && r.Part <= 100 && 2 <= r.Rest && r.Rest <= r.RestMost && r.Floor > 0 && r.Trials > 0, "upstream: breaker")
	words.Assert(r.Fall > 0 && r.Rise > 0, "upstream: health")
}

// grown is a time that has doubled so often, up to most.
func grown(d, most time.Duration, times uint8) time.Duration {
	for range times {
		d = min(2*d, most)
	}
	return d
}
