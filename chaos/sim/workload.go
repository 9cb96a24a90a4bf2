package sim

import (
	"fmt"
	"slices"

	"macronode/core/event"
)

// A Class is what is special about a request: of several, the last in this list.
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
func (c *client) special(class Class) { c.class = max(c.class, class) }

// ended counts the cell of a request that was answered.
func (w *World) ended(c *client, want *event.Request, class Class, r event.Reply) {
	how := r.Problem
	if want.Caller != boss.ID {
		class = max(class, Barred)
	}
	if c.tenant != boss.Tenant {
		class = Stranger
	}
	if how == event.None {
		how = w.audit.why[r.Place]
	}
	w.Cells[Cell{want.Op, class, how}]++
}

// Never says why a cell is empty for ever; nothing, of one that can be filled.
func (c Cell) Never() (why string) {
	pays, batch := c.Op == event.Transfer || c.Op == event.Burn || c.Op == event.Hold, c.Op == event.Batch
	one := func(ops ...event.Op) bool { return batch || slices.Contains(ops, c.Op) }
	switch c.Outcome {
	case event.Unauthorized, event.PayloadTooLarge, event.UnsupportedMedia, event.NotFound, event.MethodNotAllowed, event.Deadline, event.Internal, event.BadGateway:
		return "the node does not say so: its shell does"
	case event.OverSupply:
		return "nobody lives long enough to issue so much"
	default: // it depends
	}
	switch {
	case c.Class == Malformed && c.Outcome != event.BadRequest:
		return "what is no operation is told so before anything else"
	case c.Class == Stranger && (c.Op == event.Capture || c.Op == event.Release):
		return "a stranger knows of no hold"
	case c.Class == Stranger && !slices.Contains([]event.Problem{event.BadRequest, event.Forbidden, event.Busy, event.Unknown, event.Unavailable}, c.Outcome):
		return "a stranger is told nothing of what is inside"
	case (c.Class == NonceLow || c.Class == NonceHigh) && !pays && !batch:
		return "the operation has no nonce"
	}
	switch c.Outcome {
	case event.BadRequest:
		return unless(c.Class >= Malformed || batch, "it is an operation")
	case event.Forbidden:
		return unless(c.Class >= Barred, "the key covers all")
	case event.IdempotencyConflict:
		return unless(c.Class >= Again, "the key has asked for nothing else")
	case event.NonceUsed, event.NonceAhead:
		return unless(pays || batch, "the operation has no nonce")
	case event.OverAmount:
		return unless(one(event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture) && c.Class != Plain, "there is no amount, or a small one")
	case event.OverDay:
		return unless(one(event.Issue, event.Transfer, event.Burn, event.Capture), "nothing leaves the account")
	case event.TooMany:
		return unless(c.Op != event.Burn && c.Op != event.Release, "the operation needs no room")
	case event.InsufficientFunds:
		return unless(pays || batch, "nobody pays of what is free")
	case event.OverHold:
		return unless(one(event.Capture), "nobody pays of a hold")
	case event.HoldState:
		return unless(one(event.Capture, event.Release), "the operation has no hold")
	case event.BadExpiry:
		return unless(one(event.Hold), "the operation has no end")
	case event.AccountFrozen:
		return unless(pays || one(event.Capture), "nothing leaves the account")
	default:
		return ""
	}
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// Seldom says why a cell that can be filled need not be: it takes more luck than a run of
// the gate has.
func (c Cell) Seldom() (why string) {
	blank := slices.Contains([]event.Problem{event.IdempotencyFull, event.Busy, event.Unavailable, event.LookAgain, event.Unknown}, c.Outcome)
	switch {
	case c.Outcome == event.BadRequest && c.Class < Malformed:
		return "an item uses the ref of an item before it"
	case c.Outcome == event.InProgress:
		return unless(c.Class <= Large && (c.Op == event.Issue || c.Op == event.Hold || c.Op == event.Batch), "a second asks in the moment between decided and told")
	case c.Outcome == event.TooMany:
		return unless(c.Class <= OldRef && (c.Op == event.Issue || c.Op == event.Batch || c.Op == event.Hold), "the tables are full, and not of what it needs")
	case c.Outcome == event.OverDay:
		return unless(c.Class == Plain && c.Op == event.Issue, "few have as much as may leave in a day")
	case c.Class == NonceLow && c.Outcome != event.NonceUsed && c.Outcome != event.None:
		return unless(blank, "the nonce is looked at first, but for that of an item behind others")
	case c.Class == NonceHigh && c.Outcome != event.NonceAhead && c.Outcome != event.None:
		return unless(blank, "the nonce is right by the mistake of who asks")
	case c.Class == Again || c.Class == Other:
		return unless(!blank && c.Outcome != event.NonceAhead && c.Outcome != event.OverHold, "an old key has its outcome")
	case c.Outcome == event.RefUsed:
		return unless(c.Class == OldRef || c.Class == Barred, "a key is asked again so late that it is forgotten, and its ref is not")
	case c.Outcome == event.OverHold || c.Outcome == event.HoldState:
		return unless(c.Class <= Large, "few know of a hold")
	case c.Class == Stranger && c.Outcome == event.Unavailable:
		return "the stranger comes while the node drains"
	}
	return ""
}
