package ledger

import (
	"math"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/share"
	"macronode/core/types"
)

// commandRows has the rows that the decision of one operation reads.
type commandRows struct {
	tenant      tenant
	asset       asset
	account     account // of From
	from, to    holding
	hold        hold // of From and Asset
	knownTenant bool
	knownAsset  bool
	knownFrom   bool // the account
	knownTo     bool // the account
	holdsFrom   bool // the asset, already
	holdsTo     bool
	holdActive  bool // the hold
}

// debitsWithNonce reports whether an operation uses a nonce of From, credits whether it credits To.
func debitsWithNonce(op event.Op) bool {
	return op == event.Transfer || op == event.Burn || op == event.Hold
}
func credits(op event.Op) bool {
	return op == event.Issue || op == event.Transfer || op == event.Capture
}

// hasAsset reports whether an operation has an asset.
func hasAsset(op event.Op) bool { return op != event.Freeze && op != event.Unfreeze }

// recordKind returns the kind of the record of an operation.
func recordKind(op event.Op) record.Kind {
	switch op {
	case event.Hold:
		return record.HoldOpened
	case event.Capture:
		return record.HoldCaptured
	case event.Release:
		return record.HoldReleased
	case event.Freeze, event.Unfreeze:
		return record.FreezeChanged
	case event.Batch:
		return record.Batched
	default:
		return record.Posted
	}
}

// loadRows fills the empty s.
func (l *Ledger) loadRows(r *record.Record, s *commandRows) {
	s.tenant, s.knownTenant = l.tenants.Get(r.Tenant)
	var of holdingKey
	if hasAsset(r.Op) {
		if of.asset, s.knownAsset = l.assets.Find(nameKey{r.Tenant, r.Asset.ID}); s.knownAsset {
			_, s.asset = l.assets.Row(of.asset)
		}
	}
	if r.Op != event.Issue {
		if of.account, s.knownFrom = l.accounts.Find(nameKey{r.Tenant, r.From.ID}); s.knownFrom {
			_, p := l.accounts.Row(of.account)
			s.account = p.unpack()
			if s.knownAsset {
				s.from, s.holdsFrom = l.holdings.Get(of)
			}
		}
	}
	if credits(r.Op) {
		at, ok := l.accounts.Find(nameKey{r.Tenant, r.To.ID})
		if s.knownTo = ok; ok && s.knownAsset {
			s.to, s.holdsTo = l.holdings.Get(holdingKey{at, of.asset})
		}
	}
	if r.Op == event.Capture || r.Op == event.Release {
		if place, ok := l.holds.rows.Find(r.Hold); ok {
			_, s.hold = l.holds.rows.Row(place)
			s.holdActive = s.knownFrom && s.knownAsset && s.hold.holding == of
		}
	}
}

// Decide completes r, which has the fields of an operation, with its outcome, or returns a problem; then
// r.Nonce is the expected nonce. The order of the checks is part of the API, because it decides which
// rejection an idempotency key keeps: nonce, amount, accounts and their holds, funds, limits, room. The
// caller has ended the expired holds of From; an expired hold that was not ended can no longer be captured,
// but still counts as held.
func (l *Ledger) Decide(at types.Time, r *record.Record) event.Problem {
	r.Kind = recordKind(r.Op)
	var s commandRows
	l.loadRows(r, &s)
	if debitsWithNonce(r.Op) {
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
	if l.limits.MaxAmount.Less(r.Amount) {
		return event.AmountLimitExceeded
	}
	if why := checkAccess(at, r, &s); why != event.None {
		return why
	}
	if why := l.debit(at, r, &s); why != event.None {
		return why
	}
	if why := l.checkRoom(r, &s); why != event.None {
		return why
	}
	switch {
	case credits(r.Op):
		r.ToBalance, _ = s.to.balance.Add(r.Amount) // M1: ≤ issued, which fits
	case r.Op == event.Burn:
		r.ToBalance, _ = s.asset.burned.Add(r.Amount) // M1: ≤ issued, which fits
	}
	r.Seq = s.tenant.seq + 1
	return event.None
}

// checkAccess returns why the account or the hold does not permit the operation.
func checkAccess(at types.Time, r *record.Record, s *commandRows) event.Problem {
	switch r.Op {
	case event.Transfer, event.Burn, event.Hold, event.Capture:
		if s.account.frozen {
			return event.AccountFrozen
		}
	case event.Issue, event.Release, event.Freeze, event.Unfreeze, event.Batch: // no debit
	}
	switch r.Op {
	case event.Hold:
		if r.ExpiresAt <= at || r.ExpiresAt > at.Add(types.MaxHoldDuration) {
			return event.BadExpiry
		}
	case event.Capture, event.Release:
		if !s.holdActive || s.hold.expiresAt <= at {
			return event.HoldNotActive
		}
		if r.Op == event.Capture && !s.hold.mayPay(r.To.ID) {
			return event.NotBeneficiary
		}
	default:
	}
	return event.None
}

// mayPay reports whether a hold may be captured to an account.
func (v *hold) mayPay(to types.NameHash) bool { return v.to == types.NameHash{} || v.to == to }

// debit computes the debit of From, of the issuance account or of a hold, or opens or releases a hold.
func (l *Ledger) debit(at types.Time, r *record.Record, s *commandRows) event.Problem {
	switch r.Op {
	case event.Issue:
		issued, fits := s.asset.issued.Add(r.Amount)
		if !fits || types.MaxSupply().Less(issued) {
			return event.SupplyLimitExceeded
		}
		r.FromBalance = issued
		return addToDay(at, r, s.asset.issuedToday, s.asset.day, l.limits.MaxDailyIssue)
	case event.Transfer, event.Burn, event.Hold:
		if s.from.available().Less(r.Amount) {
			return event.InsufficientFunds
		}
		if l.leftToday(at, &s.from, s.from.held).Less(r.Amount) {
			return event.DailyLimitExceeded
		}
	case event.Capture:
		if s.hold.amount.Less(r.Amount) {
			return event.HoldAmountExceeded
		}
	case event.Release:
		r.Amount = s.hold.amount
	default: // a freeze has no amount
		return event.None
	}
	s.setHeld(r)
	if r.Op == event.Hold || r.Op == event.Release {
		return event.None
	}
	rest, enough := s.from.balance.Sub(r.Amount)
	types.Assert(enough, "M6: has less than is available")
	r.FromBalance = rest
	return addToDay(at, r, s.from.debitedToday, s.from.day, noLimit()) // a capture was checked as a hold
}

// leftToday returns what the daily limit leaves of a holding to debit or to hold. What is held counts as if it were debited today, so that
// each capture is within the limit.
func (l *Ledger) leftToday(at types.Time, v *holding, held types.Amount) types.Amount {
	left, isLeft := l.limits.MaxDailyDebit.Sub(held)
	if isLeft && v.day == at.Day() {
		left, isLeft = left.Sub(v.debitedToday)
	}
	if !isLeft { // the limit was lowered
		return types.Amount{}
	}
	return left
}

// setHeld computes the held amount after a hold was opened or ended.
func (s *commandRows) setHeld(r *record.Record) {
	whole := true
	switch r.Op {
	case event.Hold:
		r.HeldBalance, whole = s.from.held.Add(r.Amount)
	case event.Capture, event.Release:
		r.HeldBalance, whole = s.from.held.Sub(s.hold.amount)
	default:
	}
	types.Assert(whole, "M6: holds another sum than its holds")
}

// noLimit returns the largest amount.
func noLimit() types.Amount { return types.Amount{Hi: math.MaxUint64, Lo: math.MaxUint64} }

// addToDay adds the amount to the total of the day.
func addToDay(at types.Time, r *record.Record, spent types.Amount, day uint32, ceiling types.Amount) event.Problem {
	if day != at.Day() {
		spent = types.Amount{}
	}
	spent, fits := spent.Add(r.Amount)
	if !fits || ceiling.Less(spent) {
		return event.DailyLimitExceeded
	}
	r.DebitedToday = spent
	return event.None
}

// checkRoom returns a problem if a row that the outcome needs does not fit.
func (l *Ledger) checkRoom(r *record.Record, s *commandRows) event.Problem {
	t, freezes := &s.tenant, !hasAsset(r.Op)
	if !s.knownTenant && l.tenants.Room() == 0 {
		return event.TenantsFull
	}
	if !freezes && !s.knownAsset {
		if why := checkRow(l.limits.TenantAssets, t.assets, l.assets.Room(), event.TenantAssetsFull, event.AssetsFull); why != event.None {
			return why
		}
	}
	if credits(r.Op) && !s.knownTo || freezes && !s.knownFrom {
		if why := checkRow(l.limits.TenantAccounts, t.accounts, l.accounts.Room(), event.TenantAccountsFull, event.AccountsFull); why != event.None {
			return why
		}
	}
	if credits(r.Op) && !s.holdsTo {
		if why := checkRow(l.limits.TenantHoldings, t.holdings, l.holdings.Room(), event.TenantHoldingsFull, event.HoldingsFull); why != event.None {
			return why
		}
	}
	if r.Op != event.Hold {
		return event.None
	}
	if s.account.holds >= types.MaxHolds {
		return event.AccountHoldsFull
	}
	return checkRow(l.limits.TenantHolds, t.holds, l.holds.rows.Room(), event.TenantHoldsFull, event.HoldsFull)
}

// checkRow returns the problem if a tenant that has some rows gets no other one: of the table if that is full, or of the tenant.
func checkRow(limit int, has uint32, room int, ofTenant, ofAll event.Problem) event.Problem {
	switch {
	case room == 0:
		return ofAll
	case share.Left(limit, int(has), room) <= 0:
		return ofTenant
	}
	return event.None
}

// HasExpiredHold reports whether an account has an expired hold.
func (l *Ledger) HasExpiredHold(at types.Time, t types.Tenant, account types.NameHash) bool {
	_, due := l.expiredHold(at, t, account)
	return due
}

func (l *Ledger) expiredHold(at types.Time, t types.Tenant, account types.NameHash) (place uint32, due bool) {
	p, _ := l.accounts.Get(nameKey{t, account})
	first := p.unpack().firstHold
	if first == 0 {
		return 0, false
	}
	_, v := l.holds.rows.Row(first - 1)
	return first - 1, v.expiresAt <= at
}

// ExpireHoldOf fills r with the end of the expired hold of an account that expired first.
func (l *Ledger) ExpireHoldOf(at types.Time, t types.Tenant, account types.NameHash, r *record.Record) {
	place, due := l.expiredHold(at, t, account)
	types.Assert(due, "ledger: ends a hold before its time")
	l.expireHold(place, r)
}

// ExpireNextHold is ExpireHoldOf for all accounts; false if no hold has expired.
func (l *Ledger) ExpireNextHold(at types.Time, r *record.Record) bool {
	if len(l.holds.heap) == 0 || l.holds.heap[0].at > at {
		return false
	}
	l.expireHold(l.holds.heap[0].place, r)
	return true
}

func (l *Ledger) expireHold(place uint32, r *record.Record) {
	id, _ := l.holds.rows.Row(place)
	t, seq, held, whole := l.afterHoldEnds(place)
	types.Assert(whole, "M6: holds another sum than its holds")
	*r = record.Record{Kind: record.HoldExpired, Tenant: t, Seq: seq, Hold: id, HeldBalance: held}
}

// afterHoldEnds returns the held amount without a hold, and the seq of its end.
func (l *Ledger) afterHoldEnds(place uint32) (of types.Tenant, seq types.Seq, held types.Amount, whole bool) {
	_, v := l.holds.rows.Row(place)
	owner, _ := l.accounts.Row(v.holding.account)
	t, _ := l.tenants.Get(owner.tenant)
	from, _ := l.holdings.Get(v.holding)
	held, whole = from.held.Sub(v.amount)
	return owner.tenant, t.seq + 1, held, whole
}
