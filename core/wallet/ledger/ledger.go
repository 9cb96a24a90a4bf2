// Package ledger is a double-entry ledger: accounts, nonces, holds and limits, which are decided and
// changed together because they are checked together.
//
//	Decide:          an operation ──► its outcome, or a problem ─┐
//	ExpireNextHold:  an expired hold ──► its end ────────────────┴──► Apply: the outcome ──► state
//
//	opened ──► active ──► captured, released or expired; its ID is never used again
//
// Issued money of an asset comes from the account issuance:<asset>, the only one with a negative balance.
// Burned money goes to burned:<asset>. So the balances of an asset always sum to 0. A held amount is part of
// the balance of its holder, but not available.
package ledger

import (
	"macronode/core/table"
	"macronode/core/types"
)

// Limits are the numbers of rows, and the limits of amounts.
type Limits struct {
	Accounts, Holdings, Assets, Tenants int
	Holds                               int // active holds
	TenantAccounts, TenantHoldings      int // of one tenant; 0: see share.Left
	TenantAssets, TenantHolds           int
	MaxBatchItems                       int          // of one atomic batch; 0: types.MaxItems
	MaxAmount                           types.Amount // of one operation
	MaxDailyDebit                       types.Amount // debits of one account and asset in a UTC day, and what is held of them
	MaxDailyIssue                       types.Amount // issues of one asset in a UTC day
}

// Ledger has the accounts of all tenants.
//
// Invariants:
//
//	M1  Σ balances of an asset + burned = issued ≤ 2^127-1
//	M2  a nonce advances by one with each debit that uses it, and by nothing else
//	M3  the seq of a tenant advances by one with each movement
//	M4  the counts of a tenant are those of its accounts, holdings, assets and holds (they may exceed a limit
//	    that was lowered)
//	M5  placed is the sum over the places of all rows
//	M6  the held amount of a holding is the sum of its active holds, and at most its balance; that of an asset
//	    is the sum of its holdings
//	M7  the holds of an account are a ring in the order of expiry, of the length that the account counts
//	M8  every active hold is in the heap, below none that expires later
type Ledger struct {
	limits    Limits
	tenants   table.Table[types.Tenant, tenant]
	accounts  table.Table[nameKey, packedAccount]
	assets    table.Table[nameKey, asset]
	holdings  table.Table[holdingKey, holding]
	holds     holds
	placement placement
	savepoint placement // at the savepoint
}

// The changes of one record at most. They give the length of the undo logs.
const (
	accountsChanged = 1
	holdingsChanged = 3 // a capture: what is held, the balance of the payer, that of the beneficiary
)

// New returns an empty ledger.
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

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	logs := table.UndoBytes[tenant](l.batchItems()) + table.UndoBytes[packedAccount](accountsChanged*l.batchItems()) +
		table.UndoBytes[asset](l.batchItems()) + table.UndoBytes[holding](holdingsChanged*l.batchItems())
	return table.Bytes[types.Tenant, tenant](l.Tenants) + table.Bytes[nameKey, packedAccount](l.Accounts) +
		table.Bytes[nameKey, asset](l.Assets) + table.Bytes[holdingKey, holding](l.Holdings) + holdsBytes(l.Holds, l.batchItems()) + logs
}

// Savepoint starts noting changes, of at most one batch. Undo reverts them, Commit keeps them.
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

// Balance returns the balance of an account in an asset, the held part of it, and the next nonce of the
// account. An unknown account has 0 and starts at nonce 1.
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

// DebitLimit returns the largest amount of an asset that the limits of amounts let one operation debit an account. It may be more than
// the account has.
func (l *Ledger) DebitLimit(at types.Time, t types.Tenant, account, asset types.NameHash) types.Amount {
	var v holding
	accountAt, isAccount := l.accounts.Find(nameKey{t, account})
	if assetAt, isAsset := l.assets.Find(nameKey{t, asset}); isAccount && isAsset {
		v, _ = l.holdings.Get(holdingKey{accountAt, assetAt})
	}
	_, held, _ := l.Balance(at, t, account, asset) // without expired holds
	left := l.leftToday(at, &v, held)
	if l.limits.MaxAmount.Less(left) {
		return l.limits.MaxAmount
	}
	return left
}

// A Hold is an active hold. It may have expired without a record yet: see ExpiresAt.
type Hold struct {
	Tenant      types.Tenant
	From, Asset types.NameHash
	To          types.NameHash // the beneficiary; all zeros: none
	Amount      types.Amount
	ExpiresAt   types.Time
}

// Hold returns an active hold.
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

// Frozen reports whether debits of an account are rejected.
func (l *Ledger) Frozen(t types.Tenant, account types.NameHash) bool {
	p, _ := l.accounts.Get(nameKey{t, account})
	return p.unpack().frozen
}

// Supply returns the totals ever issued and burned of an asset.
func (l *Ledger) Supply(t types.Tenant, asset types.NameHash) (issued, burned types.Amount) {
	s, _ := l.assets.Get(nameKey{t, asset})
	return s.issued, s.burned
}

// Held returns the sum of all active holds of an asset.
func (l *Ledger) Held(t types.Tenant, asset types.NameHash) types.Amount {
	s, _ := l.assets.Get(nameKey{t, asset})
	return s.held
}

// Seq returns the number of the last movement of a tenant.
func (l *Ledger) Seq(t types.Tenant) types.Seq {
	row, _ := l.tenants.Get(t)
	return row.seq
}

// Accounts returns the number of accounts, Holds that of active holds, TenantHolds that of one tenant.
func (l *Ledger) Accounts() int { return l.accounts.Len() }
func (l *Ledger) Holds() int    { return l.holds.rows.Len() }
func (l *Ledger) TenantHolds(t types.Tenant) int {
	row, _ := l.tenants.Get(t)
	return int(row.holds)
}

// Hash identifies the ledger.
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
