package sim

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// A never is a set of unreachable cells, and why. If one is reached, or a reachable one is never
// reached by a run of the gate, that is an error.
type never struct {
	why string
	is  func(Cell) bool
}

var nevers = []never{
	{"the node does not say so: its shell does", outcomes(event.PayloadTooLarge, event.UnsupportedMedia, event.NotFound,
		event.MethodNotAllowed, event.Timeout, event.Internal, event.BadGateway, event.RateLimited, event.RecordUnreadable, event.DigestMismatch,
		event.RangeNotSatisfiable, event.ObjectUnreadable)},
	{"the wallet has no such problem", outcomes(event.QuotaExceeded, event.PreconditionFailed, event.PaymentRequired,
		event.EventInvalid, event.EventConflict, event.EventTooOld, event.EventInFuture, event.UsageOverflow, event.UsageCapacity,
		event.EventsDeferred, event.TooManyEvents, event.PrepaidExceeded, event.LaneMoved, event.ExportCapacity, event.UploadMoved, event.PaymentExpired)},
	{"no run issues that much", outcomes(event.SupplyLimitExceeded)},

	// Outcomes that an operation cannot have.
	{"the operation has no nonce", func(c Cell) bool {
		return !c.pays() && (c.Class == NonceLow || c.Class == NonceHigh || c.Outcome == event.NonceUsed || c.Outcome == event.NonceAhead)
	}},
	{"the operation has no amount", func(c Cell) bool {
		return c.Op != event.Batch && c.Op > event.Capture && (c.Class == Large || c.Outcome == event.AmountLimitExceeded)
	}},
	{"no debit, no hold and no issue", outcomes(event.DailyLimitExceeded).of(event.Release, event.Freeze, event.Unfreeze)},
	{"its hold was within the limit of each day", outcomes(event.DailyLimitExceeded).of(event.Capture)},
	{"the operation needs no room", outcomes(event.CapacityExceeded).of(event.Burn, event.Release)},
	{"no debit of the available balance", outcomes(event.InsufficientFunds).of(event.Issue, event.Capture, event.Release, event.Freeze, event.Unfreeze)},
	{"no capture", outcomes(event.HoldAmountExceeded).but(event.Capture, event.Batch)},
	{"the operation has no hold", outcomes(event.HoldNotActive).but(event.Capture, event.Release, event.Batch)},
	{"the operation pays no beneficiary", outcomes(event.NotBeneficiary).but(event.Capture, event.Batch)},
	{"the operation has no end", outcomes(event.BadExpiry).but(event.Hold, event.Batch)},
	{"no debit of the account", outcomes(event.AccountFrozen).of(event.Issue, event.Release, event.Freeze, event.Unfreeze)},

	// Outcomes that a class cannot have.
	{"the key covers all", func(c Cell) bool { return c.Outcome == event.Forbidden && c.Class < Barred }},
	{"the key has not ended", func(c Cell) bool { return c.Outcome == event.Unauthorized && c.Class != Barred }},
	{"the key has one request", func(c Cell) bool { return c.Outcome == event.IdempotencyConflict && c.Class < Again }},
	{"it is an operation", func(c Cell) bool {
		return c.Outcome == event.BadRequest && c.Class < Malformed && !(c.Op == event.Batch && c.Class == OldRef)
	}},
	{"an invalid request is rejected first", func(c Cell) bool { return c.Class == Malformed && c.Outcome != event.BadRequest }},
	{"the amount is small", func(c Cell) bool {
		return c.Outcome == event.AmountLimitExceeded && (c.Class == Plain || c.Class == OldRef || c.Class == NonceLow || c.Class == NonceHigh)
	}},
	{"the nonce is looked at first", func(c Cell) bool {
		return c.Op != event.Batch && c.Class == NonceLow && decided(c.Outcome) && c.Outcome != event.NonceUsed
	}},
	{"the nonce is looked at first, and not kept", func(c Cell) bool {
		return c.Op != event.Batch && c.Class == NonceHigh && (decided(c.Outcome) && c.Outcome != event.NonceAhead || c.Outcome == event.InProgress)
	}},
	{"clients never choose a later nonce, nor repeat one", func(c Cell) bool {
		return c.Outcome == event.NonceAhead && c.Class != NonceHigh && c.Class != Barred
	}},
	{"its refs are new", func(c Cell) bool { return c.Outcome == event.RefUsed && (c.Class == NonceLow || c.Class == NonceHigh) }},

	// Retries after the key was evicted.
	{"an ended hold is not active", func(c Cell) bool {
		return c.Class == Other && c.Outcome == event.None && (c.Op == event.Capture || c.Op == event.Release)
	}},
	{"the stored outcome comes first", func(c Cell) bool {
		return (c.Class == Again || c.Class == Other) && c.Op == event.Capture && c.Outcome == event.CapacityExceeded
	}},
	{"its rows exist", func(c Cell) bool {
		return (c.Class == Again || c.Class == Other) && c.Outcome == event.CapacityExceeded && (c.Op == event.Issue || c.Op == event.Freeze || c.Op == event.Unfreeze)
	}},

	// By client.
	{"a tenant without a key has no hold", func(c Cell) bool {
		return c.Class == NoKey && (c.Op == event.Capture || c.Op == event.Release)
	}},
	{"a tenant without a key is forbidden", func(c Cell) bool {
		return c.Class == NoKey && !slices.Contains([]event.Problem{event.BadRequest, event.Forbidden, event.Busy, event.OutcomeUnknown, event.Unavailable}, c.Outcome)
	}},
	{"the scope is checked first", func(c Cell) bool {
		return c.Class == Barred && (c.Op == event.Freeze || c.Op == event.Unfreeze) &&
			!slices.Contains([]event.Problem{event.BadRequest, event.Unauthorized, event.Forbidden, event.Busy, event.OutcomeUnknown, event.Unavailable}, c.Outcome)
	}},
}

// Never returns why a cell is unreachable; "" if it is reachable.
func (c Cell) Never() string {
	for _, n := range nevers {
		if n.is(c) {
			return n.why
		}
	}
	return ""
}

// Never returns why a cell of the gate is unreachable; "" if it is reachable.
func (c GateCell) Never() string {
	if c.Why == event.RejectClassDisabled && c.Class != types.ClassAnon {
		return "callers with a key are served"
	}
	if c.Why == event.RejectGaveWay && c.Class != types.ClassAnon {
		return "requests with a key do not give way"
	}
	if c.Why == event.RejectKeyEnded && c.Class != types.ClassAuthed {
		return "only the keys of clients end"
	}
	if c.Why == event.RejectRouteFlow && c.Class == types.ClassInternal {
		return "administrators leave no room on a route"
	}
	return ""
}

// Rare reports whether a cell of the gate is reachable, and too rare to be required: where one
// caller may hold one permit of a facet, it gives way only after some changes of the policy, and a key rarely ends meanwhile.
func (c GateCell) Rare() bool {
	return (c.Why == event.RejectGaveWay || c.Why == event.RejectKeyEnded) && c.Facet != types.FacetWallet
}

// Rare reports whether a cell is reachable, and too rare to be required: none is.
func (c Cell) Rare() bool { return false }

// pays reports whether an operation, or an item of it, may use a nonce.
func (c Cell) pays() bool {
	return c.Op == event.Transfer || c.Op == event.Burn || c.Op == event.Hold || c.Op == event.Batch
}

// decided reports whether an outcome was decided: others mean that nothing was decided, or that
// it is unknown.
func decided(p event.Problem) bool {
	return !slices.Contains([]event.Problem{event.IdempotencyCapacity, event.InProgress, event.Busy, event.Unavailable, event.StaleIndexRead, event.OutcomeUnknown}, p)
}

// cells is a set of cells.
type cells func(Cell) bool

func outcomes(all ...event.Problem) cells {
	return func(c Cell) bool { return slices.Contains(all, c.Outcome) }
}

// of returns the cells of some operations; but returns those of all others.
func (s cells) of(ops ...event.Op) func(Cell) bool {
	return func(c Cell) bool { return s(c) && slices.Contains(ops, c.Op) }
}

func (s cells) but(ops ...event.Op) func(Cell) bool {
	return func(c Cell) bool { return s(c) && !slices.Contains(ops, c.Op) }
}
