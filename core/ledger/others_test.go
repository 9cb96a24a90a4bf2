package ledger

import (
	"encoding/binary"
	"reflect"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// Bugs that others shipped, and the rule each of them broke.

// TestBlnk374RefusedChangesNothing: a refund was refused, and made all the same. Every
// refusal there is leaves every bit as it was.
func TestBlnk374RefusedChangesNothing(t *testing.T) {
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
		Amount: words.Units(100), Day: words.Units(50), IssueDay: words.Units(180)}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 90)
	moves(&l, 1, event.Transfer, "ann", "bob", "EUR", 10)

	name := func(s string) words.Name { return words.Name{Text: []byte(s)} }
	refused := map[event.Problem]bool{}
	for _, r := range []record.Record{
		{Op: event.Transfer, From: name("ann"), To: name("bob"), Asset: name("EUR"), Amount: words.Units(10), Nonce: 1},
		{Op: event.Transfer, From: name("ann"), To: name("bob"), Asset: name("EUR"), Amount: words.Units(10), Nonce: 3},
		{Op: event.Transfer, From: name("ann"), To: name("bob"), Asset: name("EUR"), Amount: words.Units(101), Nonce: 2},
		{Op: event.Transfer, From: name("ann"), To: name("bob"), Asset: name("EUR"), Amount: words.Units(81), Nonce: 2},
		{Op: event.Burn, From: name("bob"), Asset: name("EUR"), Amount: words.Units(11), Nonce: 1},
		{Op: event.Burn, From: name("cy"), Asset: name("USD"), Amount: words.Units(1), Nonce: 1},
		{Op: event.Burn, From: name("ann"), Asset: name("EUR"), Amount: words.Units(41), Nonce: 2},
		{Op: event.Issue, To: name("ann"), Asset: name("EUR"), Amount: words.Units(91)},
		{Op: event.Issue, To: name("cy"), Asset: name("EUR"), Amount: words.Units(1)},
		{Op: event.Issue, To: name("ann"), Asset: name("USD"), Amount: words.Units(1)},
		{Op: event.Issue, To: name("ann"), Asset: name("EUR"), Amount: words.Units(1), Tenant: 2},
	} {
		if r.Kind = record.Moved; r.Tenant == 0 {
			r.Tenant = 1
		}
		r.Identify()
		before := deep(&l)
		why := l.Decide(0, &r)
		if refused[why] = true; why == event.None {
			t.Errorf("%v of %v %s is not refused", r.Op, r.Amount, r.Asset.Text)
		}
		if after := deep(&l); !reflect.DeepEqual(before, after) {
			t.Errorf("%v: the ledger was %+v\nand is %+v", why, before, after)
		}
	}
	if len(refused) != 6 { // all but OverSupply, which is beyond what may be issued in a day here
		t.Errorf("refused for %v only", refused)
	}
}

// deep is all of l, in memory of its own.
func deep(l *Ledger) Ledger {
	var all Ledger
	l.CopyTo(&all)
	return all
}

// TestRonWalletNonceRollback: two nonces were reserved, the second was used, the first
// rolled back, and both were good again. Here nothing is reserved: whatever is tried
// in whatever order, an account uses 1, 2, 3 … and none of them twice.
func TestRonWalletNonceRollback(t *testing.T) {
	const tries, kinds = 5, 6 // nonces 1..3, each of an amount that is there and of one that is not
	lives := 1
	for range tries {
		lives *= kinds
	}
	most, used := words.Nonce(0), 0
	var l Ledger
	for life := range lives {
		fresh := small()
		fresh.CopyTo(&l)
		moves(&l, 1, event.Issue, "", "ann", "EUR", 9)
		last := words.Nonce(0)
		for rest, n := life, 0; n < tries; rest, n = rest/kinds, n+1 {
			r := record.Record{Kind: record.Moved, Tenant: 1, Op: event.Transfer, Nonce: words.Nonce(rest%3 + 1), Amount: words.Units(1),
				From: words.Name{Text: []byte("ann")}, To: words.Name{Text: []byte("bob")}, Asset: words.Name{Text: []byte("EUR")}}
			if rest%kinds >= 3 {
				r.Amount = words.Units(100)
			}
			r.Identify()
			asked := r.Nonce
			if why := l.Decide(0, &r); why == event.None {
				l.Apply(0, &r)
				if used++; asked != last+1 {
					t.Fatalf("life %d: nonce %d was used after %d", life, asked, last)
				}
				last = asked
			}
			if _, next := l.Balance(1, r.From.ID, r.Asset.ID); next != last+1 {
				t.Fatalf("life %d: %d is next after %d", life, next, last)
			}
		}
		most = max(most, last)
	}
	if most != 3 || used == 0 {
		t.Errorf("no life used more than %d nonces, all together %d", most, used)
	}
}

// TestRonWalletDecay: a commit took 5 µs with one account and 15 ms with 100,000. Here
// it looks at as many rows with many as with few, and allocates nothing.
func TestRonWalletDecay(t *testing.T) {
	const many = 30_000
	most := words.MaxSupply()
	l := New(Limits{Accounts: many, Holdings: many, Assets: 2, Tenants: 1, TenantAccounts: many, TenantHoldings: many, TenantAssets: 2,
		Amount: most, Day: most, IssueDay: most}, 12345)
	asset := words.Name{ID: digest.Name([]byte("EUR")), Text: []byte("EUR")}
	account := func(i int) words.Name {
		text := binary.AppendUvarint([]byte("account"), uint64(i))
		return words.Name{ID: digest.Name(text), Text: text}
	}
	commit := func(r record.Record) {
		if why := l.Decide(0, &r); why != event.None {
			t.Fatal(why)
		}
		l.Apply(0, &r)
	}
	for i := range many {
		commit(record.Record{Op: event.Issue, Tenant: 1, To: account(i), Asset: asset, Amount: words.Units(1_000_000)})
		if i+1 != 100 && i+1 != many {
			continue
		}
		nonce := words.Nonce(0)
		from, to := account(0), account(1)
		_, nonce = l.Balance(1, from.ID, asset.ID)
		if n := testing.AllocsPerRun(100, func() {
			commit(record.Record{Op: event.Transfer, Tenant: 1, From: from, To: to, Asset: asset, Amount: words.Units(1), Nonce: nonce})
			nonce++
		}); n != 0 {
			t.Errorf("among %d accounts a commit allocates %v times", i+1, n)
		}
		for name, table := range map[string]any{"accounts": &l.accounts, "holdings": &l.holdings} {
			if mean, worst := probes(table); mean > 1.5 || worst > 64 {
				t.Errorf("among %d %s a look-up looks at %.2f places, at worst at %d", i+1, name, mean, worst)
			}
		}
	}
}

// probes is at how many places of the index a look-up of a table's rows looks, on
// average and at worst. A row is found from its tag's home onward.
func probes(of any) (mean float64, worst int) {
	slots := reflect.ValueOf(of).Elem().FieldByName("index").FieldByName("slots")
	rows, sum := 0, 0
	for s := range slots.Len() {
		if slot := slots.Index(s); slot.FieldByName("at").Uint() != 0 {
			looks := (s-int(slot.FieldByName("tag").Uint()))&(slots.Len()-1) + 1
			rows, sum, worst = rows+1, sum+looks, max(worst, looks)
		}
	}
	return float64(sum) / float64(rows), worst
}
