// Package supervise decides when a child of the shell is started again.
//
//	Begin ──► starting ──Up──► up ──Down──► resting ──Tick, after its backoff──► starting
//	                                      Stop: down, and stays
package supervise

import (
	"errors"
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

const (
	First   = 100 * time.Millisecond // the shortest backoff
	Spread  = 400 * time.Millisecond // what chance adds to it
	Cap     = 5 * time.Second        // the longest
	Window  = time.Minute            // in which restarts are counted
	Allowed = 5                      // of them, before the node is degraded
)

type state uint8

const (
	down state = iota
	starting
	up
	resting
)

type child struct {
	state    state
	wanted   bool
	until    words.Instant // resting ends
	failures uint32        // in a row
	restarts uint64
	recent   [Allowed + 1]words.Instant // the last restarts, a ring; 0 is none
	next     uint8                      // where the next one goes
}

// Supervisor watches all children.
//
// Invariants:
//
//	S1  a child that is wanted is starting, up or resting; one that is not is down or on its way there
//	S2  a rest is at least First and at most Cap
type Supervisor struct {
	dice     words.Dice
	children [words.Children]child
}

// New is a supervisor that wants nobody yet.
func New(dice words.Dice) Supervisor { return Supervisor{dice: dice} }

// Begin wants all children, and starts them.
func (s *Supervisor) Begin(out *event.Effects) {
	for c := range words.Children {
		s.children[c].wanted = true
		s.start(c, out)
	}
}

func (s *Supervisor) start(c words.Child, out *event.Effects) {
	s.children[c].state = starting
	out.Childs = append(out.Childs, event.ChildOp{Child: c, What: event.StartChild})
}

// Up notes that c serves.
func (s *Supervisor) Up(c words.Child) {
	if s.children[c].state == starting {
		s.children[c].state = up
	}
}

// Down notes that c has ended, and lets it rest if it is wanted.
func (s *Supervisor) Down(now words.Instant, c words.Child) {
	k := &s.children[c]
	if !k.wanted {
		k.state = down
		return
	}
	if k.state == up {
		k.failures = 0
	}
	rest := First + time.Duration(s.dice.Below(uint64(Spread)))
	for range min(k.failures, 8) {
		rest = min(2*rest, Cap)
	}
	if k.calm() > now {
		rest = Cap // it has been tried too often: it is tried on, but seldom
	}
	k.state, k.until = resting, now.Plus(rest)
	k.failures++
}

// Tick starts whoever has rested.
func (s *Supervisor) Tick(now words.Instant, out *event.Effects) {
	for c := range words.Children {
		k := &s.children[c]
		if k.state == resting && k.until <= now {
			k.recent[k.next], k.next = now, (k.next+1)%uint8(len(k.recent))
			k.restarts++
			s.start(c, out)
		}
		if k.calm() <= now {
			k.recent[k.next] = 0
		}
	}
}

// Due is the earliest end of a rest, or of a time of too many restarts.
func (s *Supervisor) Due() (due words.Instant, any bool) {
	for c := range words.Children {
		k := &s.children[c]
		if k.state == resting && (!any || k.until < due) {
			due, any = k.until, true
		}
		if calm := k.calm(); calm > 0 && (!any || calm < due) {
			due, any = calm, true
		}
	}
	return due, any
}

// calm is when k will have restarted no more than Allowed times in a Window; 0 is long ago.
func (k *child) calm() words.Instant {
	oldest := k.recent[k.next]
	if oldest == 0 {
		return 0
	}
	return oldest.Plus(Window)
}

// Troubled reports that a child restarts too often.
func (s *Supervisor) Troubled(now words.Instant) bool {
	for c := range words.Children {
		if s.children[c].calm() > now {
			return true
		}
	}
	return false
}

// Stop wants c no more, and asks it to end as verb says.
func (s *Supervisor) Stop(c words.Child, verb event.ChildVerb, out *event.Effects) {
	k := &s.children[c]
	k.wanted = false
	if k.state == resting {
		k.state = down
	}
	if k.state != down {
		out.Childs = append(out.Childs, event.ChildOp{Child: c, What: verb})
	}
}

// IsUp and IsDown tell of one child.
func (s *Supervisor) IsUp(c words.Child) bool   { return s.children[c].state == up }
func (s *Supervisor) IsDown(c words.Child) bool { return s.children[c].state == down }

// Restarts is how often c was started again.
func (s *Supervisor) Restarts(c words.Child) uint64 { return s.children[c].restarts }

// Mix is h after all of s.
func (s *Supervisor) Mix(h words.Hash64) words.Hash64 {
	h = s.dice.Mix(h)
	for c := range s.children {
		k := &s.children[c]
		h = h.Mix(uint64(k.state)).MixBit(k.wanted).Mix(uint64(k.until)).Mix(uint64(k.failures)).Mix(k.restarts).Mix(uint64(k.next))
		for _, at := range k.recent {
			h = h.Mix(uint64(at))
		}
	}
	return h
}

// Check returns the first invariant that does not hold.
func (s *Supervisor) Check() error {
	for c := range s.children {
		if k := &s.children[c]; k.wanted && k.state == down || !k.wanted && k.state == resting {
			return errors.New("S1: " + words.Child(c).String())
		}
	}
	return nil
}
