package flow

import (
	"maps"
	"slices"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
)

// HasPayable reports whether a tenant has arrears of which something can be paid now.
func (c *Credit) HasPayable(at types.Time, of types.Tenant, t *Terms, b Books) bool {
	c.bill.begin(b.Usage, of, t)
	if c.bill.addArrears(at); c.bill.price() != event.None || b.Wallet.Frozen(of, t.payer.ID) {
		return false
	}
	for i := range t.assets {
		if !c.bill.due[i].IsZero() && !c.bill.available(at, b.Wallet, i).IsZero() {
			return true
		}
	}
	return false
}

// A Due is an amount that is due of a line.
type Due struct {
	Price  types.NameHash // what the line is for: LineID
	Amount types.Amount   // minor units
}

// Uncollected returns what tenants owe of lines that no terms of theirs pay, in the order of the prices.
func (b Books) Uncollected(terms map[types.Tenant]*Terms) map[types.Tenant][]Due {
	all := make(map[types.Tenant]map[types.NameHash]types.Amount)
	b.Usage.EachLine(func(l accounting.LineChange) {
		due := l.Due()
		if t := terms[l.Tenant]; due.IsZero() || t != nil && slices.Contains(t.ids, l.Price) {
			return
		}
		if all[l.Tenant] == nil {
			all[l.Tenant] = make(map[types.NameHash]types.Amount)
		}
		all[l.Tenant][l.Price], _ = all[l.Tenant][l.Price].Add(due)
	})
	sums := make(map[types.Tenant][]Due, len(all))
	for _, t := range slices.Sorted(maps.Keys(all)) {
		of := all[t]
		for _, price := range slices.SortedFunc(maps.Keys(of), func(a, b types.NameHash) int { return slices.Compare(a[:], b[:]) }) {
			sums[t] = append(sums[t], Due{price, of[price]})
		}
	}
	return sums
}

// Name returns the name and the asset of the price that a line is for; false if it is none of t.
func (t *Terms) Name(line types.NameHash) (price, asset string, ok bool) {
	at := slices.Index(t.ids, line)
	if at < 0 {
		return "", "", false
	}
	return t.prices[at].Name, t.prices[at].Asset, true
}
