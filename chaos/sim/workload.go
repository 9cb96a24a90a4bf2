package sim

import (
	"fmt"

	"macronode/core/event"
)

// A Class is the special property of a request, if it has one. Properties of the client come
// before those of the request.
type Class int

const (
	Plain     Class = iota
	Large           // exceeds a limit or the balance
	OldRef          // with a used ref
	NonceLow        // with a used nonce
	NonceHigh       // with a nonce after the expected one
	Again           // an old request again
	Other           // an old key for another request
	Malformed       // an invalid request
	Barred          // with a key that covers less, or that was revoked
	NoKey           // of a tenant without a key
	classes         // number of classes
	mixed           // several properties: not in any cell
)

func (c Class) String() string {
	return [classes]string{"plain", "large", "old ref", "nonce low", "nonce high", "again", "other", "malformed", "barred", "stranger"}[c]
}

// A Cell is an operation, its class, and its outcome: an answer or a problem, possibly stored.
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

// Cells returns all cells, from the tables of the node. The limits on rows of the wallet are one outcome.
func Cells() (all []Cell) {
	for op := event.Op(1); op.Known(); op++ {
		for class := range classes {
			for why := event.None; why == event.None || why.Known(); why++ {
				if why == why.General() {
					all = append(all, Cell{op, class, why})
				}
			}
		}
	}
	return all
}

// special sets the class of the current request.
func (c *client) special(class Class) {
	if c.class != Plain && c.class != class {
		class = mixed
	}
	c.class = class
}

// counts counts the cell of an answered request.
func (w *World) counts(c *client, want *event.Request, class Class, r event.Reply) {
	how := r.Problem
	switch {
	case c.tenant != boss.Tenant:
		class = NoKey
	case want.Caller != boss.ID:
		class = Barred
	case class == mixed:
		return
	}
	if how == event.None {
		how = w.audit.why[r.Position]
	}
	w.Cells[Cell{want.Op, class, how.General()}]++
}
