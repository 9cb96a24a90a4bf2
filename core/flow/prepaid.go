package flow

import (
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/pricing"
	"macronode/core/types"
	"macronode/core/wallet"
)

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
	return checkTerms(c.Terms, c.Key, c.keys, len(c.prices) == len(c.Events))
}

// checkTerms returns ErrKey unless a command with a key has its terms and was sealed.
func checkTerms(t *Terms, key types.Name, keys []types.Name, isSealed bool) error {
	if t == nil || !isSealed || len(key.Text) == 0 || len(key.Text) > MaxTransferKey || len(keys) != len(t.assets) {
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
	c.keys, c.prices = c.Terms.keys(c.Key), make([]uint64, len(c.Events))
	for i := range c.Events {
		s := &c.Events[i].Series
		c.prices[i] = c.Terms.pricesOf(string(s.Dimension), s.Labels)
	}
	return nil
}

// Prepaid decides PrepaidEvents and PayRequests. It stands in the place of the accounting plane, which authorizes them.
//
//	check usage ──► add it to lines ──► price ──► compare with the balance ──► transfers ──► lines, report, usage
type Prepaid struct {
	*accounting.Plane
	wallet  *wallet.Wallet
	request event.Request // scratch
	bill    bill          // scratch
}

// Over returns p as the plane that decides c, over the planes of a state: nil if c has no terms.
func (p *Prepaid) Over(c command.Command, usage plane.Plane, w *wallet.Wallet) plane.Plane {
	switch c.(type) {
	case *PrepaidEvents, *PayRequests:
	default:
		return nil
	}
	p.Plane, _ = usage.(*accounting.Plane)
	if p.wallet = w; p.Plane == nil {
		return nil
	}
	return p
}

// Cost is that of the usage, the lines and a transfer in each asset.
func (p *Prepaid) Cost(c command.Command) (cost command.Cost) {
	var (
		terms *Terms
		keys  []types.Name
	)
	switch in := c.(type) {
	case *PrepaidEvents:
		cost, terms, keys = p.Plane.Cost(&in.RecordEvents), in.Terms, in.keys
	case *PayRequests:
		cost, terms, keys = p.Plane.Cost(&in.RecordMetered), in.Terms, in.keys
	}
	cost.Bytes += accounting.LineBytes(len(terms.prices))
	for i := range keys {
		p.prepare(c.Head(), terms, keys, i)
		money := p.wallet.Cost(&p.request)
		cost.Rows += money.Rows
		cost.Bytes += money.Bytes
	}
	return cost
}

// prepare makes the request of the transfer in an asset, without its amount.
func (p *Prepaid) prepare(h *command.Header, t *Terms, keys []types.Name, asset int) {
	p.request = event.Request{Header: command.Header{Ticket: h.Ticket, Caller: h.Caller, Tenant: h.Tenant, Key: keys[asset]},
		Item: event.Item{Op: event.Transfer, From: t.payer, To: t.beneficiary, Asset: t.assets[asset]}}
}

// Decide records the usage of c and pays for it, or sets the problem of reply.
func (p *Prepaid) Decide(at types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	switch in := c.(type) {
	case *PrepaidEvents:
		p.payEvents(at, in, f, reply)
	case *PayRequests:
		p.payRequests(at, in, f, reply)
	default:
		reply.Problem = event.BadRequest
	}
}

func (p *Prepaid) payEvents(at types.Time, in *PrepaidEvents, f plane.Frame, reply *event.Reply) {
	d := p.Plane.CheckPrepaid(at, &in.RecordEvents, f, reply)
	if reply.Problem != event.None {
		return
	}
	b := &p.bill
	b.begin(p.Plane, in.Tenant, in.Terms)
	for i := range in.Events {
		if month, ok := d.IsNew(i); ok {
			b.add(in.prices[i], month, in.Events[i].Value)
		}
	}
	if reply.Problem = b.price(); reply.Problem != event.None {
		return
	}
	if reply.Shortage = p.Plane.LineShortage(b.newLines()); reply.Shortage.Limit != event.NoLimit {
		reply.Problem = event.UsageCapacity
		return
	}
	if reply.Shortfall = b.shortfall(at, p.wallet); reply.Shortfall.Asset > 0 {
		reply.Problem = event.PrepaidExceeded
		return
	}
	if p.pay(at, in, f, reply); reply.Problem != event.None {
		return
	}
	d.Record(in.Terms.list, b.changes(), f, reply)
}

// pay makes the transfers, or none of them and sets the problem of reply. If the payer has more expired holds than a step
// may end, those that it ended stay ended, so that a retry goes on.
func (p *Prepaid) pay(at types.Time, in *PrepaidEvents, f plane.Frame, reply *event.Reply) {
	f.Savepoint()
	made := 0
	for i := range in.Terms.assets {
		if p.bill.due[i].IsZero() {
			continue
		}
		p.transfer(at, &in.Header, in.Terms, in.keys, i, p.bill.due[i], f, reply)
		if reply.Problem == event.None {
			made++
			continue
		}
		if reply.Problem != event.Busy || made > 0 {
			f.Undo()
			return
		}
		break
	}
	f.Commit()
}

// transfer moves an amount of an asset from the payer to the beneficiary, and notes that in the lines. Or it sets the problem of
// reply; the caller decides whether to undo what the step has recorded.
func (p *Prepaid) transfer(at types.Time, h *command.Header, t *Terms, keys []types.Name, asset int, amount types.Amount, f plane.Frame, reply *event.Reply) {
	p.prepare(h, t, keys, asset)
	_, _, p.request.Nonce = p.wallet.Balance(at, h.Tenant, t.payer.ID, t.assets[asset].ID)
	p.request.Amount = amount
	if decideMoney(p.wallet, &p.request, at, f, reply); reply.Problem != event.None {
		reply.Position = types.Position{}
		return
	}
	p.bill.pay(asset, amount)
}
