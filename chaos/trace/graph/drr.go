package graph

import "slices"

// DRRSizes are the constants of DRR.tla. Flows and classes are numbered from 0; Two and Both are
// pairs, or empty.
type DRRSizes struct {
	Of, Weights                     []int // the class of each flow; the weight of each class
	Quantum, MaxCost, Depth, MaxOut int
	Drops                           bool
	Two, Both                       []int
}

// ware is an item of a flow.
type ware struct{ cost, ahead int }

func (w ware) String() string { return fields("cost", num(w.cost), "ahead", num(w.ahead)) }

// DRRState is a state. Shared parts are never changed.
type DRRState struct {
	queue         [][]ware
	ring          [][]int
	credit, share []int
	turn          int
	given         bool
	begun         []bool
	looks         int
	order         bool
	out           []int
	fwait, cwait  []int
	lead, tilt    int
	of            *DRRSizes
}

func (s *DRRState) String() string {
	name := func(f int) string { return "f" + num(f+1) }
	named := func(text func(f int) string) string {
		var kv []string
		for f := range s.queue {
			kv = append(kv, name(f), text(f))
		}
		return fields(kv...)
	}
	numbers := func(all []int) string { return named(func(f int) string { return num(all[f]) }) }
	ring := each(s.ring, func(all []int) string { return seq(each(all, name)...) })
	return fields("queue", named(func(f int) string { return seq(each(s.queue[f], ware.String)...) }), "ring", seq(ring...),
		"credit", numbers(s.credit), "share", seq(each(s.share, num)...), "turn", num(s.turn+1), "given", truth(s.given),
		"begun", seq(each(s.begun, truth)...), "looks", num(s.looks), "order", truth(s.order), "out", numbers(s.out),
		"fwait", numbers(s.fwait), "cwait", seq(each(s.cwait, num)...), "lead", num(s.lead), "tilt", num(s.tilt))
}

func (s *DRRState) copied() *DRRState {
	c := *s
	c.queue, c.ring, c.begun, c.out = slices.Clone(s.queue), slices.Clone(s.ring), slices.Clone(s.begun), slices.Clone(s.out)
	c.credit, c.share, c.fwait, c.cwait = slices.Clone(s.credit), slices.Clone(s.share), slices.Clone(s.fwait), slices.Clone(s.cwait)
	return &c
}

// DRR is DRR.tla.
func DRR(z DRRSizes) Spec[*DRRState] {
	flows, classes := len(z.Of), len(z.Weights)
	return Spec[*DRRState]{
		Init: &DRRState{queue: make([][]ware, flows), ring: make([][]int, classes), credit: make([]int, flows), share: make([]int, classes),
			begun: make([]bool, classes), order: true, out: make([]int, flows), fwait: make([]int, flows), cwait: make([]int, classes), of: &z},
		Next: func(s *DRRState, step func(string, *DRRState)) {
			if slices.ContainsFunc(s.ring, func(r []int) bool { return len(r) > 0 }) {
				s.next(step)
			}
			if s.looks > 0 {
				return
			}
			for f := range s.queue {
				s.changes(f, step)
			}
		},
	}
}

// next is a step of the scheduler: GiveClass, GiveFlow, Rotate, Pass or Serve.
func (s *DRRState) next(step func(string, *DRRState)) {
	c, t := s.turn, s.copied()
	t.looks++
	if len(s.ring[c]) == 0 {
		step("Pass", t.passes())
		return
	}
	f := s.ring[c][0]
	cost := s.queue[f][0].cost
	switch {
	case !s.given:
		t.given, t.share[c] = true, s.share[c]+s.of.Weights[c]*s.of.Quantum
		for k := range t.cwait {
			if t.cwait[k]++; len(s.ring[k]) == 0 {
				t.cwait[k] = 0
			}
		}
		step("GiveClass", t)
	case !s.begun[c]:
		t.begun[c], t.credit[f] = true, s.credit[f]+s.of.Quantum
		for _, g := range s.ring[c] {
			t.fwait[g]++
		}
		step("GiveFlow", t)
	case s.credit[f] < cost:
		t.ring[c], t.begun[c] = append(slices.Clone(s.ring[c][1:]), f), false
		step("Rotate", t)
	case s.share[c] < cost:
		step("Pass", t.passes())
	default:
		t.order = s.order && s.queue[f][0].ahead == 0
		t.takes(f, 0, cost)
		t.looks, t.out[f], t.fwait[f], t.cwait[c] = 0, min(s.out[f]+1, s.of.MaxOut), 0, 0
		t.compares(f, cost)
		step("Serve", t)
	}
}

// passes gives the turn to the next class.
func (s *DRRState) passes() *DRRState {
	s.turn, s.given = (s.turn+1)%len(s.ring), false
	return s
}

// changes is Offer, Drop and Correct.
func (s *DRRState) changes(f int, step func(string, *DRRState)) {
	c, has := s.of.Of[f], len(s.queue[f])
	for cost := 1; cost <= s.of.MaxCost && s.of.Weights[c] > 0 && has < s.of.Depth; cost++ {
		t := s.copied()
		t.queue[f] = append(slices.Clone(s.queue[f]), ware{cost, has})
		if has == 0 {
			t.ring[c] = append(slices.Clone(s.ring[c]), f)
		}
		step("Offer", t)
	}
	for i := 0; i < has && s.of.Drops; i++ {
		t := s.copied()
		t.takes(f, i, 0)
		if t.compares(f, 0); has == 1 {
			t.fwait[f] = 0
		}
		if len(t.ring[c]) == 0 {
			t.cwait[c] = 0
		}
		step("Drop", t)
	}
	for _, by := range []int{-s.of.Quantum, 0, s.of.Quantum} {
		if s.out[f] == 0 {
			return
		}
		t := s.copied()
		switch t.out[f]--; {
		case has == 0:
		case by < 0:
			t.credit[f] = max(s.credit[f]+by, -s.of.Quantum)
		default:
			t.credit[f] = max(s.credit[f], min(s.credit[f]+by, 2*s.of.Quantum))
		}
		t.compares(f, s.credit[f]-t.credit[f])
		step("Correct", t)
	}
}

// takes is TakeOut: an item leaves, for its cost. Changed parts are copied.
func (s *DRRState) takes(f, i, cost int) {
	c, gone := s.of.Of[f], s.queue[f][i].ahead
	s.queue[f] = slices.Delete(slices.Clone(s.queue[f]), i, i+1)
	for j := range s.queue[f] {
		if w := &s.queue[f][j]; w.ahead > gone {
			w.ahead--
		}
	}
	s.credit[f] -= cost
	s.share[c] -= cost
	if len(s.queue[f]) > 0 {
		return
	}
	s.credit[f], s.begun[c] = 0, s.begun[c] && s.ring[c][0] != f
	s.ring[c] = slices.DeleteFunc(slices.Clone(s.ring[c]), func(g int) bool { return g == f })
	if len(s.ring[c]) > 0 {
		return
	}
	if s.share[c] = 0; s.turn == c {
		s.passes()
	}
}

// compares is Compare: the charges of a flow and its class.
func (s *DRRState) compares(f, cost int) {
	lead, tilt := s.lead, s.tilt
	s.lead, s.tilt = 0, 0
	if z := s.of; len(z.Two) > 0 && len(s.queue[z.Two[0]]) > 0 && len(s.queue[z.Two[1]]) > 0 {
		s.lead = lead + sign(z.Two, f)*cost
	}
	if z := s.of; len(z.Both) > 0 && len(s.ring[z.Both[0]]) > 0 && len(s.ring[z.Both[1]]) > 0 {
		s.tilt = tilt
		switch c := z.Of[f]; sign(z.Both, c) {
		case 1:
			s.tilt += cost * z.Weights[z.Both[1]]
		case -1:
			s.tilt -= cost * z.Weights[z.Both[0]]
		}
	}
}

// sign is 1 for the first of a pair, -1 for the second, otherwise 0.
func sign(pair []int, x int) int {
	switch x {
	case pair[0]:
		return 1
	case pair[1]:
		return -1
	default:
		return 0
	}
}
