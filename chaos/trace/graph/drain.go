package graph

import (
	"slices"
	"strconv"
)

// DrainSizes are the constants of Drain.tla.
type DrainSizes struct{ Start, Lame, Drain, Abort, Faults, Signals int }

// DrainState is its state, of one request. It is a value.
type DrainState struct {
	met, seen, ailing, shell    bits
	started                     bool
	http, phase                 string
	left, age                   int
	last, durable, folded       int
	req                         string
	after, faults, signalsSpent int
}

// bits is a set of names: of needs, ailments, parts.
type bits uint8

const (
	key bits = 1 << iota
	web
	admin
	stalled
	failed
	late
	index

	needs = key | web | admin
	parts = web | index | admin
)

func (b bits) has(o bits) bool { return b&o == o }
func (b bits) String() string {
	var all []string
	for i, name := range []string{"key", "http", "admin", "stalled", "failed", "late", "index"} {
		if b>>i&1 == 1 {
			all = append(all, name)
		}
	}
	return set(all...)
}

func truth(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

func (s DrainState) String() string {
	return fields("met", s.met.String(), "seen", s.seen.String(), "started", truth(s.started), "ailing", s.ailing.String(), "http", s.http,
		"phase", s.phase, "left", strconv.Itoa(s.left), "age", strconv.Itoa(s.age), "last", strconv.Itoa(s.last), "durable", strconv.Itoa(s.durable),
		"folded", strconv.Itoa(s.folded), "req", fields("r1", s.req), "after", fields("r1", strconv.Itoa(s.after)), "shell", s.shell.String(),
		"spent", fields("faults", strconv.Itoa(s.faults), "signals", strconv.Itoa(s.signalsSpent)))
}

// rank is a phase's place in the life of a node.
func (s DrainState) rank() int {
	return slices.Index([]string{"none", "lame_duck", "draining", "aborting", "stopped"}, s.phase)
}

func (s DrainState) begun() bool  { return s.phase != "none" }
func (s DrainState) lives() bool  { return s.phase != "stopped" }
func (s DrainState) closed() bool { return s.rank() >= 2 }
func (s DrainState) takes() bool  { return s.started && !s.closed() && s.ailing&(stalled|failed) == 0 }
func (s DrainState) admits() bool { return s.started && !s.closed() }
func (s DrainState) finishes() bool {
	return s.started && s.rank() < 3 && s.ailing&(stalled|failed) == 0
}
func (s DrainState) outstanding() bool { return s.durable < s.last && !s.ailing.has(failed) }
func (s DrainState) quiet() bool       { return s.http == "down" && s.req != "held" && !s.outstanding() }

// need is what is met, and what comes of it.
func (s DrainState) need(met bits) DrainState {
	s.met, s.seen = met, s.seen|met
	if s.started = s.started || met == needs; s.started {
		s.ailing &^= late
	}
	return s
}

// ends is the listener asked to.
func (s DrainState) ends() DrainState {
	if s.http == "starting" || s.http == "up" {
		s.http = "ending"
	}
	return s
}

func (s DrainState) aborts(length int) DrainState {
	s.phase, s.left = "aborting", length
	if s.req == "held" {
		s.req = "unknown"
	}
	return s.ends()
}

// Drain is Drain.tla.
func Drain(c DrainSizes) Spec[DrainState] {
	return Spec[DrainState]{
		Init: DrainState{http: "starting", phase: "none", left: c.Start, req: "new", shell: parts},
		Next: func(s DrainState, step func(string, DrainState)) {
			s.needing(c, step)
			s.serving(c, step)
			s.ending(c, step)
		},
	}
}

// needing is what the node needs.
func (s DrainState) needing(c DrainSizes, step func(string, DrainState)) {
	if !s.lives() {
		return
	}
	for _, n := range []bits{key, admin} {
		if !s.met.has(n) {
			step("Meet", s.need(s.met|n))
		}
	}
	if s.http == "starting" {
		t := s.need(s.met | web)
		t.http = "up"
		step("Up", t)
	}
	if (s.http == "starting" || s.http == "up") && s.faults < c.Faults {
		t := s.need(s.met &^ web)
		t.http, t.faults = "down", s.faults+1
		step("Die", t)
	}
	if s.http == "down" && !s.begun() {
		t := s
		t.http = "starting"
		step("Restart", t)
	}
	if s.http == "ending" && (s.phase == "aborting" || s.req != "sent" && s.req != "admitted" && s.req != "held") {
		t := s.need(s.met &^ web)
		t.http = "down"
		step("Ended", t)
	}
	if !s.started && !s.begun() && s.left == 0 && !s.ailing.has(late) {
		t := s
		t.ailing |= late
		step("Late", t)
	}
}

// serving is what becomes of the request, and of its frame.
func (s DrainState) serving(c DrainSizes, step func(string, DrainState)) {
	if !s.lives() {
		return
	}
	if s.req == "new" && s.http == "up" {
		t := s
		t.req = "sent"
		step("Send", t)
	}
	if s.req == "sent" && s.admits() {
		t := s
		t.req = "admitted"
		step("Admit", t)
	}
	if s.req == "sent" || s.req == "admitted" {
		t := s
		if t.req = "refused"; s.takes() || s.req == "admitted" && s.finishes() {
			t.req, t.last, t.after = "held", s.last+1, s.last+1
		}
		step("Enter", t)
	}
	for n := s.durable + 1; n <= s.last; n++ {
		t := s
		t.durable, t.ailing = n, s.ailing&^stalled
		step("Sync", t)
	}
	if s.folded < s.durable {
		t := s
		if t.folded = s.durable; s.req == "held" && s.after <= s.durable {
			t.req = "answered"
		}
		step("Fold", t)
	}
	if s.faults == c.Faults {
		return
	}
	if s.outstanding() && !s.ailing.has(stalled) {
		t := s
		t.ailing, t.faults = s.ailing|stalled, s.faults+1
		step("Stall", t)
	}
	if s.outstanding() {
		t := s
		t.ailing, t.faults = s.ailing|failed, s.faults+1
		if s.req == "held" && s.after > s.durable {
			t.req = "unknown"
		}
		step("Fail", t)
	}
	if s.req == "held" {
		t := s
		t.req, t.faults = "unknown", s.faults+1
		step("LosePatience", t)
	}
}

// ending is the node's end, and the shell's.
func (s DrainState) ending(c DrainSizes, step func(string, DrainState)) {
	if s.signalsSpent < c.Signals {
		t := s
		t.signalsSpent++
		if !s.begun() {
			d := t
			d.phase, d.left = "lame_duck", c.Lame
			step("Drain", d)
		}
		if s.rank() < 3 {
			step("Abort", t.aborts(c.Abort))
		}
	}
	if s.phase == "lame_duck" && s.left == 0 {
		t := s.ends()
		t.phase, t.left = "draining", c.Drain
		step("Close", t)
	}
	if s.phase == "draining" && !s.quiet() && s.left == 0 {
		step("GiveUp", s.aborts(c.Abort))
	}
	if s.phase == "draining" && s.quiet() || s.phase == "aborting" && (s.quiet() || s.left == 0) {
		t := s
		t.phase, t.left = "stopped", 0
		step("Stop", t)
	}
	for _, part := range []bits{web, index, admin} {
		if !s.lives() && s.shell.has(part) && (part != admin || s.shell == admin) {
			t := s
			t.shell &^= part
			step("Go", t)
		}
	}
	if waiting := s.begun() && s.lives() || !s.begun() && !s.started; waiting && s.left > 0 {
		t := s
		if t.left--; s.begun() {
			t.age++
		}
		step("Pass", t)
	}
	if !s.lives() && s.shell == 0 {
		step("Done", s)
	}
}
