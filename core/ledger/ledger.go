// Package ledger is money: accounts, nonces and ceilings, which are decided and
// changed together because they are checked together.
//
//	Decide: what is asked ──► the outcome, or why not      Apply: the outcome ──► state
//
// It is double entry. Money of an asset comes from its account issuance:<asset>,
// the only one that may go below nothing, and ends in burned:<asset>; so all
// balances of an asset add up to nothing, always.
package ledger

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/table"
	"macronode/core/words"
)

// Limits are how much a ledger takes, and the ceilings on what moves.
type Limits struct {
	Accounts, Holdings, Assets, Tenants int
	TenantAccounts, TenantHoldings      int // of one tenant
	TenantAssets                        int
	Amount                              words.Amount // one operation
	Day                                 words.Amount // leaves one account of one asset in a UTC day
	IssueDay                            words.Amount // is issued of one asset in a UTC day
}

// Ledger holds every tenant's money.
//
// Invariants:
//
//	M1  Σ balances of an asset + burned = issued ≤ 2^127-1
//	M2  a nonce advances by one with each debit of its account, and by nothing else
//	M3  a tenant's seq advances by one with each movement
//	M4  a tenant's counts are those of its accounts, holdings and assets (limits are for
//	    what comes: they may have been larger when these came)
//	M5  placed is the sum of what stands where
type Ledger struct {
	limits   Limits
	tenants  table.Table[words.Tenant, tenant]
	accounts table.Table[named, account]
	assets   table.Table[named, asset]
	holdings table.Table[pair, holding]
	placed   places
}

// New is an empty ledger.
func New(l Limits, seed words.Hash64) Ledger {
	return Ledger{
		limits:   l,
		tenants:  table.New[words.Tenant, tenant](l.Tenants, seed),
		accounts: table.New[named, account](l.Accounts, seed),
		assets:   table.New[named, asset](l.Assets, seed),
		holdings: table.New[pair, holding](l.Holdings, seed),
	}
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	return table.Bytes[words.Tenant, tenant](l.Tenants) + table.Bytes[named, account](l.Accounts) +
		table.Bytes[named, asset](l.Assets) + table.Bytes[pair, holding](l.Holdings)
}

// sight is what a decision looks at: the rows of one request.
type sight struct {
	tenant      tenant
	asset       asset
	account     account // From's
	from, to    holding
	knownTenant bool
	knownAsset  bool
	knownTo     bool // the account
	holdsTo     bool // the asset, already
}

func (l *Ledger) look(r *record.Record) (s sight) {
	s.tenant, s.knownTenant = l.tenants.Get(r.Tenant)
	assetAt, knownAsset := l.assets.Find(named{r.Tenant, r.Asset.ID})
	if s.knownAsset = knownAsset; knownAsset {
		_, s.asset = l.assets.Row(assetAt)
	}
	if r.Op != event.Issue {
		if at, ok := l.accounts.Find(named{r.Tenant, r.From.ID}); ok {
			_, s.account = l.accounts.Row(at)
			if knownAsset {
				s.from, _ = l.holdings.Get(pair{at, assetAt})
			}
		}
	}
	if r.Op != event.Burn {
		if at, ok := l.accounts.Find(named{r.Tenant, r.To.ID}); ok {
			s.knownTo = true
			if knownAsset {
				s.to, s.holdsTo = l.holdings.Get(pair{at, assetAt})
			}
		}
	}
	return s
}

// Decide fills r, which carries what is asked, with its outcome, or says why not:
// then r.Nonce is the one that the account must use next. The order of the checks
// decides what a key remembers, so it is the contract's: nonce, amount, funds,
// ceilings, room.
func (l *Ledger) Decide(at words.Time, r *record.Record) event.Problem {
	s := l.look(r)
	if r.Op != event.Issue {
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
	if why := l.debit(at, r, &s); why != event.None {
		return why
	}
	if why := l.room(r, &s); why != event.None {
		return why
	}
	if r.Op == event.Burn {
		r.ToNow, _ = s.asset.burned.Plus(r.Amount) // M1: ≤ issued, which fits
	} else {
		r.ToNow, _ = s.to.balance.Plus(r.Amount) // M1: ≤ issued, which fits
	}
	r.Seq = s.tenant.seq + 1
	return event.None
}

// debit takes the amount from its holder, or from what may yet be issued.
func (l *Ledger) debit(at words.Time, r *record.Record, s *sight) event.Problem {
	spent, day, ceiling := s.from.spent, s.from.day, l.limits.Day
	if r.Op == event.Issue {
		issued, fits := s.asset.issued.Plus(r.Amount)
		if !fits || words.MaxSupply().Less(issued) {
			return event.OverSupply
		}
		r.FromNow = issued
		spent, day, ceiling = s.asset.spent, s.asset.day, l.limits.IssueDay
	} else {
		rest, enough := s.from.balance.Minus(r.Amount)
		if !enough {
			return event.InsufficientFunds
		}
		r.FromNow = rest
	}
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
		!s.knownAsset && (l.assets.Room() == 0 || int(t.assets) >= l.limits.TenantAssets):
		return event.TooMany
	case r.Op == event.Burn:
		return event.None
	case !s.knownTo && (l.accounts.Room() == 0 || int(t.accounts) >= l.limits.TenantAccounts),
		!s.holdsTo && (l.holdings.Room() == 0 || int(t.holdings) >= l.limits.TenantHoldings):
		return event.TooMany
	}
	return event.None
}

// Apply makes a movement so. It decides nothing.
func (l *Ledger) Apply(at words.Time, r *record.Record) {
	t, _ := l.tenants.Get(r.Tenant)
	t.seq = r.Seq
	assetKey := named{r.Tenant, r.Asset.ID}
	assetAt, known := l.assets.Find(assetKey)
	if !known {
		assetAt = l.assets.Put(assetKey, asset{})
		l.placed.assets += assetKey.at(assetAt)
		t.assets++
	}
	_, kind := l.assets.Row(assetAt)
	switch r.Op {
	case event.Issue:
		kind.issued, kind.spent, kind.day = r.FromNow, r.Spent, at.Day()
		l.assets.Set(assetAt, kind)
	case event.Burn:
		kind.burned = r.ToNow
		l.assets.Set(assetAt, kind)
	case event.Transfer: // of what there is
	}
	if r.Op != event.Issue {
		from := l.account(r.Tenant, r.From.ID, &t)
		l.accounts.Set(from, account{r.Nonce})
		l.holding(pair{from, assetAt}, holding{r.FromNow, r.Spent, at.Day()}, &t)
	}
	if r.Op != event.Burn {
		k := pair{l.account(r.Tenant, r.To.ID, &t), assetAt}
		v, _ := l.holdings.Get(k)
		v.balance = r.ToNow
		l.holding(k, v, &t)
	}
	l.tenants.Put(r.Tenant, t)
}

// account is the place of an account's row, which is made if there is none.
func (l *Ledger) account(of words.Tenant, id words.ID, t *tenant) uint32 {
	k := named{of, id}
	at, known := l.accounts.Find(k)
	if !known {
		at = l.accounts.Put(k, account{})
		l.placed.accounts += k.at(at)
		t.accounts++
	}
	return at
}

// holding sets a holding's row, which is made if there is none.
func (l *Ledger) holding(k pair, v holding, t *tenant) {
	before := l.holdings.Len()
	l.holdings.Put(k, v)
	t.holdings += uint32(l.holdings.Len() - before)
}

// Balance is what an account has of an asset, and the nonce that it must use next.
// An account that nobody has heard of has nothing and begins at 1.
func (l *Ledger) Balance(t words.Tenant, account, asset words.ID) (has words.Amount, next words.Nonce) {
	at, ok := l.accounts.Find(named{t, account})
	if !ok {
		return words.Amount{}, 1
	}
	_, a := l.accounts.Row(at)
	if assetAt, ok := l.assets.Find(named{t, asset}); ok {
		v, _ := l.holdings.Get(pair{at, assetAt})
		has = v.balance
	}
	return has, a.nonce + 1
}

// Supply is what was ever issued and burned of an asset.
func (l *Ledger) Supply(t words.Tenant, asset words.ID) (issued, burned words.Amount) {
	s, _ := l.assets.Get(named{t, asset})
	return s.issued, s.burned
}

// Seq is the last of a tenant's movements.
func (l *Ledger) Seq(t words.Tenant) words.Seq {
	row, _ := l.tenants.Get(t)
	return row.seq
}

// Accounts is how many accounts there are.
func (l *Ledger) Accounts() int { return l.accounts.Len() }

// Hash identifies everybody's money.
func (l *Ledger) Hash() words.Hash64 {
	h := words.Hash64(0).Mix(uint64(l.tenants.Hash())).Mix(uint64(l.accounts.Hash()))
	h = h.Mix(uint64(l.assets.Hash())).Mix(uint64(l.holdings.Hash()))
	return h.Mix(uint64(l.placed.accounts)).Mix(uint64(l.placed.assets))
}

// CopyTo overwrites dst, reusing its memory.
func (l *Ledger) CopyTo(dst *Ledger) {
	dst.limits, dst.placed = l.limits, l.placed
	l.tenants.CopyTo(&dst.tenants)
	l.accounts.CopyTo(&dst.accounts)
	l.assets.CopyTo(&dst.assets)
	l.holdings.CopyTo(&dst.holdings)
}

// Check walks everything and returns the first invariant that does not hold.
func (l *Ledger) Check() error {
	if err := errors.Join(l.tenants.Check(), l.accounts.Check(), l.assets.Check(), l.holdings.Check()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	held := make([]words.Amount, l.assets.Len())
	counts := make([]tenant, l.tenants.Len())
	var nobody tenant
	count := func(t words.Tenant, add func(*tenant)) {
		if at, ok := l.tenants.Find(t); ok {
			add(&counts[at])
			return
		}
		add(&nobody)
	}
	for i := range l.holdings.Len() {
		k, v := l.holdings.Row(uint32(i))
		sum, ok := held[k.asset].Plus(v.balance)
		if held[k.asset] = sum; !ok {
			return errors.New("M1: balances overflow")
		}
		owner, _ := l.accounts.Row(k.account)
		count(owner.tenant, func(t *tenant) { t.holdings++ })
	}
	var placed places
	for i := range l.assets.Len() {
		k, s := l.assets.Row(uint32(i))
		placed.assets += k.at(uint32(i))
		sum, ok := held[i].Plus(s.burned)
		if !ok || sum != s.issued || words.MaxSupply().Less(s.issued) {
			return fmt.Errorf("M1: tenant %d: issued %v, held and burned %v", k.tenant, s.issued, sum)
		}
		count(k.tenant, func(t *tenant) { t.assets++ })
	}
	for i := range l.accounts.Len() {
		k, _ := l.accounts.Row(uint32(i))
		placed.accounts += k.at(uint32(i))
		count(k.tenant, func(t *tenant) { t.accounts++ })
	}
	if nobody != (tenant{}) {
		return fmt.Errorf("M4: nobody has %+v", nobody)
	}
	if placed != l.placed {
		return fmt.Errorf("M5: placed is %x, has %x", placed, l.placed)
	}
	return l.checkCounts(counts)
}

func (l *Ledger) checkCounts(counts []tenant) error {
	for i, want := range counts {
		id, t := l.tenants.Row(uint32(i))
		want.seq = t.seq
		if t != want {
			return fmt.Errorf("M4: tenant %d counts %+v, has %+v", id, t, want)
		}
	}
	return nil
}
