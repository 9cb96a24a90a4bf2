package ledger

import (
	"fmt"
	"testing"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// TestHashTellsHistoriesApart: two histories that leave the same balances but differ in what may
// come next have different hashes.
func TestHashTellsHistoriesApart(t *testing.T) {
	const tomorrow = types.Time(86_400_000)
	type move struct {
		at       types.Time
		from, to string
		amount   uint64
	}
	name := func(text string) types.Name { return types.Name{Text: []byte(text)} }
	play := func(l *Ledger, m move) bool {
		r := record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, Amount: types.MinorUnits(m.amount), From: name(m.from), To: name(m.to), Asset: name("EUR")}
		if m.from == "" {
			r.Op = event.Issue
		}
		if r.Identify(); m.from != "" {
			_, _, r.Nonce = l.Balance(m.at, 1, r.From.ID, r.Asset.ID)
		}
		done := l.Decide(m.at, &r) == event.None
		if done {
			l.Apply(m.at, types.TxID{}, &r)
		}
		return done
	}
	shown := func(l *Ledger) (all string) {
		for _, account := range []string{"ann", "bob"} {
			r := record.Record{To: name(account), Asset: name("EUR")}
			r.Identify()
			has, held, next := l.Balance(0, 1, r.To.ID, r.Asset.ID)
			issued, burned := l.Supply(1, r.Asset.ID)
			all += fmt.Sprint(account, has, held, next, issued, burned, l.Seq(1), " ")
		}
		return all
	}
	for what, c := range map[string]struct {
		one, other []move
		next       move // rejected by one, accepted by the other
	}{
		"what left today": {
			[]move{{0, "", "ann", 20}, {0, "ann", "bob", 4}, {0, "bob", "ann", 4}},
			[]move{{0, "", "ann", 20}, {0, "ann", "bob", 3}, {0, "bob", "ann", 3}}, move{0, "ann", "bob", 7}},
		"on which day it left": {
			[]move{{0, "", "ann", 20}, {tomorrow, "ann", "bob", 4}, {tomorrow, "bob", "ann", 4}},
			[]move{{0, "", "ann", 20}, {0, "ann", "bob", 4}, {0, "bob", "ann", 4}}, move{tomorrow, "ann", "bob", 7}},
	} {
		most := types.MinorUnits(99)
		var all [2]Ledger
		for i, moves := range [][]move{c.one, c.other} {
			all[i] = New(Limits{Accounts: 4, Holdings: 4, Assets: 1, Tenants: 1, Holds: 1, TenantAccounts: 4, TenantHoldings: 4, TenantAssets: 1, TenantHolds: 1,
				MaxAmount: most, MaxDailyDebit: types.MinorUnits(10), MaxDailyIssue: most}, 1)
			for _, m := range moves {
				if !play(&all[i], m) {
					t.Fatalf("%s: %+v is refused", what, m)
				}
			}
		}
		if one, other := shown(&all[0]), shown(&all[1]); one != other {
			t.Fatalf("%s: %s, and %s", what, one, other)
		}
		if all[0].Hash() == all[1].Hash() {
			t.Errorf("%s: one hash", what)
		}
		if play(&all[0], c.next) || !play(&all[1], c.next) {
			t.Errorf("%s: %+v is taken by both, or by none", what, c.next)
		}
	}
}
