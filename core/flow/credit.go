package flow

import (
	"maps"
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
	Upto   types.LSN // the last frame that they have
}

// A Credit decides before a request of a prepaid tenant is served whether the payer can pay for it. What counts is all that is not
// paid yet:
//
//	arrears of the lines + requests that are not recorded yet + requests in progress + this one  ≤  available balance
//
// A request in progress counts as one request and the declared bytes of its body, and as soon as the size of the response is known, as
// that. Of a response of an upstream it is not known. A Credit is volatile: a crash loses with it the usage that it knows. It is not
// safe for concurrent use.
//
//	Reserve ──► ReserveResponse ──► End ──► Take ──► Recorded
//	   └──────────────┴─► Cancel     ▲        ├────► Unknown ──the books have the frame──► forgotten
//	                                 └────────┴ Keep
type Credit struct {
	unpaid []*unpaid // of tenants that have any
	bill   bill      // scratch
}

// NewCredit returns a credit without requests.
func NewCredit() *Credit { return new(Credit) }

// unpaid is the usage of requests of a tenant that is not recorded yet. They have the terms that were in force when they came: after a
// reload a tenant has others, by which they count from then on.
type unpaid struct {
	tenant     types.Tenant
	terms      *Terms
	requests   int   // in progress
	inProgress units // of these
	ended      units // of those that have ended
	counted    usedByKey
	flushing   usedByKey // of those that have ended: being recorded
	unknown    []unknownUse
}

// used is what requests of a key have used that had a reservation.
type used struct {
	prices            requestPrices
	requests, in, out uint64
}

type usedByKey map[accounting.RequestKey]used

// add adds usage of a key, which has the same prices each time.
func (m *usedByKey) add(k accounting.RequestKey, n used) {
	if *m == nil {
		*m = make(usedByKey)
	}
	sum := (*m)[k]
	(*m)[k] = used{n.prices, sum.requests + n.requests, sum.in + n.in, sum.out + n.out}
}

// unknownUse is usage whose recording has an unknown outcome. Its frame is at most upto.
type unknownUse struct {
	used
	upto types.LSN
}

// units are units of each price.
type units [pricing.MaxPrices]types.Amount

// addTo adds all of u to the lines of a month, by the terms of b: after a reload they are others. What has a price that is none of these
// is free.
func (u *unpaid) addTo(b *bill, month types.Time) {
	for price, line := range u.terms.ids {
		at := price
		if u.terms != b.terms {
			at = slices.Index(b.terms.ids, line)
		}
		for _, n := range [...]types.Amount{u.inProgress[price], u.ended[price]} {
			if !n.IsZero() && at >= 0 {
				b.addAmount(at, month, n)
			}
		}
	}
}

// forget removes usage that is not waiting any more.
func (u *unpaid) forget(n used) { n.prices.each(n.requests, n.in, n.out, u.ended.sub) }

// settle forgets usage with an unknown outcome of which the books have the frame by now, if there is one.
func (u *unpaid) settle(upto types.LSN) {
	u.unknown = slices.DeleteFunc(u.unknown, func(n unknownUse) bool {
		if n.upto <= upto {
			u.forget(n.used)
		}
		return n.upto <= upto
	})
}

func (u *unpaid) isEmpty() bool {
	return u.requests+len(u.counted)+len(u.flushing)+len(u.unknown) == 0
}

// A Reservation is what a request in progress has reserved. The zero value has reserved nothing.
type Reservation struct {
	of       *unpaid
	prices   requestPrices
	body     uint64 // declared
	response uint64 // as far as it is known
}

// IsZero reports whether r has reserved nothing.
func (r Reservation) IsZero() bool { return r.of == nil }

// requestPrices are the prices that apply to the requests, the bytes in and the bytes out of a request: bit i is price i.
type requestPrices [3]uint64

func (t *Terms) pricesOfRequest(r *accounting.Request) (prices requestPrices) {
	if r.Labels == nil { // it cannot be recorded
		return prices
	}
	for i, dimension := range [...]string{"requests", "bytes_in", "bytes_out"} {
		prices[i] = t.pricesOf(dimension, r.Labels.Text())
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
// with the shortfall, AccountFrozen if the payer is, AmountLimitExceeded, and UsageCapacity if it needs a line for which there is
// no room. A request without a price reserves nothing.
func (c *Credit) Reserve(r *accounting.Request, t *Terms, b Books) (Reservation, event.Problem, event.Shortfall) {
	prices := t.pricesOfRequest(r)
	if prices == (requestPrices{}) {
		return Reservation{}, event.None, event.Shortfall{}
	}
	at := slices.IndexFunc(c.unpaid, func(u *unpaid) bool { return u.tenant == r.Tenant && u.terms == t })
	var u *unpaid
	if at < 0 {
		u = &unpaid{tenant: r.Tenant, terms: t}
	} else {
		u = c.unpaid[at]
	}
	if problem, lacks := c.judge(u, r.At, b, prices, 1, r.In, 0); problem != event.None {
		return Reservation{}, problem, lacks
	}
	if at < 0 {
		c.unpaid = append(c.unpaid, u)
	}
	u.requests++
	prices.each(1, r.In, 0, u.inProgress.add)
	return Reservation{u, prices, r.In, 0}, event.None, event.Shortfall{}
}

// ReserveResponse reserves the size of the response of a request in progress too, before the first byte is sent: once for each
// request. Its problems are those of Reserve, and then nothing more is reserved than before.
func (c *Credit) ReserveResponse(r Reservation, at types.Time, size uint64, b Books) (Reservation, event.Problem, event.Shortfall) {
	if r.IsZero() || r.prices[2] == 0 || size == 0 {
		return r, event.None, event.Shortfall{}
	}
	if problem, lacks := c.judge(r.of, at, b, r.prices, 0, 0, size); problem != event.None {
		return r, problem, lacks
	}
	r.prices.each(0, 0, size, r.of.inProgress.add)
	r.response = size
	return r, event.None, event.Shortfall{}
}

// judge returns why the arrears, what is unpaid, and so many requests and bytes more cannot be paid.
func (c *Credit) judge(u *unpaid, at types.Time, b Books, prices requestPrices, requests, in, out uint64) (event.Problem, event.Shortfall) {
	month := accounting.MonthOf(at).From
	c.bill.begin(b.Usage, u.tenant, u.terms)
	u.settle(b.Upto)
	u.addTo(&c.bill, month)
	for _, o := range c.unpaid {
		if o.tenant == u.tenant && o != u {
			o.settle(b.Upto)
			o.addTo(&c.bill, month)
		}
	}
	prices.each(requests, in, out, func(price int, n types.Amount) { c.bill.addAmount(price, month, n) })
	c.bill.addArrears(at)
	if problem := c.bill.price(); problem != event.None {
		return problem, event.Shortfall{}
	}
	if b.Usage.LineShortage(c.bill.newLines()).Limit != event.NoLimit {
		return event.UsageCapacity, event.Shortfall{}
	}
	if lacks := c.bill.shortfall(at, b.Wallet); lacks.Asset > 0 {
		return event.PrepaidExceeded, lacks
	}
	if c.bill.due != ([pricing.MaxPrices]types.Amount{}) && b.Wallet.Frozen(c.bill.tenant, c.bill.terms.payer.ID) {
		return event.AccountFrozen, event.Shortfall{}
	}
	return event.None, event.Shortfall{}
}

// Cancel gives back what a request had reserved that does not count.
func (c *Credit) Cancel(r Reservation) {
	if !r.IsZero() {
		r.of.requests--
		r.prices.each(1, r.body, r.response, r.of.inProgress.sub)
	}
}

// End ends a request in progress. What it has used stays reserved until its key is recorded.
func (c *Credit) End(r Reservation, k accounting.RequestKey, of *accounting.Request) {
	if r.IsZero() {
		return
	}
	c.Cancel(r)
	n := used{r.prices, 1, of.In, of.Out}
	if of.InFrame {
		n.requests = 0
	}
	r.of.counted.add(k, n)
	n.prices.each(n.requests, n.in, n.out, r.of.ended.add)
}

// Take marks what has ended as being recorded. all is what the meter has handed over: what it has not is lost.
func (c *Credit) Take(all []*accounting.MeteredUsage) {
	for _, u := range c.unpaid {
		u.flushing, u.counted = u.counted, nil
		taken := make(map[accounting.RequestKey]bool, len(u.flushing))
		for _, m := range all {
			if m.Command.Tenant == u.tenant {
				for k := range m.Keys {
					taken[k] = true
				}
			}
		}
		maps.DeleteFunc(u.flushing, func(k accounting.RequestKey, n used) bool {
			isLost := !taken[k]
			if isLost {
				u.forget(n)
			}
			return isLost
		})
	}
}

// Recorded forgets usage that is in the lines now, or is lost.
func (c *Credit) Recorded(m *accounting.MeteredUsage) {
	c.taken(m, func(u *unpaid, n used) { u.forget(n) })
}

// Unknown keeps usage that is recorded in a frame up to upto, or not at all, until the books have that frame.
func (c *Credit) Unknown(m *accounting.MeteredUsage, upto types.LSN) {
	c.taken(m, func(u *unpaid, n used) { u.unknown = append(u.unknown, unknownUse{n, upto}) })
}

// taken passes what is being recorded of the keys of m, and ends that.
func (c *Credit) taken(m *accounting.MeteredUsage, pass func(*unpaid, used)) {
	for _, u := range c.unpaid {
		if u.tenant != m.Command.Tenant {
			continue
		}
		for k := range m.Keys {
			if n, is := u.flushing[k]; is {
				pass(u, n)
				delete(u.flushing, k)
			}
		}
	}
}

// Keep keeps what could not be recorded yet: it is taken again.
func (c *Credit) Keep(b Books) {
	c.unpaid = slices.DeleteFunc(c.unpaid, func(u *unpaid) bool {
		maps.DeleteFunc(u.flushing, func(k accounting.RequestKey, n used) bool {
			u.counted.add(k, n)
			return true
		})
		u.settle(b.Upto)
		return u.isEmpty()
	})
}
