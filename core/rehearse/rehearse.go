// Package rehearse plays a change of the gate before it is made: from the gate that is to
// the one that comes, over every short history of a small house, with the node itself.
//
//	Change ──► does it fit? ──► may everybody who is served come in, alone? ──► small houses
//	                                                                               │
//	  every short history ──► the change ──► every step behind it ──► until all is quiet
//
// It ends, allocates as it likes, and depends on nothing but the two gates.
package rehearse

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
)

// MaxSteps is how many steps of the node a rehearsal takes before it goes into nothing new:
// of gates as large as there may be it is done by then.
const MaxSteps = 40_000

// Change says in one sentence why a node of c, whose gate is c's, is not to be given another:
// it does not fit; a kind of caller that is served would never be let in, even alone; or in
// a house with few permits and short queues, and whatever came before, somebody would never
// be told, or an invariant would break. Numbers of callers stand in the same order there as
// in the gates, and what is nothing is nothing. steps is how many steps it took.
func Change(c node.Config, to *event.Gate) (steps int, err error) {
	if err := c.Takes(to); err != nil {
		return 0, err
	}
	p := play{}
	if err := p.doors(*to); err != nil {
		return p.steps, err
	}
	from := c.Applied()
	for _, all := range [...]func(from, to event.Gate) error{p.turns, p.quotas, p.upstreams} {
		if err := all(from, *to); err != nil {
			return p.steps, fmt.Errorf("the change would break: %w", err)
		}
	}
	return p.steps, nil
}

// Gate says the same of the gate that a node is made with: there is none before it.
func Gate(c node.Config) error {
	g := c.Applied()
	if err := c.Takes(&g); err != nil {
		return err
	}
	p := play{}
	return p.doors(g)
}

// play is a rehearsal.
type play struct {
	steps int
	bytes bool // are counted in the house that is played
	spare []*stage
}

// copy is a stage like another, in the memory of one that is not needed any more.
func (p *play) copy(s *stage) *stage {
	if len(p.spare) == 0 {
		p.spare = append(p.spare, &stage{})
	}
	n := len(p.spare) - 1
	t := p.spare[n]
	p.spare = p.spare[:n]
	s.copyTo(t)
	return t
}

// done gives a stage back.
func (p *play) done(s *stage) { p.spare = append(p.spare, s) }
