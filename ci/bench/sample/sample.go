// Package sample has the results of one run of a measurement, and statistics over several.
package sample

import (
	"slices"
	"time"
)

// Sample is one run. Programs print it as JSON.
type Sample struct {
	All     uint64        // answers, including those outside of the measured time
	Counted uint64        // answers in the measured time
	Took    time.Duration // the measured time
	P50     time.Duration // of requests that began in the measured time
	P99     time.Duration
	P999    time.Duration
	Max     time.Duration

	CPU       time.Duration // user and system, of the measured program
	Over      uint64        // requests for which it was used
	Generator time.Duration // CPU of the load generator, if that is another process
	OtherLoad float64       // share of the machine used by other processes

	Bytes  float64  // of the journal, per request
	Tenths []Sample // the run in ten parts
}

// A Figure is a number of a sample.
type Figure func(*Sample) float64

// Rate is requests per second, CPU is microseconds per request, P50 and P99 are microseconds.
func Rate(s *Sample) float64      { return float64(s.Counted) / s.Took.Seconds() }
func CPU(s *Sample) float64       { return micros(s.CPU) / float64(max(1, s.Over)) }
func P50(s *Sample) float64       { return micros(s.P50) }
func P99(s *Sample) float64       { return micros(s.P99) }
func Bytes(s *Sample) float64     { return s.Bytes }
func OtherLoad(s *Sample) float64 { return s.OtherLoad }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// Series has the runs of one program, one per round.
type Series []Sample

// Spread is the least, the median and the most of a figure.
type Spread struct{ Least, Median, Most float64 }

// Of returns the spread of numbers; zero if there are none.
func Of(all []float64) (s Spread) {
	if len(all) == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(all))
	half := len(sorted) / 2
	s = Spread{sorted[0], sorted[half], sorted[len(sorted)-1]}
	if len(sorted)%2 == 0 {
		s.Median = (sorted[half-1] + sorted[half]) / 2
	}
	return s
}

// Spread returns that of a figure over the rounds.
func (s Series) Spread(f Figure) Spread {
	all := make([]float64, len(s))
	for i := range s {
		all[i] = f(&s[i])
	}
	return Of(all)
}

// Ratio returns the spread of the ratio of a figure of s to that of other in the same round:
// effects of the machine on both cancel out.
func (s Series) Ratio(other Series, f Figure) Spread {
	var all []float64
	for i := range min(len(s), len(other)) {
		if below := f(&other[i]); below > 0 {
			all = append(all, f(&s[i])/below)
		}
	}
	return Of(all)
}
