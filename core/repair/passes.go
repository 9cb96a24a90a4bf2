package repair

// MaxIdlePasses is how many passes of a rebalance may move nothing, one after the other, before it ends.
const MaxIdlePasses = 3

// Passes decides how often a rebalance looks again for the objects that it has not moved: a provider may have failed meanwhile, or been
// full. The zero value is that of a rebalance that begins.
type Passes struct {
	moved uint64
	idle  int
}

// Again reports whether another pass is made after one that has ended. moved is how many objects all passes have moved, left how many the
// last one has not.
func (p *Passes) Again(moved, left uint64) bool {
	if p.idle++; moved > p.moved {
		p.moved, p.idle = moved, 0
	}
	return left > 0 && p.idle < MaxIdlePasses
}
