package world

import "slices"

// A Shrinker reduces the log of a failing run to what the failure needs.
type Shrinker struct {
	Run   func(Chooser) (failed string) // makes a run and returns the kind of its failure, or ""
	Steps []string                      // the sites at which a step begins: see Loose
	Most  int                           // most runs

	Runs   int // runs so far
	best   Log
	failed string
}

// Shrink searches a run with fewer choices other than 0 that fails like l, and returns its log,
// which replays exactly. If l does not fail, it returns l.
//
// A candidate is played with Loose and recorded again, so that the log is that of a real run.
// Each accepted candidate is smaller than the previous one.
func (s *Shrinker) Shrink(l Log) (Log, string) {
	var failed Log
	s.Runs, s.best = 1, l
	if s.failed = s.Run(Recorded(Loose(l, s.Steps...), &failed)); s.failed == "" {
		return l, ""
	}
	s.best = failed.trim()
	for less := true; less && s.Runs < s.Most; {
		less = s.cut()
		less = s.dull() || less
		less = s.lower() || less
	}
	return s.best, s.failed
}

// try plays a candidate, and accepts it if it fails alike and is smaller.
func (s *Shrinker) try(l Log) bool {
	if s.Runs >= s.Most {
		return false
	}
	s.Runs++
	var failed Log
	if s.Run(Recorded(Loose(l, s.Steps...), &failed)) != s.failed {
		return false
	}
	if failed = failed.trim(); !failed.less(s.best) {
		return false
	}
	s.best = failed
	return true
}

// less compares: fewer choices other than 0, then fewer choices, then smaller ones.
func (l Log) less(than Log) bool {
	sum := func(l Log) (n int) {
		for _, c := range l {
			n += c.Got
		}
		return n
	}
	mine, theirs := []int{l.Surprises(), len(l), sum(l)}, []int{than.Surprises(), len(than), sum(than)}
	return slices.Compare(mine, theirs) < 0
}

// halves calls each with ranges of 0 to count(), the last first: halves, quarters, and finally
// single ones. each reports whether it removed the range.
func halves(count func() int, each func(from, to int) bool) (any bool) {
	for size := max(1, count()/2); ; size /= 2 {
		for to := count(); to > 0; to = min(to-size, count()) {
			if each(max(0, to-size), to) {
				any = true
			}
		}
		if size <= 1 {
			return any
		}
	}
}

// cut removes steps.
func (s *Shrinker) cut() bool {
	begins := func() (all []int) {
		for at, c := range s.best {
			if slices.Contains(s.Steps, c.Site) {
				all = append(all, at)
			}
		}
		return append(all, len(s.best))
	}
	return halves(func() int { return len(begins()) - 1 }, func(from, to int) bool {
		at := begins()
		return s.try(slices.Delete(slices.Clone(s.best), at[from], at[to]))
	})
}

// surprises returns the indices of s.best with choices other than 0.
func (s *Shrinker) surprises() (all []int) {
	for at, c := range s.best {
		if c.Got > 0 {
			all = append(all, at)
		}
	}
	return all
}

// dull sets choices to 0.
func (s *Shrinker) dull() bool {
	return halves(func() int { return len(s.surprises()) }, func(from, to int) bool {
		next := slices.Clone(s.best)
		for _, at := range s.surprises()[from:to] {
			next[at].Got = 0
		}
		return s.try(next)
	})
}

// lower reduces each choice by bisection.
func (s *Shrinker) lower() (any bool) {
	for n := 0; n < len(s.surprises()); n++ {
		for low := 0; n < len(s.surprises()); {
			at := s.surprises()[n]
			got := s.best[at].Got
			if low+1 >= got {
				break
			}
			next := slices.Clone(s.best)
			next[at].Got = (low + got) / 2
			if s.try(next) {
				any = true
			} else {
				low = next[at].Got
			}
		}
	}
	return any
}
