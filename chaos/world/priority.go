package world

import (
	"slices"

	"macronode/core/types"
)

// priority is dice that are loaded at some sites.
type priority struct {
	dice  types.Rand
	depth int
	sites []string
	ranks map[string]*ranks
}

// ranks are the answers of one site, in the order in which they are liked.
type ranks struct {
	order []int
	left  int // answers until the one liked best is liked least
}

const epoch = 300 // answers in which the changes of a site fall

// Priority likes some answers at the given sites far better than others: each half as
// often as the one before it. depth times in a run of some hundred answers the one that is
// liked best becomes the one liked least. So a run in which one side is starved for long,
// and then another, is not as rare as with dice. Elsewhere it rolls dice.
func Priority(seed uint64, depth int, sites ...string) Chooser {
	return &priority{dice: types.NewRand(seed), depth: depth, sites: sites, ranks: map[string]*ranks{}}
}

// Choose rolls.
func (p *priority) Choose(site string, n int) int {
	if !slices.Contains(p.sites, site) {
		return p.roll(n)
	}
	r := p.ranks[site]
	if r == nil || len(r.order) != n {
		r = &ranks{left: p.span()}
		for got := range n { // a shuffle
			r.order = slices.Insert(r.order, p.roll(got+1), got)
		}
		p.ranks[site] = r
	}
	if r.left--; r.left == 0 {
		r.order, r.left = append(r.order[1:], r.order[0]), p.span()
	}
	for _, got := range r.order {
		if p.roll(2) == 1 {
			return got
		}
	}
	return r.order[p.roll(n)]
}

func (p *priority) roll(n int) int { return int(p.dice.Uint64n(uint64(n))) }

// span is how long it is until the next change.
func (p *priority) span() int { return 1 + p.roll(2*epoch/(p.depth+1)) }
