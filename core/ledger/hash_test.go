package ledger

import (
	"fmt"
	"testing"

	"macronode/ci/flip"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

func TestHashForgetsNothing(t *testing.T) {
	id := digest.Name([]byte("ann"))
	tenants := tenant{1, 2, 3, 4, 5}
	flip.Every(t, &tenants, func() words.Hash64 { return tenants.Mix(1) })
	names := named{1, id}
	flip.Every(t, &names, func() words.Hash64 { return names.Mix(1) })
	accounts := account{nonce: 1, holds: 2}.pack()
	flip.Every(t, &accounts, func() words.Hash64 { return accounts.Mix(1) }, "first: frozen, and a place")
	for _, frozen := range []bool{false, true} {
		a := account{1, 2, 3, frozen}
		moved, other := a, a
		moved.first, other.frozen = 4, !frozen
		if a.pack().open() != a || a.pack().Mix(1) != moved.pack().Mix(1) || a.pack().Mix(1) == other.pack().Mix(1) {
			t.Errorf("%+v is %+v, moved %+v, otherwise %+v", a, a.pack().open(), moved.pack().open(), other.pack().open())
		}
	}
	full := account{words.MaxNonce, words.MaxHolds, 1<<31 - 1, true}
	if full.pack().open() != full {
		t.Errorf("%+v is %+v", full, full.pack().open())
	}
	held := hold{words.Units(1), 2, id, pair{3, 4}}
	flip.Every(t, &held, func() words.Hash64 { return held.Mix(1) })
	assets := asset{words.Units(1), words.Units(2), words.Units(3), words.Units(4), 5}
	flip.Every(t, &assets, func() words.Hash64 { return assets.Mix(1) })
	pairs := pair{1, 2}
	flip.Every(t, &pairs, func() words.Hash64 { return pairs.Mix(1) })
	holdings := holding{words.Units(1), words.Units(2), words.Units(3), 4}
	flip.Every(t, &holdings, func() words.Hash64 { return holdings.Mix(1) })

	l := small()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1)
	var not []string
	for _, table := range []string{"tenants", "accounts", "assets", "holdings"} {
		not = append(not, table+".seed: places rows, and is another in every process",
			table+".index: where rows are found, which Check holds", table+".rows: held by their sum",
			table+".marked: of a batch that is not done", table+".mark: of a batch", table+".log: of a batch")
	}
	for _, part := range []string{"seed: places rows", "index: where rows are found", "rows: held by their sum", "free: where no row is"} {
		not = append(not, "holds.rows."+part)
	}
	flip.Every(t, &l, l.Hash, append(not, "limits: configuration", "marked: of a batch", "holds.links: where rows are", "holds.heap: where rows are",
		"holds.marked: of a batch", "holds.log: of a batch")...)
}

// TestPairsAreApart: a holding's key takes all of both places.
func TestPairsAreApart(t *testing.T) {
	seen := map[words.Hash64]pair{}
	for i := range 32 {
		for _, p := range []pair{{1 << i, 0}, {0, 1 << i}} {
			if other, twice := seen[p.Mix(1)]; twice {
				t.Errorf("%v is %v", p, other)
			}
			seen[p.Mix(1)] = p
		}
	}
}

func small() Ledger {
	most := words.MaxSupply()
	return New(Limits{Accounts: 4, Holdings: 8, Assets: 4, Tenants: 2, Holds: 8, TenantAccounts: 4, TenantHoldings: 8, TenantAssets: 4, TenantHolds: 8,
		Amount: most, Day: most, IssueDay: most}, 1)
}

// moves does it, or says that it cannot be done.
func moves(l *Ledger, t words.Tenant, op event.Op, from, to, asset string, n uint64) bool {
	r := record.Record{Kind: record.Moved, Op: op, Tenant: t, Amount: words.Units(n),
		From: words.Name{Text: []byte(from)}, To: words.Name{Text: []byte(to)}, Asset: words.Name{Text: []byte(asset)}}
	if r.Identify(); op != event.Issue {
		_, _, r.Nonce = l.Balance(0, t, r.From.ID, r.Asset.ID)
	}
	why := l.Decide(0, &r)
	if why == event.None {
		l.Apply(0, words.TxID{}, &r)
	}
	return why == event.None
}

// TestNoTwoStatesAreOne: of all short histories, those that leave the same hash leave
// everybody the same.
func TestNoTwoStatesAreOne(t *testing.T) {
	accounts, assets := []string{"ann", "bob"}, []string{"EUR", "ann"}
	facts := func(l *Ledger) (said string) {
		for tenant := words.Tenant(1); tenant <= 2; tenant++ {
			said += fmt.Sprintf("tenant %d at %d:", tenant, l.Seq(tenant))
			for _, asset := range assets {
				issued, burned := l.Supply(tenant, digest.Name([]byte(asset)))
				said += fmt.Sprint(" ", issued, " ", burned)
				for _, account := range accounts {
					has, _, next := l.Balance(0, tenant, digest.Name([]byte(account)), digest.Name([]byte(asset)))
					said += fmt.Sprint(" ", has, " ", next)
				}
			}
		}
		return said
	}
	type move struct {
		tenant          words.Tenant
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
	seen := map[words.Hash64]string{}
	reached := [5]Ledger{small(), small(), small(), small(), small()}
	var walk func(depth int, told string)
	walk = func(depth int, told string) {
		l := &reached[depth]
		said := facts(l)
		if other, ok := seen[l.Hash()]; ok && other != said {
			t.Fatalf("%s leaves\n%s\nand has the hash of\n%s", told, said, other)
		}
		seen[l.Hash()] = said
		if depth == len(reached)-1 {
			return
		}
		for _, m := range all {
			l.CopyTo(&reached[depth+1])
			if moves(&reached[depth+1], m.tenant, m.op, m.from, m.to, m.asset, m.amount) {
				walk(depth+1, told+fmt.Sprint(m))
			}
		}
	}
	walk(0, "")
	if len(seen) < 1000 {
		t.Errorf("%d states were seen", len(seen))
	}
}
