// Package world is made-up chance and disks, single-threaded: the same answers make
// the same world. A disk keeps what was synced; of the rest a crash keeps what
// chance likes.
package world

import "macronode/core/types"

// A Chooser decides where chance does: a number in [0, n). 0 is the dull answer. A
// run is all that was answered, in order: a Log.
type Chooser interface{ Choose(site string, n int) int }

// Seeded rolls dice.
type Seeded struct{ Dice types.Rand }

// NewSeeded answers the same for the same seed, for ever.
func NewSeeded(seed uint64) *Seeded { return &Seeded{Dice: types.NewRand(seed)} }

// Choose rolls.
func (s *Seeded) Choose(_ string, n int) int { return int(s.Dice.Uint64n(uint64(n))) }

// Dull never surprises.
type Dull struct{}

// Choose is 0.
func (Dull) Choose(string, int) int { return 0 }

// Odometer answers in every way there is, one run after another, as long as what is
// asked depends on nothing but the answers. The zero value is before the first run.
type Odometer struct {
	digits []Choice
	at     int
	Runs   int
}

// Next begins a run; it is false when all have been.
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

// Choose is this run's answer. It panics when the run asks other questions than the
// one before did after the same answers.
func (o *Odometer) Choose(site string, n int) int {
	if o.at == len(o.digits) {
		o.digits = append(o.digits, Choice{Site: site, N: n})
	}
	d := o.digits[o.at]
	types.Assert(d.Site == site && d.N == n, "world: the same answers led elsewhere")
	o.at++
	return d.Got
}
