package world

import (
	"slices"

	"macronode/core/types"
)

// priority is a random generator with a bias at some sites.
type priority struct {
	dice  types.Rand
	depth int
	sites []string
	ranks map[string]*ranks
}

// ranks are the results of a site in the order of preference.
type ranks struct {
	order []int
	left  int // choices until the preferred result becomes the last
}

const epoch = 300 // number of choices over which the changes of a site are spread

// Priority prefers some results at the given sites: each is half as frequent as the previous one.
// depth times in a few hundred choices, the preferred result becomes the last. So a run that
// starves one side for long, then another, is more likely than by chance. Other sites are random.
func Priority(seed uint64, depth int, sites ...string) Chooser {
	return &priority{dice: types.NewRand(seed), depth: depth, sites: sites, ranks: map[string]*ranks{}}
}

// Choose returns a biased random number.
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

// span returns the number of choices until the next change.
func (p *priority) span() int { return 1 + p.roll(2*epoch/(p.depth+1)) }
