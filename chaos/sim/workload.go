package sim

import (
	"fmt"

	"macronode/core/event"
)

// A Class is what is special about a request, if one thing is. Who asks comes before what is
// asked.
type Class int

const (
	Plain     Class = iota
	Large           // more than the limits like, or than there is
	OldRef          // a ref that was used before
	NonceLow        // a nonce that was used before
	NonceHigh       // one that is not next yet
	Again           // an old request, once more
	Other           // an old key, for something else
	Malformed       // no operation at all
	Barred          // with a key that covers less, or that has ended
	Stranger        // of a tenant without a key
	classes         // how many there are
	mixed           // several of these at once: it belongs to no cell
)

func (c Class) String() string {
	return [classes]string{"plain", "large", "old ref", "nonce low", "nonce high", "again", "other", "malformed", "barred", "stranger"}[c]
}

// A Cell is an operation, what was special about it, and how it ended: with an answer or a
// problem, which its record may have.
type Cell struct {
	Op      event.Op
	Class   Class
	Outcome event.Problem
}

func (c Cell) String() string {
	how := c.Outcome.Code()
	if c.Outcome == event.None {
		how = "done"
	}
	return fmt.Sprintf("%v, %v: %s (%d)", c.Op, c.Class, how, c.Outcome)
}

// Cells are all there could be, made of what the node knows.
func Cells() (all []Cell) {
	for op := event.Op(1); op.Known(); op++ {
		for class := range classes {
			for why := event.None; why == event.None || why.Known(); why++ {
				all = append(all, Cell{op, class, why})
			}
		}
	}
	return all
}

// special notes what is special about the wish at hand.
func (c *client) special(class Class) {
	if c.class != Plain && c.class != class {
		class = mixed
	}
	c.class = class
}

// counts counts the cell of a request that was answered.
func (w *World) counts(c *client, want *event.Request, class Class, r event.Reply) {
	how := r.Problem
	switch {
	case c.tenant != boss.Tenant:
		class = Stranger
	case want.Caller != boss.ID:
		class = Barred
	case class == mixed:
		return
	}
	if how == event.None {
		how = w.audit.why[r.Position]
	}
	w.Cells[Cell{want.Op, class, how}]++
}
