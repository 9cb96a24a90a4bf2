package ledger

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// ErrFollows says that a counted record is not what its predecessors led to.
var ErrFollows = errors.New("ledger: a movement does not follow from those before it")

// Follows says why a counted record that is about to be applied cannot have been decided
// here: its nonce, its seq, its balances or its hold are not those of what was asked.
// Ceilings are left out: they were the configuration's of then. So is the time.
func (l *Ledger) Follows(r *record.Record) error {
	if r.Kind == record.Lapsed {
		return l.followsLapse(r)
	}
	var s sight
	l.look(r, &s)
	nonce := words.Nonce(0)
	if pays(r.Op) {
		nonce = s.account.nonce + 1
	}
	switch {
	case r.Kind != outcome(r.Op):
		return fmt.Errorf("%w: %v of %v", ErrFollows, r.Kind, r.Op)
	case r.Nonce != nonce:
		return fmt.Errorf("%w: nonce %d", ErrFollows, r.Nonce)
	case r.Seq != s.tenant.seq+1:
		return fmt.Errorf("%w: seq %d after %d", ErrFollows, r.Seq, s.tenant.seq)
	case s.account.frozen && (pays(r.Op) || r.Op == event.Capture):
		return fmt.Errorf("%w: the account is frozen", ErrFollows)
	case !s.holds(r):
		return fmt.Errorf("%w: held %v", ErrFollows, r.HeldNow)
	case !s.balances(r):
		return fmt.Errorf("%w: balances %v and %v", ErrFollows, r.FromNow, r.ToNow)
	}
	return nil
}

func (l *Ledger) followsLapse(r *record.Record) error {
	if place, active := l.holds.rows.Find(r.Hold); active {
		t, seq, held, whole := l.without(place)
		if whole && r.Tenant == t && r.Seq == seq && r.HeldNow == held {
			return nil
		}
	}
	return fmt.Errorf("%w: hold %x lapsed, seq %d, held %v", ErrFollows, r.Hold, r.Seq, r.HeldNow)
}

// holds reports that r says right what is held after it.
func (s *sight) holds(r *record.Record) bool {
	rest, whole := s.from.held.Minus(s.hold.amount)
	switch r.Op {
	case event.Hold:
		held, fits := s.from.held.Plus(r.Amount)
		return fits && r.HeldNow == held && !s.from.available().Less(r.Amount)
	case event.Capture:
		return s.active && whole && r.HeldNow == rest && !s.hold.amount.Less(r.Amount) && s.hold.pays(r.To.ID)
	case event.Release:
		return s.active && whole && r.HeldNow == rest && r.Amount == s.hold.amount
	case event.Transfer, event.Burn:
		return !s.from.available().Less(r.Amount)
	default:
		return true
	}
}

// balances reports that r says right what both sides have after it.
func (s *sight) balances(r *record.Record) bool {
	if !valued(r.Op) {
		return true
	}
	if r.Op == event.Hold || r.Op == event.Release {
		return !r.Amount.Zero()
	}
	paid, fits := s.from.balance.Minus(r.Amount)
	if r.Op == event.Issue {
		paid, fits = s.asset.issued.Plus(r.Amount)
	}
	got := s.to.balance
	if r.Op == event.Burn {
		got = s.asset.burned
	}
	got, whole := got.Plus(r.Amount)
	return fits && whole && !r.Amount.Zero() && paid == r.FromNow && got == r.ToNow
}

// Fits reports that there is a row for all that a counted record needs. What was decided
// here fits; what is read back may have been decided with larger limits.
func (l *Ledger) Fits(r *record.Record) bool {
	if r.Kind != record.Held && l.tenants.Room() > 0 && l.assets.Room() > 0 && l.accounts.Room() > 1 && l.holdings.Room() > 1 {
		return true
	}
	if r.Kind == record.Lapsed {
		_, known := l.tenants.Find(r.Tenant)
		return known || l.tenants.Room() > 0
	}
	if r.Kind != outcome(r.Op) {
		return false // nor may it
	}
	var s sight
	l.look(r, &s)
	accounts, holdings := 0, 0
	if r.Op != event.Issue && !s.knownFrom {
		accounts++
	}
	if r.Op != event.Issue && valued(r.Op) && !s.holdsFrom {
		holdings++
	}
	if credits(r.Op) && !s.knownTo {
		accounts++
	}
	if credits(r.Op) && !s.holdsTo {
		holdings++
	}
	return (s.knownTenant || l.tenants.Room() > 0) && (s.knownAsset || !valued(r.Op) || l.assets.Room() > 0) &&
		accounts <= l.accounts.Room() && holdings <= l.holdings.Room() &&
		(r.Kind != record.Held || l.holds.rows.Room() > 0 && s.account.holds < words.MaxHolds)
}
