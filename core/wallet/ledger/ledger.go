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
	"macronode/core/types"
)

// Limits are how much a ledger takes, and the ceilings on what moves.
type Limits struct {
	Accounts, Holdings, Assets, Tenants int
	Holds                               int // active ones
	TenantAccounts, TenantHoldings      int // of one tenant
	TenantAssets, TenantHolds           int
	MaxBatchItems                       int          // of one batch that may be taken back; 0: as many as there may be
	MaxAmount                           types.Amount // one operation
	MaxDailyDebit                       types.Amount // leaves one account of one asset in a UTC day
	MaxDailyIssue                       types.Amount // is issued of one asset in a UTC day
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
	limits    Limits
	tenants   table.Table[types.Tenant, tenant]
	accounts  table.Table[nameKey, packedAccount]
	assets    table.Table[nameKey, asset]
	holdings  table.Table[holdingKey, holding]
	holds     holds
	placement placement
	savepoint placement // as it was at the Mark
}

// What one record changes, at most: so long are the logs of a batch.
const (
	accountsChanged = 2
	holdingsChanged = 2
)

// New is an empty ledger.
func New(l Limits, seed types.Hash64) Ledger {
	n := Ledger{
		limits:   l,
		tenants:  table.New[types.Tenant, tenant](l.Tenants, seed),
		accounts: table.New[nameKey, packedAccount](l.Accounts, seed),
		assets:   table.New[nameKey, asset](l.Assets, seed),
		holdings: table.New[holdingKey, holding](l.Holdings, seed),
		holds:    newHolds(l.Holds, l.batchItems(), seed),
	}
	n.tenants.ReserveUndo(l.batchItems())
	n.accounts.ReserveUndo(accountsChanged * l.batchItems())
	n.assets.ReserveUndo(l.batchItems())
	n.holdings.ReserveUndo(holdingsChanged * l.batchItems())
	return n
}

func (l *Limits) batchItems() int {
	if l.MaxBatchItems == 0 {
		return types.MaxItems
	}
	return l.MaxBatchItems
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	logs := table.UndoBytes[tenant](l.batchItems()) + table.UndoBytes[packedAccount](accountsChanged*l.batchItems()) +
		table.UndoBytes[asset](l.batchItems()) + table.UndoBytes[holding](holdingsChanged*l.batchItems())
	return table.Bytes[types.Tenant, tenant](l.Tenants) + table.Bytes[nameKey, packedAccount](l.Accounts) +
		table.Bytes[nameKey, asset](l.Assets) + table.Bytes[holdingKey, holding](l.Holdings) + holdsBytes(l.Holds, l.batchItems()) + logs
}

// Savepoint begins to note what changes, up to a batch of it; Undo takes it all back, Keep
// keeps it.
func (l *Ledger) Savepoint() {
	l.tenants.Savepoint()
	l.accounts.Savepoint()
	l.assets.Savepoint()
	l.holdings.Savepoint()
	l.holds.savepoint()
	l.savepoint = l.placement
}

func (l *Ledger) Undo() {
	l.tenants.Undo()
	l.accounts.Undo()
	l.assets.Undo()
	l.holdings.Undo()
	l.holds.undo()
	l.placement = l.savepoint
}

func (l *Ledger) Commit() {
	l.tenants.Commit()
	l.accounts.Commit()
	l.assets.Commit()
	l.holdings.Commit()
	l.holds.commit()
}

// Balance is what an account has of an asset, what of it is held now, and the nonce that
// it must use next. An account that nobody has heard of has nothing and begins at 1.
func (l *Ledger) Balance(now types.Time, t types.Tenant, account, asset types.NameHash) (has, held types.Amount, next types.Nonce) {
	at, ok := l.accounts.Find(nameKey{t, account})
	if !ok {
		return has, held, 1
	}
	_, p := l.accounts.Row(at)
	a := p.unpack()
	if assetAt, ok := l.assets.Find(nameKey{t, asset}); ok {
		v, _ := l.holdings.Get(holdingKey{at, assetAt})
		has, held = v.balance, v.held
		for at := a.firstHold; at > 0; at = l.holds.next(at, a.firstHold) {
			_, over := l.holds.rows.Row(at - 1)
			if over.expiresAt > now {
				break
			}
			if over.holding.asset == assetAt {
				held, _ = held.Sub(over.amount) // M6: ≤ held
			}
		}
	}
	return has, held, a.nonce + 1
}

// A Hold is an active one. Its time may be over all the same: see Until.
type Hold struct {
	Tenant      types.Tenant
	From, Asset types.NameHash
	To          types.NameHash // the beneficiary; all zeros: there is none
	Amount      types.Amount
	ExpiresAt   types.Time
}

// Hold finds an active hold.
func (l *Ledger) Hold(id types.TxID) (h Hold, ok bool) {
	place, ok := l.holds.rows.Find(id)
	if !ok {
		return h, false
	}
	_, v := l.holds.rows.Row(place)
	owner, _ := l.accounts.Row(v.holding.account)
	kind, _ := l.assets.Row(v.holding.asset)
	return Hold{owner.tenant, owner.id, kind.id, v.to, v.amount, v.expiresAt}, true
}

// Frozen reports that nothing may leave an account.
func (l *Ledger) Frozen(t types.Tenant, account types.NameHash) bool {
	p, _ := l.accounts.Get(nameKey{t, account})
	return p.unpack().frozen
}

// Supply is what was ever issued and burned of an asset.
func (l *Ledger) Supply(t types.Tenant, asset types.NameHash) (issued, burned types.Amount) {
	s, _ := l.assets.Get(nameKey{t, asset})
	return s.issued, s.burned
}

// Held is what of an asset is held, by all active holds.
func (l *Ledger) Held(t types.Tenant, asset types.NameHash) types.Amount {
	s, _ := l.assets.Get(nameKey{t, asset})
	return s.held
}

// Seq is the last of a tenant's movements.
func (l *Ledger) Seq(t types.Tenant) types.Seq {
	row, _ := l.tenants.Get(t)
	return row.seq
}

// Accounts is how many accounts there are, Holds how many holds are active, TenantHolds
// how many of one tenant.
func (l *Ledger) Accounts() int { return l.accounts.Len() }
func (l *Ledger) Holds() int    { return l.holds.rows.Len() }
func (l *Ledger) TenantHolds(t types.Tenant) int {
	row, _ := l.tenants.Get(t)
	return int(row.holds)
}

// Hash identifies everybody's money.
func (l *Ledger) Hash() types.Hash64 {
	h := types.Hash64(0).Mix(uint64(l.tenants.Hash())).Mix(uint64(l.accounts.Hash()))
	h = h.Mix(uint64(l.assets.Hash())).Mix(uint64(l.holdings.Hash())).Mix(uint64(l.holds.rows.Hash()))
	return h.Mix(uint64(l.placement.accounts)).Mix(uint64(l.placement.assets))
}

// CopyTo overwrites dst, reusing its memory.
func (l *Ledger) CopyTo(dst *Ledger) {
	dst.limits, dst.placement = l.limits, l.placement
	l.tenants.CopyTo(&dst.tenants)
	l.accounts.CopyTo(&dst.accounts)
	l.assets.CopyTo(&dst.assets)
	l.holdings.CopyTo(&dst.holdings)
	l.holds.copyTo(&dst.holds)
}
