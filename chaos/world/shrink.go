package world

import "slices"

// A Shrinker makes small logs of failing runs: what is left of one is what it takes.
type Shrinker struct {
	Run   func(Chooser) (failed string) // one run, and the kind of its failure; empty when it has none
	Steps []string                      // the sites at which a step of the run begins: see Loose
	Most  int                           // runs at most

	Runs   int // so far
	best   Log
	failed string
}

// Shrink looks for a run with fewer surprises that fails as l does, and returns its log,
// which replays as it stands. It is l itself where that does not fail.
//
// A candidate is played loosely and recorded anew, so that whatever was made of it, the
// log is that of a real run. Each one taken is less than the one before it.
func (s *Shrinker) Shrink(l Log) (Log, string) {
	var told Log
	s.Runs, s.best = 1, l
	if s.failed = s.Run(Recorded(Loose(l, s.Steps...), &told)); s.failed == "" {
		return l, ""
	}
	s.best = told.trim()
	for less := true; less && s.Runs < s.Most; {
		less = s.cut()
		less = s.dull() || less
		less = s.lower() || less
	}
	return s.best, s.failed
}

// try plays a candidate, and takes it when it fails alike and is less.
func (s *Shrinker) try(l Log) bool {
	if s.Runs >= s.Most {
		return false
	}
	s.Runs++
	var told Log
	if s.Run(Recorded(Loose(l, s.Steps...), &told)) != s.failed {
		return false
	}
	if told = told.trim(); !told.less(s.best) {
		return false
	}
	s.best = told
	return true
}

// less: fewer surprises, or fewer choices, or smaller ones.
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

// halves calls each with spans of the places from 0 to count(), the last of them first: of
// half of them, then of a quarter, then at last of one. Each says whether it took them away.
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

// cut leaves out steps.
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

// surprises are the places of s.best that are not dull.
func (s *Shrinker) surprises() (all []int) {
	for at, c := range s.best {
		if c.Got > 0 {
			all = append(all, at)
		}
	}
	return all
}

// dull makes choices dull.
func (s *Shrinker) dull() bool {
	return halves(func() int { return len(s.surprises()) }, func(from, to int) bool {
		next := slices.Clone(s.best)
		for _, at := range s.surprises()[from:to] {
			next[at].Got = 0
		}
		return s.try(next)
	})
}

// lower makes each choice smaller, by halves.
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
