// Package world has simulated randomness and disks, single-threaded: equal choices give equal
// runs. A disk keeps what was synced; of everything else a crash keeps what the chooser picks.
package world

import "macronode/core/types"

// A Chooser makes the random choices: a number in [0, n). 0 is the default outcome. A run is
// determined by its choices in order: a Log.
type Chooser interface{ Choose(site string, n int) int }

// Seeded chooses with a random generator.
type Seeded struct{ Dice types.Rand }

// NewSeeded returns a chooser; a seed gives the same choices for ever.
func NewSeeded(seed uint64) *Seeded { return &Seeded{Dice: types.NewRand(seed)} }

// Choose returns a random number.
func (s *Seeded) Choose(_ string, n int) int { return int(s.Dice.Uint64n(uint64(n))) }

// Dull always chooses 0.
type Dull struct{}

// Choose returns 0.
func (Dull) Choose(string, int) int { return 0 }

// Odometer enumerates all runs, as long as the choices of a run depend only on earlier choices.
// The zero value is before the first run.
type Odometer struct {
	digits []Choice
	at     int
	Runs   int
}

// Next begins a run; it returns false after the last.
func (o *Odometer) Next() bool {
	o.at = 0
	if o.Runs++; o.Runs == 1 {
		return true
	}
	for n := len(o.digits); n > 0; n-- {
		if d := &o.digits[n-1]; d.Got+1 < d.N {
			d.Got++
			o.digits = o.digits[:n]
			return true
		}
	}
	return false
}

// Choose returns this run's choice. It panics if the run makes another choice than the previous
// run after the same choices.
func (o *Odometer) Choose(site string, n int) int {
	if o.at == len(o.digits) {
		o.digits = append(o.digits, Choice{Site: site, N: n})
	}
	d := o.digits[o.at]
	types.Assert(d.Site == site && d.N == n, "world: the same answers led elsewhere")
	o.at++
	return d.Got
}
