package ledger

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// sight is what a decision looks at: the rows of one request.
type sight struct {
	tenant      tenant
	asset       asset
	account     account // From's
	from, to    holding
	hold        hold // of From and Asset
	knownTenant bool
	knownAsset  bool
	knownFrom   bool // the account
	knownTo     bool // the account
	holdsFrom   bool // the asset, already
	holdsTo     bool
	active      bool // the hold
}

// pays reports that an operation uses a nonce of From, credits that To gets something.
func pays(op event.Op) bool { return op == event.Transfer || op == event.Burn || op == event.Hold }
func credits(op event.Op) bool {
	return op == event.Issue || op == event.Transfer || op == event.Capture
}

// valued reports that an operation is about an asset.
func valued(op event.Op) bool { return op != event.Freeze && op != event.Unfreeze }

// outcome is the kind of record that an operation leaves.
func outcome(op event.Op) record.Kind {
	switch op {
	case event.Hold:
		return record.Held
	case event.Capture:
		return record.Captured
	case event.Release:
		return record.Released
	case event.Freeze, event.Unfreeze:
		return record.Frozen
	case event.Batch:
		return record.Batched
	default:
		return record.Moved
	}
}

// look fills s, which is empty.
func (l *Ledger) look(r *record.Record, s *sight) {
	s.tenant, s.knownTenant = l.tenants.Get(r.Tenant)
	var of pair
	if valued(r.Op) {
		if of.asset, s.knownAsset = l.assets.Find(named{r.Tenant, r.Asset.ID}); s.knownAsset {
			_, s.asset = l.assets.Row(of.asset)
		}
	}
	if r.Op != event.Issue {
		if of.account, s.knownFrom = l.accounts.Find(named{r.Tenant, r.From.ID}); s.knownFrom {
			_, p := l.accounts.Row(of.account)
			s.account = p.open()
			if s.knownAsset {
				s.from, s.holdsFrom = l.holdings.Get(of)
			}
		}
	}
	if credits(r.Op) {
		at, ok := l.accounts.Find(named{r.Tenant, r.To.ID})
		if s.knownTo = ok; ok && s.knownAsset {
			s.to, s.holdsTo = l.holdings.Get(pair{at, of.asset})
		}
	}
	if r.Op == event.Capture || r.Op == event.Release {
		if place, ok := l.holds.rows.Find(r.Hold); ok {
			_, s.hold = l.holds.rows.Row(place)
			s.active = s.knownFrom && s.knownAsset && s.hold.of == of
		}
	}
}

// Decide fills r, which carries what is asked, with its outcome, or says why not:
// then r.Nonce is the one that the account must use next. The order of the checks
// decides what a key remembers, so it is the contract's: nonce, amount, accounts and
// their holds, funds, ceilings, room. The holds of From whose time is over have been
// ended before: one that was not can no longer be captured, but is still held.
func (l *Ledger) Decide(at words.Time, r *record.Record) event.Problem {
	r.Kind = outcome(r.Op)
	var s sight
	l.look(r, &s)
	if pays(r.Op) {
		asked, next := r.Nonce, s.account.nonce+1
		switch {
		case asked > next:
			r.Nonce = next
			return event.NonceAhead
		case asked < next:
			r.Nonce = next
			return event.NonceUsed
		}
	}
	if l.limits.Amount.Less(r.Amount) {
		return event.OverAmount
	}
	if why := allowed(at, r, &s); why != event.None {
		return why
	}
	if why := l.debit(at, r, &s); why != event.None {
		return why
	}
	if why := l.room(r, &s); why != event.None {
		return why
	}
	switch {
	case credits(r.Op):
		r.ToNow, _ = s.to.balance.Plus(r.Amount) // M1: ≤ issued, which fits
	case r.Op == event.Burn:
		r.ToNow, _ = s.asset.burned.Plus(r.Amount) // M1: ≤ issued, which fits
	}
	r.Seq = s.tenant.seq + 1
	return event.None
}

// allowed says what is in the way of the account, or of the hold.
func allowed(at words.Time, r *record.Record, s *sight) event.Problem {
	switch r.Op {
	case event.Transfer, event.Burn, event.Hold, event.Capture:
		if s.account.frozen {
			return event.AccountFrozen
		}
	case event.Issue, event.Release, event.Freeze, event.Unfreeze, event.Batch: // nothing leaves
	}
	switch r.Op {
	case event.Hold:
		if r.Until <= at || r.Until > at.Plus(words.HoldFor) {
			return event.BadExpiry
		}
	case event.Capture, event.Release:
		if !s.active || s.hold.until <= at {
			return event.HoldState
		}
		if r.Op == event.Capture && !s.hold.pays(r.To.ID) {
			return event.NotBeneficiary
		}
	default:
	}
	return event.None
}

// pays reports that to may have it.
func (v *hold) pays(to words.ID) bool { return v.to == words.ID{} || v.to == to }

// debit takes the amount from its holder, from what may yet be issued, or from the hold
// that was opened for it; or it holds it, or lets it go.
func (l *Ledger) debit(at words.Time, r *record.Record, s *sight) event.Problem {
	switch r.Op {
	case event.Issue:
		issued, fits := s.asset.issued.Plus(r.Amount)
		if !fits || words.MaxSupply().Less(issued) {
			return event.OverSupply
		}
		r.FromNow = issued
		return spend(at, r, s.asset.spent, s.asset.day, l.limits.IssueDay)
	case event.Transfer, event.Burn, event.Hold:
		if s.from.available().Less(r.Amount) {
			return event.InsufficientFunds
		}
	case event.Capture:
		if s.hold.amount.Less(r.Amount) {
			return event.OverHold
		}
	case event.Release:
		r.Amount = s.hold.amount
	default: // a freeze moves nothing
		return event.None
	}
	s.keep(r)
	if r.Op == event.Hold || r.Op == event.Release {
		return event.None
	}
	rest, enough := s.from.balance.Minus(r.Amount)
	words.Assert(enough, "M6: has less than is available")
	r.FromNow = rest
	return spend(at, r, s.from.spent, s.from.day, l.limits.Day)
}

// keep says what is held after a hold was opened, or ended.
func (s *sight) keep(r *record.Record) {
	whole := true
	switch r.Op {
	case event.Hold:
		r.HeldNow, whole = s.from.held.Plus(r.Amount)
	case event.Capture, event.Release:
		r.HeldNow, whole = s.from.held.Minus(s.hold.amount)
	default:
	}
	words.Assert(whole, "M6: holds another sum than its holds")
}

// spend adds the amount to what went before on the same day.
func spend(at words.Time, r *record.Record, spent words.Amount, day uint32, ceiling words.Amount) event.Problem {
	if day != at.Day() {
		spent = words.Amount{}
	}
	spent, fits := spent.Plus(r.Amount)
	if !fits || ceiling.Less(spent) {
		return event.OverDay
	}
	r.Spent = spent
	return event.None
}

// room sees that every row that the outcome needs can be had.
func (l *Ledger) room(r *record.Record, s *sight) event.Problem {
	t := &s.tenant
	switch {
	case !s.knownTenant && l.tenants.Room() == 0,
		valued(r.Op) && !s.knownAsset && (l.assets.Room() == 0 || int(t.assets) >= l.limits.TenantAssets),
		credits(r.Op) && !s.knownTo && (l.accounts.Room() == 0 || int(t.accounts) >= l.limits.TenantAccounts),
		credits(r.Op) && !s.holdsTo && (l.holdings.Room() == 0 || int(t.holdings) >= l.limits.TenantHoldings):
		return event.TooMany
	}
	switch r.Op {
	case event.Hold:
		if s.account.holds >= words.MaxHolds || l.holds.rows.Room() == 0 || int(t.holds) >= l.limits.TenantHolds {
			return event.TooMany
		}
	case event.Freeze, event.Unfreeze:
		if !s.knownFrom && (l.accounts.Room() == 0 || int(t.accounts) >= l.limits.TenantAccounts) {
			return event.TooMany
		}
	default:
	}
	return event.None
}

// Due reports that an account has a hold whose time is over.
func (l *Ledger) Due(at words.Time, t words.Tenant, account words.ID) bool {
	_, due := l.due(at, t, account)
	return due
}

func (l *Ledger) due(at words.Time, t words.Tenant, account words.ID) (place uint32, due bool) {
	p, _ := l.accounts.Get(named{t, account})
	first := p.open().first
	if first == 0 {
		return 0, false
	}
	_, v := l.holds.rows.Row(first - 1)
	return first - 1, v.until <= at
}

// Lapse fills r with the end of a hold of an account that is due: the one that ended
// first.
func (l *Ledger) Lapse(at words.Time, t words.Tenant, account words.ID, r *record.Record) {
	place, due := l.due(at, t, account)
	words.Assert(due, "ledger: ends a hold before its time")
	l.lapse(place, r)
}

// Overdue is Lapse for any account; false when no hold's time is over.
func (l *Ledger) Overdue(at words.Time, r *record.Record) bool {
	if len(l.holds.heap) == 0 || l.holds.heap[0].until > at {
		return false
	}
	l.lapse(l.holds.heap[0].place, r)
	return true
}

func (l *Ledger) lapse(place uint32, r *record.Record) {
	id, _ := l.holds.rows.Row(place)
	t, seq, held, whole := l.without(place)
	words.Assert(whole, "M6: holds another sum than its holds")
	*r = record.Record{Kind: record.Lapsed, Tenant: t, Seq: seq, Hold: id, HeldNow: held}
}

// without is what is held once a hold is gone, and the place that its end has among its
// tenant's movements.
func (l *Ledger) without(place uint32) (of words.Tenant, seq words.Seq, held words.Amount, whole bool) {
	_, v := l.holds.rows.Row(place)
	owner, _ := l.accounts.Row(v.of.account)
	t, _ := l.tenants.Get(owner.tenant)
	from, _ := l.holdings.Get(v.of)
	held, whole = from.held.Minus(v.amount)
	return owner.tenant, t.seq + 1, held, whole
}
