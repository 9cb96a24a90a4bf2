// Package policycheck plays a change of the gate before it is made: from the gate that is to
// the one that comes, over every short history of a small house, with the node itself.
//
//	Change ──► does it fit? ──► may everybody who is served come in, alone? ──► small houses
//	                                                                               │
//	  every short history ──► the change ──► every step behind it ──► until all is quiet
//
// It ends, allocates as it likes, and depends on nothing but the two gates.
package policycheck

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
// in the gates, and what is nothing is nothing.
func Change(c node.Config, to *event.Policy) (Result, error) { return change(c, to, MaxSteps) }

// A Result is how much a rehearsal has played.
type Result struct {
	Steps   int  // of the node
	Partial bool // some histories were not played, because MaxSteps was reached
}

func change(c node.Config, to *event.Policy, limit int) (Result, error) {
	if err := c.CheckPolicy(to); err != nil {
		return Result{}, err
	}
	p := play{limit: limit}
	if err := p.doors(*to); err != nil {
		return p.result(), err
	}
	from := c.Policy()
	for _, all := range [...]func(from, to event.Policy) error{p.turns, p.quotas, p.upstreams} {
		if err := all(from, *to); err != nil {
			return p.result(), fmt.Errorf("the change would break: %w", err)
		}
	}
	return p.result(), nil
}

// Gate says the same of the gate that a node is made with: there is none before it.
func Gate(c node.Config) error {
	g := c.Policy()
	if err := c.CheckPolicy(&g); err != nil {
		return err
	}
	p := play{limit: MaxSteps}
	return p.doors(g)
}

// play is a rehearsal.
type play struct {
	limit   int // of steps
	steps   int
	partial bool // a history was not played because of the limit
	bytes   bool // are counted in the house that is played
	spare   []*stage
}

// exhausted reports that no step is left. Its caller leaves out what it would have played.
func (p *play) exhausted() bool {
	p.partial = p.partial || p.steps >= p.limit
	return p.steps >= p.limit
}

func (p *play) result() Result { return Result{Steps: p.steps, Partial: p.partial} }

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
