package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// A never is cells that nobody can come to, and why. One that is hit all the same is an
// error, as is one of the others that a run of the gate does not hit.
type never struct {
	why string
	is  func(Cell) bool
}

var nevers = []never{
	{"the node does not say so: its shell does", outcomes(event.Unauthorized, event.PayloadTooLarge, event.UnsupportedMedia, event.NotFound,
		event.MethodNotAllowed, event.Timeout, event.Internal, event.BadGateway)},
	{"nobody lives long enough to issue so much", outcomes(event.SupplyLimitExceeded)},

	// What an operation does not have.
	{"the operation has no nonce", func(c Cell) bool {
		return !c.pays() && (c.Class == NonceLow || c.Class == NonceHigh || c.Outcome == event.NonceUsed || c.Outcome == event.NonceAhead)
	}},
	{"the operation has no amount", func(c Cell) bool {
		return c.Op != event.Batch && c.Op > event.Capture && (c.Class == Large || c.Outcome == event.AmountLimitExceeded)
	}},
	{"nothing leaves the account, or is issued", outcomes(event.DailyLimitExceeded).of(event.Hold, event.Release, event.Freeze, event.Unfreeze)},
	{"the operation needs no room", outcomes(event.CapacityExceeded).of(event.Burn, event.Release)},
	{"nobody pays of what is free", outcomes(event.InsufficientFunds).of(event.Issue, event.Capture, event.Release, event.Freeze, event.Unfreeze)},
	{"nobody pays of a hold", outcomes(event.HoldAmountExceeded).but(event.Capture, event.Batch)},
	{"the operation has no hold", outcomes(event.HoldNotActive).but(event.Capture, event.Release, event.Batch)},
	{"the operation pays no beneficiary", outcomes(event.NotBeneficiary).but(event.Capture, event.Batch)},
	{"the operation has no end", outcomes(event.BadExpiry).but(event.Hold, event.Batch)},
	{"nothing leaves the account", outcomes(event.AccountFrozen).of(event.Issue, event.Release, event.Freeze, event.Unfreeze)},

	// What a class does not come to.
	{"the key covers all", func(c Cell) bool { return c.Outcome == event.Forbidden && c.Class < Barred }},
	{"the key has asked for nothing else", func(c Cell) bool { return c.Outcome == event.IdempotencyConflict && c.Class < Again }},
	{"it is an operation", func(c Cell) bool {
		return c.Outcome == event.BadRequest && c.Class < Malformed && !(c.Op == event.Batch && c.Class == OldRef)
	}},
	{"what is no operation is told so before anything else", func(c Cell) bool { return c.Class == Malformed && c.Outcome != event.BadRequest }},
	{"the amount is small", func(c Cell) bool {
		return c.Outcome == event.AmountLimitExceeded && (c.Class == Plain || c.Class == OldRef || c.Class == NonceLow || c.Class == NonceHigh)
	}},
	{"the nonce is looked at first", func(c Cell) bool {
		return c.Op != event.Batch && c.Class == NonceLow && decided(c.Outcome) && c.Outcome != event.NonceUsed
	}},
	{"the nonce is looked at first, and not kept", func(c Cell) bool {
		return c.Op != event.Batch && c.Class == NonceHigh && (decided(c.Outcome) && c.Outcome != event.NonceAhead || c.Outcome == event.InProgress)
	}},
	{"nobody believes in a nonce that is ahead, nor asks with one again", func(c Cell) bool {
		return c.Outcome == event.NonceAhead && c.Class != NonceHigh && c.Class != Barred
	}},
	{"its refs are new", func(c Cell) bool { return c.Outcome == event.RefUsed && (c.Class == NonceLow || c.Class == NonceHigh) }},

	// What is asked again, when its key is forgotten.
	{"what was let go, or paid of, is no longer held", func(c Cell) bool {
		return c.Class == Other && c.Outcome == event.None && (c.Op == event.Capture || c.Op == event.Release)
	}},
	{"what was kept of it comes before that", func(c Cell) bool {
		return (c.Class == Again || c.Class == Other) && c.Op == event.Capture && (c.Outcome == event.DailyLimitExceeded || c.Outcome == event.CapacityExceeded)
	}},
	{"what was done has its rows", func(c Cell) bool {
		return (c.Class == Again || c.Class == Other) && c.Outcome == event.CapacityExceeded && (c.Op == event.Issue || c.Op == event.Freeze || c.Op == event.Unfreeze)
	}},

	// Who asks.
	{"a stranger knows of no hold", func(c Cell) bool {
		return c.Class == Stranger && (c.Op == event.Capture || c.Op == event.Release)
	}},
	{"a stranger is told nothing of what is inside", func(c Cell) bool {
		return c.Class == Stranger && !slices.Contains([]event.Problem{event.BadRequest, event.Forbidden, event.Busy, event.OutcomeUnknown, event.Unavailable}, c.Outcome)
	}},
	{"the key is no administrator's, and that is looked at first", func(c Cell) bool {
		return c.Class == Barred && (c.Op == event.Freeze || c.Op == event.Unfreeze) &&
			!slices.Contains([]event.Problem{event.BadRequest, event.Forbidden, event.Busy, event.OutcomeUnknown, event.Unavailable}, c.Outcome)
	}},
}

// Never says why a cell is empty for ever; nothing, of one that can be filled.
func (c Cell) Never() string {
	for _, n := range nevers {
		if n.is(c) {
			return n.why
		}
	}
	return ""
}

// Never says why a cell of the gate is empty for ever; nothing, of one that can be filled.
func (c GateCell) Never() string {
	if c.Why == event.RejectClassDisabled && c.Class != types.ClassAnon {
		return "who has shown a key is served"
	}
	return ""
}

// pays reports that an operation, or an item of it, may use a nonce.
func (c Cell) pays() bool {
	return c.Op == event.Transfer || c.Op == event.Burn || c.Op == event.Hold || c.Op == event.Batch
}

// decided reports that an outcome says how money stands: the others say that nothing was
// decided, or that it is not known.
func decided(p event.Problem) bool {
	return !slices.Contains([]event.Problem{event.IdempotencyCapacity, event.InProgress, event.Busy, event.Unavailable, event.StaleIndexRead, event.OutcomeUnknown}, p)
}

// cells are some of them.
type cells func(Cell) bool

func outcomes(all ...event.Problem) cells {
	return func(c Cell) bool { return slices.Contains(all, c.Outcome) }
}

// of are those of an operation among these, but those of any other.
func (s cells) of(ops ...event.Op) func(Cell) bool {
	return func(c Cell) bool { return s(c) && slices.Contains(ops, c.Op) }
}

func (s cells) but(ops ...event.Op) func(Cell) bool {
	return func(c Cell) bool { return s(c) && !slices.Contains(ops, c.Op) }
}
