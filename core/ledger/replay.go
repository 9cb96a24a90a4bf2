package ledger

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
)

// ErrFollows says that a movement is not what its predecessors led to.
var ErrFollows = errors.New("ledger: a movement does not follow from those before it")

// Follows says why a movement that is about to be applied cannot have been decided
// here: its nonce, its seq or its balances are not those of what was asked.
// Ceilings are left out: they were the configuration's of then.
func (l *Ledger) Follows(r *record.Record) error {
	s := l.look(r)
	paid, fits := s.from.balance.Minus(r.Amount)
	if r.Op == event.Issue {
		paid, fits = s.asset.issued.Plus(r.Amount)
	}
	got := s.to.balance
	if r.Op == event.Burn {
		got = s.asset.burned
	}
	got, whole := got.Plus(r.Amount)
	switch {
	case r.Op != event.Issue && r.Nonce != s.account.nonce+1, r.Op == event.Issue && r.Nonce != 0:
		return fmt.Errorf("%w: nonce %d", ErrFollows, r.Nonce)
	case r.Seq != s.tenant.seq+1:
		return fmt.Errorf("%w: seq %d after %d", ErrFollows, r.Seq, s.tenant.seq)
	case !fits || !whole || r.Amount.Zero() || paid != r.FromNow || got != r.ToNow:
		return fmt.Errorf("%w: balances %v and %v", ErrFollows, r.FromNow, r.ToNow)
	}
	return nil
}

// Fits reports that there is a row for all that a movement needs. What was decided
// here fits; what is read back may have been decided with larger limits.
func (l *Ledger) Fits(r *record.Record) bool {
	if l.tenants.Room() > 0 && l.assets.Room() > 0 && l.accounts.Room() > 1 && l.holdings.Room() > 1 {
		return true
	}
	s := l.look(r)
	return (s.knownTenant || l.tenants.Room() > 0) && (s.knownAsset || l.assets.Room() > 0) &&
		(r.Op == event.Burn || (s.knownTo || l.accounts.Room() > 0) && (s.holdsTo || l.holdings.Room() > 0))
}
