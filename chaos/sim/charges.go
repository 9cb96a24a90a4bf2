package sim

import (
	"fmt"
	"math"

	"macronode/chaos/charges"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// A run with charges has postpaid usage, and a run of the command that charges slices. It makes the invoice of what is sealed, and a
// transfer for each charge that the ledger does not have, under the ref of the slice. It forgets all in a crash, and begins again.
const (
	chargePayer  = "customer"
	chargeEarner = "revenue"
)

// chargePrices cost little, whatever was used: a transfer of more is rejected. The second one becomes cheaper with more usage.
var chargePrices = pricing.List{
	{Name: "calls", Dimension: "requests", Asset: euro, Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 4, Price: 2_000_000}, {UpTo: 20, Price: 500_000}, {}}},
	{Name: "in", Dimension: "bytes_in", Asset: euro, Model: pricing.Volume, Per: 1, Tiers: []pricing.Tier{{UpTo: 5, Price: 1_000_000}, {Flat: 2_000_000}}},
	{Name: "x", Dimension: "custom:x", Asset: pound, Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 3_000_000}}},
}

// chargePeriod has all windows, so that a later slice changes no charge.
var chargePeriod = accounting.Window{To: math.MaxInt64}

// A chargeAsk is a transfer for a charge, or an issue of money for the account that is to pay.
type chargeAsk struct {
	item event.Item
	ref  string // of the charge; empty: an issue
}

// A charger has one request at a time.
type charger struct {
	out    types.Ticket // submitted, not answered; 0: none
	asks   map[types.Ticket]*chargeAsk
	lacks  *event.Item          // of a transfer that was rejected for lack of money
	made   map[string]bool      // refs that this process knows to be used
	acked  map[string]types.LSN // refs of acknowledged transfers
	serial int                  // of keys
	isDone bool                 // all slices were charged when it last looked
	looked types.LSN            // the last frame that it has read
}

// beginCharges gives a run its charger, if it has one.
func (w *World) beginCharges() {
	if w.odds.charges == 0 {
		return
	}
	if err := chargePrices.Check(); err != nil {
		w.fail("charge-prices", "%v", err)
	}
	c := &charger{acked: map[string]types.LSN{}}
	c.starts()
	w.usage.charger = c
	addRows(&w.limits.Ledger)
	w.limits.Idempotency.Keys += 16 // of transfers, and their refs
	w.limits.Idempotency.PerTenant += 16
	w.audit = newAudit(w.limits.Ledger)
}

// starts forgets what the last process of the command knew.
func (c *charger) starts() {
	c.out, c.lacks, c.isDone, c.looked = 0, nil, false, 0
	c.asks, c.made = map[types.Ticket]*chargeAsk{}, map[string]bool{}
}

// move makes the next request, or is ended.
func (c *charger) move(w *World) {
	switch {
	case c.out != 0 && w.odd("charge/leave", 24, w.odds.leave):
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		c.starts()
	case c.out == 0:
		c.ask(w)
	}
}

// bill returns the invoice of the slices that can be read.
func (c *charger) bill(w *World) (invoice.Invoice, error) {
	b := invoice.New(usageTenant, chargePeriod, chargePrices)
	for i := range w.testified.frames {
		s := &w.testified.frames[i]
		if s.LSN > w.fol.Mark() {
			break
		}
		h, rest, err := record.Open(s.Body)
		if err != nil {
			return invoice.Invoice{}, err
		}
		var r record.Record
		for range h.Count {
			if rest, err = record.Next(rest, &r); err != nil {
				return invoice.Invoice{}, err
			}
			if of, ok := accounting.ReadSlice(&r); ok && of.Tenant == usageTenant {
				if err := b.Add(&of); err != nil {
					return invoice.Invoice{}, err
				}
			}
		}
	}
	return b.Invoice()
}

// next returns the next request; nil if all slices are charged.
func (c *charger) next(w *World) *chargeAsk {
	if c.lacks != nil {
		return &chargeAsk{item: event.Item{Op: event.Issue, To: name(string(c.lacks.From.Text)), Asset: name(string(c.lacks.Asset.Text)), Amount: types.MinorUnits(uint64(3 + w.c.Choose("charge/issue", 9)))}}
	}
	c.looked = w.fol.Mark()
	bill, err := c.bill(w)
	if err != nil {
		w.fail("charge-invoice", "%v", err)
		return nil
	}
	for i := range bill.Charges {
		of := &bill.Charges[i]
		ref := of.Ref(usageTenant)
		if c.made[ref] {
			continue
		}
		from, to := chargePayer, chargeEarner
		if of.Refund {
			from, to = to, from
		}
		_, nonce := w.balanceOf(usageTenant, from, of.Asset)
		return &chargeAsk{event.Item{Op: event.Transfer, From: name(from), To: name(to), Asset: name(of.Asset), Amount: of.Amount, Nonce: nonce, Ref: name(ref)}, ref}
	}
	return nil
}

// ask submits the next request under a new key.
func (c *charger) ask(w *World) {
	a := c.next(w)
	if c.isDone = a == nil; c.isDone {
		return
	}
	c.serial++
	w.ticket++
	in := &event.Request{Header: command.Header{Ticket: types.NewTicket(w.ticket%8, w.ticket), Caller: usageKey, Tenant: usageTenant, IndexedTo: w.index.mark,
		Key: name(fmt.Sprint("charge-", c.serial))}, Item: a.item}
	in.Seal(nil)
	w.index.look(in)
	c.out = in.Ticket
	c.asks[c.out] = a
	w.usage.enter = append(w.usage.enter, in)
	w.tell(clients, noLane, plain, "the charger asks: %s of %v %s %s", in.Op, in.Amount, in.Asset.Text, a.ref)
}

// replied handles a reply to the charger; false if it is not to it.
func (c *charger) replied(w *World, r event.Reply) bool {
	a := c.asks[r.Ticket]
	if a == nil {
		return w.promise.left[r.Ticket]
	}
	c.out = 0
	w.tell(clients, decider, answeredTone, "the charger: %s", answers(r))
	why := r.Problem
	if why == event.None {
		why = w.audit.why[r.Position] // a rejection that is recorded
	}
	switch {
	case why == event.None && a.ref == "":
		c.lacks = nil
	case why == event.None:
		if at, is := c.acked[a.ref]; is {
			w.fail("charged-again", "%s is charged by %v, and was by %v", a.ref, r.Position, at)
		}
		c.acked[a.ref], c.made[a.ref] = r.Position.LSN, true
		w.note(string(a.item.From.Text) == chargeEarner, "charge: a slice makes the usage before it cheaper")
		w.Saw["charge: a slice is charged"]++
	case why == event.RefUsed:
		_, acked := c.acked[a.ref]
		c.made[a.ref] = true
		w.note(acked, "charge: the command charges again what was acknowledged")
		w.note(!acked, "charge: the command charges again, and the outcome was unknown")
	case why == event.InsufficientFunds:
		c.lacks = &a.item
		w.Saw["charge: there is too little money"]++
	case blank(why), why == event.NonceUsed: // the read model is behind: it is asked again
	default:
		w.fail("charge-refused", "%s of %v %s is refused: %s", a.item.Op, a.item.Amount, a.ref, why.Code())
	}
	return true
}

// recovers checks that acknowledged charges are in a recovered state.
func (c *charger) recovers(w *World, st *state.State) {
	for ref, at := range c.acked { //nolint:maporder // the rule is the same for each
		switch {
		case w.unlawful:
			delete(c.acked, ref)
		case at > st.LSN:
			w.fail("charge-acknowledged-lost", "%s was acknowledged by %v, recovered is %v", ref, at, st.LSN)
		}
	}
}

// insist charges what is left.
func (c *charger) insist(w *World) {
	for range 8 {
		c.move(w)
		if c.isDone {
			return
		}
		w.settle()
		w.folds(math.MaxInt)
	}
}

// certify has it certified that each slice is charged once, with what it adds to the invoice. What was sealed after the charger has
// looked is not charged.
func (c *charger) certify(w *World, j *charges.Journal) {
	made, err := j.Charged(charges.Period{Tenant: usageTenant, From: int64(chargePeriod.From), To: int64(chargePeriod.To), Sealed: max(1, c.looked), Prices: chargePrices, Payer: chargePayer, Beneficiary: chargeEarner})
	if err != nil {
		w.fail("charge-certificate", "%v", err)
	}
	w.note(made > 3, "charge: several slices are charged")
}
