package flow_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	reference "macronode/models/pricing"
)

const (
	window = 5 * time.Minute
	grace  = 10 * time.Second

	maxLines = 9 // less than the lines of both lists in all months

	usagePayer, usageRevenue = "usage:prepaid", "usage:revenue"
)

// begin is two minutes before the end of a month.
var begin = types.Time(time.Date(2026, 2, 28, 23, 58, 0, 0, time.UTC).UnixMilli())

// lists are price lists that follow each other. They share the line "volume".
var lists = [...]pricing.List{
	{
		{Name: "each", Dimension: "requests", Asset: "EUR", Model: pricing.PerUnit, Per: 2, Tiers: []pricing.Tier{{Price: 1_000_000}}},
		{Name: "shop", Dimension: "requests", Labels: []accounting.Label{{Name: "service", Value: "shop"}}, Asset: "USD", Model: pricing.Graduated, Per: 1,
			Tiers: []pricing.Tier{{UpTo: 5, Price: 2_000_000, Flat: 3_000_000}, {Price: 500_000}}},
		{Name: "volume", Dimension: "cpu_ms", Asset: "EUR", Model: pricing.Volume, Per: 1, Tiers: []pricing.Tier{{UpTo: 6, Price: 3_000_000}, {Price: 1_000_000}}},
		{Name: "in", Dimension: "bytes_in", Asset: "EUR", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}},
	},
	{
		{Name: "volume", Dimension: "cpu_ms", Asset: "EUR", Model: pricing.Volume, Per: 1, Tiers: []pricing.Tier{{UpTo: 9, Price: 4_000_000}, {Price: 1_500_000}}},
		{Name: "fee", Dimension: "cpu_ms", Asset: "USD", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 2_000_000}}},
		{Name: "in", Dimension: "bytes_in", Asset: "EUR", Model: pricing.PerUnit, Per: 3, Tiers: []pricing.Tier{{Price: 1_000_000}}},
		{Name: "out", Dimension: "bytes_out", Asset: "USD", Model: pricing.PerUnit, Per: 2, Tiers: []pricing.Tier{{Price: 1_000_000}}},
	},
}

// costs is the price of units by the model.
func costs(p *pricing.Price, units uint64) uint64 {
	rational := func(m pricing.Micros) *big.Rat { return big.NewRat(int64(m), 1_000_000) }
	var tiers []reference.Tier
	for _, t := range p.Tiers {
		tier := reference.Tier{Price: rational(t.Price), Flat: rational(t.Flat)}
		if t.UpTo > 0 {
			tier.End = new(big.Int).SetUint64(t.UpTo)
		}
		tiers = append(tiers, tier)
	}
	n, per := new(big.Int).SetUint64(units), new(big.Int).SetUint64(p.Per)
	switch p.Model {
	case pricing.Flat:
		return reference.Round(tiers[0].Price).Uint64()
	case pricing.PerUnit:
		return reference.Round(reference.Linear(n, tiers[0].Price, per)).Uint64()
	case pricing.Graduated:
		return reference.Round(reference.Graduated(n, tiers, per)).Uint64()
	}
	return reference.Round(reference.Volume(n, tiers, per)).Uint64()
}

// used is an event that was recorded, with the list that was in force; -1: postpaid.
type used struct {
	accounting.Event
	list int
}

// hasPrice reports whether the event is in the line of a price.
func (u *used) hasPrice(p *pricing.Price) bool {
	return u.list >= 0 && slices.ContainsFunc(lists[u.list], func(of pricing.Price) bool { return of.Name == p.Name }) &&
		string(u.Series.Dimension) == p.Dimension && (len(p.Labels) == 0 || strings.HasPrefix(string(u.Series.Labels), "service=shop"))
}

// account is a line of the model.
type account struct{ price, month string }

// budget is a node beside a model: the events that were recorded, and what was paid for each price and month.
type budget struct {
	*system
	limits state.Limits
	most   int // lines
	list   int
	events map[string]used
	paid   map[account]uint64
	costs  map[account]uint64 // of the units, by the list with which usage was added last
	funds  map[string]uint64
	earned map[string]uint64
	held   map[string]uint64
	slices []accounting.Slice
	frozen bool // the payer

	terms    [len(lists)]*flow.Terms
	credit   *flow.Credit
	meter    *accounting.Meter
	open     []*pending // requests in progress
	finished []*pending // and those that are not recorded
}

func newBudget(t *rapid.T, seen map[string]bool) *budget { return newBudgetOf(t, seen, limits()) }

func newBudgetOf(t *rapid.T, seen map[string]bool, l state.Limits) *budget {
	b := &budget{system: newSystemOf(t, seen, l), limits: l, most: maxLines, events: map[string]used{}, paid: map[account]uint64{}, costs: map[account]uint64{}, funds: map[string]uint64{}, earned: map[string]uint64{}, held: map[string]uint64{}}
	for i, l := range lists {
		var err error
		if b.terms[i], err = flow.NewTerms(l, usagePayer, usageRevenue); err != nil {
			t.Fatal(err)
		}
	}
	b.crash()
	b.each = func(r *record.Record) {
		if s, ok := accounting.ReadSlice(r); ok {
			s.Rows = slices.Clone(s.Rows)
			s.Dimension = bytes.Clone(s.Dimension)
			b.slices = append(b.slices, s)
			seen[s.Kind.String()+" slice"] = true
		}
	}
	b.now.Mono += types.Instant(time.Duration(begin-b.now.Wall) * time.Millisecond)
	b.now.Wall = begin
	b.step(event.Tick{})
	return b
}

func (b *budget) head() command.Header {
	b.serial++
	return command.Header{Ticket: types.Ticket(b.serial), Caller: keys[0].ID, Tenant: 1}
}

func (b *budget) pay(t *rapid.T) {
	asset, amount := rapid.SampledFrom([]string{"EUR", "USD"}).Draw(t, "asset"), uint64(rapid.IntRange(1, 25).Draw(t, "amount"))
	b.give(asset, amount)
	b.funds[asset] += amount
	b.compare()
}

// hold reserves a part of the balance for ever.
func (b *budget) hold(t *rapid.T) {
	free := b.funds["EUR"] - b.held["EUR"]
	if free == 0 || b.held["EUR"] > 0 || b.frozen {
		return
	}
	amount := rapid.Uint64Range(1, free).Draw(t, "amount")
	_, _, next := b.view.Wallet.Balance(b.at(), 1, name(usagePayer).ID, name("EUR").ID)
	in := &event.Request{Header: b.head(), Item: event.Item{Op: event.Hold, From: name(usagePayer), Asset: name("EUR"), Amount: types.MinorUnits(amount), Nonce: next,
		ExpiresAt: b.at().Add(30 * 24 * time.Hour)}}
	in.Key = b.key()
	in.Seal(nil)
	if b.step(in); b.reply.Problem != event.None {
		b.Fatal(b.reply.Problem.Code())
	}
	b.held["EUR"] += amount
	b.compare()
}

func (b *budget) draw(t *rapid.T, i int) accounting.Event {
	id := fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "id"))
	if e, known := b.events[id]; known {
		e.Place = uint16(i)
		return e.Event
	}
	var labels []accounting.Label
	if rapid.Bool().Draw(t, "shop") {
		labels = []accounting.Label{{Name: "service", Value: "shop"}}
	}
	s, err := accounting.NewSeries(rapid.SampledFrom([]string{"requests", "cpu_ms", "bytes_in"}).Draw(t, "dimension"), labels)
	if err != nil {
		t.Fatal(err)
	}
	ago := rapid.SampledFrom([]time.Duration{0, time.Minute, 3 * time.Minute, 20 * time.Minute, 30 * 24 * time.Hour}).Draw(t, "ago")
	return accounting.Event{Source: "s", ID: id, Series: s, Value: uint64(rapid.IntRange(0, 7).Draw(t, "value")), Time: b.at().Add(-ago), Place: uint16(i)}
}

// batch draws events of which no two have one id.
func (b *budget) batch(t *rapid.T) (all []accounting.Event) {
	for i := range rapid.IntRange(1, 4).Draw(t, "events") {
		e := b.draw(t, i)
		if !slices.ContainsFunc(all, func(o accounting.Event) bool { return o.ID == e.ID }) {
			all = append(all, e)
		}
	}
	return all
}

func month(e *accounting.Event) string {
	at := int64(e.Time)
	return time.UnixMilli(at - at%window.Milliseconds()).UTC().Format("2006-01")
}

// cost returns what each line of fresh events has paid with them, and what is due in each asset.
func (b *budget) cost(fresh map[string]used) (paid map[account]uint64, due map[string]uint64) {
	paid, due = map[account]uint64{}, map[string]uint64{}
	for i := range lists[b.list] {
		p := &lists[b.list][i]
		for m := range monthsOf(fresh, p) {
			a := account{p.Name, m}
			cost := costs(p, monthsOf(b.events, p)[m]+monthsOf(fresh, p)[m])
			paid[a] = max(b.paid[a], cost)
			due[p.Asset] += paid[a] - b.paid[a]
			if cost < b.paid[a] {
				b.seen["credit"] = true
			}
		}
	}
	return paid, due
}

// monthsOf returns the units of a price in each month that has any event.
func monthsOf(events map[string]used, p *pricing.Price) map[string]uint64 {
	units := map[string]uint64{}
	for _, e := range events {
		if e.hasPrice(p) {
			units[month(&e.Event)] += e.Value
		}
	}
	return units
}

// report gives events of the prepaid tenant.
func (b *budget) report(t *rapid.T) {
	all, fresh := b.batch(t), map[string]used{}
	for _, e := range all {
		if _, known := b.events[e.ID]; !known {
			fresh[e.ID] = used{e, b.list}
		}
	}
	terms := b.terms[b.list]
	paid, due := b.cost(fresh)
	want, missing := b.judge(due)
	if len(b.paid)+newLines(b.paid, paid) > b.most {
		want, missing = event.UsageCapacity, event.Shortfall{}
	}
	c := &flow.PrepaidEvents{RecordEvents: accounting.RecordEvents{Header: b.head(), Events: slices.Clone(all)}, Terms: terms, Key: b.key()}
	if err := c.Seal(); err != nil {
		t.Fatal(err)
	}
	frames := b.frames
	r := b.execute(c)
	b.expect("report", r.Problem, want)
	if r.Shortfall != missing {
		b.Fatalf("missing %+v, want %+v", r.Shortfall, missing)
	}
	if want == event.None {
		b.record(fresh, paid, due)
	} else if b.frames != frames {
		b.Fatal("a batch that was rejected left a frame")
	}
	b.compare()
}

// judge returns what becomes of usage of which so much is due.
func (b *budget) judge(due map[string]uint64) (event.Problem, event.Shortfall) {
	for i, asset := range [...]string{"EUR", "USD"} { // the order of both lists
		if free := b.funds[asset] - b.held[asset]; due[asset] > free {
			lacks := event.Shortfall{Asset: uint16(i + 1), Amount: types.MinorUnits(due[asset] - free)}
			if b.terms[b.list].Asset(lacks) != asset {
				b.Fatal(b.terms[b.list].Asset(lacks))
			}
			return event.PrepaidExceeded, lacks
		}
	}
	if b.frozen && due["EUR"]+due["USD"] > 0 {
		return event.AccountFrozen, event.Shortfall{}
	}
	return event.None, event.Shortfall{}
}

func newLines(was, paid map[account]uint64) (n int) {
	for a := range paid {
		if _, known := was[a]; !known {
			n++
		}
	}
	return n
}

func (b *budget) record(fresh map[string]used, paid map[account]uint64, due map[string]uint64) {
	b.add(fresh)
	maps.Copy(b.paid, paid)
	for asset, n := range due {
		b.funds[asset] -= n
		b.earned[asset] += n
		b.seen["paid "+asset] = b.seen["paid "+asset] || n > 0
	}
	if len(fresh) == 0 {
		b.seen["duplicates alone"] = true
	}
}

// add adds usage to the events, and to the cost of its lines.
func (b *budget) add(fresh map[string]used) {
	maps.Copy(b.events, fresh)
	for i := range lists[b.list] {
		p := &lists[b.list][i]
		for m := range monthsOf(fresh, p) {
			b.costs[account{p.Name, m}] = costs(p, monthsOf(b.events, p)[m])
		}
	}
}

// reportUnpaid gives events of the tenant as postpaid.
func (b *budget) reportUnpaid(t *rapid.T) {
	all := b.batch(t)
	c := &accounting.RecordEvents{Header: b.head(), Events: slices.Clone(all)}
	if err := c.Seal(); err != nil {
		t.Fatal(err)
	}
	b.expect("report unpaid", b.execute(c).Problem, event.None)
	for _, e := range all {
		if _, known := b.events[e.ID]; !known {
			b.events[e.ID] = used{e, -1}
		}
	}
	b.compare()
}

// restart ends the node, and starts another one with a snapshot of the state.
func (b *budget) restart(*rapid.T) {
	load := func() state.State {
		s := state.New(b.limits, 3)
		b.view.Dump(func(row []byte) {
			if err := s.Load(bytes.Clone(row)); err != nil {
				b.Fatal(err)
			}
		})
		return s
	}
	was := b.view.Hash()
	if b.view = load(); b.view.Hash() != was {
		b.Fatal("the snapshot is another state")
	}
	b.boot(b.limits, load())
	b.crash()
	b.compare()
}

func (b *budget) changeList(*rapid.T) { b.list = 1 - b.list }

func (b *budget) wait(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 10 * time.Minute}).Draw(t, "time")
	b.now.Wall = b.now.Wall.Add(d)
	b.now.Mono += types.Instant(d)
	b.step(event.Tick{})
	b.compare()
}

// compare holds the accounts, the lines and the usage against the model.
func (b *budget) compare() {
	for _, asset := range [...]string{"EUR", "USD"} {
		for _, c := range []struct {
			account   string
			has, held uint64
		}{{usagePayer, b.funds[asset], b.held[asset]}, {usageRevenue, b.earned[asset], 0}} {
			has, held, _ := b.view.Wallet.Balance(b.at(), 1, name(c.account).ID, name(asset).ID)
			if has != types.MinorUnits(c.has) || held != types.MinorUnits(c.held) {
				b.Fatalf("%s has %v %s and %v held, want %d and %d", c.account, has, asset, held, c.has, c.held)
			}
		}
	}
	usage := b.view.Plane(types.PlaneAccounting).(*accounting.Plane)
	lines := 0
	usage.Lines(1, func(accounting.LineChange) { lines++ })
	if lines != len(b.paid) {
		b.Fatalf("%d lines, want %d", lines, len(b.paid))
	}
	sum := map[string]uint64{}
	for a, paid := range b.paid {
		p := priceOf(a.price)
		l, ok := usage.Line(accounting.LineKey{Tenant: 1, Price: flow.LineID(p), Month: monthOf(a)})
		if want := (accounting.Line{Units: types.MinorUnits(monthsOf(b.events, p)[a.month]), Paid: types.MinorUnits(paid), Cost: types.MinorUnits(b.costs[a])}); !ok || l != want {
			b.Fatalf("line %s of %s is %+v, want %+v", a.price, a.month, l, want)
		}
		sum[p.Asset] += paid
	}
	if !maps.EqualFunc(sum, b.earned, func(a, b uint64) bool { return a == b }) && (sum["EUR"] != b.earned["EUR"] || sum["USD"] != b.earned["USD"]) {
		b.Fatalf("lines have paid %v, and %v was earned", sum, b.earned)
	}
	b.compareUsage(usage)
}

// compareUsage holds the units of all rows and slices against the events.
func (b *budget) compareUsage(usage *accounting.Plane) {
	got, want := map[bool]uint64{}, map[bool]uint64{}
	for _, s := range b.slices {
		for _, r := range s.Rows {
			got[s.Kind.IsPrepaid()] += r.Value
		}
	}
	usage.Open(1, func(r accounting.OpenRow) bool {
		got[r.Prepaid] += r.Value
		return true
	})
	for _, e := range b.events {
		want[e.list >= 0] += e.Value
	}
	if got[true] != want[true] || got[false] != want[false] {
		b.Fatalf("prepaid and postpaid units are %d and %d, want %d and %d", got[true], got[false], want[true], want[false])
	}
}

func priceOf(called string) *pricing.Price {
	for _, l := range lists {
		for i := range l {
			if l[i].Name == called {
				return &l[i]
			}
		}
	}
	return nil
}

// TestPrepaidUsageAgreesWithModel: usage and its price are recorded together or not at all, and the sum of all charges is
// the price of the lines, whatever is late, repeated, refused or priced anew.
func TestPrepaidUsageAgreesWithModel(t *testing.T) {
	seen := map[string]bool{}
	wanted := []string{"report ", "report insufficient_funds", "report usage_capacity", "report unpaid ", "credit", "paid EUR", "paid USD", "duplicates alone", "prepaid slice", "prepaid_correction slice", "usage slice"}
	checkUntilSeen(t, seen, wanted, func(t *rapid.T) {
		b := newBudget(t, seen)
		t.Repeat(map[string]func(*rapid.T){"issue": b.pay, "hold": b.hold, "report": b.report, "report again": b.report, "report more": b.report, "report unpaid": b.reportUnpaid,
			"change list": b.changeList, "restart": b.restart, "wait": b.wait})
	})
}

// waitUntil lets time go by, and records what is due.
func (b *budget) waitUntil(at types.Time) {
	b.now.Mono += types.Instant(time.Duration(at-b.now.Wall) * time.Millisecond)
	b.now.Wall = at
	for frames := -1; frames < b.frames; {
		frames = b.frames
		b.step(event.Tick{})
	}
}

// TestLineIsClosedAfterItsMonth: a line is kept for as long as an event of its month can be accepted, and no longer.
func TestLineIsClosedAfterItsMonth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBudget(t, map[string]bool{})
		count := func() (n int) {
			b.view.Plane(types.PlaneAccounting).(*accounting.Plane).Lines(1, func(accounting.LineChange) { n++ })
			return n
		}
		b.buy(1, 3, b.at()) // cpu_ms of February, for 9
		end := accounting.MonthOf(begin).To
		b.waitUntil(end.Add(accounting.MaxAge - time.Second))
		b.buy(2, 4, end-1) // 7 units for 1 each: 2 remain as credit
		if count() != 1 || b.balance("EUR") != 91 {
			t.Fatalf("%d lines, %d EUR", count(), b.balance("EUR"))
		}
		b.waitUntil(end.Add(accounting.MaxAge + 24*time.Hour - time.Second))
		if count() != 1 {
			t.Fatal("closed too early")
		}
		b.waitUntil(end.Add(accounting.MaxAge + 25*time.Hour))
		if count() != 0 {
			t.Fatal("not closed")
		}
		b.buy(3, 1, b.at())
		if count() != 1 || b.balance("EUR") != 88 {
			t.Fatalf("%d lines, %d EUR", count(), b.balance("EUR"))
		}
	})
}

// buy reports an event of units of cpu_ms. The first one issues 100 EUR.
func (b *budget) buy(id int, units uint64, at types.Time) {
	if id == 1 {
		b.give("EUR", 100)
	}
	s, _ := accounting.NewSeries("cpu_ms", nil)
	if r := b.execute(b.command(lists[0], accounting.Event{Source: "s", ID: fmt.Sprint(id), Series: s, Value: units, Time: at})); r.Problem != event.None {
		b.Fatal(r.Problem.Code())
	}
}

func (b *budget) give(asset string, amount uint64) { b.giveTo(usagePayer, asset, amount) }

func (b *budget) giveTo(account, asset string, amount uint64) {
	in := &event.Request{Header: b.head(), Item: event.Item{Op: event.Issue, To: name(account), Asset: name(asset), Amount: types.MinorUnits(amount)}}
	in.Key = b.key()
	in.Seal(nil)
	if b.step(in); b.reply.Problem != event.None {
		b.Fatal(b.reply.Problem.Code())
	}
}

func (b *budget) balance(asset string) uint64 {
	has, _, _ := b.view.Wallet.Balance(b.at(), 1, name(usagePayer).ID, name(asset).ID)
	return has.Lo
}

func (b *budget) command(l pricing.List, events ...accounting.Event) *flow.PrepaidEvents {
	terms, err := flow.NewTerms(l, usagePayer, usageRevenue)
	if err != nil {
		b.Fatal(err)
	}
	c := &flow.PrepaidEvents{RecordEvents: accounting.RecordEvents{Header: b.head(), Events: events}, Terms: terms, Key: b.key()}
	if err := c.Seal(); err != nil {
		b.Fatal(err)
	}
	return c
}

// TestRejectedTransferCountsNothing: if the wallet rejects one of two transfers, neither the other one nor the usage is
// recorded.
func TestRejectedTransferCountsNothing(t *testing.T) {
	once(t, func(t *rapid.T) {
		b := newBudget(t, map[string]bool{})
		b.give("EUR", 100)
		b.give("USD", 7)
		b.giveTo("another", "EUR", 1) // the last but one of the four holdings: revenue in USD has no room
		s, _ := accounting.NewSeries("cpu_ms", nil)
		l := pricing.List{lists[0][2], {Name: "fee", Dimension: "cpu_ms", Asset: "USD", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}}
		frames := b.frames
		if r := b.execute(b.command(l, accounting.Event{Source: "s", ID: "1", Series: s, Value: 1, Time: b.at()})); r.Problem.General() != event.CapacityExceeded || r.Position != (types.Position{}) {
			t.Fatal(r.Problem.Code())
		}
		if b.frames != frames || b.balance("EUR") != 100 {
			t.Fatalf("%d frames, %d EUR", b.frames-frames, b.balance("EUR"))
		}
	})
}

// TestExpiredHoldsGiveWay: money of an expired hold is available, although its end is not recorded yet; and if there are
// more expired holds than a step may end, a retry goes on.
func TestExpiredHoldsGiveWay(t *testing.T) {
	once(t, func(t *rapid.T) {
		l := limits()
		l.Ledger.Holds, l.Ledger.TenantHolds = 40, 40
		b := newBudgetOf(t, map[string]bool{}, l)
		b.give("EUR", 20)
		for i := range types.MaxExpiriesPerStep + 1 {
			in := &event.Request{Header: b.head(), Item: event.Item{Op: event.Hold, From: name(usagePayer), Asset: name("EUR"), Amount: types.MinorUnits(1), Nonce: types.Nonce(i + 1),
				ExpiresAt: b.at().Add(time.Minute)}}
			in.Key = b.key()
			in.Seal(nil)
			if b.step(in); b.reply.Problem != event.None {
				t.Fatal(b.reply.Problem.Code())
			}
		}
		b.now.Wall = b.now.Wall.Add(time.Hour)
		b.now.Mono += types.Instant(time.Hour)
		s, _ := accounting.NewSeries("cpu_ms", nil)
		c := b.command(lists[0], accounting.Event{Source: "s", ID: "1", Series: s, Value: 6, Time: b.at()})
		if r := b.execute(c); r.Problem != event.Busy {
			t.Fatal(r.Problem.Code())
		}
		if r := b.execute(c); r.Problem != event.None || b.balance("EUR") != 2 {
			t.Fatal(r.Problem.Code(), b.balance("EUR"))
		}
	})
}

// TestLargestPrepaidBatchFits: the frame of the largest batch has the records and bytes that were reserved for it.
func TestLargestPrepaidBatchFits(t *testing.T) {
	once(t, func(t *rapid.T) {
		l := limits()
		l.Ledger.Holdings, l.Ledger.TenantHoldings, l.Ledger.Assets, l.Ledger.TenantAssets = 200, 200, 65, 65
		l.Idempotency.Keys, l.Idempotency.PerTenant = 8192, 8192
		l.Planes[1] = accounting.Spec(accounting.Limits{Rows: 2000, Streams: 2, Tenants: 2, TenantRow: 2000, TenantDim: 2, Lines: 500, Window: window, Grace: grace})
		b := newBudgetOf(t, map[string]bool{}, l)
		var prices pricing.List
		for i := range pricing.MaxPrices {
			asset := fmt.Sprint("ASSET", i)
			b.give(asset, 5000)
			prices = append(prices, pricing.Price{Name: asset, Dimension: "requests", Asset: asset, Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}})
		}
		b.waitUntil(types.Time(time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC).UnixMilli()))
		var events []accounting.Event
		for i := range accounting.MaxEvents {
			s, err := accounting.NewSeries("requests", []accounting.Label{{Name: "route", Value: fmt.Sprintf("/%063d", i)}, {Name: "subject", Value: fmt.Sprintf("%064d", i)}})
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, accounting.Event{Source: "s", ID: fmt.Sprint(i), Series: s, Value: 1, Time: b.at().Add(-time.Duration(i%3) * 17 * 24 * time.Hour), Place: uint16(i)})
		}
		c := b.command(prices, events...)
		records, usage := 0, b.view.Plane(types.PlaneAccounting)
		over := (&flow.Prepaid{}).Over(c, usage, b.view.Wallet)
		cost := over.Cost(c)
		b.each = func(*record.Record) { records++ }
		b.size = 0
		if r := b.execute(c); r.Problem != event.None {
			t.Fatal(r.Problem.Code())
		}
		if want := 3 + accounting.MaxEvents + 1 + pricing.MaxPrices; records != want || b.size > cost.Bytes || cost.Rows != accounting.MaxEvents+pricing.MaxPrices {
			t.Fatalf("%d records of %d, %d bytes of %d", records, want, b.size, cost.Bytes)
		}
	})
}

// TestPrepaidStepAllocatesNothing: in steady state, with two prices in two assets.
func TestPrepaidStepAllocatesNothing(t *testing.T) {
	once(t, func(t *rapid.T) {
		b := newBudget(t, map[string]bool{})
		b.give("EUR", 1000)
		b.give("USD", 1000)
		s, _ := accounting.NewSeries("requests", []accounting.Label{{Name: "service", Value: "shop"}})
		var steps []event.Event
		for i := range 50 {
			steps = append(steps, &event.Execute{Command: b.command(lists[0], accounting.Event{Source: "s", ID: fmt.Sprint(i), Series: s, Value: 4, Time: b.at()})})
		}
		next := func() {
			b.out.Reset()
			b.node.Step(b.now, steps[0], &b.out)
			steps = steps[1:]
			if len(b.out.Frames) != 1 {
				t.Fatal("no frame")
			}
		}
		for range 19 {
			next()
		}
		if n := testing.AllocsPerRun(30, next); n != 0 {
			t.Fatalf("%v allocations a step", n)
		}
	})
}

// monthOf returns the begin of the month of a line.
func monthOf(a account) types.Time {
	at, _ := time.Parse("2006-01", a.month)
	return types.Time(at.UnixMilli())
}

// once checks a property that draws nothing.
func once(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	done := false
	rapid.Check(t, func(t *rapid.T) {
		if !done {
			property(t)
			done = true
		}
	})
}
