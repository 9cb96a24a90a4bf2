package metering_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/metering"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet"
	"macronode/core/wallet/ledger"
)

// A fakeNode records commands, or rejects them.
type fakeNode struct {
	mu       sync.Mutex
	reply    func() (event.Reply, bool)
	decide   func(*accounting.RecordMetered) event.Problem // if not nil, instead of reply
	recorded uint64                                        // requests
	unsure   uint64                                        // requests with an unknown outcome
	paid     []*flow.PayRequests
}

func (n *fakeNode) execute(_ context.Context, c command.Command) (event.Reply, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	in, isPostpaid := c.(*accounting.RecordMetered)
	if !isPostpaid {
		paid := c.(*flow.PayRequests)
		n.paid, in = append(n.paid, paid), &paid.RecordMetered
	}
	requests := uint64(0)
	for _, m := range in.Metered {
		if string(m.Series.Dimension) == "requests" {
			requests += m.Value
		}
	}
	r, ok := event.Reply{}, true
	if n.decide != nil {
		r.Problem = n.decide(in)
	} else {
		r, ok = n.reply()
	}
	switch {
	case ok && r.Problem == event.None:
		n.recorded += requests
	case ok && r.Problem == event.OutcomeUnknown:
		n.unsure += requests
	}
	return r, ok
}

// has returns the number of recorded requests.
func (n *fakeNode) has() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.recorded
}

func newRecorder(n *fakeNode) (*metering.Recorder, map[metering.Outcome]uint64) {
	var mu sync.Mutex
	ended := map[metering.Outcome]uint64{}
	return metering.New(metering.Config{Window: time.Minute, Interval: time.Second, Execute: n.execute, Log: slog.New(slog.DiscardHandler),
		Prepaid: func() map[types.Tenant]*flow.Terms { return nil },
		Read:    func(read func(flow.Books)) { read(flow.Books{}) },
		Status:  func() event.Status { return event.Status{At: request(1, "r").At} },
		Ended: func(o metering.Outcome, requests uint64) {
			mu.Lock()
			defer mu.Unlock()
			ended[o] += requests
		}}), ended
}

func request(tenant types.Tenant, route string) accounting.Request {
	return accounting.Request{Tenant: tenant, At: 1_700_000_000_000, Labels: accounting.NewRequestLabels("gateway", "get", route), In: 1, Out: 2}
}

// TestEachRequestIsCountedOnce: whatever the node answers, each request has one outcome, and what is recorded is what
// the recorder says.
func TestEachRequestIsCountedOnce(t *testing.T) {
	replies := []event.Problem{event.None, event.None, event.OutcomeUnknown, event.Busy, event.Unavailable, event.UsageCapacity, event.EventTooOld, event.UsageOverflow, event.BadRequest}
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	n := &fakeNode{reply: func() (event.Reply, bool) {
		i := rnd.IntN(len(replies) + 1)
		if i == len(replies) {
			return event.Reply{}, false
		}
		return event.Reply{Problem: replies[i]}, true
	}}
	m, ended := newRecorder(n)
	total := uint64(0)
	for range 200 {
		var g sync.WaitGroup
		for tenant := range types.Tenant(12) {
			g.Go(func() {
				for range 5 {
					m.Count(request(1+tenant, "r"), flow.Reservation{})
				}
			})
			total += 5
		}
		m.Flush(t.Context())
		g.Wait()
	}
	n.reply = func() (event.Reply, bool) { return event.Reply{}, true }
	m.Flush(t.Context())
	if ended[metering.Recorded] != n.recorded || ended[metering.Unknown] != n.unsure || n.recorded+n.unsure+ended[metering.Lost] != total {
		t.Errorf("%d requests: recorded %d, unknown %d; the recorder has %v", total, n.recorded, n.unsure, ended)
	}
	if got := m.Waiting(); got != 0 {
		t.Errorf("%d requests wait", got)
	}
	for _, o := range []metering.Outcome{metering.Recorded, metering.Unknown, metering.Lost} {
		if ended[o] == 0 {
			t.Errorf("never %s", o)
		}
	}
}

// TestRequestsWithoutRoomAreLost: beyond the limit of rows, requests are counted as lost.
func TestRequestsWithoutRoomAreLost(t *testing.T) {
	n := &fakeNode{reply: func() (event.Reply, bool) { return event.Reply{}, true }}
	m, ended := newRecorder(n)
	for i := range metering.MaxRows + 3 {
		m.Count(request(types.Tenant(1+i), "r"), flow.Reservation{})
	}
	m.Count(request(1, "r"), flow.Reservation{}) // its row exists
	if ended[metering.Lost] != 3 {
		t.Errorf("%d are lost, want 3", ended[metering.Lost])
	}
	m.Flush(t.Context())
	if n.recorded != metering.MaxRows+1 {
		t.Errorf("%d are recorded", n.recorded)
	}
}

// TestTenantWithoutRoom: the usage of a tenant that the node rejects for now takes no room of another one.
func TestTenantWithoutRoom(t *testing.T) {
	n := &fakeNode{decide: func(in *accounting.RecordMetered) event.Problem {
		if in.Tenant == 1 {
			return event.Busy
		}
		return event.None
	}}
	m, ended := newRecorder(n)
	for i := range metering.MaxRows {
		if m.Count(request(1, "r"+strconv.Itoa(i)), flow.Reservation{}); i%1000 == 0 {
			m.Flush(t.Context())
		}
	}
	if want := uint64(metering.MaxRows - metering.MaxTenantRows); ended[metering.Lost] != want {
		t.Errorf("%d requests are lost, want %d", ended[metering.Lost], want)
	}
	if got := m.Waiting(); got != metering.MaxTenantRows {
		t.Errorf("%d requests wait, want %d", got, metering.MaxTenantRows)
	}
	m.Count(request(2, "r"), flow.Reservation{})
	m.Flush(t.Context())
	if n.recorded != 1 {
		t.Errorf("%d requests of the other tenant are recorded", n.recorded)
	}
}

// TestRunFlushesEachInterval: usage is recorded an interval after it was counted, and the end of Run does not cancel
// a flush.
func TestRunFlushesEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{reply: func() (event.Reply, bool) { return event.Reply{}, true }}
		m, _ := newRecorder(n)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(ctx, t.Context())
		}()
		m.Count(request(1, "r"), flow.Reservation{})
		time.Sleep(time.Second - 1)
		synctest.Wait()
		if n.has() != 0 {
			t.Error("recorded before the interval has passed")
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if n.has() != 1 {
			t.Errorf("%d recorded after the interval", n.has())
		}
		stop()
		<-ended
		m.Count(request(1, "r"), flow.Reservation{})
		m.Flush(t.Context())
		if n.has() != 2 {
			t.Errorf("%d recorded after the last flush", n.has())
		}
	})
}

// limited returns the answer of a node that has room for so many rows, and in which a route has the highest sum.
func limited(room int, overflows string) func(in *accounting.RecordMetered) event.Problem {
	return func(in *accounting.RecordMetered) event.Problem {
		for _, m := range in.Metered {
			if overflows != "" && strings.HasSuffix(string(m.Series.Labels), overflows) {
				return event.UsageOverflow
			}
		}
		if len(in.Metered) > room {
			return event.UsageCapacity
		}
		room -= len(in.Metered)
		return event.None
	}
}

// TestPartOfUsageIsRecorded: what fits is recorded, although a command of all of it does not fit.
func TestPartOfUsageIsRecorded(t *testing.T) {
	n := &fakeNode{decide: limited(12, "")}
	m, ended := newRecorder(n)
	for i := range 10 { // of three rows each
		m.Count(request(1, "r"+strconv.Itoa(i)), flow.Reservation{})
	}
	for want := uint64(4); want < 10; want += 4 {
		m.Flush(t.Context())
		if n.recorded != want || ended[metering.Lost] != 0 {
			t.Errorf("%d are recorded, %d lost; want %d", n.recorded, ended[metering.Lost], want)
		}
		n.decide = limited(12, "") // the windows were sealed
	}
	m.Flush(t.Context())
	if n.recorded != 10 {
		t.Errorf("%d are recorded in the end", n.recorded)
	}
}

// TestOneOverflowLosesOneRow: the others of the tenant are recorded.
func TestOneOverflowLosesOneRow(t *testing.T) {
	n := &fakeNode{decide: limited(1000, "route=r3")}
	m, ended := newRecorder(n)
	for i := range 10 {
		m.Count(request(1, "r"+strconv.Itoa(i)), flow.Reservation{})
	}
	m.Flush(t.Context())
	if n.recorded != 9 || ended[metering.Recorded] != 9 || ended[metering.Lost] != 1 {
		t.Errorf("%d are recorded; the recorder has %v", n.recorded, ended)
	}
}

// TestRestIsLostAtTheEnd: usage without room when the node stops has an outcome.
func TestRestIsLostAtTheEnd(t *testing.T) {
	n := &fakeNode{decide: limited(3, "")}
	m, ended := newRecorder(n)
	m.Count(request(1, "a"), flow.Reservation{})
	m.Count(request(1, "b"), flow.Reservation{})
	m.Close(t.Context())
	if ended[metering.Recorded] != 1 || ended[metering.Lost] != 1 {
		t.Errorf("%v", ended)
	}
}

// fundless is a recorder of a tenant without money: three requests are free, and the next costs one. reserve expects a problem.
type fundless struct {
	*metering.Recorder
	*testing.T
	node  *fakeNode
	books flow.Books
	terms *flow.Terms
}

func newFundless(t *testing.T) *fundless {
	t.Helper()
	f := &fundless{T: t, node: &fakeNode{reply: func() (event.Reply, bool) { return event.Reply{}, true }},
		books: flow.Books{Usage: accounting.New(accounting.Limits{Lines: 1}, 1), Wallet: wallet.New(ledger.Limits{}, 1)}}
	f.Recorder, _ = newRecorder(f.node)
	f.reload()
	f.Prepaid = func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{1: f.terms} }
	f.Read = func(read func(flow.Books)) { read(f.books) }
	return f
}

// reload makes the terms anew, as a reload of the configuration does.
func (f *fundless) reload() {
	f.Helper()
	var err error
	f.terms, err = flow.NewTerms(pricing.List{{Name: "calls", Dimension: "requests", Asset: "EUR", Model: pricing.Graduated, Per: 1,
		Tiers: []pricing.Tier{{UpTo: 3}, {Price: 1_000_000}}}}, "usage:prepaid", "usage:revenue")
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fundless) reserve(what string, want event.Problem) flow.Reservation {
	f.Helper()
	r := request(1, "r")
	of, why, lacks := f.Reserve(&r, f.terms)
	if why != want || (lacks.Amount == types.MinorUnits(1)) != (want == event.PrepaidExceeded) {
		f.Fatalf("%s: %q, lacks %v", what, why.Code(), lacks)
	}
	return of
}

// serve serves requests on a route.
func (f *fundless) serve(route string, n int) {
	f.Helper()
	for range n {
		f.Count(request(1, route), f.reserve("free", event.None))
	}
}

// TestReloadKeepsReservations: a reload that changes neither prices nor accounts makes no request free that is not recorded yet.
func TestReloadKeepsReservations(t *testing.T) {
	f := newFundless(t)
	f.serve("a", 1)
	f.reserve("free", event.None)
	f.reload()
	f.reserve("free", event.None)
	f.reserve("after a reload", event.PrepaidExceeded)
}

// TestRecordedPartIsNotReserved: if a part of the usage is recorded, the rest alone stays reserved.
func TestRecordedPartIsNotReserved(t *testing.T) {
	f := newFundless(t)
	f.serve("a", 2)
	f.serve("b", 1)
	f.node.decide = limited(3, "") // requests and bytes of one route
	f.Flush(t.Context())
	if f.node.recorded != 2 {
		t.Fatalf("%d are recorded", f.node.recorded)
	}
	f.serve("c", 2) // the books of this test have no lines
	f.reserve("beside what is recorded later", event.PrepaidExceeded)
}

// TestUnknownUsageStaysReserved: usage whose recording has an unknown outcome is reserved until the books have its frame.
func TestUnknownUsageStaysReserved(t *testing.T) {
	f := newFundless(t)
	f.Status = func() event.Status { return event.Status{LSN: 7, Applied: 6} }
	f.serve("a", 3)
	f.node.reply = func() (event.Reply, bool) { return event.Reply{Problem: event.OutcomeUnknown}, true }
	f.Flush(t.Context())
	f.reserve("the frame may become durable", event.PrepaidExceeded)
	f.books.Upto = 6
	f.node.reply = func() (event.Reply, bool) { return event.Reply{}, true }
	f.Flush(t.Context())
	f.reserve("it is not in the books", event.PrepaidExceeded)
	f.books.Upto = 7
	f.reserve("the books have all frames", event.None)
}

// TestRequestsOfPrepaidTenants: requests are reserved until they are recorded, by a command that pays for them; and longer if the node
// rejects that for now. Those of other tenants are not paid.
func TestRequestsOfPrepaidTenants(t *testing.T) {
	m := newFundless(t)
	n, terms, reserve := m.node, m.terms, m.reserve
	a, b, c := reserve("free", event.None), reserve("free", event.None), reserve("free", event.None)
	reserve("beyond what is free", event.PrepaidExceeded)
	m.Cancel(a)
	m.Cancel(flow.Reservation{})
	a = reserve("after one was not served", event.None)
	for _, of := range []flow.Reservation{a, b, c} {
		m.Count(request(1, "r"), of)
	}
	m.Count(request(2, "r"), flow.Reservation{})
	reserve("they are not recorded", event.PrepaidExceeded)
	n.reply = func() (event.Reply, bool) { return event.Reply{Problem: event.Busy}, true }
	m.Flush(t.Context())
	reserve("the node was busy", event.PrepaidExceeded)
	n.paid = nil
	n.reply = func() (event.Reply, bool) { return event.Reply{}, true }
	m.Flush(t.Context())
	if len(n.paid) != 1 || n.paid[0].Terms != terms || n.paid[0].Tenant != 1 || n.paid[0].Metered[2].Value != 3 || n.paid[0].ValidateFields() != nil {
		t.Fatalf("paid %+v", n.paid)
	}
	if n.recorded != 4 {
		t.Errorf("%d are recorded", n.recorded)
	}
	reserve("they are recorded", event.None)
}

// A frame applies the records of a decision to a plane.
type frame struct {
	rec   record.Record
	apply func(*record.Record)
}

func (f *frame) Record() *record.Record { return &f.rec }
func (f *frame) Add() types.Position {
	f.apply(&f.rec)
	return types.Position{LSN: 1}
}
func (*frame) Savepoint() {}
func (*frame) Undo()      {}
func (*frame) Commit()    {}
func (*frame) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (s command.PriorOutcome, used bool) {
	return s, false
}

// TestRejectedPaymentIsLogged: the log says once for each reason why usage that is due is not paid.
func TestRejectedPaymentIsLogged(t *testing.T) {
	var text strings.Builder
	why := event.AccountFrozen
	n := &fakeNode{reply: func() (event.Reply, bool) { return event.Reply{Unpaid: why}, true }}
	m, _ := newRecorder(n)
	m.Log = slog.New(slog.NewTextHandler(&text, nil))
	terms, err := flow.NewTerms(pricing.List{{Name: "calls", Dimension: "requests", Asset: "EUR", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}},
		"usage:prepaid", "usage:revenue")
	if err != nil {
		t.Fatal(err)
	}
	m.Prepaid = func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{1: terms} }
	books := flow.Books{Usage: accounting.New(accounting.Limits{Lines: 1}, 1), Wallet: wallet.New(ledger.Limits{}, 1)}
	m.Read = func(read func(flow.Books)) { read(books) }
	for _, c := range []struct {
		why  event.Problem
		want int // lines of the log
	}{{event.AccountFrozen, 1}, {event.AccountFrozen, 0}, {event.DailyLimitExceeded, 1}, {event.None, 0}, {event.DailyLimitExceeded, 1}} {
		text.Reset()
		why = c.why
		m.Count(request(1, "r"), flow.Reservation{})
		m.Flush(t.Context())
		if got := text.String(); strings.Count(got, "msg=") != c.want || c.want == 1 && !strings.Contains(got, "tenant=1 payer=usage:prepaid code="+c.why.Code()) {
			t.Errorf("%v: %q, want %d lines", c.why, got, c.want)
		}
	}
}

// newIndebted returns a recorder of a node on which tenant 1 owes for a request. No account has money.
func newIndebted(t *testing.T) (m *metering.Recorder, n *fakeNode, terms *flow.Terms, books flow.Books) {
	t.Helper()
	n = &fakeNode{reply: func() (event.Reply, bool) { return event.Reply{}, true }}
	m, _ = newRecorder(n)
	terms = termsOf(t, "calls")
	r := request(1, "r")
	books = flow.Books{Usage: accounting.New(accounting.Limits{Rows: 2, Streams: 2, Tenants: 1, TenantRow: 2, TenantDim: 2, Lines: 1, Window: time.Minute}, 1),
		Wallet: wallet.New(ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 1, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1, MaxAmount: types.MinorUnits(9), MaxDailyIssue: types.MinorUnits(9)}, 1)}
	m.Prepaid = func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{1: terms} }
	m.Read = func(read func(flow.Books)) { read(books) }
	if owes := new(flow.Prepaid).CountRequest(r.At, books.Usage, &command.Header{Tenant: 1, Usage: flow.NewRequestUsage(&r, terms)},
		&frame{apply: func(r *record.Record) { books.Usage.Apply(0, types.TxID{}, r) }}); !owes {
		t.Fatal("the request is not counted")
	}
	return m, n, terms, books
}

// termsOf returns terms with one price, which has a name.
func termsOf(t *testing.T, name string) *flow.Terms {
	t.Helper()
	terms, err := flow.NewTerms(pricing.List{{Name: name, Dimension: "requests", Asset: "EUR", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 1_000_000}}}},
		"usage:prepaid", "usage:revenue")
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// TestUncollectedArrears: what is due is reported once if no terms collect it any more, because the tenant or the price has none, and
// until they do again. A start knows it from the lines.
func TestUncollectedArrears(t *testing.T) {
	var text strings.Builder
	m, _, terms, _ := newIndebted(t)
	m.Log = slog.New(slog.NewTextHandler(&text, nil))
	m.Prices = func() *flow.Terms { return terms }
	all := func(of *flow.Terms) func() map[types.Tenant]*flow.Terms {
		return func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{1: of} }
	}
	none := func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{} }
	m.Collected = none
	now := m.Status
	m.Status = func() event.Status { return event.Status{} } // of a node that has not recovered
	m.Flush(t.Context())
	m.Status = now
	for i, c := range []struct {
		collected func() map[types.Tenant]*flow.Terms
		owe       int
		logs      int
	}{{none, 1, 1}, {none, 1, 0}, {all(terms), 0, 0}, {none, 1, 1}, {all(termsOf(t, "calls")), 0, 0}, {all(termsOf(t, "others")), 1, 1}, {all(termsOf(t, "others")), 1, 0}, {all(terms), 0, 0}} {
		text.Reset()
		m.Collected = c.collected
		m.Flush(t.Context())
		if got := strings.Count(text.String(), "tenant=1 price=calls asset=EUR amount_minor=1"); got != c.logs || m.Uncollected() != c.owe {
			t.Errorf("case %d: %d tenants owe, want %d; the log is %q", i, m.Uncollected(), c.owe, text.String())
		}
	}
}

// TestStartWithoutPrice: a start reports what is due of a price that was removed.
func TestStartWithoutPrice(t *testing.T) {
	var text strings.Builder
	m, _, _, _ := newIndebted(t)
	m.Log = slog.New(slog.NewTextHandler(&text, nil))
	others := termsOf(t, "others")
	m.Prices = func() *flow.Terms { return others }
	m.Collected = func() map[types.Tenant]*flow.Terms { return map[types.Tenant]*flow.Terms{1: others} }
	m.Flush(t.Context())
	if m.Uncollected() != 1 || !strings.Contains(text.String(), "tenant=1 price=removed asset=unknown amount_minor=1") {
		t.Errorf("%d tenants owe; the log is %q", m.Uncollected(), text.String())
	}
	if strings.Count(text.String(), "no room for another line of prepaid usage") != 1 {
		t.Errorf("the log does not have that all lines are used: %q", text.String())
	}
	m.Flush(t.Context())
	if n := strings.Count(text.String(), "msg="); n != 2 {
		t.Errorf("the log has %d lines: %q", n, text.String())
	}
}

// TestArrearsArePaidWithoutRequests: what is due is paid as soon as the account has money, and not before. A tenant that is postpaid
// pays too, if its arrears are collected.
func TestArrearsArePaidWithoutRequests(t *testing.T) {
	m, n, terms, books := newIndebted(t)
	r := request(1, "r")
	if m.Flush(t.Context()); len(n.paid) > 0 {
		t.Errorf("paid without money: %+v", n.paid)
	}
	in := &event.Request{Header: command.Header{Tenant: 1}, Item: event.Item{Op: event.Issue, To: types.Name{Text: []byte("usage:prepaid")}, Asset: types.Name{Text: []byte("EUR")}, Amount: types.MinorUnits(1)}}
	in.Seal(nil)
	var reply event.Reply
	books.Wallet.Decide(r.At, in, &frame{apply: func(rec *record.Record) { books.Wallet.Apply(r.At, types.TxID{1}, rec) }}, &reply)
	if reply.Problem != event.None {
		t.Fatal(reply.Problem.Code())
	}
	if m.Flush(t.Context()); len(n.paid) != 1 || n.paid[0].Terms != terms || len(n.paid[0].Metered) > 0 || n.paid[0].ValidateFields() != nil {
		t.Errorf("paid %+v", n.paid)
	}
	m.Collected, m.Prepaid = m.Prepaid, func() map[types.Tenant]*flow.Terms { return nil }
	if m.Flush(t.Context()); len(n.paid) != 2 {
		t.Errorf("a postpaid tenant paid %+v", n.paid)
	}
}
