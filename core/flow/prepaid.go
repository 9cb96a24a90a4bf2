package flow

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/pricing"
	"macronode/core/types"
	"macronode/core/wallet"
)

// Terms are what a prepaid tenant pays for usage, and with which accounts. They do not change.
type Terms struct {
	prices      pricing.List
	list        accounting.Digest
	payer       types.Name
	beneficiary types.Name
	ids         []types.NameHash // of the prices
	assets      []types.Name
	assetOf     []uint16 // of each price, its place in assets
}

// ErrPerWindow reports a price that a prepaid tenant cannot have.
var ErrPerWindow = errors.New("flow: a flat price for each window has no prepaid line")

// NewTerms returns the terms of valid prices. Payer and beneficiary are two accounts of the tenant. Its error is
// ErrPerWindow.
func NewTerms(prices pricing.List, payer, beneficiary string) (*Terms, error) {
	name := func(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }
	t := &Terms{prices: prices, list: prices.Digest(), payer: name(payer), beneficiary: name(beneficiary)}
	for i := range prices {
		p := &prices[i]
		if p.PerWindow {
			return nil, ErrPerWindow
		}
		at := slices.IndexFunc(t.assets, func(n types.Name) bool { return string(n.Text) == p.Asset })
		if at < 0 {
			at = len(t.assets)
			t.assets = append(t.assets, name(p.Asset))
		}
		t.ids, t.assetOf = append(t.ids, LineID(p)), append(t.assetOf, uint16(at))
	}
	return t, nil
}

// Asset returns the asset of a shortfall.
func (t *Terms) Asset(s event.Shortfall) string { return string(t.assets[s.Asset-1].Text) }

// String describes the accounts and the digest of the price list.
func (t *Terms) String() string {
	return string(t.payer.Text) + " pays " + string(t.beneficiary.Text) + " by " + t.list.String()
}

// Payer returns the account that pays.
func (t *Terms) Payer() string { return string(t.payer.Text) }

// LineID identifies the line of a price: it covers what the price is for, but not how much it is.
func LineID(p *pricing.Price) types.NameHash {
	b := []byte("line\x00" + p.Name + "\x00" + p.Dimension + "\x00" + p.Asset)
	for _, l := range p.Labels {
		b = append(append(append(append(b, 0), l.Name...), '='), l.Value...)
	}
	return digest.Name(b)
}

// PrepaidEvents records usage events and pays for them, or does neither. Its problems are those of RecordEvents and of
// a transfer, and PrepaidExceeded, with the shortfall, if the available balance of the payer is less than the price.
type PrepaidEvents struct {
	accounting.RecordEvents
	Terms *Terms
	Key   types.Name // of the transfers; unique, at most MaxTransferKey bytes

	keys   []types.Name // of the transfer in each asset
	prices []uint64     // of each event, those that apply: bit i is price i
}

// MaxTransferKey is the number of bytes of the key of PrepaidEvents: the transfers append their number.
const MaxTransferKey = types.MaxKey - 3

const (
	_ = uint(64 - pricing.MaxPrices) // the prices of an event are bits

	// A frame has the events, the report, the lines, the transfers, the holds that they end and the keys that it evicts.
	_ = uint(types.MaxRecords - (accounting.MaxEvents + 1 + maxLineRecords + pricing.MaxPrices + types.MaxExpiriesPerStep + 1))

	maxLineRecords = accounting.LineMonths*pricing.MaxPrices/accounting.LineEntries + 1
)

// ValidateFields returns why c is invalid.
func (c *PrepaidEvents) ValidateFields() error {
	if err := c.RecordEvents.ValidateFields(); err != nil {
		return err
	}
	if c.Terms == nil || len(c.Key.Text) == 0 || len(c.Key.Text) > MaxTransferKey || len(c.prices) != len(c.Events) || len(c.keys) != len(c.Terms.assets) {
		return ErrKey
	}
	return nil
}

// Seal computes the digests of c and finds the prices of its events, outside of the step. Its error is that of
// RecordEvents.
func (c *PrepaidEvents) Seal() error {
	if err := c.RecordEvents.SealPrepaid(); err != nil {
		return err
	}
	c.keys, c.prices = make([]types.Name, len(c.Terms.assets)), make([]uint64, len(c.Events))
	for i := range c.keys {
		text := strconv.AppendInt(append(slices.Clone(c.Key.Text), '.'), int64(i), 10)
		c.keys[i] = types.Name{ID: digest.Name(text), Text: text}
	}
	for i := range c.Events {
		s := &c.Events[i].Series
		for j := range c.Terms.prices {
			if p := &c.Terms.prices[j]; p.Dimension == string(s.Dimension) && p.Matches(s.Labels) {
				c.prices[i] |= 1 << j
			}
		}
	}
	return nil
}

// A charge is a line with the usage of a command.
type charge struct {
	accounting.LineChange
	price int
	isNew bool // the line
}

// Prepaid decides PrepaidEvents. It stands in the place of the accounting plane, which authorizes them.
//
//	check events ──► add them to lines ──► price ──► compare with the balance ──► transfers ──► lines, report, usage
type Prepaid struct {
	*accounting.Plane
	wallet  *wallet.Wallet
	request event.Request                   // scratch
	charges []charge                        // scratch
	last    [pricing.MaxPrices]int          // scratch: of each price, the charge that was used last, plus one
	lines   []accounting.LineChange         // scratch
	due     [pricing.MaxPrices]types.Amount // scratch: of each asset
}

// Over returns p as the plane that decides c, over the planes of a state: nil if c is not PrepaidEvents.
func (p *Prepaid) Over(c command.Command, usage plane.Plane, w *wallet.Wallet) plane.Plane {
	if _, ok := c.(*PrepaidEvents); !ok {
		return nil
	}
	p.Plane, _ = usage.(*accounting.Plane)
	if p.wallet = w; p.Plane == nil {
		return nil
	}
	return p
}

// Cost is that of the events, the lines and a transfer in each asset.
func (p *Prepaid) Cost(c command.Command) command.Cost {
	in := c.(*PrepaidEvents)
	cost := p.Plane.Cost(&in.RecordEvents)
	cost.Bytes += accounting.LineBytes(len(in.Terms.prices))
	for i := range in.keys {
		p.prepare(in, i)
		money := p.wallet.Cost(&p.request)
		cost.Rows += money.Rows
		cost.Bytes += money.Bytes
	}
	return cost
}

// prepare makes the request of the transfer in an asset, without its amount.
func (p *Prepaid) prepare(in *PrepaidEvents, asset int) {
	p.request = event.Request{Header: command.Header{Ticket: in.Ticket, Caller: in.Caller, Tenant: in.Tenant, Key: in.keys[asset]},
		Item: event.Item{Op: event.Transfer, From: in.Terms.payer, To: in.Terms.beneficiary, Asset: in.Terms.assets[asset]}}
}

// Decide records the events of c and pays for them, or sets the problem of reply.
func (p *Prepaid) Decide(at types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	in := c.(*PrepaidEvents)
	d := p.Plane.CheckPrepaid(at, &in.RecordEvents, f, reply)
	if reply.Problem != event.None {
		return
	}
	p.addUsage(in, &d)
	if reply.Problem = p.price(in); reply.Problem != event.None {
		return
	}
	if reply.Shortage = d.LineShortage(p.newLines()); reply.Shortage.Limit != event.NoLimit {
		reply.Problem = event.UsageCapacity
		return
	}
	if reply.Shortfall = p.shortfall(at, in); reply.Shortfall.Asset > 0 {
		reply.Problem = event.PrepaidExceeded
		return
	}
	if p.pay(at, in, f, reply); reply.Problem != event.None {
		return
	}
	d.Record(in.Terms.list, p.sortedLines(), f, reply)
}

// addUsage adds the new events to the lines of their prices and months.
func (p *Prepaid) addUsage(in *PrepaidEvents, d *accounting.Prepaid) {
	p.charges, p.last = p.charges[:0], [pricing.MaxPrices]int{}
	for i := range in.Events {
		month, ok := d.IsNew(i)
		if !ok || in.prices[i] == 0 {
			continue
		}
		for j := range in.Terms.prices {
			if in.prices[i]>>j&1 == 1 {
				c := p.charge(in, j, month)
				c.Units, _ = c.Units.Add(types.MinorUnits(in.Events[i].Value)) // 2^64 events do not overflow it
			}
		}
	}
}

// charge returns the charge of a price and a month. Events of one price mostly have the same month as the one before.
func (p *Prepaid) charge(in *PrepaidEvents, price int, month types.Time) *charge {
	at := p.last[price] - 1
	if at < 0 || p.charges[at].Month != month {
		at = slices.IndexFunc(p.charges, func(c charge) bool { return c.price == price && c.Month == month })
	}
	if at < 0 {
		k := accounting.LineKey{Tenant: in.Tenant, Price: in.Terms.ids[price], Month: month}
		was, exists := p.Plane.Line(k)
		at = len(p.charges)
		p.charges = append(p.charges, charge{accounting.LineChange{LineKey: k, Line: was}, price, !exists})
	}
	p.last[price] = at + 1
	return &p.charges[at]
}

// price computes what is due in each asset. What is paid above the price is kept as credit.
func (p *Prepaid) price(in *PrepaidEvents) event.Problem {
	p.due = [pricing.MaxPrices]types.Amount{}
	for i := range p.charges {
		c := &p.charges[i]
		costs, err := in.Terms.prices[c.price].Amount(pricing.Quantity{Units: c.Units, Windows: 1})
		if err != nil {
			return event.AmountLimitExceeded
		}
		if !c.Paid.Less(costs) {
			continue
		}
		more, _ := costs.Sub(c.Paid)
		due, ok := &p.due[in.Terms.assetOf[c.price]], false
		if *due, ok = due.Add(more); !ok {
			return event.AmountLimitExceeded
		}
		c.Paid = costs
	}
	return event.None
}

func (p *Prepaid) newLines() (n int) {
	for i := range p.charges {
		if p.charges[i].isNew {
			n++
		}
	}
	return n
}

// shortfall returns what the payer lacks in the first asset of which it has too little.
func (p *Prepaid) shortfall(at types.Time, in *PrepaidEvents) event.Shortfall {
	for i := range in.Terms.assets {
		has, held, _ := p.wallet.Balance(at, in.Tenant, in.Terms.payer.ID, in.Terms.assets[i].ID)
		available, _ := has.Sub(held)
		if missing, _ := p.due[i].Sub(available); available.Less(p.due[i]) {
			return event.Shortfall{Asset: uint16(i + 1), Amount: missing}
		}
	}
	return event.Shortfall{}
}

// pay makes the transfers, or none of them and sets the problem of reply. If the payer has more expired holds than a step
// may end, those that it ended stay ended, so that a retry goes on.
func (p *Prepaid) pay(at types.Time, in *PrepaidEvents, f plane.Frame, reply *event.Reply) {
	f.Savepoint()
	made := 0
	for i := range in.Terms.assets {
		if p.due[i].IsZero() {
			continue
		}
		p.prepare(in, i)
		_, _, p.request.Nonce = p.wallet.Balance(at, in.Tenant, in.Terms.payer.ID, in.Terms.assets[i].ID)
		p.request.Amount = p.due[i]
		if decideMoney(p.wallet, &p.request, at, f, reply); reply.Problem == event.None {
			made++
			continue
		}
		if reply.Position = (types.Position{}); reply.Problem != event.Busy || made > 0 {
			f.Undo()
			return
		}
		break
	}
	f.Commit()
}

// sortedLines returns the lines of the charges in the order of price and month.
func (p *Prepaid) sortedLines() []accounting.LineChange {
	p.lines = p.lines[:0]
	for i := range p.charges {
		p.lines = append(p.lines, p.charges[i].LineChange)
	}
	slices.SortFunc(p.lines, func(a, b accounting.LineChange) int {
		return cmp.Or(slices.Compare(a.Price[:], b.Price[:]), cmp.Compare(a.Month, b.Month))
	})
	return p.lines
}
