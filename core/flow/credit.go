package flow

import (
	"slices"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/pricing"
	"macronode/core/types"
	"macronode/core/wallet"
)

// Books are the durable state that a Credit reads.
type Books struct {
	Usage  *accounting.Plane
	Wallet *wallet.Wallet
}

// A Credit decides before a request of a prepaid tenant is served whether the payer can pay for it. What counts is all that is not
// paid yet:
//
//	arrears of the lines + requests that are not recorded yet + requests in progress + this one  ≤  available balance
//
// Of a request in progress the size of the response is not known, so it counts as one request and the declared bytes of its body.
// A Credit is volatile: a crash loses with it the usage that it knows. It is not safe for concurrent use.
type Credit struct {
	unpaid []*unpaid // of tenants that have any
	bill   bill      // scratch
}

// NewCredit returns a credit without requests.
func NewCredit() *Credit { return new(Credit) }

// unpaid is the usage of requests of a tenant that is not recorded yet. They have the terms that were in force when they came: after a
// reload a tenant has others.
type unpaid struct {
	tenant     types.Tenant
	terms      *Terms
	requests   int   // in progress
	inProgress units // of these
	counted    units // of those that have ended
	flushing   units // of those that are being recorded
}

// units are units of each price.
type units [pricing.MaxPrices]types.Amount

// addTo adds all of u to the lines of a month.
func (u *unpaid) addTo(b *bill, month types.Time) {
	for price := range u.terms.prices {
		for _, n := range [...]types.Amount{u.inProgress[price], u.counted[price], u.flushing[price]} {
			if !n.IsZero() {
				b.addAmount(price, month, n)
			}
		}
	}
}

// A Reservation is what a request in progress has reserved. The zero value has reserved nothing.
type Reservation struct {
	of     *unpaid
	prices requestPrices
	body   uint64 // declared
}

// IsZero reports whether r has reserved nothing.
func (r Reservation) IsZero() bool { return r.of == nil }

// requestPrices are the prices that apply to the requests, the bytes in and the bytes out of a request: bit i is price i.
type requestPrices [3]uint64

func (t *Terms) pricesOfRequest(r *accounting.Request) (prices requestPrices) {
	labels, ok := r.Labels()
	if !ok { // it cannot be recorded
		return prices
	}
	for i, dimension := range [...]string{"requests", "bytes_in", "bytes_out"} {
		prices[i] = t.pricesOf(dimension, labels)
	}
	return prices
}

// each passes the units of each price for a number of requests and their bytes.
func (p requestPrices) each(requests, in, out uint64, pass func(price int, n types.Amount)) {
	for i, n := range [...]uint64{requests, in, out} {
		for price := 0; n > 0 && p[i]>>price > 0; price++ {
			if p[i]>>price&1 == 1 {
				pass(price, types.MinorUnits(n))
			}
		}
	}
}

func (u *units) add(price int, n types.Amount) { u[price], _ = u[price].Add(n) }
func (u *units) sub(price int, n types.Amount) { u[price], _ = u[price].Sub(n) }

// Reserve reserves what a request will cost at least, whose body has r.In bytes by its declaration. Its problems are PrepaidExceeded,
// with the shortfall, AccountFrozen if the payer is, and AmountLimitExceeded. A request without a price reserves nothing.
func (c *Credit) Reserve(r *accounting.Request, t *Terms, b Books) (Reservation, event.Problem, event.Shortfall) {
	prices := t.pricesOfRequest(r)
	if prices == (requestPrices{}) {
		return Reservation{}, event.None, event.Shortfall{}
	}
	month := accounting.MonthOf(r.At).From
	c.bill.begin(b.Usage, r.Tenant, t)
	at := slices.IndexFunc(c.unpaid, func(u *unpaid) bool { return u.tenant == r.Tenant && u.terms == t })
	if at >= 0 {
		c.unpaid[at].addTo(&c.bill, month)
	}
	prices.each(1, r.In, 0, func(price int, n types.Amount) { c.bill.addAmount(price, month, n) })
	if problem, lacks := c.judge(r.At, b); problem != event.None {
		return Reservation{}, problem, lacks
	}
	if at < 0 {
		at = len(c.unpaid)
		c.unpaid = append(c.unpaid, &unpaid{tenant: r.Tenant, terms: t})
	}
	u := c.unpaid[at]
	u.requests++
	prices.each(1, r.In, 0, u.inProgress.add)
	return Reservation{u, prices, r.In}, event.None, event.Shortfall{}
}

// judge returns why the payer cannot pay the bill and the arrears.
func (c *Credit) judge(at types.Time, b Books) (event.Problem, event.Shortfall) {
	c.bill.addArrears(at)
	if problem := c.bill.price(); problem != event.None {
		return problem, event.Shortfall{}
	}
	if lacks := c.bill.shortfall(at, b.Wallet); lacks.Asset > 0 {
		return event.PrepaidExceeded, lacks
	}
	if c.bill.due != ([pricing.MaxPrices]types.Amount{}) && b.Wallet.Frozen(c.bill.tenant, c.bill.terms.payer.ID) {
		return event.AccountFrozen, event.Shortfall{}
	}
	return event.None, event.Shortfall{}
}

// End ends a request in progress. What it has used, if anything, is reserved until it is recorded.
func (c *Credit) End(r Reservation, requests, in, out uint64) {
	if r.IsZero() {
		return
	}
	r.of.requests--
	r.prices.each(1, r.body, 0, r.of.inProgress.sub)
	r.prices.each(requests, in, out, r.of.counted.add)
}

// Take marks what has ended as being recorded. Recorded follows for each tenant.
func (c *Credit) Take() {
	for _, u := range c.unpaid {
		u.flushing, u.counted = u.counted, units{}
	}
}

// Recorded forgets what is in the lines now. What could not be recorded yet is kept.
func (c *Credit) Recorded(isKept func(types.Tenant) bool) {
	c.unpaid = slices.DeleteFunc(c.unpaid, func(u *unpaid) bool {
		if isKept(u.tenant) {
			for price, n := range u.flushing {
				u.counted.add(price, n)
			}
		}
		u.flushing = units{}
		return u.requests == 0 && u.counted == units{}
	})
}

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
