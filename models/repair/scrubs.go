package repair

// A ScrubEvent is one of what happens to scrubs.
type ScrubEvent uint8

const (
	ScrubRequested ScrubEvent = iota
	ScrubBegins
	ScrubFinds // a damaged copy
	ScrubEnds
)

// ScrubHistory is everything that has happened to the scrubs of a node, the oldest first.
type ScrubHistory []ScrubEvent

// count returns how many events of a kind there are.
func (h ScrubHistory) count(kind ScrubEvent) (n int) {
	for _, e := range h {
		if e == kind {
			n++
		}
	}
	return n
}

// Runs reports whether a scrub runs.
func (h ScrubHistory) Runs() bool { return h.count(ScrubBegins) > h.count(ScrubEnds) }

// sinceBegin returns what has happened since the last scrub has begun.
func (h ScrubHistory) sinceBegin() ScrubHistory {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i] == ScrubBegins {
			return h[i+1:]
		}
	}
	return h
}

// IsWanted reports whether there is a request after the begin of the last scrub.
func (h ScrubHistory) IsWanted() bool { return h.sinceBegin().count(ScrubRequested) > 0 }

// Next returns the number of the scrub that satisfies a request now.
func (h ScrubHistory) Next() uint64 { return uint64(h.count(ScrubBegins)) + 1 }

// Found returns how many damaged copies were found since the first request for the next scrub.
func (h ScrubHistory) Found() uint64 {
	h = h.sinceBegin()
	for i, e := range h {
		if e == ScrubRequested {
			return uint64(h[i:].count(ScrubFinds))
		}
	}
	return 0
}
