package flow

import (
	"slices"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/pricing"
	"macronode/core/types"
	"macronode/core/wallet"
)

// A charge is a line with what is due of it.
type charge struct {
	accounting.LineChange
	price   int
	isNew   bool // the line
	changed bool
}

// A bill prices the usage of a tenant: what is due of its lines, and what of that is paid. It is the scratch of a decision.
type bill struct {
	plane   *accounting.Plane
	tenant  types.Tenant
	terms   *Terms
	charges []charge
	last    [pricing.MaxPrices]int          // of each price, the charge that was used last, plus one
	lines   []accounting.LineChange         // of changes
	due     [pricing.MaxPrices]types.Amount // of each asset
}

// begin begins the bill of a tenant.
func (b *bill) begin(p *accounting.Plane, t types.Tenant, terms *Terms) {
	b.plane, b.tenant, b.terms, b.charges = p, t, terms, b.charges[:0]
	clear(b.last[:])
}

// add adds units to the lines of prices in a month.
func (b *bill) add(prices uint64, month types.Time, units uint64) {
	for i := range b.terms.prices {
		if prices>>i&1 == 1 {
			b.addAmount(i, month, types.MinorUnits(units))
		}
	}
}

// addAmount adds units to the line of a price in a month. 2^64 values of 64 bits do not overflow it.
func (b *bill) addAmount(price int, month types.Time, units types.Amount) {
	c := b.charge(price, month)
	c.Units, _ = c.Units.Add(units)
	c.changed = true
}

// addArrears adds all lines of the terms to which usage can still be added.
func (b *bill) addArrears(at types.Time) {
	month := accounting.MonthOf(at.Add(accounting.MaxFuture)).From
	for range accounting.LineMonths {
		for i, id := range b.terms.ids {
			if _, exists := b.plane.Line(accounting.LineKey{Tenant: b.tenant, Price: id, Month: month}); exists {
				b.charge(i, month)
			}
		}
		if month == 0 {
			return
		}
		month = accounting.MonthOf(month - 1).From
	}
}

// charge returns the charge of a price and a month. Usage of one price mostly has the same month as the one before.
func (b *bill) charge(price int, month types.Time) *charge {
	at := b.last[price] - 1
	if at < 0 || b.charges[at].Month != month {
		at = slices.IndexFunc(b.charges, func(c charge) bool { return c.price == price && c.Month == month })
	}
	if at < 0 {
		k := accounting.LineKey{Tenant: b.tenant, Price: b.terms.ids[price], Month: month}
		was, exists := b.plane.Line(k)
		at = len(b.charges)
		b.charges = append(b.charges, charge{LineChange: accounting.LineChange{LineKey: k, Line: was}, price: price, isNew: !exists})
	}
	b.last[price] = at + 1
	return &b.charges[at]
}

// price computes the cost of lines with more units, and what is due. What was paid above the cost of a line is kept as credit.
func (b *bill) price() (problem event.Problem) {
	clear(b.due[:])
	for i := range b.charges {
		c := &b.charges[i]
		if c.changed {
			costs, err := b.terms.prices[c.price].Amount(pricing.Quantity{Units: c.Units, Windows: 1})
			if err != nil {
				problem = event.AmountLimitExceeded
				continue
			}
			c.Cost = costs
		}
		sum, ok := &b.due[b.terms.assetOf[c.price]], false
		if *sum, ok = sum.Add(c.Due()); !ok {
			return event.AmountLimitExceeded
		}
	}
	return problem
}

func (b *bill) newLines() (n int) {
	for i := range b.charges {
		if b.charges[i].isNew {
			n++
		}
	}
	return n
}

// available returns what the payer has of an asset and may spend.
func (b *bill) available(at types.Time, w *wallet.Wallet, asset int) types.Amount {
	has, held, _ := w.Balance(at, b.tenant, b.terms.payer.ID, b.terms.assets[asset].ID)
	available, _ := has.Sub(held)
	return available
}

// shortfall returns what the payer lacks in the first asset of which it has less than is due.
func (b *bill) shortfall(at types.Time, w *wallet.Wallet) event.Shortfall {
	for i := range b.terms.assets {
		available := b.available(at, w, i)
		if missing, _ := b.due[i].Sub(available); available.Less(b.due[i]) {
			return event.Shortfall{Asset: uint16(i + 1), Amount: missing}
		}
	}
	return event.Shortfall{}
}

// pay spreads an amount of an asset, which is at most what is due, over the charges in their order.
func (b *bill) pay(asset int, amount types.Amount) {
	for i := range b.charges {
		c := &b.charges[i]
		part := c.Due()
		if int(b.terms.assetOf[c.price]) != asset || part.IsZero() || amount.IsZero() {
			continue
		}
		if amount.Less(part) {
			part = amount
		}
		c.Paid, _ = c.Paid.Add(part)
		amount, _ = amount.Sub(part)
		c.changed = true
	}
}

// changes returns the lines that have more units, or were paid, in the order of price and month.
func (b *bill) changes() []accounting.LineChange {
	b.lines = b.lines[:0]
	for i := range b.charges {
		if b.charges[i].changed {
			b.lines = append(b.lines, b.charges[i].LineChange)
		}
	}
	slices.SortFunc(b.lines, func(a, c accounting.LineChange) int { return a.Compare(c.LineKey) })
	return b.lines
}
