package graph

// ClockSizes are the constants of Clock.tla; time advances by one length.
type ClockSizes struct {
	Step, Rest, Trust, Gap, Steady, Waver, Slew, Day, Ceiling, Gone int
	MaxWall, MaxMono, MaxJumps, MaxCrashes, MaxAccepts, MaxPays     int
}

// clockDays is how many days a clock comes to here, at most.
const clockDays = 5

// ClockState is its state. It is a value.
type ClockState struct {
	at, wall, seen                int
	synced, doubted               bool
	since, offset, stepped, mono  int
	frame                         int
	paidDay, paid                 int
	past                          [clockDays]int
	still, rested                 int
	what                          string // did
	gone, moved                   int
	jumps, crashes, accepts, pays int
}

func (s ClockState) String() string {
	var past []string
	for d, n := range s.past {
		past = append(past, num(d), num(n))
	}
	return fields("at", num(s.at), "wall", num(s.wall), "seen", num(s.seen), "synced", truth(s.synced), "doubted", truth(s.doubted),
		"since", num(s.since), "offset", num(s.offset), "stepped", num(s.stepped), "mono", num(s.mono), "frame", num(s.frame),
		"paid", fields("day", num(s.paidDay), "n", num(s.paid)), "past", fields(past...), "still", num(s.still), "rested", num(s.rested),
		"did", fields("what", s.what, "gone", num(s.gone), "moved", num(s.moved)),
		"spent", fields("jumps", num(s.jumps), "crashes", num(s.crashes), "accepts", num(s.accepts), "pays", num(s.pays)))
}

// did is what the last action was.
func (s ClockState) did(what string, gone, moved int) ClockState {
	s.what, s.gone, s.moved = what, gone, moved
	return s
}

// sure is without a doubt.
func (s ClockState) sure() ClockState {
	s.doubted, s.since, s.offset = false, 0, 0
	return s
}

// Clock is Clock.tla.
func Clock(c ClockSizes) Spec[ClockState] {
	return Spec[ClockState]{
		Init: ClockState{at: c.Trust, wall: c.Trust, seen: c.Trust, synced: true, stepped: c.Rest, frame: c.Trust, rested: c.Rest, what: "began"},
		Next: func(s ClockState, step func(string, ClockState)) {
			s.machine(c, step)
			s.node(c, step)
			if s.mono+c.Gone <= c.MaxMono {
				step("Read", s.reads(c))
			}
			if s.crashes < c.MaxCrashes {
				step("Crash", s.restart(c))
			}
		},
	}
}

// machine is Jump and Loses.
func (s ClockState) machine(c ClockSizes, step func(string, ClockState)) {
	if s.jumps == c.MaxJumps {
		return
	}
	for w := 0; w <= c.MaxWall; w++ {
		if t := s.did("jump", 0, 0); w != s.wall {
			t.jumps, t.wall = s.jumps+1, w
			step("Jump", t)
		}
	}
	t := s.did("sync", 0, 0)
	t.jumps, t.synced = s.jumps+1, !s.synced
	step("Loses", t)
}

// node has the steps of the node: accepting a clock, heartbeats and payments.
func (s ClockState) node(c ClockSizes, step func(string, ClockState)) {
	if s.accepts < c.MaxAccepts {
		t := s.sure()
		t.accepts, t.at = s.accepts+1, max(s.at, s.seen)
		step("Accept", t.did("accept", 0, t.at-s.at))
	}
	if s.frame < s.at {
		t := s.did("vouch", 0, 0)
		t.frame = s.at
		step("Vouch", t)
	}
	if s.pays < c.MaxPays {
		t, today := s.did("pay", 0, 0), s.at/c.Day
		if s.paidDay != today {
			t.paid = 0
		}
		if t.paid < c.Ceiling {
			t.pays, t.paidDay, t.paid, t.frame = s.pays+1, today, t.paid+1, s.at
			t.past[today]++
			step("Pay", t)
		}
	}
}

// restart is Crash.
func (s ClockState) restart(c ClockSizes) ClockState {
	t, ahead := s.sure(), s.wall-s.frame
	t.crashes = s.crashes + 1
	if t.at = s.wall; ahead < 0 || ahead > c.Gap {
		t.at = s.frame
	}
	if ahead > c.Gap {
		t.doubted, t.offset = true, ahead
	}
	t.stepped, t.seen, t.still, t.rested = c.Rest, s.wall, 0, c.Rest
	return t.did("restart", 0, t.at-s.frame)
}

// reads is Read.
func (s ClockState) reads(c ClockSizes) ClockState {
	t, gone, fast := s, c.Gone, c.Gone/c.Slew
	t.mono, t.wall, t.seen = s.mono+gone, s.wall+gone, s.wall+gone
	even := s.at + gone
	behind := t.seen - even
	t.stepped = min(c.Rest, s.stepped+gone)
	far := c.Trust
	if s.doubted {
		far = c.Step
	}
	switch {
	case behind > far:
		t = t.doubts(c, &s, even, behind)
	case behind < 0:
		t = t.sure()
		t.at = max(even-fast, t.seen)
	case behind > fast && behind <= c.Step && s.stepped+gone >= c.Rest:
		t = t.sure()
		t.at, t.stepped = t.seen, 0
	default:
		t = t.sure()
		t.at = min(even+fast, t.seen)
	}
	t = t.did("read", gone, t.at-s.at)
	t.still, t.rested = 0, min(c.Rest, s.rested+gone)
	if off := t.seen - s.seen - gone; s.synced && max(off, -off) <= 2*c.Waver {
		t.still = min(c.Steady, s.still+gone)
	}
	if t.moved-gone > fast && (!s.doubted || t.doubted) {
		t.rested = 0
	}
	return t
}

// doubts is Doubts.
func (s ClockState) doubts(c ClockSizes, was *ClockState, even, behind int) ClockState {
	off := behind - was.offset
	steady := was.doubted && max(off, -off) <= c.Waver && was.synced
	if steady && was.since+c.Gone >= c.Steady {
		s = s.sure()
		s.at = s.seen
		return s
	}
	s.at, s.doubted = even, true
	if steady {
		s.since += c.Gone
	} else {
		s.since, s.offset = 0, behind
	}
	return s
}
