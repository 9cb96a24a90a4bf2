package ledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/table"
	"macronode/core/words"
)

// TestRowsAreHot: an account is half a cache line, a holding and a hold are one, so
// that none of them ever takes one more than it must.
func TestRowsAreHot(t *testing.T) {
	for what, sizes := range map[string][2]int64{
		"account": {table.Bytes[named, packed](2) - table.Bytes[named, packed](1), 32},
		"holding": {table.Bytes[pair, holding](2) - table.Bytes[pair, holding](1), 64},
		"hold":    {table.Bytes[words.TxID, hold](2) - table.Bytes[words.TxID, hold](1), 64},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("the row of a %s takes %d bytes, not %d", what, sizes[0], sizes[1])
		}
	}
}

// TestBytes: each limit has its price, and all of it is said.
func TestBytes(t *testing.T) {
	base := Limits{Accounts: 4, Holdings: 4, Assets: 4, Tenants: 4, Holds: 4}
	for what, c := range map[string]struct {
		limit func(*Limits) *int
		each  int64 // and its slots
	}{
		"accounts": {func(l *Limits) *int { return &l.Accounts }, 32},
		"holdings": {func(l *Limits) *int { return &l.Holdings }, 64},
		"assets":   {func(l *Limits) *int { return &l.Assets }, 96},
		"tenants":  {func(l *Limits) *int { return &l.Tenants }, 32},
		"holds": {func(l *Limits) *int { return &l.Holds }, 64 + int64(unsafe.Sizeof(link{})) + int64(unsafe.Sizeof(end{})) +
			int64(unsafe.Sizeof(uint32(0)))},
	} {
		more := base
		*c.limit(&more) += 1020 // to 1024: 2048 slots for the 8 of 4
		if got, want := Bytes(more)-Bytes(base), 1020*c.each+(2048-8)*8; got != want {
			t.Errorf("1020 more %s take %d bytes, want %d", what, got, want)
		}
	}
	l := New(base, 1)
	logs := int64(cap(l.holds.log)) * int64(unsafe.Sizeof(change{}))
	if none := Bytes(Limits{}); none < logs || none > 1<<20 || cap(l.holds.log) != words.MaxItems {
		t.Errorf("a ledger without room takes %d bytes, %d of them for holds to be taken back", none, logs)
	}
}

// TestNothingIsAllocated: whatever is decided, applied, ended or taken back.
func TestNothingIsAllocated(t *testing.T) {
	l := small()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1_000_000)
	moves(&l, 1, event.Issue, "", "bob", "EUR", 1)
	ann, bob, eur, nonce, at := called("ann"), called("bob"), called("EUR"), words.Nonce(0), words.Time(0)
	var r record.Record
	apply := func(id words.TxID, wish record.Record) {
		r = wish
		r.Tenant, r.From, r.Asset = 1, ann, eur
		if r.Op <= event.Hold {
			nonce++
			r.Nonce = nonce
		}
		if why := l.Decide(at, &r); why != event.None || !l.Fits(&r) || l.Follows(&r) != nil {
			t.Fatal(why)
		}
		l.Apply(at, id, &r)
	}
	if n := testing.AllocsPerRun(100, func() {
		at++
		apply(words.TxID{}, record.Record{Op: event.Transfer, To: bob, Amount: words.Units(1)})
		apply(words.TxID{1}, record.Record{Op: event.Hold, Amount: words.Units(5), Until: at + 1})
		apply(words.TxID{2}, record.Record{Op: event.Hold, Amount: words.Units(5), Until: at + 1})
		l.Mark()
		was := nonce
		apply(words.TxID{3}, record.Record{Op: event.Hold, Amount: words.Units(5), Until: at + 2})
		apply(words.TxID{}, record.Record{Op: event.Capture, To: bob, Amount: words.Units(1), Hold: words.TxID{1}})
		l.Undo()
		nonce = was
		l.Mark()
		apply(words.TxID{}, record.Record{Op: event.Release, Hold: words.TxID{1}})
		l.Keep()
		apply(words.TxID{}, record.Record{Op: event.Freeze})
		apply(words.TxID{}, record.Record{Op: event.Unfreeze})
		at++
		if !l.Due(at, 1, ann.ID) {
			t.Fatal("nothing is due")
		}
		l.Lapse(at, 1, ann.ID, &r)
		if _, held, _ := l.Balance(at, 1, ann.ID, eur.ID); !held.Zero() || !l.Overdue(at, &r) {
			t.Fatalf("%v is held", held)
		}
		l.Apply(at, words.TxID{}, &r)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestHoldsOfOne: an account has at most so many active holds, in whatever order they
// end, and one that is gone makes room.
func TestHoldsOfOne(t *testing.T) {
	const over = words.MaxHolds + 1
	most := words.MaxSupply()
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: over, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
		TenantHolds: over, Amount: most, Day: most, IssueDay: most}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", over)
	id := func(i int) (id words.TxID) {
		binary.BigEndian.PutUint64(id[8:], uint64(i+1))
		return id
	}
	for i := range words.MaxHolds {
		opens(t, &l, id(i), "ann", 1, words.Nonce(i+1), words.Time(1+(i*389)%words.MaxHolds)) // 389 is prime: all of them once
	}
	r := record.Record{Op: event.Hold, Tenant: 1, From: called("ann"), Asset: called("EUR"), Amount: words.Units(1), Nonce: over, Until: 1}
	if why := l.Decide(0, &r); why != event.TooMany || l.Fits(&r) || l.Check() != nil {
		t.Fatalf("one more than may be: %v, %v", why, l.Check())
	}
	full := dump(&l)
	fresh := New(l.limits, 2)
	if err := load(&fresh, full); err != nil || fresh.Hash() != l.Hash() {
		t.Fatal(err)
	}
	again := full[len(full)-1]
	again.b[0]++ // another id
	if err := fresh.Load(again.kind, again.b); !errors.Is(err, ErrRow) {
		t.Errorf("loaded one more than may be: %v", err)
	}
	for at := range words.Time(words.MaxHolds) {
		var end record.Record
		if l.Due(at, 1, called("ann").ID) || l.Overdue(at, &end) {
			t.Fatalf("at %d one is due", at)
		}
		l.Lapse(at+1, 1, called("ann").ID, &end)
		if h, _ := l.Hold(end.Hold); h.Until != at+1 {
			t.Fatalf("at %d: %+v", at+1, h)
		}
		if l.Apply(at+1, words.TxID{}, &end); at%100 == 0 && l.Check() != nil {
			t.Fatal(l.Check())
		}
	}
	if r.Until = 5000; l.Holds() != 0 || l.Decide(2000, &r) != event.None {
		t.Errorf("%d are left", l.Holds())
	}
}

// TestLongestBatch: as many items as a batch may have, of those that change most, are
// taken back; one more is a bug of ours.
func TestLongestBatch(t *testing.T) {
	most := words.MaxSupply()
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: 1, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
		TenantHolds: 1, Amount: most, Day: most, IssueDay: most}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1000)
	moves(&l, 1, event.Issue, "", "bob", "EUR", 1)
	was, nonce := l.Hash(), words.Nonce(1)
	one := func(i int) {
		r := record.Record{Op: event.Hold, Tenant: 1, From: called("ann"), Asset: called("EUR"), Amount: words.Units(1), Nonce: nonce, Until: 9}
		if i%2 == 1 {
			nonce++
			r = record.Record{Op: event.Capture, Tenant: 1, From: called("ann"), To: called("bob"), Asset: called("EUR"), Amount: words.Units(1), Hold: words.TxID{1}}
		}
		if why := l.Decide(0, &r); why != event.None {
			t.Fatal(why)
		}
		l.Apply(0, words.TxID{1}, &r)
	}
	for range 2 {
		nonce = 1
		l.Mark()
		for i := range words.MaxItems {
			one(i)
		}
		l.Undo()
		if l.Hash() != was || l.Check() != nil {
			t.Fatalf("%x is not %x; %v", l.Hash(), was, l.Check())
		}
	}
	tooLong := func(what string) {
		t.Helper()
		defer func() {
			if _, ok := recover().(words.Broken); !ok {
				t.Errorf("a batch that is too long went on, of %s", what)
			}
		}()
		for i := range words.MaxItems + 2 {
			one(i)
		}
	}
	nonce = 1
	l.Mark()
	tooLong("rows that were there")
	l = New(l.limits, 1)
	nonce = 1
	l.Mark()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1000)
	tooLong("holds alone: no row was there")
}

// TestHoldsAreInOrder: whichever come, go and come back, each account's are in the order
// of their ends, and the first of all is found.
func TestHoldsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHolds(40, words.MaxItems, 1)
		firsts, then := [3]uint32{}, [3]uint32{}
		var live, was []words.TxID
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "many") {
					id := words.TxID{rapid.Byte().Draw(t, "id"), rapid.Byte().Draw(t, "id")}
					if _, known := h.rows.Find(id); known || h.rows.Room() == 0 {
						continue
					}
					of := rapid.Uint32Range(0, 2).Draw(t, "of")
					until := words.Time(rapid.IntRange(1, 30).Draw(t, "until"))
					firsts[of] = h.put(id, hold{until: until, of: pair{account: of}}, firsts[of])
					live = append(live, id)
				}
			},
			"drop": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("none")
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				place, _ := h.rows.Find(live[i])
				_, v := h.rows.Row(place)
				firsts[v.of.account] = h.drop(place, firsts[v.of.account])
				live = slices.Delete(slices.Clone(live), i, i+1)
			},
			"mark": func(*rapid.T) {
				h.keep()
				h.mark()
				was, then = slices.Clone(live), firsts
			},
			"undo": func(t *rapid.T) {
				if !h.marked {
					t.Skip("not marked")
				}
				h.undo()
				live, firsts = was, then
			},
			"": func(t *rapid.T) {
				if err := h.check(); err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(live, func(a, b words.TxID) int {
					if ends := cmp.Compare(ended(&h, a), ended(&h, b)); ends != 0 {
						return ends
					}
					return bytes.Compare(a[:], b[:])
				})
				if top := len(h.heap) > 0; top != (len(live) > 0) || top && h.ids(h.heap[0].place) != live[0] {
					t.Fatalf("%v is the first of %x", h.heap, live)
				}
				rings := [3][]words.TxID{}
				for _, id := range live {
					place, _ := h.rows.Find(id)
					_, v := h.rows.Row(place)
					rings[v.of.account] = append(rings[v.of.account], id)
				}
				for of, first := range firsts {
					var ring []words.TxID
					for at := first; at > 0; at = h.next(at, first) {
						ring = append(ring, h.ids(at-1))
					}
					if !slices.Equal(ring, rings[of]) {
						t.Fatalf("account %d has %x, want %x", of, ring, rings[of])
					}
				}
			},
		})
	})
}

func (h *holds) ids(place uint32) words.TxID { id, _ := h.rows.Row(place); return id }

func ended(h *holds, id words.TxID) words.Time {
	place, _ := h.rows.Find(id)
	_, v := h.rows.Row(place)
	return v.until
}

// TestFollowsSees: records whose sums are right, and that nobody decided here.
func TestFollowsSees(t *testing.T) {
	l := small()
	for _, who := range []string{"ann", "bob", "eve"} {
		moves(&l, 1, event.Issue, "", who, "EUR", 10)
	}
	opens(t, &l, words.TxID{1}, "ann", 6, 1, 9)
	opens(t, &l, words.TxID{2}, "eve", 6, 1, 9)
	r := record.Record{Op: event.Hold, Tenant: 1, From: called("bob"), To: called("ann"), Asset: called("EUR"), Amount: words.Units(6), Nonce: 1, Until: 9}
	l.Decide(0, &r)
	l.Apply(0, words.TxID{3}, &r)
	freezes(t, &l, "eve")
	n := words.Units
	for what, r := range map[string]record.Record{
		"out of a frozen account":      {Kind: record.Moved, Op: event.Transfer, From: called("eve"), To: called("bob"), Amount: n(1), Nonce: 2, FromNow: n(9), ToNow: n(11)},
		"a hold of a frozen account":   {Kind: record.Held, Op: event.Hold, From: called("eve"), Amount: n(1), Nonce: 2, HeldNow: n(7)},
		"a capture of a frozen one":    {Kind: record.Captured, Op: event.Capture, From: called("eve"), To: called("bob"), Amount: n(1), Hold: words.TxID{2}, FromNow: n(9), ToNow: n(11)},
		"what is held":                 {Kind: record.Moved, Op: event.Transfer, From: called("ann"), To: called("bob"), Amount: n(5), Nonce: 2, FromNow: n(5), ToNow: n(15)},
		"what is held, burned":         {Kind: record.Moved, Op: event.Burn, From: called("ann"), Amount: n(5), Nonce: 2, FromNow: n(5), ToNow: n(5)},
		"what is held, held":           {Kind: record.Held, Op: event.Hold, From: called("ann"), Amount: n(5), Nonce: 2, HeldNow: n(11)},
		"a hold of nothing":            {Kind: record.Held, Op: event.Hold, From: called("ann"), Nonce: 2, HeldNow: n(6)},
		"a hold of another sum":        {Kind: record.Held, Op: event.Hold, From: called("ann"), Amount: n(1), Nonce: 2, HeldNow: n(8)},
		"more than the hold":           {Kind: record.Captured, Op: event.Capture, From: called("ann"), To: called("bob"), Amount: n(7), Hold: words.TxID{1}, FromNow: n(3), ToNow: n(17)},
		"a capture that goes on":       {Kind: record.Captured, Op: event.Capture, From: called("ann"), To: called("bob"), Amount: n(1), Hold: words.TxID{1}, FromNow: n(9), ToNow: n(11), HeldNow: n(5)},
		"not the beneficiary":          {Kind: record.Captured, Op: event.Capture, From: called("bob"), To: called("eve"), Amount: n(1), Hold: words.TxID{3}, FromNow: n(9), ToNow: n(11)},
		"a capture of another's":       {Kind: record.Captured, Op: event.Capture, From: called("ann"), To: called("eve"), Amount: n(1), Hold: words.TxID{2}, FromNow: n(9), ToNow: n(11)},
		"a release of another's":       {Kind: record.Released, Op: event.Release, From: called("ann"), Amount: n(6), Hold: words.TxID{2}},
		"a release of some of it":      {Kind: record.Released, Op: event.Release, From: called("ann"), Amount: n(5), Hold: words.TxID{1}},
		"a release of what is gone":    {Kind: record.Released, Op: event.Release, From: called("ann"), Amount: n(6), Hold: words.TxID{9}},
		"a lapse of what is gone":      {Kind: record.Lapsed, Hold: words.TxID{9}},
		"a lapse of another sum":       {Kind: record.Lapsed, Hold: words.TxID{1}, HeldNow: n(1)},
		"a lapse of another tenant's":  {Kind: record.Lapsed, Hold: words.TxID{1}, Tenant: 2},
		"a release with a nonce":       {Kind: record.Released, Op: event.Release, From: called("ann"), Amount: n(6), Hold: words.TxID{1}, Nonce: 2},
		"a freeze with a nonce":        {Kind: record.Frozen, Op: event.Freeze, From: called("ann"), Nonce: 2},
		"a freeze that is a movement":  {Kind: record.Moved, Op: event.Freeze, From: called("ann")},
		"a refusal":                    {Kind: record.Refused, Op: event.Transfer, From: called("ann"), To: called("bob"), Amount: n(1), Nonce: 2},
		"a batch":                      {Kind: record.Batched, Op: event.Batch},
		"a hold that is in no journal": {Kind: record.Held, Op: event.Capture, From: called("ann"), To: called("bob"), Amount: n(1), Hold: words.TxID{1}},
	} {
		if r.Tenant == 0 {
			r.Tenant = 1
		}
		r.Asset, r.Seq = called("EUR"), l.Seq(1)+1
		if why := l.Follows(&r); !errors.Is(why, ErrFollows) {
			t.Errorf("%s: %v", what, why)
		}
	}
}

// TestHoldsFit: where there is room for everything else, a hold still wants its own.
func TestHoldsFit(t *testing.T) {
	l := New(Limits{Accounts: 9, Holdings: 9, Assets: 9, Tenants: 9, Holds: 1, TenantAccounts: 9, TenantHoldings: 9, TenantAssets: 9, TenantHolds: 9,
		Amount: words.Units(9), Day: words.Units(9), IssueDay: words.Units(9)}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 9)
	r := record.Record{Kind: record.Held, Op: event.Hold, Tenant: 1, From: called("ann"), Asset: called("EUR"), Amount: words.Units(1), Nonce: 2, Until: 9}
	if !l.Fits(&r) {
		t.Error("the first does not fit")
	}
	opens(t, &l, words.TxID{1}, "ann", 1, 1, 9)
	if l.Fits(&r) {
		t.Error("the second fits")
	}
}

// TestFitsIsEnough: what does not follow may be nonsense, but where it fits it is applied
// without a panic.
func TestFitsIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Limits{Accounts: 3, Holdings: 3, Assets: 2, Tenants: 2, Holds: 2, TenantAccounts: 9, TenantHoldings: 9, TenantAssets: 9,
			TenantHolds: 9, Amount: words.MaxSupply(), Day: words.MaxSupply(), IssueDay: words.MaxSupply()}, 1)
		kinds := []record.Kind{record.Moved, record.Held, record.Captured, record.Released, record.Lapsed, record.Frozen}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		amount := func() words.Amount { return words.Units(uint64(pick(4)) * (1<<62 - 1)) }
		name := func() words.Name { return words.Name{ID: digest.Name([]byte{byte(pick(4))})} }
		for range 30 {
			r := record.Record{Kind: kinds[pick(len(kinds))], Op: event.Op(1 + pick(9)), Tenant: words.Tenant(pick(3)), From: name(), To: name(), Asset: name(),
				Amount: amount(), Nonce: words.Nonce(pick(3)), Seq: words.Seq(pick(3)), FromNow: amount(), ToNow: amount(), Spent: amount(),
				HeldNow: amount(), Until: words.Time(pick(3)), Hold: words.TxID{byte(pick(4))}}
			if pick(2) == 0 && r.Kind != record.Lapsed && r.Op < event.Batch {
				r.Kind = outcome(r.Op)
			}
			_ = l.Follows(&r)
			if l.Fits(&r) {
				l.Apply(words.Time(pick(3)), words.TxID{byte(pick(4))}, &r)
			}
		}
	})
}

// TestFitsInEachRoom: where there is one row for each of one thing, and room for all else, what wants
// another of it does not fit, and what wants none does; and the last row of all may be taken.
func TestFitsInEachRoom(t *testing.T) {
	issue := func(tenant words.Tenant, to, asset string) record.Record {
		return record.Record{Kind: record.Moved, Op: event.Issue, Tenant: tenant, To: called(to), Asset: called(asset), Amount: words.Units(1)}
	}
	again, asset, account, tenant := issue(1, "ann", "EUR"), issue(1, "ann", "USD"), issue(1, "bob", "EUR"), issue(2, "ann", "EUR")
	freeze := record.Record{Kind: record.Frozen, Op: event.Freeze, Tenant: 1, From: called("bob")}
	for name, c := range map[string]struct {
		less            func(*Limits)
		fits, fitsNever []record.Record
	}{
		"tenants":            {func(l *Limits) { l.Tenants = 1 }, []record.Record{again, asset, account, freeze}, []record.Record{tenant}},
		"accounts":           {func(l *Limits) { l.Accounts = 1 }, []record.Record{again, asset}, []record.Record{account, tenant, freeze}},
		"assets":             {func(l *Limits) { l.Assets = 1 }, []record.Record{again, account, freeze}, []record.Record{asset, tenant}},
		"holdings":           {func(l *Limits) { l.Holdings = 1 }, []record.Record{again, freeze}, []record.Record{asset, account, tenant}},
		"one of each":        {func(l *Limits) { *l = Limits{Tenants: 1, Accounts: 1, Assets: 1, Holdings: 1} }, []record.Record{again}, []record.Record{asset, account, tenant, freeze}},
		"two of each":        {func(l *Limits) { *l = Limits{Tenants: 2, Accounts: 2, Assets: 2, Holdings: 2} }, []record.Record{again, asset, account, tenant, freeze}, nil},
		"a tenant, and more": {func(l *Limits) { l.Accounts, l.Holdings = 2, 2 }, []record.Record{again, asset, account, tenant, freeze}, nil},
	} {
		limits := Limits{Tenants: 9, Accounts: 9, Assets: 9, Holdings: 9}
		c.less(&limits)
		limits.Holds, limits.TenantAccounts, limits.TenantHoldings, limits.TenantAssets, limits.TenantHolds = 9, 9, 9, 9, 9
		limits.Amount, limits.Day, limits.IssueDay = words.Units(9), words.Units(9), words.Units(9)
		l := New(limits, 1)
		moves(&l, 1, event.Issue, "", "ann", "EUR", 1)
		for want, all := range map[bool][]record.Record{true: c.fits, false: c.fitsNever} {
			for _, r := range all {
				if l.Fits(&r) != want {
					t.Errorf("%s: tenant %d, %s of %s fits: %v", name, r.Tenant, r.Op, r.Asset.Text, !want)
				}
			}
		}
	}
}
