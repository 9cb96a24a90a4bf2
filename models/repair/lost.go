package repair

import "slices"

// Lost is everything that was found and cleared, from which the set of lost objects is computed anew each time.
type Lost struct {
	Limit int
	steps []lostStep
}

type lostStep struct {
	file   uint64
	isLost bool // else it was cleared; the same for a scrub: it began, else it has ended
	scrub  bool
}

// Find, Clear, BeginScrub and EndScrub note a step.
func (l *Lost) Find(file uint64)  { l.steps = append(l.steps, lostStep{file: file, isLost: true}) }
func (l *Lost) Clear(file uint64) { l.steps = append(l.steps, lostStep{file: file}) }
func (l *Lost) BeginScrub()       { l.steps = append(l.steps, lostStep{scrub: true, isLost: true}) }
func (l *Lost) EndScrub()         { l.steps = append(l.steps, lostStep{scrub: true}) }

// Kept returns the files that are kept, and those that were found without room and are still counted.
func (l *Lost) Kept() (kept []uint64, others map[uint64]bool) {
	began, from := 0, 0 // the last scrub began; the one that has ended last did
	for i, s := range l.steps {
		if s.scrub && s.isLost {
			began = i
		} else if s.scrub {
			from = began
		}
	}
	others = map[uint64]bool{}
	for i, s := range l.steps {
		at := slices.Index(kept, s.file)
		switch {
		case s.scrub:
		case s.isLost && at < 0 && len(kept) < l.Limit:
			kept = append(kept, s.file)
			delete(others, s.file)
		case s.isLost && at < 0 && i >= from:
			others[s.file] = true
		case !s.isLost && at >= 0:
			kept = slices.Delete(kept, at, at+1)
		}
	}
	return kept, others
}
