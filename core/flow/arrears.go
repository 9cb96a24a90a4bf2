package flow

import (
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

// A Due is an amount of an asset that is due.
type Due struct {
	Asset  string
	Amount types.Amount
}

// Uncollected returns what a tenant owes by the terms was for lines of which the terms is pay nothing, in the order of the assets of
// was. nil pays nothing at all.
func (c *Credit) Uncollected(at types.Time, of types.Tenant, was, is *Terms, b Books) (all []Due) {
	c.bill.begin(b.Usage, of, was)
	c.bill.addArrears(at)
	if is != nil {
		c.bill.charges = slices.DeleteFunc(c.bill.charges, func(g charge) bool { return slices.Contains(is.ids, was.ids[g.price]) })
	}
	if c.bill.price() != event.None {
		return nil // as much as an asset cannot have
	}
	for i, asset := range was.assets {
		if due := c.bill.due[i]; !due.IsZero() {
			all = append(all, Due{string(asset.Text), due})
		}
	}
	return all
}

// EachWithLines passes the tenants that have lines, each once, in no particular order.
func (b Books) EachWithLines(pass func(types.Tenant)) {
	seen := make(map[types.Tenant]bool)
	b.Usage.EachLine(func(l accounting.LineChange) {
		if !seen[l.Tenant] {
			seen[l.Tenant] = true
			pass(l.Tenant)
		}
	})
}
