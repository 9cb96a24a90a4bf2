package ledger

import (
	"strings"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// TestCheckReportsBrokenInvariants breaks each invariant.
func TestCheckReportsBrokenInvariants(t *testing.T) {
	tenantAt := func(l *Ledger, change func(*tenant)) {
		row, _ := l.tenants.Get(1)
		change(&row)
		l.tenants.Put(1, row)
	}
	holdingAt := func(l *Ledger, change func(*holding)) {
		_, row := l.holdings.Row(0)
		change(&row)
		l.holdings.Set(0, row)
	}
	assetAt := func(l *Ledger, change func(*asset)) {
		_, row := l.assets.Row(0)
		change(&row)
		l.assets.Set(0, row)
	}
	ringAt := func(l *Ledger, change func(*account)) {
		_, p := l.accounts.Row(0)
		a := p.unpack()
		change(&a)
		l.accounts.Set(0, a.pack())
	}
	for what, c := range map[string]struct {
		breaks func(*Ledger)
		want   string
	}{
		"limits that were lowered": {func(l *Ledger) { l.limits = Limits{} }, ""},
		"unchanged":                {func(*Ledger) {}, ""},
		"money from nowhere":       {func(l *Ledger) { holdingAt(l, func(h *holding) { h.balance.Lo++ }) }, "M1"},
		"money that is gone":       {func(l *Ledger) { holdingAt(l, func(h *holding) { h.balance.Lo-- }) }, "M1"},
		"burned and still held":    {func(l *Ledger) { assetAt(l, func(a *asset) { a.burned.Lo++ }) }, "M1"},
		"issued without an owner":  {func(l *Ledger) { assetAt(l, func(a *asset) { a.issued.Lo++ }) }, "M1"},
		"more than 128 bits held": {func(l *Ledger) {
			holdingAt(l, func(h *holding) { h.balance = types.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1} })
		}, "M1"},
		"more issued than may be": {overIssue, "M1"},
		"an account not counted":  {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.accounts-- }) }, "M4"},
		"a holding counted twice": {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.holdings++ }) }, "M4"},
		"an asset not counted":    {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.assets-- }) }, "M4"},
		"a hold not counted":      {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.holds-- }) }, "M4"},
		"an account without a tenant": {func(l *Ledger) {
			k := nameKey{9, types.NameHash{1}}
			l.placement.accounts += k.placeHash(l.accounts.Put(k, packedAccount{}))
		}, "M4"},
		"an account somewhere else":   {func(l *Ledger) { l.placement.accounts++ }, "M5"},
		"an asset somewhere else":     {func(l *Ledger) { l.placement.assets++ }, "M5"},
		"held by no hold":             {func(l *Ledger) { holdingAt(l, func(h *holding) { h.held.Lo++ }) }, "M6"},
		"a hold without an amount":    {func(l *Ledger) { holdingAt(l, func(h *holding) { h.held.Lo-- }) }, "M6"},
		"held without a holding":      {func(l *Ledger) { assetAt(l, func(a *asset) { a.held.Lo++ }) }, "M6"},
		"more held than there is":     {overdraw, "M6"},
		"a hold of no holding":        {func(l *Ledger) { swapped(l, func(v *hold) { v.holding.asset = 1 }) }, "M6"},
		"holds of more than 128 bits": {func(l *Ledger) { swapped(l, func(v *hold) { v.amount.Hi = 1<<64 - 1 }) }, "M6"},
		"a ring that is too long":     {func(l *Ledger) { ringAt(l, func(a *account) { a.holds-- }) }, "M7"},
		"a ring that is too short":    {func(l *Ledger) { ringAt(l, func(a *account) { a.holds++ }) }, "M7"},
		"no ring":                     {func(l *Ledger) { ringAt(l, func(a *account) { a.firstHold = 0 }) }, "M7"},
		"a ring begun too late": {func(l *Ledger) {
			ringAt(l, func(a *account) { a.firstHold = l.holds.links[a.firstHold-1].after + 1 })
		}, "M7"},
		"a foreign hold in the ring": {func(l *Ledger) { swapped(l, func(v *hold) { v.holding.account = 1 }) }, "M7"},
		"a ring in another order": {func(l *Ledger) {
			for i := range l.holds.links[:3] {
				at := &l.holds.links[i]
				at.before, at.after = at.after, at.before
			}
		}, "M7"},
		"a ring that goes another way back": {func(l *Ledger) { l.holds.links[0].before = l.holds.links[0].after }, "M7"},
		"a ring that never ends":            {func(l *Ledger) { l.holds.links[1].after = 1 }, "M7"},
		"a hold out of the heap":            {func(l *Ledger) { l.holds.heap = l.holds.heap[:2] }, "M8"},
		"a hold twice in the heap":          {func(l *Ledger) { l.holds.heap[2] = l.holds.heap[1] }, "M8"},
		"a heap of other times":             {func(l *Ledger) { l.holds.heap[0].at-- }, "M8"},
		"a heap upside down":                {func(l *Ledger) { l.holds.swapInHeap(0, 2) }, "M8"},
		"a hold that is elsewhere":          {func(l *Ledger) { l.holds.links[0].heapIndex, l.holds.links[1].heapIndex = 1, 0 }, "M8"},
		"a hold that is not hashed":         {func(l *Ledger) { blank := l.holds.rows; blank.Drop(0) }, "T"},
		"a nonce that is not hashed":        {func(l *Ledger) { blank := l.accounts; blank.Set(0, account{nonce: 7}.pack()) }, "T2"},
	} {
		l := small()
		moves(&l, 1, event.Issue, "", "ann", "EUR", 10)
		moves(&l, 1, event.Transfer, "ann", "bob", "EUR", 4)
		moves(&l, 1, event.Burn, "bob", "", "EUR", 1)
		for until, nonce := types.Time(1), types.Nonce(2); until <= 3; until, nonce = until+1, nonce+1 {
			openHold(t, &l, types.TxID{byte(until)}, "ann", 1, nonce, until)
		}
		c.breaks(&l)
		switch err := l.Check(); {
		case err == nil && c.want != "", err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// overIssue issues the maximum and one unit more, with consistent sums.
func overIssue(l *Ledger) {
	most := types.MaxSupply()
	over, _ := most.Add(types.MinorUnits(1))
	_, a := l.assets.Row(0)
	a.issued, a.burned = over, types.Amount{}
	l.assets.Set(0, a)
	_, h := l.holdings.Row(0)
	_, other := l.holdings.Row(1)
	h.balance, _ = over.Sub(other.balance)
	l.holdings.Set(0, h)
}

// openHold holds an amount of an account's EUR.
func openHold(t *testing.T, l *Ledger, id types.TxID, from string, amount uint64, nonce types.Nonce, until types.Time) {
	t.Helper()
	r := record.Record{Op: event.Hold, Tenant: 1, From: named(from), Asset: named("EUR"), Amount: types.MinorUnits(amount), Nonce: nonce, ExpiresAt: until}
	if why := l.Decide(0, &r); why != event.None {
		t.Fatal(why)
	}
	l.Apply(0, id, &r)
}

func named(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }

// swapped changes a hold in place.
func swapped(l *Ledger, change func(*hold)) {
	id, v := l.holds.rows.Row(0)
	l.holds.rows.Drop(0)
	change(&v)
	l.holds.rows.Put(id, v)
}

// overdraw makes an account hold more than its balance, with consistent sums.
func overdraw(l *Ledger) {
	_, ann := l.holdings.Row(0)
	_, bob := l.holdings.Row(1)
	rest, _ := ann.balance.Sub(types.MinorUnits(2))
	bob.balance, _ = bob.balance.Add(rest)
	ann.balance = types.MinorUnits(2)
	l.holdings.Set(0, ann)
	l.holdings.Set(1, bob)
}
