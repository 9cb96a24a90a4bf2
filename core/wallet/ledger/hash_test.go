package ledger

import (
	"fmt"
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

func TestHashCoversEveryField(t *testing.T) {
	id := digest.Name([]byte("ann"))
	tenants := tenant{1, 2, 3, 4, 5}
	hashcoverage.Every(t, &tenants, func() types.Hash64 { return tenants.HashInto(1) })
	names := nameKey{1, id}
	hashcoverage.Every(t, &names, func() types.Hash64 { return names.HashInto(1) })
	accounts := account{nonce: 1, holds: 2}.pack()
	hashcoverage.Every(t, &accounts, func() types.Hash64 { return accounts.HashInto(1) }, "first: holds the frozen flag and a position")
	for _, frozen := range []bool{false, true} {
		a := account{1, 2, 3, frozen}
		moved, other := a, a
		moved.firstHold, other.frozen = 4, !frozen
		if a.pack().unpack() != a || a.pack().HashInto(1) != moved.pack().HashInto(1) || a.pack().HashInto(1) == other.pack().HashInto(1) {
			t.Errorf("%+v is %+v, moved %+v, otherwise %+v", a, a.pack().unpack(), moved.pack().unpack(), other.pack().unpack())
		}
	}
	full := account{types.MaxNonce, types.MaxHolds, 1<<31 - 1, true}
	if full.pack().unpack() != full {
		t.Errorf("%+v is %+v", full, full.pack().unpack())
	}
	held := hold{types.MinorUnits(1), 2, id, holdingKey{3, 4}}
	hashcoverage.Every(t, &held, func() types.Hash64 { return held.HashInto(1) })
	assets := asset{types.MinorUnits(1), types.MinorUnits(2), types.MinorUnits(3), types.MinorUnits(4), 5}
	hashcoverage.Every(t, &assets, func() types.Hash64 { return assets.HashInto(1) })
	pairs := holdingKey{1, 2}
	hashcoverage.Every(t, &pairs, func() types.Hash64 { return pairs.HashInto(1) })
	holdings := holding{types.MinorUnits(1), types.MinorUnits(2), types.MinorUnits(3), 4}
	hashcoverage.Every(t, &holdings, func() types.Hash64 { return holdings.HashInto(1) })

	l := small()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1)
	var not []string
	for _, table := range []string{"tenants", "accounts", "assets", "holdings"} {
		not = append(not, table+".seed: places rows, and is another in every process",
			table+".index: where rows are found, which Check holds", table+".rows: held by their sum",
			table+".inSavepoint: of an open batch", table+".savepointRows: of a batch", table+".undoLog: of a batch")
	}
	for _, part := range []string{"seed: places rows", "index: where rows are found", "rows: held by their sum", "free: where no row is"} {
		not = append(not, "holds.rows."+part)
	}
	hashcoverage.Every(t, &l, l.Hash, append(not, "limits: configuration", "savepoint: of a batch", "holds.links: where rows are", "holds.heap: where rows are",
		"holds.inSavepoint: of a batch", "holds.undoLog: of a batch")...)
}

// TestHoldingKeyHashesBothPlaces: the hash of a holding's key depends on both places.
func TestHoldingKeyHashesBothPlaces(t *testing.T) {
	seen := map[types.Hash64]holdingKey{}
	for i := range 32 {
		for _, p := range []holdingKey{{1 << i, 0}, {0, 1 << i}} {
			if other, twice := seen[p.HashInto(1)]; twice {
				t.Errorf("%v is %v", p, other)
			}
			seen[p.HashInto(1)] = p
		}
	}
}

func small() Ledger {
	most := types.MaxSupply()
	return New(Limits{Accounts: 4, Holdings: 8, Assets: 4, Tenants: 2, Holds: 8, TenantAccounts: 4, TenantHoldings: 8, TenantAssets: 4, TenantHolds: 8,
		MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most}, 1)
}

// moves decides and applies an operation, or returns false.
func moves(l *Ledger, t types.Tenant, op event.Op, from, to, asset string, n uint64) bool {
	r := record.Record{Kind: record.Posted, Op: op, Tenant: t, Amount: types.MinorUnits(n),
		From: types.Name{Text: []byte(from)}, To: types.Name{Text: []byte(to)}, Asset: types.Name{Text: []byte(asset)}}
	if r.Identify(); op != event.Issue {
		_, _, r.Nonce = l.Balance(0, t, r.From.ID, r.Asset.ID)
	}
	why := l.Decide(0, &r)
	if why == event.None {
		l.Apply(0, types.TxID{}, &r)
	}
	return why == event.None
}

// TestHashTellsShortHistoriesApart: short histories with the same hash have the same state.
func TestHashTellsShortHistoriesApart(t *testing.T) {
	accounts, assets := []string{"ann", "bob"}, []string{"EUR", "ann"}
	facts := func(l *Ledger) (after string) {
		for tenant := types.Tenant(1); tenant <= 2; tenant++ {
			after += fmt.Sprintf("tenant %d at %d:", tenant, l.Seq(tenant))
			for _, asset := range assets {
				issued, burned := l.Supply(tenant, digest.Name([]byte(asset)))
				after += fmt.Sprint(" ", issued, " ", burned)
				for _, account := range accounts {
					has, _, next := l.Balance(0, tenant, digest.Name([]byte(account)), digest.Name([]byte(asset)))
					after += fmt.Sprint(" ", has, " ", next)
				}
			}
		}
		return after
	}
	type move struct {
		tenant          types.Tenant
		op              event.Op
		from, to, asset string
		amount          uint64
	}
	all := []move{{1, event.Burn, "ann", "", "EUR", 1}, {1, event.Transfer, "ann", "bob", "EUR", 1}, {1, event.Transfer, "bob", "ann", "EUR", 1},
		{2, event.Issue, "", "ann", "EUR", 1}, {2, event.Issue, "", "bob", "EUR", 1}}
	for _, account := range accounts {
		for _, asset := range assets {
			all = append(all, move{1, event.Issue, "", account, asset, 1}, move{1, event.Issue, "", account, asset, 2})
		}
	}
	seen := map[types.Hash64]string{}
	reached := [5]Ledger{small(), small(), small(), small(), small()}
	var walk func(depth int, replied string)
	walk = func(depth int, replied string) {
		l := &reached[depth]
		after := facts(l)
		if other, ok := seen[l.Hash()]; ok && other != after {
			t.Fatalf("%s leaves\n%s\nand has the hash of\n%s", replied, after, other)
		}
		seen[l.Hash()] = after
		if depth == len(reached)-1 {
			return
		}
		for _, m := range all {
			l.CopyTo(&reached[depth+1])
			if moves(&reached[depth+1], m.tenant, m.op, m.from, m.to, m.asset, m.amount) {
				walk(depth+1, replied+fmt.Sprint(m))
			}
		}
	}
	walk(0, "")
	if len(seen) < 1000 {
		t.Errorf("%d states were seen", len(seen))
	}
}
