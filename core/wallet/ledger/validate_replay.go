package ledger

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// ErrReplay reports that a counted record does not follow from its predecessors.
var ErrReplay = errors.New("ledger: a movement does not follow from those before it")

// CheckReplay returns why a counted record, about to be applied, cannot be the outcome of its
// operation: its nonce, seq, balances or hold are wrong. Amount limits and time are not checked:
// the configuration may have changed since.
func (l *Ledger) CheckReplay(r *record.Record) error {
	if r.Kind == record.HoldExpired {
		return l.checkReplayExpiry(r)
	}
	var s commandRows
	l.loadRows(r, &s)
	nonce := types.Nonce(0)
	if debitsWithNonce(r.Op) {
		nonce = s.account.nonce + 1
	}
	switch {
	case r.Kind != recordKind(r.Op):
		return fmt.Errorf("%w: %v of %v", ErrReplay, r.Kind, r.Op)
	case r.Nonce != nonce:
		return fmt.Errorf("%w: nonce %d", ErrReplay, r.Nonce)
	case r.Seq != s.tenant.seq+1:
		return fmt.Errorf("%w: seq %d after %d", ErrReplay, r.Seq, s.tenant.seq)
	case s.account.frozen && (debitsWithNonce(r.Op) || r.Op == event.Capture):
		return fmt.Errorf("%w: the account is frozen", ErrReplay)
	case !s.holds(r):
		return fmt.Errorf("%w: held %v", ErrReplay, r.HeldBalance)
	case !s.balances(r):
		return fmt.Errorf("%w: balances %v and %v", ErrReplay, r.FromBalance, r.ToBalance)
	}
	return nil
}

func (l *Ledger) checkReplayExpiry(r *record.Record) error {
	if place, active := l.holds.rows.Find(r.Hold); active {
		t, seq, held, whole := l.afterHoldEnds(place)
		if whole && r.Tenant == t && r.Seq == seq && r.HeldBalance == held {
			return nil
		}
	}
	return fmt.Errorf("%w: hold %x lapsed, seq %d, held %v", ErrReplay, r.Hold, r.Seq, r.HeldBalance)
}

// holds reports whether r has the right held amount.
func (s *commandRows) holds(r *record.Record) bool {
	rest, whole := s.from.held.Sub(s.hold.amount)
	switch r.Op {
	case event.Hold:
		held, fits := s.from.held.Add(r.Amount)
		return fits && r.HeldBalance == held && !s.from.available().Less(r.Amount)
	case event.Capture:
		return s.holdActive && whole && r.HeldBalance == rest && !s.hold.amount.Less(r.Amount) && s.hold.mayPay(r.To.ID)
	case event.Release:
		return s.holdActive && whole && r.HeldBalance == rest && r.Amount == s.hold.amount
	case event.Transfer, event.Burn:
		return !s.from.available().Less(r.Amount)
	default:
		return true
	}
}

// balances reports whether r has the right balances.
func (s *commandRows) balances(r *record.Record) bool {
	if !hasAsset(r.Op) {
		return true
	}
	if r.Op == event.Hold || r.Op == event.Release {
		return !r.Amount.IsZero()
	}
	paid, fits := s.from.balance.Sub(r.Amount)
	if r.Op == event.Issue {
		paid, fits = s.asset.issued.Add(r.Amount)
	}
	got := s.to.balance
	if r.Op == event.Burn {
		got = s.asset.burned
	}
	got, whole := got.Add(r.Amount)
	return fits && whole && !r.Amount.IsZero() && paid == r.FromBalance && got == r.ToBalance
}

// Fits reports whether there is a row for everything that a counted record needs. A decided
// record fits; a record that is read may come from a node with larger limits.
func (l *Ledger) Fits(r *record.Record) bool {
	if r.Kind != record.HoldOpened && l.tenants.Room() > 0 && l.assets.Room() > 0 && l.accounts.Room() > 1 && l.holdings.Room() > 1 {
		return true
	}
	if r.Kind == record.HoldExpired {
		_, known := l.tenants.Find(r.Tenant)
		return known || l.tenants.Room() > 0
	}
	if r.Kind != recordKind(r.Op) {
		return false // nor has it one
	}
	var s commandRows
	l.loadRows(r, &s)
	accounts, holdings := 0, 0
	if r.Op != event.Issue && !s.knownFrom {
		accounts++
	}
	if r.Op != event.Issue && hasAsset(r.Op) && !s.holdsFrom {
		holdings++
	}
	if credits(r.Op) && !s.knownTo {
		accounts++
	}
	if credits(r.Op) && !s.holdsTo {
		holdings++
	}
	return (s.knownTenant || l.tenants.Room() > 0) && (s.knownAsset || !hasAsset(r.Op) || l.assets.Room() > 0) &&
		accounts <= l.accounts.Room() && holdings <= l.holdings.Room() &&
		(r.Kind != record.HoldOpened || l.holds.rows.Room() > 0 && s.account.holds < types.MaxHolds)
}
