package graph

import "slices"

// AdmissionSizes are the constants of Admission.tla, for the callers a, b and x; its two classes,
// flows and facets are 0 and 1 here.
type AdmissionSizes struct {
	Class, Flow, Facet    [3]int // of each caller
	Slots                 []int  // the class of each slot
	Permits, Bound, Quota [2]int // of each facet, of each class, of each flow
	Total, Share, Burst   int
	Asks, Faults          int
}

// The records of Admission.tla.
type (
	coming struct { // in the intake
		ticket pass
		caller int
	}
	settling struct { // in words
		ticket pass
		n      int
	}
	seat struct { // a row
		at                string
		gen, left, caller int
	}
	verdict struct {
		gen  int
		word string
	}
	visitor struct { // a caller
		pc   string
		slot int
	}
)

// AdmissionState is a state. Shared parts are never changed.
type AdmissionState struct {
	free         []bool // whether each slot is free
	gen          []int
	intake       [2][]coming
	words        []settling // a set
	row          []seat
	avail        [2]int
	tokens       int
	used         [2]int
	got          [][]verdict
	caller       [3]visitor
	went         [2]int
	phase        string
	asks, faults int
	of           *AdmissionSizes
}

var visitors = []string{"a", "b", "x"}

func (x coming) String() string {
	return fields("ticket", x.ticket.String(), "who", visitors[x.caller])
}

func (w settling) String() string { return fields("ticket", w.ticket.String(), "n", num(w.n)) }

func (p seat) String() string {
	return fields("at", p.at, "gen", num(p.gen), "left", num(p.left), "who", visitors[p.caller])
}

func (v verdict) String() string { return fields("gen", num(v.gen), "word", v.word) }

func (v visitor) String() string { return fields("pc", v.pc, "slot", num(v.slot)) }

func (s *AdmissionState) String() string {
	free := [2][]string{}
	for i, is := range s.free {
		if k := s.of.Slots[i]; is {
			free[k] = append(free[k], num(i+1))
		}
	}
	got := each(s.got, func(all []verdict) string { return seq(each(all, verdict.String)...) })
	return fields("free", fields("internal", set(free[0]...), "authed", set(free[1]...)), "gen", seq(each(s.gen, num)...),
		"intake", fields("internal", seq(each(s.intake[0], coming.String)...), "authed", seq(each(s.intake[1], coming.String)...)),
		"words", set(each(s.words, settling.String)...), "row", seq(each(s.row, seat.String)...),
		"avail", fields("money", num(s.avail[0]), "lists", num(s.avail[1])), "tokens", num(s.tokens),
		"used", fields("t", num(s.used[0]), "u", num(s.used[1])), "told", seq(got...),
		"caller", fields("a", s.caller[0].String(), "b", s.caller[1].String(), "x", s.caller[2].String()),
		"went", fields("t", num(s.went[0]), "u", num(s.went[1])), "phase", s.phase,
		"spent", fields("asks", num(s.asks), "faults", num(s.faults)))
}

func (s *AdmissionState) copied() *AdmissionState {
	c := *s
	c.free, c.gen, c.row, c.got = slices.Clone(s.free), slices.Clone(s.gen), slices.Clone(s.row), slices.Clone(s.got)
	return &c
}

// tell sends a decision by slot i.
func (s *AdmissionState) tell(i, gen int, word string) {
	s.got[i] = append(slices.Clone(s.got[i]), verdict{gen, word})
}

// ends adds the n-th event that ends a caller's ticket.
func (s *AdmissionState) ends(c, n int) {
	at := s.caller[c].slot
	if w := (settling{pass{at, s.gen[at-1]}, n}); !slices.Contains(s.words, w) {
		s.words = append(slices.Clone(s.words), w)
	}
	s.caller[c].pc = "left"
}

// refused removes a queued row: nothing was used.
func (s *AdmissionState) refused(i int) {
	r := &s.row[i]
	s.tell(i, r.gen, "refused")
	r.at, s.used[s.of.Flow[r.caller]] = "free", s.used[s.of.Flow[r.caller]]-1
}

// queued counts some queued rows.
func (s *AdmissionState) queued(of func(caller int) bool) (n int) {
	for _, r := range s.row {
		if r.at == "queued" && of(r.caller) {
			n++
		}
	}
	return n
}

// refuses is Refuses.
func (s *AdmissionState) refuses(c int) bool {
	z := s.of
	return s.phase != "serving" || s.used[z.Flow[c]] >= z.Quota[z.Flow[c]] ||
		s.queued(func(int) bool { return true }) >= z.Total ||
		s.queued(func(caller int) bool { return z.Class[caller] == z.Class[c] }) >= z.Bound[z.Class[c]] ||
		s.queued(func(caller int) bool { return z.Flow[caller] == z.Flow[c] }) >= z.Share
}

// Admission is Admission.tla.
func Admission(z AdmissionSizes) Spec[*AdmissionState] {
	slots := len(z.Slots)
	first := &AdmissionState{free: make([]bool, slots), gen: make([]int, slots), row: make([]seat, slots), avail: z.Permits, tokens: z.Burst,
		got: make([][]verdict, slots), phase: "serving", of: &z}
	for i := range slots {
		first.free[i], first.row[i].at = true, "free"
	}
	for c := range first.caller {
		first.caller[c].pc = "out"
	}
	return Spec[*AdmissionState]{
		Init: first,
		Next: func(s *AdmissionState, step func(string, *AdmissionState)) {
			s.decides(step)
			for i := range s.row {
				s.moves(i, step)
			}
			for _, w := range s.words {
				step("Settle", s.settles(w))
			}
			if s.tokens < z.Burst {
				t := s.copied()
				t.tokens++
				step("Refill", t)
			}
			s.ending(step)
			for c := range s.caller {
				s.visits(c, step)
			}
		},
	}
}

// decides is Decide.
func (s *AdmissionState) decides(step func(string, *AdmissionState)) {
	for k, line := range s.intake {
		if len(line) == 0 {
			continue
		}
		t, x, i := s.copied(), line[0], line[0].ticket.slot-1
		if t.intake[k] = line[1:]; s.row[i].left == x.ticket.gen || s.refuses(x.caller) {
			t.tell(i, x.ticket.gen, "refused")
		} else {
			t.row[i] = seat{at: "queued", gen: x.ticket.gen, caller: x.caller}
			t.used[s.of.Flow[x.caller]]++
		}
		step("Decide", t)
	}
}

// moves is Dispatch, Late and Reclaim of slot i.
func (s *AdmissionState) moves(i int, step func(string, *AdmissionState)) {
	r, facet := s.row[i], s.of.Facet[s.row[i].caller]
	if r.at == "queued" && s.avail[facet] > 0 && s.tokens > 0 {
		t := s.copied()
		t.tell(i, r.gen, "go")
		t.row[i].at, t.avail[facet], t.tokens = "out", s.avail[facet]-1, s.tokens-1
		step("Dispatch", t)
	}
	if r.at == "queued" {
		t := s.copied()
		t.refused(i)
		step("Late", t)
	}
	if r.at == "out" {
		t := s.copied()
		t.row[i].at, t.avail[facet] = "lost", s.avail[facet]+1
		step("Reclaim", t)
	}
}

// settles is Settle.
func (s *AdmissionState) settles(w settling) *AdmissionState {
	t, i := s.copied(), w.ticket.slot-1
	t.words = slices.DeleteFunc(slices.Clone(s.words), func(o settling) bool { return o == w })
	r := &t.row[i]
	if r.gen != w.ticket.gen || r.at == "free" {
		if w.ticket.gen > r.gen {
			r.left = max(r.left, w.ticket.gen)
		}
		return t
	}
	t.tell(i, w.ticket.gen, "done")
	switch flow := s.of.Flow[r.caller]; r.at {
	case "queued":
		t.used[flow]--
	case "out":
		t.avail[s.of.Facet[r.caller]]++
		t.went[flow]++
	case "lost":
		t.went[flow]++
	}
	r.at = "free"
	return t
}

// ending is Drain and Done.
func (s *AdmissionState) ending(step func(string, *AdmissionState)) {
	if s.phase == "serving" {
		t := s.copied()
		t.phase = "draining"
		for i, r := range s.row {
			if r.at == "queued" {
				t.refused(i)
			}
		}
		step("Drain", t)
		return
	}
	if len(s.words) == 0 && !slices.ContainsFunc(s.caller[:], func(c visitor) bool { return c.pc != "out" }) {
		step("Done", s)
	}
}

// visits are the steps of a caller.
func (s *AdmissionState) visits(c int, step func(string, *AdmissionState)) {
	switch s.caller[c].pc {
	case "out":
		s.comes(c, step)
		return
	case "asks":
		if s.faults < s.of.Faults {
			t := s.copied()
			t.faults++
			t.ends(c, 1)
			step("Leave", t)
		}
	case "works":
		t := s.copied()
		t.ends(c, 1)
		step("Finish", t)
	case "left":
		if s.faults < s.of.Faults {
			t := s.copied()
			t.faults++
			t.ends(c, 2)
			step("Again", t)
		}
	}
	i := s.caller[c].slot - 1
	if len(s.got[i]) == 0 {
		return
	}
	t, word := s.copied(), s.got[i][0].word
	switch t.got[i] = s.got[i][1:]; {
	case word != "go":
		t.free[i], t.caller[c] = true, visitor{pc: "out"}
	case s.caller[c].pc == "asks":
		t.caller[c].pc = "works"
	}
	step("Hear", t)
}

// comes is Ask.
func (s *AdmissionState) comes(c int, step func(string, *AdmissionState)) {
	k := s.of.Class[c]
	for i, free := range s.free {
		if !free || s.of.Slots[i] != k || s.asks == s.of.Asks {
			continue
		}
		t := s.copied()
		t.asks, t.free[i], t.gen[i], t.caller[c] = s.asks+1, false, s.gen[i]+1, visitor{"asks", i + 1}
		t.intake[k] = append(slices.Clone(s.intake[k]), coming{pass{i + 1, s.gen[i] + 1}, c})
		step("Ask", t)
		return
	}
}
