// Package sample is what one run of a measurement saw, and what several say together.
package sample

import (
	"slices"
	"time"
)

// Sample is one run. Programs write it to standard output as JSON.
type Sample struct {
	All     uint64        // answers, those outside of the measured time included
	Counted uint64        // answers in the measured time
	Took    time.Duration // the measured time
	P50     time.Duration // of requests that began in it
	P99     time.Duration
	P999    time.Duration
	Max     time.Duration

	CPU       time.Duration // user and system, of what is measured
	Over      uint64        // the requests that it was used for
	Generator time.Duration // CPU of who asked, where that is another process
	Strangers float64       // share of the machine that others took

	Bytes  float64  // of the journal, a request
	Tenths []Sample // the run in ten parts
}

// A Figure is one number of a sample.
type Figure func(*Sample) float64

// Rate is requests a second, CPU microseconds a request, P50 and P99 microseconds.
func Rate(s *Sample) float64      { return float64(s.Counted) / s.Took.Seconds() }
func CPU(s *Sample) float64       { return micros(s.CPU) / float64(max(1, s.Over)) }
func P50(s *Sample) float64       { return micros(s.P50) }
func P99(s *Sample) float64       { return micros(s.P99) }
func Bytes(s *Sample) float64     { return s.Bytes }
func Strangers(s *Sample) float64 { return s.Strangers }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// Series is the runs of one thing, one a round.
type Series []Sample

// Spread is the least, the median and the most of a figure.
type Spread struct{ Least, Median, Most float64 }

// Of is the spread of numbers; of none it is nothing.
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

// Spread is that of a figure over the rounds.
func (s Series) Spread(f Figure) Spread {
	all := make([]float64, len(s))
	for i := range s {
		all[i] = f(&s[i])
	}
	return Of(all)
}

// Ratio is the spread of a figure of s to that of other, each within one round: what
// the machine does to both falls out.
func (s Series) Ratio(other Series, f Figure) Spread {
	var all []float64
	for i := range min(len(s), len(other)) {
		if below := f(&other[i]); below > 0 {
			all = append(all, f(&s[i])/below)
		}
	}
	return Of(all)
}
