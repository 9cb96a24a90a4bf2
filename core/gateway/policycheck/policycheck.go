// Package policycheck tests a change of the admission policy before it is applied. It runs the
// node itself through every short history with small limits.
//
//	Change ──► valid? ──► can every kind of caller that is served be admitted, alone? ──► small policies
//	                                                                                         │
//	  every short history ──► the change ──► every step after it ──► until all requests have ended
//
// It terminates, allocates freely, and depends on nothing but the two policies.
package policycheck

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
)

// MaxSteps is the number of steps of the node after which a check explores no further history.
// The largest policies stay below it.
const MaxSteps = 40_000

// Change returns an error that says why the policy of a node must not be changed to another: the
// policy is invalid; a kind of caller that is served would never be admitted, even alone; or, in
// some history with few permits and short queues, a request would never get a decision or an
// invariant would break. The limits are replaced by small ones in the same order; zero stays
// zero.
func Change(c node.Config, to *event.Policy) (Result, error) { return change(c, to, MaxSteps) }

// A Result is the amount of work of a check.
type Result struct {
	Steps   int  // of the node
	Partial bool // some histories were not played, because MaxSteps was reached
}

func change(c node.Config, to *event.Policy, limit int) (Result, error) {
	if err := c.CheckPolicy(to); err != nil {
		return Result{}, err
	}
	p := play{limit: limit}
	if err := p.checkAdmission(*to); err != nil {
		return p.result(), err
	}
	from := c.Policy()
	for _, all := range [...]func(from, to event.Policy) error{p.checkFacets, p.quotas, p.upstreams} {
		if err := all(from, *to); err != nil {
			return p.result(), fmt.Errorf("the change would break: %w", err)
		}
	}
	return p.result(), nil
}

// Gate checks the first policy of a node.
func Gate(c node.Config) error {
	g := c.Policy()
	if err := c.CheckPolicy(&g); err != nil {
		return err
	}
	p := play{limit: MaxSteps}
	return p.checkAdmission(g)
}

// play is a check in progress.
type play struct {
	limit   int // of steps
	steps   int
	partial bool // a history was not played because of the limit
	bytes   bool // whether bytes are counted
	spare   []*simulation
}

// exhausted reports whether no step is left. If so, the caller explores nothing further.
func (p *play) exhausted() bool {
	p.partial = p.partial || p.steps >= p.limit
	return p.steps >= p.limit
}

func (p *play) result() Result { return Result{Steps: p.steps, Partial: p.partial} }

// copy returns a copy of s, in the memory of a simulation that has ended.
func (p *play) copy(s *simulation) *simulation {
	if len(p.spare) == 0 {
		p.spare = append(p.spare, &simulation{})
	}
	n := len(p.spare) - 1
	t := p.spare[n]
	p.spare = p.spare[:n]
	s.copyTo(t)
	return t
}

// done frees the memory of s.
func (p *play) done(s *simulation) { p.spare = append(p.spare, s) }
