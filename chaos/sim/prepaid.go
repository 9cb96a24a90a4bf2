package sim

import (
	"slices"
	"time"

	"macronode/chaos/charges"
	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/plane"
	"macronode/core/pricing"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// A run with a prepaid tenant has usage that is paid: the events of its clients as they are recorded, and its requests after they were
// served. The recorder of the product counts and pays the requests. A payer fills the account, moves its money away, freezes it, and
// stores objects. Price lists change by reload, and the tenant is postpaid for a while.
const (
	prepaidPayer  = "funds"
	prepaidEarner = "income"
	prepaidOther  = "away"
	euro, pound   = "EUR/2", "GBP"
	postpaid      = -1 // instead of a price list
)

// prepaidLimits of usage are small, so that each of them is reached.
var prepaidLimits = accounting.Limits{Rows: 18, Streams: 7, Tenants: 2, TenantRow: 14, TenantDim: 4, Lines: 40, Window: usageWindow, Grace: usageGrace}

// fewLines are less than the lines of all price lists, in some runs.
const fewLines = 3

// priceLists follow each other. The first two have two lines in common, at other prices.
var priceLists = [...]pricing.List{
	{
		{Name: "calls", Dimension: "requests", Asset: euro, Model: pricing.PerUnit, Per: 2, Tiers: []pricing.Tier{{Price: 1_000_000}}},
		{Name: "in", Dimension: "bytes_in", Labels: []accounting.Label{{Name: "service", Value: "gateway"}}, Asset: pound, Model: pricing.Graduated, Per: 1,
			Tiers: []pricing.Tier{{UpTo: 6, Price: 1_000_000, Flat: 1_000_000}, {Price: 500_000}}},
		{Name: "out", Dimension: "bytes_out", Asset: euro, Model: pricing.Volume, Per: 4, Tiers: []pricing.Tier{{UpTo: 9, Price: 3_000_000}, {Price: 1_000_000}}},
	},
	{
		{Name: "out", Dimension: "bytes_out", Asset: euro, Model: pricing.Volume, Per: 3, Tiers: []pricing.Tier{{UpTo: 5, Price: 2_000_000}, {Price: 1_500_000}}},
		{Name: "calls", Dimension: "requests", Asset: euro, Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 9, Price: 1_000_000}, {Price: 400_000}}},
		{Name: "fee", Dimension: "custom:x", Asset: pound, Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 2_000_000}}},
	},
	{ // requests are free
		{Name: "x", Dimension: "custom:x", Asset: euro, Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}},
	},
}

// prepaidWorld is the part of a run that concerns a prepaid tenant.
type prepaidWorld struct {
	list     int         // in force
	terms    *flow.Terms // of list; nil: postpaid
	room     int         // lines, at most
	recorder *prepaidRecorder
	payer    prepaidClient
	attempts map[types.Ticket]*prepaidAttempt // of the payer
	serial   int                              // of keys, and of contents of objects
	settling int                              // in the calm: the price list whose arrears are paid
	idle     int                              // rounds of the calm in which nothing was left to do

	open    []*prepaidCall // in progress
	counted []*prepaidCall // ended, and not recorded
	unsure  []*prepaidCall // recorded by a command whose outcome is unknown

	acked   []types.LSN       // frames of payments without requests that were acknowledged
	history []charges.Request // that were served, with the frame that counts them
	books   []prepaidBooks    // after each frame that changes them; the first is that of an empty journal
}

// beginPrepaid makes the tenant of usage prepaid.
func (w *World) beginPrepaid() {
	u, p := w.usage, &prepaidWorld{attempts: map[types.Ticket]*prepaidAttempt{}, room: prepaidLimits.Lines}
	u.prepaid = p
	if w.c.Choose("prepaid/few-lines", 6) == 1 {
		p.room = fewLines
	}
	limits := prepaidLimits
	limits.Lines = p.room
	l := &w.limits
	l.Planes = []plane.Spec{storage.Spec(storageLimits), accounting.Spec(limits)}
	addRows(&l.Ledger)
	l.Idempotency.Keys += 16 // of payments
	l.Idempotency.PerTenant += 16
	w.audit = newAudit(l.Ledger)
	w.config.State = w.limits
	w.promise.begin(state.New(w.limits, 0))
	u.oracle = newUsageOracle(w)
	p.books = []prepaidBooks{newPrepaidBooks(l.Ledger)}
	// Shortly before a month ends, or before the usage of the month before is too old.
	w.now.Wall = types.Time(time.Date(2023, 11, 30, 23, 59, 40, 0, time.UTC).UnixMilli())
	if w.c.Choose("prepaid/begin", 4) == 1 {
		w.now.Wall = types.Time(time.Date(2023, 12, 5, 23, 59, 50, 0, time.UTC).UnixMilli())
	}
	p.reload(0)
	p.recorder = newPrepaidRecorder(w)
}

// addRows makes room for the accounts of a prepaid tenant.
func addRows(l *ledger.Limits) {
	l.Accounts, l.Holdings, l.Assets, l.Holds = l.Accounts+3, l.Holdings+6, l.Assets+2, l.Holds+3
}

// reload puts a price list in force, or makes the tenant postpaid. As in the product, the terms are made anew.
func (p *prepaidWorld) reload(list int) {
	p.list, p.terms = list, nil
	if list != postpaid {
		p.terms, _ = flow.NewTerms(priceLists[list], prepaidPayer, prepaidEarner)
	}
}

// reloads reports the lists that may follow, mostly the first.
var reloads = [...]int{0, 1, 0, 2, 1, postpaid}

// move is a move of the requests, the recorder, the payer, or an operator.
func (p *prepaidWorld) move(w *World) {
	switch what := w.c.Choose("prepaid/move", 24); {
	case what < 6:
		p.payer.move(w)
	case what < 11:
		p.begins(w)
	case what < 15:
		p.ends(w)
	case what < 19:
		p.recorder.flush(w)
	case what == 19:
		w.Saw["prepaid: a reload"]++
		p.reload(reloads[w.c.Choose("prepaid/list", len(reloads))])
	case what == 20:
		if w.c.Choose("prepaid/days", 3) == 1 {
			w.idles(time.Duration(1+w.c.Choose("prepaid/hours", 40)) * time.Hour)
		}
	default: // much at once
		p.begins(w)
		p.begins(w)
		p.ends(w)
	}
}

// crashed forgets what the last process had in memory.
func (p *prepaidWorld) crashed(w *World) {
	w.note(len(p.open) > 0, "prepaid: requests in progress are lost")
	w.note(len(p.counted) > 0, "prepaid: served requests are lost before they are recorded")
	p.recorder.dies()
	p.recorder = newPrepaidRecorder(w)
	p.open, p.counted, p.unsure = nil, nil, nil
	p.attempts = map[types.Ticket]*prepaidAttempt{}
	if p.payer.out != 0 {
		p.payer.doubts = true
	}
	p.payer.out = 0
	p.upto(w, w.node.LSN())
}

// insist ends all requests, fills the account, and has everything recorded and paid.
func (p *prepaidWorld) insist(w *World) {
	for len(p.open) > 0 {
		p.ends(w)
	}
	if p.room == fewLines && p.list != postpaid { // there may be no line for what is not recorded
		p.reload(postpaid)
		p.settling = len(priceLists)
	}
	if c := &p.payer; c.out == 0 {
		if c.want == nil {
			c.want = p.remedy(w)
		}
		if c.want != nil {
			c.ask(w)
		}
	}
	p.recorder.flush(w)
	switch {
	case p.payer.want != nil || p.recorder.isFlushing || len(p.counted) > 0 || p.owes(p.list):
	case p.settling < len(priceLists):
		p.reload(p.settling)
		p.settling++
	default:
		p.idle++
	}
}

// busy reports whether something is neither recorded nor paid.
func (p *prepaidWorld) busy() bool {
	return p.idle == 0 || len(p.counted) > 0 || p.recorder.isFlushing || p.payer.want != nil
}

// owes reports whether lines of a price list have arrears.
func (p *prepaidWorld) owes(list int) bool {
	if list == postpaid {
		return false
	}
	b := p.last().bill(list, p.last().at, nil, true)
	return slices.ContainsFunc(b.due, isPositive)
}

// remedy returns what lets the arrears be paid; nil: nothing.
func (p *prepaidWorld) remedy(w *World) *prepaidAsk {
	if !p.owes(p.list) {
		return nil
	}
	if w.calmed%3 == 2 { // a limit of the day may be reached
		w.idles(25 * time.Hour)
	}
	last := p.last()
	if last.money.Frozen(usageTenant, prepaidPayer) {
		return &prepaidAsk{op: event.Unfreeze}
	}
	b := last.bill(p.list, last.at, nil, true)
	for i, asset := range b.assets {
		if b.due[i].Cmp(last.available(last.at, asset)) > 0 {
			return &prepaidAsk{op: event.Issue, asset: asset, amount: 35}
		}
	}
	return nil
}

// recovers compares the lines and the money of a recovered state with the books.
func (p *prepaidWorld) recovers(w *World, st *state.State) {
	b := p.of(st.LSN)
	if !w.unlawful && len(p.acked) > 0 && slices.Max(p.acked) > st.LSN {
		w.fail("prepaid-acknowledged-lost", "a payment in %v was acknowledged, recovered is %v", slices.Max(p.acked), st.LSN)
	}
	usage, _ := st.Plane(types.PlaneAccounting).(*accounting.Plane)
	lines := 0
	usage.Lines(usageTenant, func(l accounting.LineChange) {
		lines++
		want, exists := b.lines[prepaidLine{l.Price, int64(l.Month)}]
		if !exists || want.units.Cmp(number(l.Units)) != 0 || want.paid.Cmp(number(l.Paid)) != 0 || want.cost.Cmp(number(l.Cost)) != 0 {
			w.fail("prepaid-state", "a line of %d has %v units, has paid %v and costs %v, want %v", l.Month, l.Units, l.Paid, l.Cost, want)
		}
	})
	if lines != len(b.lines) {
		w.fail("prepaid-state", "%d lines, want %d", lines, len(b.lines))
	}
	for _, asset := range [...]string{euro, pound} {
		for _, account := range [...]string{prepaidPayer, prepaidEarner} {
			has, held, _ := st.Wallet.Balance(st.At, usageTenant, digest.Name([]byte(account)), digest.Name([]byte(asset)))
			want, _ := b.money.Balance(usageTenant, account, asset)
			if number(has).Cmp(want) != 0 || number(held).Cmp(b.money.Kept(st.At, usageTenant, account, asset)) != 0 {
				w.fail("prepaid-state", "%s has %v %s and %v held, want %v", account, has, asset, held, want)
			}
		}
	}
}

// certify has the requests that were served certified, and that all is paid.
func (p *prepaidWorld) certify(w *World, j *charges.Journal) {
	if err := j.Explain(p.history); err != nil {
		w.fail("prepaid-certificate", "%v", err)
	}
	if p.room == fewLines {
		return
	}
	if err := j.Settled(priceLists[len(priceLists)-1]); err != nil {
		w.fail("prepaid-certificate", "%v", err)
	}
}
