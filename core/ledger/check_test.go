package ledger

import (
	"strings"
	"testing"

	"macronode/core/event"
	"macronode/core/words"
)

// TestCheckSees: each invariant, broken by hand, is named.
func TestCheckSees(t *testing.T) {
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
	for what, c := range map[string]struct {
		breaks func(*Ledger)
		want   string
	}{
		"limits that were lowered":  {func(l *Ledger) { l.limits = Limits{} }, ""},
		"nothing":                   {func(*Ledger) {}, ""},
		"money from nowhere":        {func(l *Ledger) { holdingAt(l, func(h *holding) { h.balance.Lo++ }) }, "M1"},
		"money that is gone":        {func(l *Ledger) { holdingAt(l, func(h *holding) { h.balance.Lo-- }) }, "M1"},
		"burned and still held":     {func(l *Ledger) { assetAt(l, func(a *asset) { a.burned.Lo++ }) }, "M1"},
		"issued and held by nobody": {func(l *Ledger) { assetAt(l, func(a *asset) { a.issued.Lo++ }) }, "M1"},
		"more than 128 bits held": {func(l *Ledger) {
			holdingAt(l, func(h *holding) { h.balance = words.Amount{Hi: 1<<64 - 1, Lo: 1<<64 - 1} })
		}, "M1"},
		"more issued than may be": {more, "M1"},
		"an account not counted":  {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.accounts-- }) }, "M4"},
		"a holding counted twice": {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.holdings++ }) }, "M4"},
		"an asset not counted":    {func(l *Ledger) { tenantAt(l, func(t *tenant) { t.assets-- }) }, "M4"},
		"an account of nobody": {func(l *Ledger) {
			k := named{9, words.ID{1}}
			l.placed.accounts += k.at(l.accounts.Put(k, account{}))
		}, "M4"},
		"an account somewhere else":  {func(l *Ledger) { l.placed.accounts++ }, "M5"},
		"an asset somewhere else":    {func(l *Ledger) { l.placed.assets++ }, "M5"},
		"a nonce that nobody hashed": {func(l *Ledger) { blank := l.accounts; blank.Set(0, account{7}) }, "T2"},
	} {
		l := small()
		moves(&l, 1, event.Issue, "", "ann", "EUR", 10)
		moves(&l, 1, event.Transfer, "ann", "bob", "EUR", 4)
		moves(&l, 1, event.Burn, "bob", "", "EUR", 1)
		c.breaks(&l)
		switch err := l.Check(); {
		case err == nil && c.want != "", err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want+":")):
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// more is all there may be and one unit more, in books that add up.
func more(l *Ledger) {
	most := words.MaxSupply()
	over, _ := most.Plus(words.Units(1))
	_, a := l.assets.Row(0)
	a.issued, a.burned = over, words.Amount{}
	l.assets.Set(0, a)
	_, h := l.holdings.Row(0)
	_, other := l.holdings.Row(1)
	h.balance, _ = over.Minus(other.balance)
	l.holdings.Set(0, h)
}
