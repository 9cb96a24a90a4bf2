package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"macronode/chaos/charges"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	moneymodel "macronode/models/ledger"
)

// prepaidBooks are what the journal has of a prepaid tenant up to a frame: its lines, and its money by the reference model of the
// ledger. They are never changed, so that a crash returns to those of an earlier frame.
type prepaidBooks struct {
	lsn   types.LSN
	at    types.Time
	lines map[prepaidLine]prepaidSum
	money *moneymodel.State
	paid  map[string]*big.Int // of each asset: what the payments of the node have moved
	ended map[string]*big.Int // of each asset: what closed lines had paid
}

// A prepaidLine is a price in a month.
type prepaidLine struct {
	price types.NameHash
	month int64
}

// A prepaidSum is what a line has.
type prepaidSum struct{ units, paid, cost *big.Int }

func newPrepaidBooks(l ledger.Limits) prepaidBooks {
	return prepaidBooks{lines: map[prepaidLine]prepaidSum{}, money: moneymodel.New(meant(l)), paid: map[string]*big.Int{}, ended: map[string]*big.Int{}}
}

// next returns a copy that may be changed.
func (b *prepaidBooks) next(lsn types.LSN, at types.Time) prepaidBooks {
	return prepaidBooks{lsn, at, maps.Clone(b.lines), b.money.Clone(), maps.Clone(b.paid), maps.Clone(b.ended)}
}

func (b *prepaidBooks) line(k prepaidLine) prepaidSum {
	if s, exists := b.lines[k]; exists {
		return s
	}
	return prepaidSum{new(big.Int), new(big.Int), new(big.Int)}
}

// available returns what the payer may spend of an asset.
func (b *prepaidBooks) available(at types.Time, asset string) *big.Int {
	has, _ := b.money.Balance(usageTenant, prepaidPayer, asset)
	return has.Sub(has, b.money.Kept(at, usageTenant, prepaidPayer, asset))
}

// debitLimit returns what the limits of amounts let one payment move.
func (b *prepaidBooks) debitLimit(at types.Time, asset string) *big.Int {
	l := limits().Ledger
	n := new(big.Int).Sub(number(l.MaxDailyDebit), b.money.Left(moneymodel.Op{At: at, Tenant: usageTenant, Kind: "transfer", From: prepaidPayer, Asset: asset}))
	n.Sub(n, b.money.Kept(at, usageTenant, prepaidPayer, asset))
	if most := number(l.MaxAmount); most.Cmp(n) < 0 {
		return most
	}
	return n
}

// last returns the books after all frames, of returns those after a frame.
func (p *prepaidWorld) last() *prepaidBooks { return &p.books[len(p.books)-1] }
func (p *prepaidWorld) of(lsn types.LSN) *prepaidBooks {
	at := len(p.books) - 1
	for p.books[at].lsn > lsn {
		at--
	}
	return &p.books[at]
}

// upto forgets the books after a frame.
func (p *prepaidWorld) upto(w *World, last types.LSN) {
	for i := len(p.books) - 1; p.books[i].lsn > last; i-- {
		w.note(sum(p.books[i].paid).Cmp(sum(p.books[i-1].paid)) > 0, "prepaid: a payment is lost with its frame")
		p.books = p.books[:i]
	}
	p.history = slices.DeleteFunc(p.history, func(r charges.Request) bool { return r.Frame > last })
}

func sum(all map[string]*big.Int) *big.Int {
	total := new(big.Int)
	for _, n := range all { //nolint:maporder // a sum
		total.Add(total, n)
	}
	return total
}

func addTo(m map[string]*big.Int, asset string, n *big.Int) {
	was := m[asset]
	if was == nil {
		was = new(big.Int)
	}
	m[asset] = new(big.Int).Add(was, n)
}

func isPositive(n *big.Int) bool { return n.Sign() > 0 }

// A prepaidUse is units of a series in a month.
type prepaidUse struct {
	dimension, labels string
	units             uint64
	month             int64
}

// monthOf returns the begin of the month of a time.
func monthOf(at types.Time) int64 { return charges.MonthOf(int64(at)) }

// windowOf returns the begin of the window of a time.
func windowOf(at types.Time) types.Time { return at - at%types.Time(usageWindow.Milliseconds()) }

// A prepaidBill is what lines cost with more units.
type prepaidBill struct {
	lines  map[prepaidLine]prepaidCharge
	fresh  int // lines that do not exist
	assets []string
	due    []*big.Int // of each asset
	tooBig bool       // a price is larger than an amount may be
}

type prepaidCharge struct {
	units, paid, cost *big.Int
	asset             string
	isUsed            bool // it has more units
}

// due returns what is to be paid of a line.
func (c *prepaidCharge) due() *big.Int {
	d := new(big.Int).Sub(c.cost, c.paid)
	if d.Sign() < 0 {
		return new(big.Int)
	}
	return d
}

// bill returns what usage costs by a price list: only of the lines that it is in, or with the arrears of all lines.
func (b *prepaidBooks) bill(list int, at types.Time, uses []prepaidUse, withArrears bool) (of prepaidBill) {
	of.lines, of.assets = map[prepaidLine]prepaidCharge{}, assetsOf(list)
	for range of.assets {
		of.due = append(of.due, new(big.Int))
	}
	for i := range priceLists[list] {
		p := &priceLists[list][i]
		id := charges.LineID(p)
		add := func(k prepaidLine, units uint64, isUsed bool) {
			c, there := of.lines[k]
			if !there {
				s, exists := b.lines[k]
				if !exists {
					of.fresh++
					s = b.line(k)
				}
				c = prepaidCharge{units: s.units, paid: s.paid, cost: s.cost, asset: p.Asset}
			}
			c.units = new(big.Int).Add(c.units, new(big.Int).SetUint64(units))
			c.isUsed = c.isUsed || isUsed
			of.lines[k] = c
		}
		for _, u := range uses {
			if charges.Applies(p, u.dimension, u.labels) {
				add(prepaidLine{id, u.month}, u.units, true)
			}
		}
		if withArrears {
			for k := range b.lines { //nolint:maporder // the order changes nothing
				if k.price == id {
					add(k, 0, false)
				}
			}
		}
		for k, c := range of.lines { //nolint:maporder // a sum
			if k.price == id {
				if c.isUsed { // otherwise the cost is that by the prices of before
					c.cost = charges.Cost(p, c.units)
				}
				of.lines[k] = c
				of.tooBig = of.tooBig || c.cost.Cmp(number(types.MaxSupply())) > 0
				n := of.due[slices.Index(of.assets, p.Asset)]
				n.Add(n, c.due())
			}
		}
	}
	return of
}

// A prepaidLack is what an account lacks of an asset; the zero value: nothing.
type prepaidLack struct {
	asset  string
	amount string
}

// lack returns what the payer lacks in the first asset of which it has less than is due.
func (b *prepaidBooks) lack(at types.Time, of *prepaidBill) prepaidLack {
	for i, asset := range of.assets {
		if missing := new(big.Int).Sub(of.due[i], b.available(at, asset)); missing.Sign() > 0 {
			return prepaidLack{asset, missing.String()}
		}
	}
	return prepaidLack{}
}

// lackOf is a shortfall of the product by the terms of a list.
func lackOf(t *flow.Terms, s event.Shortfall) prepaidLack {
	if s.Asset == 0 {
		return prepaidLack{}
	}
	return prepaidLack{t.Asset(s), s.Amount.String()}
}

// A prepaidOutcome is what the books say becomes of a command.
type prepaidOutcome struct {
	problem event.Problem // not recorded
	lack    prepaidLack
	bill    prepaidBill
	pays    map[string]*big.Int // of each asset, positive
	unpaid  event.Problem       // why a payment was rejected
	list    int                 // of the prices; postpaid: nothing is priced
}

// transferProblems are those of the reference model of the ledger.
var transferProblems = map[string]event.Problem{"frozen": event.AccountFrozen, "day": event.DailyLimitExceeded, "amount": event.AmountLimitExceeded, "room": event.CapacityExceeded}

// transfer makes a payment on the model. Expired holds of the payer end before.
func (b *prepaidBooks) transfer(at types.Time, asset string, amount *big.Int) event.Problem {
	for id, _, over := b.money.Over(at, usageTenant, prepaidPayer); over; id, _, over = b.money.Over(at, usageTenant, prepaidPayer) {
		b.money.Lapse(id)
	}
	_, nonce := b.money.Balance(usageTenant, prepaidPayer, asset)
	why := b.money.Do(moneymodel.Op{At: at, Tenant: usageTenant, Kind: "transfer", From: prepaidPayer, To: prepaidEarner, Asset: asset, Amount: amount, Nonce: nonce})
	if why == "" {
		return event.None
	}
	return transferProblems[why]
}

// events returns what becomes of events that the usage model accepts: they are paid, or have no effect.
func (b *prepaidBooks) events(list, room int, at types.Time, uses []prepaidUse) (o prepaidOutcome) {
	o.list, o.pays = list, map[string]*big.Int{}
	o.bill = b.bill(list, at, uses, false)
	switch {
	case o.bill.tooBig:
		o.problem = event.AmountLimitExceeded
	case o.bill.fresh > 0 && len(b.lines)+o.bill.fresh > room:
		o.problem = event.UsageCapacity
	default:
		if o.lack = b.lack(at, &o.bill); o.lack != (prepaidLack{}) {
			o.problem = event.PrepaidExceeded
		}
	}
	if o.problem != event.None {
		return o
	}
	tried := b.next(b.lsn, at)
	for i, asset := range o.bill.assets {
		if n := o.bill.due[i]; n.Sign() > 0 {
			if o.problem = tried.transfer(at, asset, n); o.problem != event.None {
				return o
			}
			o.pays[asset] = n
		}
	}
	return o
}

// requests returns what becomes of requests that the usage model accepts: they are recorded, and paid as far as there is money.
func (b *prepaidBooks) requests(list, room int, at types.Time, uses []prepaidUse) (o prepaidOutcome) {
	o.list, o.pays = list, map[string]*big.Int{}
	o.bill = b.bill(list, at, uses, true)
	switch {
	case o.bill.tooBig:
		o.problem = event.AmountLimitExceeded
		return o
	case o.bill.fresh > 0 && len(b.lines)+o.bill.fresh > room:
		o.problem = event.UsageCapacity
		return o
	}
	tried := b.next(b.lsn, at)
	for i, asset := range o.bill.assets {
		n := o.bill.due[i]
		if available := tried.available(at, asset); available.Cmp(n) < 0 {
			n = available
		}
		if n.Sign() <= 0 {
			continue
		}
		if limit := tried.debitLimit(at, asset); limit.Cmp(n) < 0 {
			n = limit
		}
		if n.Sign() <= 0 {
			o.unpaid = cmp.Or(o.unpaid, event.DailyLimitExceeded)
			continue
		}
		if why := tried.transfer(at, asset, n); why != event.None {
			o.unpaid = cmp.Or(o.unpaid, why)
			continue
		}
		o.pays[asset] = n
	}
	return o
}

// settles compares the lines and payments of a frame with an outcome, and enters them. Which line is paid first is free.
func (b *prepaidBooks) settles(o *prepaidOutcome, lines map[prepaidLine]prepaidSum, pays map[string]*big.Int) (why string) {
	if !maps.EqualFunc(o.pays, pays, func(a, b *big.Int) bool { return a.Cmp(b) == 0 }) {
		return fmt.Sprintf("it pays %v, which must be %v", pays, o.pays)
	}
	moved := map[string]*big.Int{}
	for k, is := range lines { //nolint:maporder // the rule is the same for each
		c, asked := o.bill.lines[k]
		was := b.line(k)
		most := was.paid
		if asked && most.Cmp(c.cost) < 0 {
			most = c.cost
		}
		switch {
		case !asked || is.units.Cmp(c.units) != 0:
			return fmt.Sprintf("line %x of %d has %v units, which must be %v", k.price[:2], k.month, is.units, c.units)
		case is.cost.Cmp(c.cost) != 0:
			return fmt.Sprintf("line %x of %d costs %v, which must be %v", k.price[:2], k.month, is.cost, c.cost)
		case is.paid.Cmp(was.paid) < 0 || is.paid.Cmp(most) > 0:
			return fmt.Sprintf("line %x of %d has paid %v, before %v, at most %v", k.price[:2], k.month, is.paid, was.paid, most)
		}
		if n := new(big.Int).Sub(is.paid, was.paid); n.Sign() > 0 {
			addTo(moved, c.asset, n)
		}
		b.lines[k] = is
	}
	for k, c := range o.bill.lines { //nolint:maporder // the rule is the same for each
		if _, changed := lines[k]; c.isUsed && !changed {
			return fmt.Sprintf("line %x of %d is not recorded", k.price[:2], k.month)
		}
	}
	if !maps.EqualFunc(moved, pays, func(a, b *big.Int) bool { return a.Cmp(b) == 0 }) {
		return fmt.Sprintf("it pays %v, and its lines have paid %v more", pays, moved)
	}
	return ""
}

// assetsOf returns the assets of a price list, in its order.
func assetsOf(list int) (all []string) {
	for i := range priceLists[list] {
		if asset := priceLists[list][i].Asset; !slices.Contains(all, asset) {
			all = append(all, asset)
		}
	}
	return all
}
