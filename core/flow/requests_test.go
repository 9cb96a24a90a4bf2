package flow_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/types"
)

// pending is a request that is not recorded yet.
type pending struct {
	accounting.Request
	list int // of the terms that it reserved by
	of   flow.Reservation
}

// usage is what a request counts as.
func (p *pending) usage(b *budget) (all []accounting.Event) {
	labels := []accounting.Label{{Name: "service", Value: p.Labels.Service}, {Name: "method", Value: p.Labels.Method}, {Name: "route", Value: p.Labels.Route}}
	requests := uint64(1)
	if p.InFrame {
		requests = 0
	}
	for _, d := range []struct {
		dimension string
		value     uint64
	}{{"requests", requests}, {"bytes_in", p.In}, {"bytes_out", p.Out}} {
		s, err := accounting.NewSeries(d.dimension, labels)
		if err != nil {
			b.Fatal(err)
		}
		if d.value > 0 {
			all = append(all, accounting.Event{Series: s, Value: d.value, Time: p.At})
		}
	}
	return all
}

// crash forgets the requests that are not recorded.
func (b *budget) crash() {
	b.credit, b.meter, b.open, b.finished = flow.NewCredit(), accounting.NewMeter(window, 100, 100), nil, nil
}

func (b *budget) books() flow.Books {
	return flow.Books{Usage: b.view.Plane(types.PlaneAccounting).(*accounting.Plane), Wallet: b.view.Wallet, Upto: b.view.LSN}
}

// fresh returns usage of requests under names of its own, by the list in force.
func (b *budget) fresh(of []accounting.Event) map[string]used {
	fresh := map[string]used{}
	for _, e := range of {
		b.serial++
		fresh[fmt.Sprint("metered-", b.serial)] = used{e, b.list}
	}
	return fresh
}

// arrears returns what is due in each asset with more usage, and of all lines of the list: usage changes the cost of its lines only.
func (b *budget) arrears(more map[string]used) (due map[string]uint64, lines map[account]uint64) {
	due, lines = map[string]uint64{}, map[account]uint64{}
	all := maps.Clone(b.events)
	maps.Copy(all, more)
	for i := range lists[b.list] {
		p := &lists[b.list][i]
		added := monthsOf(more, p)
		for m, units := range monthsOf(all, p) {
			a := account{p.Name, m}
			cost := b.costs[a]
			if _, is := added[m]; is {
				cost = costs(p, units)
			}
			lines[a] = max(b.paid[a], cost)
			due[p.Asset] += lines[a] - b.paid[a]
		}
	}
	return due, lines
}

// begin begins a request, if the payer can pay for it and for all that is not paid yet.
func (b *budget) begin(t *rapid.T) {
	p := &pending{Request: accounting.Request{Tenant: 1, At: b.at(), Labels: accounting.NewRequestLabels(rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "service"), "get", "r"),
		In: uint64(rapid.IntRange(0, 4).Draw(t, "declared"))}, list: b.list}
	want, missing := b.judgeRequests(p.usage(b), nil)
	if !p.hasPrice(b) {
		want, missing = event.None, event.Shortfall{}
	}
	of, why, lacks := b.credit.Reserve(&p.Request, b.terms[b.list], b.books())
	b.expect("request", why, want)
	if lacks != missing {
		b.Fatalf("missing %+v, want %+v", lacks, missing)
	}
	if of.IsZero() != (want != event.None || !p.hasPrice(b)) {
		b.Fatalf("reserved nothing: %v", of.IsZero())
	}
	if why == event.None {
		p.of = of
		b.open = append(b.open, p)
	}
}

// judgeRequests returns whether the payer can pay for usage and for all that is not paid yet, without a request in progress.
func (b *budget) judgeRequests(all []accounting.Event, without *pending) (want event.Problem, missing event.Shortfall) {
	fresh := b.fresh(all)
	for _, o := range append(append([]*pending{}, b.open...), b.finished...) {
		if o == without {
			continue
		}
		was := *o
		was.At = b.at() // what is not recorded is of the current month
		for id, e := range b.fresh(was.usage(b)) {
			fresh[id] = used{e.Event, o.list} // of the list of the request, and of that in force
			b.seen["reserved by another list"] = b.seen["reserved by another list"] || o.list != b.list
		}
	}
	due, lines := b.arrears(fresh)
	want, missing = b.judge(due)
	if len(b.paid)+newLines(b.paid, lines) > b.most {
		want, missing = event.UsageCapacity, event.Shortfall{}
	}
	return want, missing
}

// respond begins the response of a request in progress, if the payer can pay for its size too. The prices are those that the request
// has reserved by.
func (b *budget) respond(t *rapid.T) {
	if len(b.open) == 0 {
		return
	}
	p := rapid.SampledFrom(b.open).Draw(t, "request")
	if p.Out > 0 {
		return
	}
	now := b.list
	b.list = p.list
	defer func() { b.list = now }()
	answered := *p
	answered.At, answered.Out = b.at(), uint64(rapid.IntRange(0, 9).Draw(t, "response"))
	want, missing := b.judgeRequests(answered.usage(b), p)
	hasPrice := slices.ContainsFunc(lists[b.list], func(price pricing.Price) bool { return price.Dimension == "bytes_out" })
	if p.of.IsZero() || answered.Out == 0 || !hasPrice {
		want, missing = event.None, event.Shortfall{}
	}
	of, why, lacks := b.credit.ReserveResponse(p.of, b.at(), answered.Out, b.books())
	b.expect("response", why, want)
	if lacks != missing {
		b.Fatalf("missing %+v, want %+v", lacks, missing)
	}
	if why == event.None && hasPrice {
		p.of, p.Out = of, answered.Out
	}
}

// hasPrice reports whether anything of a request has a price of the list in force.
func (p *pending) hasPrice(b *budget) bool {
	all := *p
	all.In, all.Out = 1, 1
	for _, e := range all.usage(b) {
		for i := range lists[b.list] {
			if u := (used{e, b.list}); u.hasPrice(&lists[b.list][i]) {
				return true
			}
		}
	}
	return false
}

// end ends a request. It counts, or was not served.
func (b *budget) end(t *rapid.T) {
	if len(b.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(b.open)-1).Draw(t, "request")
	p := b.open[i]
	b.open = append(b.open[:i:i], b.open[i+1:]...)
	if rapid.IntRange(0, 3).Draw(t, "served") == 0 {
		b.credit.Cancel(p.of)
		return
	}
	p.At, p.In, p.Out = b.at(), uint64(rapid.IntRange(0, 5).Draw(t, "in")), uint64(rapid.IntRange(0, 5).Draw(t, "out"))
	k, _ := b.meter.Add(&p.Request)
	b.credit.End(p.of, k, &p.Request)
	b.finished = append(b.finished, p)
}

// flush records the requests that have ended, and pays what the payer has.
func (b *budget) flush(*rapid.T) {
	in := accounting.RecordMetered{Header: command.Header{Tenant: 1}}
	var all []accounting.Event
	for _, p := range b.finished {
		all = append(all, p.usage(b)...)
	}
	taken := b.meter.Take()
	if len(taken) > 0 {
		in = taken[0].Command
	}
	in.Ticket = 1
	fresh := b.fresh(all)
	due, lines := b.arrears(fresh)
	hasMoney := min(due["EUR"], b.funds["EUR"]-b.held["EUR"]) > 0 || min(due["USD"], b.funds["USD"]) > 0
	payable := hasMoney && !b.frozen
	if len(all) == 0 {
		if got := b.credit.HasPayable(b.at(), 1, b.terms[b.list], b.books()); got != payable {
			b.Fatalf("has payable arrears: %v, want %v", got, payable)
		}
	}
	want := event.None
	if len(b.paid)+newLines(b.paid, lines) > b.most {
		want = event.UsageCapacity
	}
	c := &flow.PayRequests{RecordMetered: in, Terms: b.terms[b.list], Key: b.key()}
	c.Seal()
	b.credit.Take(taken)
	frames := b.frames
	r := b.execute(c)
	b.expect("flush", r.Problem, want)
	for _, u := range taken {
		if r.Problem == event.None {
			b.credit.Recorded(u)
		} else if lost := b.meter.Return(u); lost > 0 {
			b.Fatalf("%d requests are lost", lost)
		}
	}
	b.credit.Keep(b.books())
	if recorded := b.frames > frames; recorded != (want == event.None && (len(all) > 0 || payable)) || recorded != (r.Position.LSN > 0) {
		b.Fatalf("recorded %v at %v", recorded, r.Position)
	}
	if unpaid := want == event.None && hasMoney && b.frozen; unpaid != (r.Unpaid != event.None) || unpaid && r.Unpaid != event.AccountFrozen {
		b.Fatalf("unpaid: %v, want %v", r.Unpaid, unpaid)
	}
	if want == event.None {
		b.finished = nil
		b.add(fresh)
		b.settle(due, lines)
		b.seen["arrears"] = b.seen["arrears"] || len(all) == 0 && payable
	}
	b.compare()
}

// settle pays what is due, at most what the payer has. Which line is paid first is free.
func (b *budget) settle(due map[string]uint64, lines map[account]uint64) {
	moved := map[string]uint64{}
	usage := b.books().Usage
	for a, most := range lines {
		p := priceOf(a.price)
		l, _ := usage.Line(accounting.LineKey{Tenant: 1, Price: flow.LineID(p), Month: monthOf(a)})
		if l.Paid.Hi > 0 || l.Paid.Lo < b.paid[a] || l.Paid.Lo > most {
			b.Fatalf("line %s of %s has paid %v, before %d, at most %d", a.price, a.month, l.Paid, b.paid[a], most)
		}
		moved[p.Asset] += l.Paid.Lo - b.paid[a]
		b.paid[a] = l.Paid.Lo
	}
	for _, asset := range [...]string{"EUR", "USD"} {
		want := min(due[asset], b.funds[asset]-b.held[asset])
		if b.frozen {
			want = 0
		}
		if moved[asset] != want {
			b.Fatalf("lines were paid %d %s, want %d", moved[asset], asset, want)
		}
		b.funds[asset] -= want
		b.earned[asset] += want
		b.seen["paid in part"] = b.seen["paid in part"] || want > 0 && want < due[asset]
	}
}

// write is a request that counts in the frame of its effect.
func (b *budget) write(t *rapid.T) {
	p := &pending{Request: accounting.Request{Tenant: 1, At: b.at() + 1, Labels: accounting.NewRequestLabels("shop", "post", "issue"), In: uint64(rapid.IntRange(0, 4).Draw(t, "in"))}}
	fresh := b.fresh(p.usage(b))
	in := &event.Request{Header: b.head(), Item: event.Item{Op: event.Issue, To: name(usagePayer), Asset: name("EUR"), Amount: types.MinorUnits(1)}}
	in.Key = b.key()
	in.Seal(nil)
	in.Usage = flow.NewRequestUsage(&p.Request, b.terms[b.list])
	if b.step(in); b.reply.Problem != event.None {
		b.Fatal(b.reply.Problem.Code())
	}
	b.funds["EUR"]++
	added := map[account]uint64{}
	for i := range lists[b.list] {
		price := &lists[b.list][i]
		for m := range monthsOf(fresh, price) {
			a := account{price.Name, m}
			added[a] = b.paid[a]
		}
	}
	counts := len(b.paid)+newLines(b.paid, added) <= b.most
	if b.reply.Counted != counts {
		b.Fatalf("counted %v, want %v", b.reply.Counted, counts)
	}
	if counts {
		b.add(fresh)
		maps.Copy(b.paid, added)
		b.seen["counted in its frame"] = true
	}
	b.compare()
}

// freeze freezes the payer, or ends that.
func (b *budget) freeze(*rapid.T) {
	in := &event.Request{Header: b.head(), Item: event.Item{Op: event.Freeze, From: name(usagePayer)}}
	if b.funds["EUR"]+b.funds["USD"] == 0 {
		return // the account may not exist
	}
	if b.frozen {
		in.Op = event.Unfreeze
	}
	in.Caller = keys[0].ID
	in.Key = b.key()
	in.Seal(nil)
	if b.step(in); b.reply.Problem != event.None {
		b.Fatal(b.reply.Problem.Code())
	}
	b.frozen = !b.frozen
}

// TestPrepaidRequestsAgreeWithModel: a request is served only if the payer can pay for it and for all that is not paid; what
// was served is recorded whatever the payer has, and paid as soon as it has money. No balance is negative, and the sum of
// the transfers is what the lines have paid.
func TestPrepaidRequestsAgreeWithModel(t *testing.T) {
	seen := map[string]bool{}
	wanted := []string{"request ", "request insufficient_funds", "request account_frozen", "request usage_capacity", "response ", "response insufficient_funds", "response account_frozen", "flush ", "flush usage_capacity", "arrears", "paid in part", "counted in its frame",
		"report ", "report insufficient_funds", "report account_frozen", "credit", "prepaid slice", "reserved by another list"}
	checkUntilSeen(t, seen, wanted, func(t *rapid.T) {
		l := limits()
		l.Planes[1] = accounting.Spec(accounting.Limits{Rows: 400, Streams: 8, Tenants: 2, TenantRow: 400, TenantDim: 8, Lines: 4, Window: window, Grace: grace})
		b := newBudgetOf(t, seen, l)
		b.most = 4
		t.Repeat(map[string]func(*rapid.T){"issue": b.pay, "hold": b.hold, "begin": b.begin, "begin another": b.begin, "respond": b.respond, "end": b.end, "flush": b.flush, "write": b.write, "freeze": b.freeze,
			"report": b.report, "change list": b.changeList, "restart": b.restart, "wait": b.wait})
	})
}

// TestArrearsAboveLimitsArePaid: of arrears that are more than one operation, or the debits of a day, may move, each payment is what the
// limits permit. All is paid after some days.
func TestArrearsAboveLimitsArePaid(t *testing.T) {
	once(t, func(t *rapid.T) {
		l := limits()
		l.Ledger.MaxAmount, l.Ledger.MaxDailyDebit = types.MinorUnits(40), types.MinorUnits(60)
		b := newBudgetOf(t, map[string]bool{}, l)
		prices := pricing.List{{Name: "each", Dimension: "requests", Asset: "EUR", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}}
		terms, err := flow.NewTerms(prices, usagePayer, usageRevenue)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			b.give("EUR", 40)
		}
		pay := func(units uint64) event.Problem {
			c := &flow.PayRequests{RecordMetered: accounting.RecordMetered{Header: command.Header{Ticket: 1, Tenant: 1}}, Terms: terms, Key: b.key()}
			if units > 0 {
				s, err := accounting.NewSeries("requests", nil)
				if err != nil {
					t.Fatal(err)
				}
				c.Metered = []accounting.Metered{{Series: s, Time: b.at(), Count: accounting.Count{Value: units, Events: 1}}}
			}
			c.Seal()
			r := b.execute(c)
			if r.Problem != event.None {
				t.Fatal(r.Problem.Code())
			}
			return r.Unpaid
		}
		for i, want := range []struct {
			units  uint64
			unpaid event.Problem
			left   uint64
			days   int
		}{{100, event.None, 120, 0}, {0, event.None, 100, 0}, {0, event.DailyLimitExceeded, 100, 1}, {0, event.None, 60, 0}, {0, event.None, 60, 1}, {5, event.None, 55, 0}} {
			if unpaid, left := pay(want.units), b.balance("EUR"); unpaid != want.unpaid || left != want.left {
				t.Fatalf("payment %d: %q is unpaid and %d are left, want %q and %d", i, unpaid.Code(), left, want.unpaid.Code(), want.left)
			}
			b.now.Wall, b.now.Mono = b.now.Wall.Add(time.Duration(want.days)*24*time.Hour), b.now.Mono.Add(time.Duration(want.days)*24*time.Hour)
			b.step(event.Tick{})
		}
	})
}

// TestMostRequestsFit: the frame of the largest command has the records and bytes that were reserved for it, and a step in the
// steady state allocates nothing.
func TestMostRequestsFit(t *testing.T) {
	once(t, func(t *rapid.T) {
		l := limits()
		l.Ledger.Holdings, l.Ledger.TenantHoldings, l.Ledger.Assets, l.Ledger.TenantAssets = 200, 200, 65, 65
		l.Planes[1] = accounting.Spec(accounting.Limits{Rows: 2000, Streams: 2, Tenants: 2, TenantRow: 2000, TenantDim: 2, Lines: 500, Window: window, Grace: grace})
		b := newBudgetOf(t, map[string]bool{}, l)
		var prices pricing.List
		for i := range pricing.MaxPrices {
			asset := fmt.Sprint("ASSET", i)
			b.give(asset, 1<<30)
			prices = append(prices, pricing.Price{Name: asset, Dimension: "requests", Asset: asset, Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}})
		}
		terms, err := flow.NewTerms(prices, usagePayer, usageRevenue)
		if err != nil {
			t.Fatal(err)
		}
		command := func() *flow.PayRequests {
			c := &flow.PayRequests{RecordMetered: accounting.RecordMetered{Header: command.Header{Ticket: 1, Tenant: 1}}, Terms: terms, Key: b.key()}
			for i := range accounting.MaxMetered {
				s, err := accounting.NewSeries("requests", []accounting.Label{{Name: "route", Value: fmt.Sprintf("/%063d", i)}, {Name: "subject", Value: fmt.Sprintf("%064d", i)}})
				if err != nil {
					t.Fatal(err)
				}
				c.Metered = append(c.Metered, accounting.Metered{Series: s, Time: b.at(), Count: accounting.Count{Value: 1, Events: 1}})
			}
			c.Sort()
			c.Seal()
			return c
		}
		c := command()
		cost := (&flow.Prepaid{}).Over(c, b.books().Usage, b.view.Wallet).Cost(c)
		b.size = 0
		if r := b.execute(c); r.Problem != event.None {
			t.Fatal(r.Problem.Code())
		}
		if b.size > cost.Bytes || cost.Rows != pricing.MaxPrices {
			t.Fatalf("%d bytes of %d, %d rows", b.size, cost.Bytes, cost.Rows)
		}
		var steps []event.Event
		for range 8 {
			steps = append(steps, &event.Execute{Command: command()})
		}
		next := func() {
			b.out.Reset()
			b.node.Step(b.now, steps[0], &b.out)
			steps = steps[1:]
			if len(b.out.Frames) != 1 {
				t.Fatal("no frame")
			}
		}
		next()
		next()
		if n := testing.AllocsPerRun(4, next); n != 0 {
			t.Fatalf("%v allocations a step", n)
		}
	})
}
