package repair

import "macronode/core/types"

// MaxScrubResults is the number of scrubs whose results are kept. A command that waits for a scrub asks for its result ten times a second.
const MaxScrubResults = 16

// Scrubs numbers the scrubs of a node, one after the other, so that a request gets the result of one that reads all copies after it:
//
//	Request ──► number ──Begin, if it is the next one──► runs ──End──► its result has that number
//
// While a scrub runs, it may find and have repaired what the next one then finds intact. So what it finds after the request counts as well.
// The zero value has no scrub. It is volatile: numbers begin again with a start of the node.
//
// Invariants:
//
//	C1  at most one scrub runs
//	C2  a request gets the number of a scrub that begins after it, the first of these
//	C3  Begin returns how many damaged copies were found between the first request for that scrub and its begin
type Scrubs struct {
	begun  uint64 // the number of the last one that has begun
	runs   bool   // it has not ended
	wanted uint64 // the number of the last one that was requested
	found  uint64 // damaged copies since the first request for it
}

// Request requests a scrub, and returns its number.
func (s *Scrubs) Request() (number uint64) {
	if !s.IsWanted() {
		s.wanted, s.found = s.begun+1, 0
	}
	return s.wanted
}

// IsWanted reports whether a scrub is requested that has not begun.
func (s *Scrubs) IsWanted() bool { return s.wanted > s.begun }

// Begin begins a scrub, before it looks at the first copy. found is how many damaged copies the one before has found since it was requested.
func (s *Scrubs) Begin() (found uint64) {
	types.Assert(!s.runs, "repair: two scrubs at once")
	if s.IsWanted() {
		found = s.found
	}
	s.begun, s.runs = s.begun+1, true
	return found
}

// Found counts a damaged copy that the running scrub has found.
func (s *Scrubs) Found() {
	if s.IsWanted() {
		s.found++
	}
}

// End ends the running scrub, and returns its number.
func (s *Scrubs) End() (number uint64) {
	types.Assert(s.runs, "repair: the end of a scrub that does not run")
	s.runs = false
	return s.begun
}
