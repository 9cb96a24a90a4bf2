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
	"macronode/core/types"
)

// TestRowsFitCacheLines: an account is half a cache line, a holding and a hold are one.
func TestRowsFitCacheLines(t *testing.T) {
	for what, sizes := range map[string][2]int64{
		"account": {table.Bytes[nameKey, packedAccount](2) - table.Bytes[nameKey, packedAccount](1), 32},
		"holding": {table.Bytes[holdingKey, holding](2) - table.Bytes[holdingKey, holding](1), 64},
		"hold":    {table.Bytes[types.TxID, hold](2) - table.Bytes[types.TxID, hold](1), 64},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("the row of a %s takes %d bytes, not %d", what, sizes[0], sizes[1])
		}
	}
}

// TestBytesMatchesMemory shows that Bytes accounts for each limit.
func TestBytesMatchesMemory(t *testing.T) {
	base := Limits{Accounts: 4, Holdings: 4, Assets: 4, Tenants: 4, Holds: 4}
	for what, c := range map[string]struct {
		limit func(*Limits) *int
		each  int64 // including its slots
	}{
		"accounts": {func(l *Limits) *int { return &l.Accounts }, 32},
		"holdings": {func(l *Limits) *int { return &l.Holdings }, 64},
		"assets":   {func(l *Limits) *int { return &l.Assets }, 96},
		"tenants":  {func(l *Limits) *int { return &l.Tenants }, 32},
		"holds": {func(l *Limits) *int { return &l.Holds }, 64 + int64(unsafe.Sizeof(link{})) + int64(unsafe.Sizeof(expiry{})) +
			int64(unsafe.Sizeof(uint32(0)))},
	} {
		more := base
		*c.limit(&more) += 1020 // to 1024: 2048 slots for the 8 of 4
		if got, want := Bytes(more)-Bytes(base), 1020*c.each+(2048-8)*8; got != want {
			t.Errorf("1020 more %s take %d bytes, want %d", what, got, want)
		}
	}
	l := New(base, 1)
	logs := int64(cap(l.holds.undoLog)) * int64(unsafe.Sizeof(holdChange{}))
	if none := Bytes(Limits{}); none < logs || none > 1<<20 || cap(l.holds.undoLog) != types.MaxItems {
		t.Errorf("a ledger without room takes %d bytes, %d of them for holds to be taken back", none, logs)
	}
}

// TestOperationsDoNotAllocate decides, applies, expires and undoes.
func TestOperationsDoNotAllocate(t *testing.T) {
	l := small()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1_000_000)
	moves(&l, 1, event.Issue, "", "bob", "EUR", 1)
	ann, bob, eur, nonce, at := named("ann"), named("bob"), named("EUR"), types.Nonce(0), types.Time(0)
	var r record.Record
	apply := func(id types.TxID, wish record.Record) {
		r = wish
		r.Tenant, r.From, r.Asset = 1, ann, eur
		if r.Op <= event.Hold {
			nonce++
			r.Nonce = nonce
		}
		if why := l.Decide(at, &r); why != event.None || !l.Fits(&r) || l.CheckReplay(&r) != nil {
			t.Fatal(why)
		}
		l.Apply(at, id, &r)
	}
	if n := testing.AllocsPerRun(100, func() {
		at++
		apply(types.TxID{}, record.Record{Op: event.Transfer, To: bob, Amount: types.MinorUnits(1)})
		apply(types.TxID{1}, record.Record{Op: event.Hold, Amount: types.MinorUnits(5), ExpiresAt: at + 1})
		apply(types.TxID{2}, record.Record{Op: event.Hold, Amount: types.MinorUnits(5), ExpiresAt: at + 1})
		l.Savepoint()
		was := nonce
		apply(types.TxID{3}, record.Record{Op: event.Hold, Amount: types.MinorUnits(5), ExpiresAt: at + 2})
		apply(types.TxID{}, record.Record{Op: event.Capture, To: bob, Amount: types.MinorUnits(1), Hold: types.TxID{1}})
		l.Undo()
		nonce = was
		l.Savepoint()
		apply(types.TxID{}, record.Record{Op: event.Release, Hold: types.TxID{1}})
		l.Commit()
		apply(types.TxID{}, record.Record{Op: event.Freeze})
		apply(types.TxID{}, record.Record{Op: event.Unfreeze})
		at++
		if !l.HasExpiredHold(at, 1, ann.ID) {
			t.Fatal("no hold has expired")
		}
		l.ExpireHoldOf(at, 1, ann.ID, &r)
		if _, held, _ := l.Balance(at, 1, ann.ID, eur.ID); !held.IsZero() || !l.ExpireNextHold(at, &r) {
			t.Fatalf("%v is held", held)
		}
		l.Apply(at, types.TxID{}, &r)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestHoldLimitOfAccount: an account has at most MaxHolds active holds, and an ended hold makes
// room.
func TestHoldLimitOfAccount(t *testing.T) {
	const over = types.MaxHolds + 1
	most := types.MaxSupply()
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: over, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
		TenantHolds: over, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", over)
	id := func(i int) (id types.TxID) {
		binary.BigEndian.PutUint64(id[8:], uint64(i+1))
		return id
	}
	for i := range types.MaxHolds {
		openHold(t, &l, id(i), "ann", 1, types.Nonce(i+1), types.Time(1+(i*389)%types.MaxHolds)) // 389 is prime: every value once
	}
	r := record.Record{Op: event.Hold, Tenant: 1, From: named("ann"), Asset: named("EUR"), Amount: types.MinorUnits(1), Nonce: over, ExpiresAt: 1}
	if why := l.Decide(0, &r); why.General() != event.CapacityExceeded || l.Fits(&r) || l.Check() != nil {
		t.Fatalf("one more than may be: %v, %v", why, l.Check())
	}
	full := dump(&l)
	fresh := New(l.limits, 2)
	if err := load(&fresh, full); err != nil || fresh.Hash() != l.Hash() {
		t.Fatal(err)
	}
	again := full[len(full)-1]
	again.b[0]++ // a different ID
	if err := fresh.Load(again.kind, again.b); !errors.Is(err, ErrRow) {
		t.Errorf("loaded one more than may be: %v", err)
	}
	for at := range types.Time(types.MaxHolds) {
		var end record.Record
		if l.HasExpiredHold(at, 1, named("ann").ID) || l.ExpireNextHold(at, &end) {
			t.Fatalf("at %d one is due", at)
		}
		l.ExpireHoldOf(at+1, 1, named("ann").ID, &end)
		if h, _ := l.Hold(end.Hold); h.ExpiresAt != at+1 {
			t.Fatalf("at %d: %+v", at+1, h)
		}
		if l.Apply(at+1, types.TxID{}, &end); at%100 == 0 && l.Check() != nil {
			t.Fatal(l.Check())
		}
	}
	if r.ExpiresAt = 5000; l.Holds() != 0 || l.Decide(2000, &r) != event.None {
		t.Errorf("%d are left", l.Holds())
	}
}

// TestLongestBatchIsUndone undoes a batch of the maximum length with the largest changes; a
// longer one panics.
func TestLongestBatchIsUndone(t *testing.T) {
	most := types.MaxSupply()
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: 1, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
		TenantHolds: 1, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1000)
	moves(&l, 1, event.Issue, "", "bob", "EUR", 1)
	was, nonce := l.Hash(), types.Nonce(1)
	one := func(i int) {
		r := record.Record{Op: event.Hold, Tenant: 1, From: named("ann"), Asset: named("EUR"), Amount: types.MinorUnits(1), Nonce: nonce, ExpiresAt: 9}
		if i%2 == 1 {
			nonce++
			r = record.Record{Op: event.Capture, Tenant: 1, From: named("ann"), To: named("bob"), Asset: named("EUR"), Amount: types.MinorUnits(1), Hold: types.TxID{1}}
		}
		if why := l.Decide(0, &r); why != event.None {
			t.Fatal(why)
		}
		l.Apply(0, types.TxID{1}, &r)
	}
	for range 2 {
		nonce = 1
		l.Savepoint()
		for i := range types.MaxItems {
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
			if _, ok := recover().(types.InvariantError); !ok {
				t.Errorf("a batch that is too long went on, of %s", what)
			}
		}()
		for i := range types.MaxItems + 2 {
			one(i)
		}
	}
	nonce = 1
	l.Savepoint()
	tooLong("rows that were there")
	l = New(l.limits, 1)
	nonce = 1
	l.Savepoint()
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1000)
	tooLong("holds alone: no row was there")
}

// TestUndoLogsFitEachOperation: each operation is taken back by a ledger for batches of one item, also if no row is new.
func TestUndoLogsFitEachOperation(t *testing.T) {
	most := types.MaxSupply()
	for _, op := range [...]event.Op{event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture, event.Release} {
		l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: 2, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1,
			TenantHolds: 2, MaxBatchItems: 1, MaxAmount: most, MaxDailyDebit: most, MaxDailyIssue: most}, 1)
		moves(&l, 1, event.Issue, "", "ann", "EUR", 10)
		moves(&l, 1, event.Issue, "", "bob", "EUR", 1)
		openHold(t, &l, types.TxID{1}, "ann", 4, 1, 9)
		was := l.Hash()
		r := record.Record{Op: op, Tenant: 1, Asset: named("EUR"), Amount: types.MinorUnits(2), Nonce: 2, ExpiresAt: 9}
		if op != event.Issue {
			r.From = named("ann")
		}
		if op == event.Issue || op == event.Transfer || op == event.Capture {
			r.To = named("bob")
		}
		if op == event.Capture || op == event.Release {
			r.Nonce, r.ExpiresAt, r.Hold = 0, 0, types.TxID{1}
		}
		l.Savepoint()
		if why := l.Decide(0, &r); why != event.None {
			t.Fatalf("%v: %v", op, why)
		}
		l.Apply(0, types.TxID{2}, &r)
		if l.Hash() == was {
			t.Errorf("%v changes nothing", op)
		}
		if l.Undo(); l.Hash() != was || l.Check() != nil {
			t.Errorf("%v is not taken back: %v", op, l.Check())
		}
	}
}

// TestHoldsAreOrderedByExpiry: after any additions, removals and undos, the ring of each account
// and the heap are in order.
func TestHoldsAreOrderedByExpiry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHolds(40, types.MaxItems, 1)
		firsts, then := [3]uint32{}, [3]uint32{}
		var live, was []types.TxID
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "many") {
					id := types.TxID{rapid.Byte().Draw(t, "id"), rapid.Byte().Draw(t, "id")}
					if _, known := h.rows.Find(id); known || h.rows.Room() == 0 {
						continue
					}
					of := rapid.Uint32Range(0, 2).Draw(t, "of")
					until := types.Time(rapid.IntRange(1, 30).Draw(t, "until"))
					firsts[of] = h.add(id, hold{expiresAt: until, holding: holdingKey{account: of}}, firsts[of])
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
				firsts[v.holding.account] = h.remove(place, firsts[v.holding.account])
				live = slices.Delete(slices.Clone(live), i, i+1)
			},
			"mark": func(*rapid.T) {
				h.commit()
				h.savepoint()
				was, then = slices.Clone(live), firsts
			},
			"undo": func(t *rapid.T) {
				if !h.inSavepoint {
					t.Skip("not marked")
				}
				h.undo()
				live, firsts = was, then
			},
			"": func(t *rapid.T) {
				if err := h.check(); err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(live, func(a, b types.TxID) int {
					if ends := cmp.Compare(ended(&h, a), ended(&h, b)); ends != 0 {
						return ends
					}
					return bytes.Compare(a[:], b[:])
				})
				if top := len(h.heap) > 0; top != (len(live) > 0) || top && h.ids(h.heap[0].place) != live[0] {
					t.Fatalf("%v is the first of %x", h.heap, live)
				}
				rings := [3][]types.TxID{}
				for _, id := range live {
					place, _ := h.rows.Find(id)
					_, v := h.rows.Row(place)
					rings[v.holding.account] = append(rings[v.holding.account], id)
				}
				for of, first := range firsts {
					var ring []types.TxID
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

func (h *holds) ids(place uint32) types.TxID { id, _ := h.rows.Row(place); return id }

func ended(h *holds, id types.TxID) types.Time {
	place, _ := h.rows.Find(id)
	_, v := h.rows.Row(place)
	return v.expiresAt
}

// TestCheckReplayRejects: records with correct sums that this ledger did not decide.
func TestCheckReplayRejects(t *testing.T) {
	l := small()
	for _, account := range []string{"ann", "bob", "eve"} {
		moves(&l, 1, event.Issue, "", account, "EUR", 10)
	}
	openHold(t, &l, types.TxID{1}, "ann", 6, 1, 9)
	openHold(t, &l, types.TxID{2}, "eve", 6, 1, 9)
	r := record.Record{Op: event.Hold, Tenant: 1, From: named("bob"), To: named("ann"), Asset: named("EUR"), Amount: types.MinorUnits(6), Nonce: 1, ExpiresAt: 9}
	l.Decide(0, &r)
	l.Apply(0, types.TxID{3}, &r)
	freezes(t, &l, "eve")
	n := types.MinorUnits
	for what, r := range map[string]record.Record{
		"out of a frozen account":      {Kind: record.Posted, Op: event.Transfer, From: named("eve"), To: named("bob"), Amount: n(1), Nonce: 2, FromBalance: n(9), ToBalance: n(11)},
		"a hold of a frozen account":   {Kind: record.HoldOpened, Op: event.Hold, From: named("eve"), Amount: n(1), Nonce: 2, HeldBalance: n(7)},
		"a capture of a frozen one":    {Kind: record.HoldCaptured, Op: event.Capture, From: named("eve"), To: named("bob"), Amount: n(1), Hold: types.TxID{2}, FromBalance: n(9), ToBalance: n(11)},
		"what is held":                 {Kind: record.Posted, Op: event.Transfer, From: named("ann"), To: named("bob"), Amount: n(5), Nonce: 2, FromBalance: n(5), ToBalance: n(15)},
		"what is held, burned":         {Kind: record.Posted, Op: event.Burn, From: named("ann"), Amount: n(5), Nonce: 2, FromBalance: n(5), ToBalance: n(5)},
		"what is held, held":           {Kind: record.HoldOpened, Op: event.Hold, From: named("ann"), Amount: n(5), Nonce: 2, HeldBalance: n(11)},
		"a hold of 0":                  {Kind: record.HoldOpened, Op: event.Hold, From: named("ann"), Nonce: 2, HeldBalance: n(6)},
		"a hold of another sum":        {Kind: record.HoldOpened, Op: event.Hold, From: named("ann"), Amount: n(1), Nonce: 2, HeldBalance: n(8)},
		"more than the hold":           {Kind: record.HoldCaptured, Op: event.Capture, From: named("ann"), To: named("bob"), Amount: n(7), Hold: types.TxID{1}, FromBalance: n(3), ToBalance: n(17)},
		"a capture without an end":     {Kind: record.HoldCaptured, Op: event.Capture, From: named("ann"), To: named("bob"), Amount: n(1), Hold: types.TxID{1}, FromBalance: n(9), ToBalance: n(11), HeldBalance: n(5)},
		"not the beneficiary":          {Kind: record.HoldCaptured, Op: event.Capture, From: named("bob"), To: named("eve"), Amount: n(1), Hold: types.TxID{3}, FromBalance: n(9), ToBalance: n(11)},
		"a capture, wrong payee":       {Kind: record.HoldCaptured, Op: event.Capture, From: named("ann"), To: named("eve"), Amount: n(1), Hold: types.TxID{2}, FromBalance: n(9), ToBalance: n(11)},
		"a release, wrong hold":        {Kind: record.HoldReleased, Op: event.Release, From: named("ann"), Amount: n(6), Hold: types.TxID{2}},
		"a release of some of it":      {Kind: record.HoldReleased, Op: event.Release, From: named("ann"), Amount: n(5), Hold: types.TxID{1}},
		"a release of an ended hold":   {Kind: record.HoldReleased, Op: event.Release, From: named("ann"), Amount: n(6), Hold: types.TxID{9}},
		"an expiry of an ended hold":   {Kind: record.HoldExpired, Hold: types.TxID{9}},
		"a lapse of another sum":       {Kind: record.HoldExpired, Hold: types.TxID{1}, HeldBalance: n(1)},
		"a lapse of another tenant's":  {Kind: record.HoldExpired, Hold: types.TxID{1}, Tenant: 2},
		"a release with a nonce":       {Kind: record.HoldReleased, Op: event.Release, From: named("ann"), Amount: n(6), Hold: types.TxID{1}, Nonce: 2},
		"a freeze with a nonce":        {Kind: record.FreezeChanged, Op: event.Freeze, From: named("ann"), Nonce: 2},
		"a freeze that is a movement":  {Kind: record.Posted, Op: event.Freeze, From: named("ann")},
		"a refusal":                    {Kind: record.Rejected, Op: event.Transfer, From: named("ann"), To: named("bob"), Amount: n(1), Nonce: 2},
		"a batch":                      {Kind: record.Batched, Op: event.Batch},
		"a hold that is in no journal": {Kind: record.HoldOpened, Op: event.Capture, From: named("ann"), To: named("bob"), Amount: n(1), Hold: types.TxID{1}},
	} {
		if r.Tenant == 0 {
			r.Tenant = 1
		}
		r.Asset, r.Seq = named("EUR"), l.Seq(1)+1
		if why := l.CheckReplay(&r); !errors.Is(why, ErrReplay) {
			t.Errorf("%s: %v", what, why)
		}
	}
}

// TestFitsNeedsRoomForHold: with room for everything else, a hold needs its own row.
func TestFitsNeedsRoomForHold(t *testing.T) {
	l := New(Limits{Accounts: 9, Holdings: 9, Assets: 9, Tenants: 9, Holds: 1, TenantAccounts: 9, TenantHoldings: 9, TenantAssets: 9, TenantHolds: 9,
		MaxAmount: types.MinorUnits(9), MaxDailyDebit: types.MinorUnits(9), MaxDailyIssue: types.MinorUnits(9)}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 9)
	r := record.Record{Kind: record.HoldOpened, Op: event.Hold, Tenant: 1, From: named("ann"), Asset: named("EUR"), Amount: types.MinorUnits(1), Nonce: 2, ExpiresAt: 9}
	if !l.Fits(&r) {
		t.Error("the first does not fit")
	}
	openHold(t, &l, types.TxID{1}, "ann", 1, 1, 9)
	if l.Fits(&r) {
		t.Error("the second fits")
	}
}

// TestLoweredLimitRejectsNoCapture: a limit that is lowered at a restart, below what is held, rejects new debits and holds, but no capture: not on
// that day, nor on a later one.
func TestLoweredLimitRejectsNoCapture(t *testing.T) {
	most := types.MaxSupply()
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: 2, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1, TenantHolds: 2,
		MaxAmount: most, MaxDailyDebit: types.MinorUnits(100), MaxDailyIssue: most}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 1000)
	moves(&l, 1, event.Transfer, "ann", "bob", "EUR", 10)
	end := types.Time(types.MaxHoldDuration.Milliseconds())
	openHold(t, &l, types.TxID{1}, "ann", 60, 2, end)
	openHold(t, &l, types.TxID{2}, "ann", 20, 3, end)
	left := func(at types.Time) types.Amount { return l.DebitLimit(at, 1, named("ann").ID, named("EUR").ID) }
	if got := left(0); got != types.MinorUnits(10) {
		t.Errorf("%v may be debited, want 10", got)
	}
	if got := left(end); got != types.MinorUnits(100) {
		t.Errorf("%v may be debited after the holds, want 100", got)
	}
	l.limits.MaxDailyDebit = types.MinorUnits(5)
	const day = types.Time(24 * 60 * 60 * 1000)
	for at, id := range map[types.Time]types.TxID{0: {1}, day: {2}} {
		if got := left(at); !got.IsZero() {
			t.Errorf("at %d, %v may be debited", at, got)
		}
		for _, op := range []event.Op{event.Transfer, event.Burn, event.Hold} {
			r := record.Record{Op: op, Tenant: 1, From: named("ann"), To: named("bob"), Asset: named("EUR"), Amount: types.MinorUnits(1), Nonce: 4, ExpiresAt: at + 1}
			if why := l.Decide(at, &r); why != event.DailyLimitExceeded {
				t.Errorf("at %d: %v: %v", at, op, why)
			}
		}
		h, _ := l.Hold(id)
		r := record.Record{Op: event.Capture, Tenant: 1, From: named("ann"), To: named("bob"), Asset: named("EUR"), Amount: h.Amount, Hold: id}
		why := l.Decide(at, &r)
		if why != event.None {
			t.Errorf("at %d: the capture of %v: %v", at, h.Amount, why)
			continue
		}
		if err := l.CheckReplay(&r); err != nil {
			t.Error(err)
		}
	}
}

// TestReplayIgnoresDailyLimit: a record of an earlier version, whose limit did not count what was held, replays as it did.
func TestReplayIgnoresDailyLimit(t *testing.T) {
	l := New(Limits{Accounts: 2, Holdings: 2, Assets: 1, Tenants: 1, Holds: 2, TenantAccounts: 2, TenantHoldings: 2, TenantAssets: 1, TenantHolds: 2,
		MaxAmount: types.MaxSupply(), MaxDailyDebit: types.MinorUnits(10), MaxDailyIssue: types.MaxSupply()}, 1)
	moves(&l, 1, event.Issue, "", "ann", "EUR", 100)
	hold := record.Record{Kind: record.HoldOpened, Op: event.Hold, Tenant: 1, From: named("ann"), Asset: named("EUR"), Amount: types.MinorUnits(50), Nonce: 1, ExpiresAt: 9,
		Seq: 2, HeldBalance: types.MinorUnits(50)}
	sent := record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, From: named("ann"), To: named("bob"), Asset: named("EUR"), Amount: types.MinorUnits(10), Nonce: 2,
		Seq: 3, FromBalance: types.MinorUnits(90), ToBalance: types.MinorUnits(10), DebitedToday: types.MinorUnits(10)}
	for _, r := range []*record.Record{&hold, &sent} {
		if err := l.CheckReplay(r); err != nil {
			t.Fatal(err)
		}
		l.Apply(0, types.TxID{1}, r)
	}
	capture := record.Record{Op: event.Capture, Tenant: 1, From: named("ann"), To: named("bob"), Asset: named("EUR"), Amount: types.MinorUnits(50), Hold: types.TxID{1}}
	if why := l.Decide(1, &capture); why != event.None || capture.DebitedToday != types.MinorUnits(60) {
		t.Errorf("captured: %v, %v today", why, capture.DebitedToday)
	}
}

// TestFittingRecordsApplyWithoutPanic: a record that fits but does not follow is applied without
// a panic.
func TestFittingRecordsApplyWithoutPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Limits{Accounts: 3, Holdings: 3, Assets: 2, Tenants: 2, Holds: 2, TenantAccounts: 9, TenantHoldings: 9, TenantAssets: 9,
			TenantHolds: 9, MaxAmount: types.MaxSupply(), MaxDailyDebit: types.MaxSupply(), MaxDailyIssue: types.MaxSupply()}, 1)
		kinds := []record.Kind{record.Posted, record.HoldOpened, record.HoldCaptured, record.HoldReleased, record.HoldExpired, record.FreezeChanged}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		amount := func() types.Amount { return types.MinorUnits(uint64(pick(4)) * (1<<62 - 1)) }
		name := func() types.Name { return types.Name{ID: digest.Name([]byte{byte(pick(4))})} }
		for range 30 {
			r := record.Record{Kind: kinds[pick(len(kinds))], Op: event.Op(1 + pick(9)), Tenant: types.Tenant(pick(3)), From: name(), To: name(), Asset: name(),
				Amount: amount(), Nonce: types.Nonce(pick(3)), Seq: types.Seq(pick(3)), FromBalance: amount(), ToBalance: amount(), DebitedToday: amount(),
				HeldBalance: amount(), ExpiresAt: types.Time(pick(3)), Hold: types.TxID{byte(pick(4))}}
			if pick(2) == 0 && r.Kind != record.HoldExpired && r.Op < event.Batch {
				r.Kind = recordKind(r.Op)
			}
			_ = l.CheckReplay(&r)
			if l.Fits(&r) {
				l.Apply(types.Time(pick(3)), types.TxID{byte(pick(4))}, &r)
			}
		}
	})
}

// TestFitsChecksEachLimit: with one row for one kind of thing and room for all else, a second of
// that kind does not fit, and the last row can be used.
func TestFitsChecksEachLimit(t *testing.T) {
	issue := func(tenant types.Tenant, to, asset string) record.Record {
		return record.Record{Kind: record.Posted, Op: event.Issue, Tenant: tenant, To: named(to), Asset: named(asset), Amount: types.MinorUnits(1)}
	}
	again, asset, account, tenant := issue(1, "ann", "EUR"), issue(1, "ann", "USD"), issue(1, "bob", "EUR"), issue(2, "ann", "EUR")
	freeze := record.Record{Kind: record.FreezeChanged, Op: event.Freeze, Tenant: 1, From: named("bob")}
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
		limits.MaxAmount, limits.MaxDailyDebit, limits.MaxDailyIssue = types.MinorUnits(9), types.MinorUnits(9), types.MinorUnits(9)
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
