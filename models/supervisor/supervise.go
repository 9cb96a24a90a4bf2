// Package supervisor is the reference model of core/lifecycle/supervisor: a list of events of
// each child.
package supervisor

import "macronode/core/types"

const (
	ms     = 1_000_000
	second = 1000 * ms
)

// Child is the state of a child.
type Child struct {
	Is       string // "down", "starting", "up", "resting"
	Wanted   bool
	Until    types.Instant   // end of the rest
	Failed   int             // failures in a row
	Restarts []types.Instant // all restarts so far
}

// Supervisor watches children by index.
type Supervisor struct {
	Dice     types.Rand
	Children []Child
}

// New watches n children that are down.
func New(n int, dice types.Rand) Supervisor {
	s := Supervisor{Dice: dice}
	for range n {
		s.Children = append(s.Children, Child{Is: "down"})
	}
	return s
}

// Begin starts all children.
func (s *Supervisor) Begin() {
	for i := range s.Children {
		s.Children[i].Is, s.Children[i].Wanted = "starting", true
	}
}

// Up handles the start of a child.
func (s *Supervisor) Up(i int) {
	if s.Children[i].Is == "starting" {
		s.Children[i].Is = "up"
	}
}

// Down handles the end of a child.
func (s *Supervisor) Down(now types.Instant, i int) {
	c := &s.Children[i]
	switch {
	case !c.Wanted:
		c.Is = "down"
		return
	case c.Is == "up":
		c.Failed = 0
	}
	rest := types.Instant(100*ms + s.Dice.Uint64n(400*ms))
	for n := 0; n < c.Failed && rest < 5*second; n++ {
		rest *= 2
	}
	if rest > 5*second || s.Troubled(now, i) {
		rest = 5 * second
	}
	c.Is, c.Until = "resting", now+rest
	c.Failed++
}

// Tick returns the children that must be started.
func (s *Supervisor) Tick(now types.Instant) (started []int) {
	for i := range s.Children {
		c := &s.Children[i]
		if c.Is == "resting" && now >= c.Until {
			c.Is = "starting"
			c.Restarts = append(c.Restarts, now)
			started = append(started, i)
		}
	}
	return started
}

// Troubled reports whether a child was restarted more than five times in the minute before now.
func (s *Supervisor) Troubled(now types.Instant, i int) bool {
	n := 0
	for _, at := range s.Children[i].Restarts {
		if now-at < 60*second {
			n++
		}
	}
	return n > 5
}

// Stop reports whether the child must be stopped.
func (s *Supervisor) Stop(i int) bool {
	c := &s.Children[i]
	c.Wanted = false
	if c.Is == "resting" {
		c.Is = "down"
	}
	return c.Is != "down"
}
