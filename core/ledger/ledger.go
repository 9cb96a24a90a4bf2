// Package ledger is money: accounts, nonces, holds and ceilings, which are decided and
// changed together because they are checked together.
//
//	Decide: what is asked ──► the outcome, or why not ─┐
//	Lapse:  a hold whose time is over ──► its end ─────┴──► Apply: the outcome ──► state
//
//	Held ──► active ──► Captured · Released · Lapsed ──► gone, and its id is never used again
//
// It is double entry. Money of an asset comes from its account issuance:<asset>,
// the only one that may go below nothing, and ends in burned:<asset>; so all
// balances of an asset add up to nothing, always. What is held is still its holder's
// balance, but not available.
package ledger

import (
	"macronode/core/table"
	"macronode/core/words"
)

// Limits are how much a ledger takes, and the ceilings on what moves.
type Limits struct {
	Accounts, Holdings, Assets, Tenants int
	Holds                               int // active ones
	TenantAccounts, TenantHoldings      int // of one tenant
	TenantAssets, TenantHolds           int
	Items                               int          // of one batch that may be taken back; 0: as many as there may be
	Amount                              words.Amount // one operation
	Day                                 words.Amount // leaves one account of one asset in a UTC day
	IssueDay                            words.Amount // is issued of one asset in a UTC day
}

// Ledger holds every tenant's money.
//
// Invariants:
//
//	M1  Σ balances of an asset + burned = issued ≤ 2^127-1
//	M2  a nonce advances by one with each debit of its account that says one, and by
//	    nothing else
//	M3  a tenant's seq advances by one with each counted record
//	M4  a tenant's counts are those of its accounts, holdings, assets and holds (limits
//	    are for what comes: they may have been larger when these came)
//	M5  placed is the sum of what stands where
//	M6  what is held of a holding is the sum of its active holds, and no more than its
//	    balance; of an asset, the sum of its holdings'
//	M7  an account's holds are a ring in the order of their ends, as long as it counts
//	M8  every active hold is in the heap, below none that ends later
type Ledger struct {
	limits   Limits
	tenants  table.Table[words.Tenant, tenant]
	accounts table.Table[named, packed]
	assets   table.Table[named, asset]
	holdings table.Table[pair, holding]
	holds    holds
	placed   places
	marked   places // as it was at the Mark
}

// What one record changes, at most: so long are the logs of a batch.
const (
	accountsChanged = 2
	holdingsChanged = 2
)

// New is an empty ledger.
func New(l Limits, seed words.Hash64) Ledger {
	n := Ledger{
		limits:   l,
		tenants:  table.New[words.Tenant, tenant](l.Tenants, seed),
		accounts: table.New[named, packed](l.Accounts, seed),
		assets:   table.New[named, asset](l.Assets, seed),
		holdings: table.New[pair, holding](l.Holdings, seed),
		holds:    newHolds(l.Holds, l.items(), seed),
	}
	n.tenants.Log(l.items())
	n.accounts.Log(accountsChanged * l.items())
	n.assets.Log(l.items())
	n.holdings.Log(holdingsChanged * l.items())
	return n
}

func (l *Limits) items() int {
	if l.Items == 0 {
		return words.MaxItems
	}
	return l.Items
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	logs := table.LogBytes[tenant](l.items()) + table.LogBytes[packed](accountsChanged*l.items()) +
		table.LogBytes[asset](l.items()) + table.LogBytes[holding](holdingsChanged*l.items())
	return table.Bytes[words.Tenant, tenant](l.Tenants) + table.Bytes[named, packed](l.Accounts) +
		table.Bytes[named, asset](l.Assets) + table.Bytes[pair, holding](l.Holdings) + holdsBytes(l.Holds, l.items()) + logs
}

// Mark begins to note what changes, up to a batch of it; Undo takes it all back, Keep
// keeps it.
func (l *Ledger) Mark() {
	l.tenants.Mark()
	l.accounts.Mark()
	l.assets.Mark()
	l.holdings.Mark()
	l.holds.mark()
	l.marked = l.placed
}

func (l *Ledger) Undo() {
	l.tenants.Undo()
	l.accounts.Undo()
	l.assets.Undo()
	l.holdings.Undo()
	l.holds.undo()
	l.placed = l.marked
}

func (l *Ledger) Keep() {
	l.tenants.Keep()
	l.accounts.Keep()
	l.assets.Keep()
	l.holdings.Keep()
	l.holds.keep()
}

// Balance is what an account has of an asset, what of it is held now, and the nonce that
// it must use next. An account that nobody has heard of has nothing and begins at 1.
func (l *Ledger) Balance(now words.Time, t words.Tenant, account, asset words.ID) (has, held words.Amount, next words.Nonce) {
	at, ok := l.accounts.Find(named{t, account})
	if !ok {
		return has, held, 1
	}
	_, p := l.accounts.Row(at)
	a := p.open()
	if assetAt, ok := l.assets.Find(named{t, asset}); ok {
		v, _ := l.holdings.Get(pair{at, assetAt})
		has, held = v.balance, v.held
		for at := a.first; at > 0; at = l.holds.next(at, a.first) {
			_, over := l.holds.rows.Row(at - 1)
			if over.until > now {
				break
			}
			if over.of.asset == assetAt {
				held, _ = held.Minus(over.amount) // M6: ≤ held
			}
		}
	}
	return has, held, a.nonce + 1
}

// A Hold is an active one. Its time may be over all the same: see Until.
type Hold struct {
	Tenant      words.Tenant
	From, Asset words.ID
	To          words.ID // the beneficiary; all zeros: there is none
	Amount      words.Amount
	Until       words.Time
}

// Hold finds an active hold.
func (l *Ledger) Hold(id words.TxID) (h Hold, ok bool) {
	place, ok := l.holds.rows.Find(id)
	if !ok {
		return h, false
	}
	_, v := l.holds.rows.Row(place)
	owner, _ := l.accounts.Row(v.of.account)
	kind, _ := l.assets.Row(v.of.asset)
	return Hold{owner.tenant, owner.id, kind.id, v.to, v.amount, v.until}, true
}

// Frozen reports that nothing may leave an account.
func (l *Ledger) Frozen(t words.Tenant, account words.ID) bool {
	p, _ := l.accounts.Get(named{t, account})
	return p.open().frozen
}

// Supply is what was ever issued and burned of an asset.
func (l *Ledger) Supply(t words.Tenant, asset words.ID) (issued, burned words.Amount) {
	s, _ := l.assets.Get(named{t, asset})
	return s.issued, s.burned
}

// Held is what of an asset is held, by all active holds.
func (l *Ledger) Held(t words.Tenant, asset words.ID) words.Amount {
	s, _ := l.assets.Get(named{t, asset})
	return s.held
}

// Seq is the last of a tenant's movements.
func (l *Ledger) Seq(t words.Tenant) words.Seq {
	row, _ := l.tenants.Get(t)
	return row.seq
}

// Accounts is how many accounts there are, Holds how many holds are active, TenantHolds
// how many of one tenant.
func (l *Ledger) Accounts() int { return l.accounts.Len() }
func (l *Ledger) Holds() int    { return l.holds.rows.Len() }
func (l *Ledger) TenantHolds(t words.Tenant) int {
	row, _ := l.tenants.Get(t)
	return int(row.holds)
}

// Hash identifies everybody's money.
func (l *Ledger) Hash() words.Hash64 {
	h := words.Hash64(0).Mix(uint64(l.tenants.Hash())).Mix(uint64(l.accounts.Hash()))
	h = h.Mix(uint64(l.assets.Hash())).Mix(uint64(l.holdings.Hash())).Mix(uint64(l.holds.rows.Hash()))
	return h.Mix(uint64(l.placed.accounts)).Mix(uint64(l.placed.assets))
}

// CopyTo overwrites dst, reusing its memory.
func (l *Ledger) CopyTo(dst *Ledger) {
	dst.limits, dst.placed = l.limits, l.placed
	l.tenants.CopyTo(&dst.tenants)
	l.accounts.CopyTo(&dst.accounts)
	l.assets.CopyTo(&dst.assets)
	l.holdings.CopyTo(&dst.holdings)
	l.holds.copyTo(&dst.holds)
}
