// Package metering records the requests that the node has served as usage.
//
//	request ends ──► Count ──► accounting.Meter ──each interval──► Flush ──► RecordMetered ──► journal
//	                                  ▲─────────── rejected ────────────┘
//
// Requests of prepaid tenants are checked by a flow.Credit before they are served, and flow.PayRequests records and pays them.
//
// A crash loses what was counted since the last flush. What is rejected for now is recorded later. If the outcome of
// a command is unknown, its usage is not recorded again: it is never counted twice.
package metering

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"macronode/adapters/hostclock"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// MaxRows is the number of rows between two flushes: one for each tenant, window, service, method and route. The requests
// of one more are lost.
const MaxRows = 1 << 14

// MaxTenantRows is the number of such rows of one tenant. The usage of a tenant that the node rejects for now waits in them.
const MaxTenantRows = MaxRows / 4

// MaxFlushing is the number of commands that are recorded at the same time: each has the usage of one tenant.
const MaxFlushing = 8

// An Outcome is what becomes of a request that was counted.
type Outcome string

// The outcomes.
const (
	Recorded Outcome = "recorded" // durable
	Lost     Outcome = "lost"     // there was no room, or the node rejects it for ever
	Unknown  Outcome = "unknown"  // recorded or not
)

// Config is what a Recorder needs.
type Config struct {
	Window   time.Duration // length of a window of the node
	Interval time.Duration // between two flushes
	// Execute gives the node a command. It returns false if the node has no slot.
	Execute func(ctx context.Context, c command.Command) (event.Reply, bool)
	Ended   func(o Outcome, requests uint64) // counts requests with their outcome
	// Prepaid returns the terms of the tenants that are prepaid now, Collected those by which arrears are paid (nil: the same), and Prices
	// terms without accounts, of all prices (nil: there are none). Each reload makes terms anew. Read passes the durable state.
	Prepaid   func() map[types.Tenant]*flow.Terms
	Collected func() map[types.Tenant]*flow.Terms
	Prices    func() *flow.Terms
	Read      func(read func(flow.Books))
	Status    func() event.Status // of the node
	Key       func() types.Name   // of the transfers of a payment, unique; nil: random
	Log       *slog.Logger
}

// A Recorder counts requests and has the node record them. Reserve, ReserveResponse, Count and Cancel may be called concurrently.
type Recorder struct {
	Config
	waiting atomic.Int64 // requests that were counted and have no outcome
	mu      sync.Mutex   // guards what follows
	meter   *accounting.Meter
	credit  *flow.Credit
	arrears arrearsWatch
	isFull  bool                           // there is no room for another line
	failing bool                           // the last flush lost usage, or may have
	unpaid  map[types.Tenant]event.Problem // why usage of tenants that is due is not paid
}

// New returns a recorder that has counted nothing.
func New(c Config) *Recorder {
	return &Recorder{Config: c, meter: accounting.NewMeter(c.Window, MaxRows, MaxTenantRows), credit: flow.NewCredit(), unpaid: make(map[types.Tenant]event.Problem)}
}

// Reserve reserves what a request will cost, before it is served. r.In is the declared size of its body. If the account of the
// tenant cannot pay, it returns the problem. Count or Cancel must follow.
func (m *Recorder) Reserve(r *accounting.Request, t *flow.Terms) (of flow.Reservation, why event.Problem, lacks event.Shortfall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Read(func(b flow.Books) { of, why, lacks = m.credit.Reserve(r, t, b) })
	return of, why, lacks
}

// ReserveResponse reserves the size of the response of a request too, before its first byte is sent. Its problems are those of Reserve.
func (m *Recorder) ReserveResponse(r flow.Reservation, at types.Time, size uint64) (of flow.Reservation, why event.Problem, lacks event.Shortfall) {
	if r.IsZero() {
		return r, event.None, event.Shortfall{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Read(func(b flow.Books) { of, why, lacks = m.credit.ReserveResponse(r, at, size, b) })
	return of, why, lacks
}

// Count counts a request that has ended, with what it had reserved.
func (m *Recorder) Count(r accounting.Request, of flow.Reservation) {
	m.waiting.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.meter.Add(&r)
	if !ok {
		m.credit.Cancel(of)
		m.end(Lost, 1)
		return
	}
	m.credit.End(of, k, &r)
}

// Cancel gives back what a request had reserved that does not count.
func (m *Recorder) Cancel(of flow.Reservation) {
	if of.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.credit.Cancel(of)
}

// Waiting returns the number of requests that were counted and have no outcome yet: a crash loses them.
func (m *Recorder) Waiting() int64 { return m.waiting.Load() }

// end gives requests an outcome.
func (m *Recorder) end(o Outcome, requests uint64) {
	m.waiting.Add(-int64(requests))
	m.Ended(o, requests)
}

// Run records what was counted each interval until ctx ends. It ends after the flush that is in progress, which hard
// cancels.
func (m *Recorder) Run(ctx, hard context.Context) {
	for hostclock.Sleep(ctx, m.Interval) == nil {
		m.Flush(hard)
	}
}

// Flush records what was counted so far, and pays arrears. If ctx ends, the outcome of the rest is unknown.
func (m *Recorder) Flush(ctx context.Context) {
	m.mu.Lock()
	all := m.meter.Take()
	m.credit.Take(all)
	m.mu.Unlock()
	var l losses
	var g errgroup.Group
	g.SetLimit(MaxFlushing)
	for _, u := range all {
		g.Go(func() error {
			m.record(ctx, u, &l)
			return nil
		})
	}
	_ = g.Wait()
	m.keep()
	m.payArrears(ctx)
	m.report(l.lost.Load(), l.unknown.Load())
}

// keep keeps the reservations of usage that is recorded later.
func (m *Recorder) keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Read(func(b flow.Books) { m.credit.Keep(b) })
}

// pay records usage of a prepaid tenant, and pays for it. It logs when usage that is due is not paid although there is money.
func (m *Recorder) pay(ctx context.Context, of accounting.RecordMetered, t *flow.Terms) (event.Reply, bool) {
	c := &flow.PayRequests{RecordMetered: of, Terms: t, Key: m.newKey()}
	c.Seal()
	r, ok := m.Execute(ctx, c)
	if !ok || r.Problem != event.None {
		return r, ok
	}
	m.mu.Lock()
	was := m.unpaid[of.Tenant]
	if m.unpaid[of.Tenant] = r.Unpaid; r.Unpaid == event.None {
		delete(m.unpaid, of.Tenant)
	}
	m.mu.Unlock()
	if r.Unpaid != event.None && r.Unpaid != was {
		m.Log.Warn("usage that is due is not paid: the wallet rejects the transfer", "tenant", of.Tenant, "payer", t.Payer(), "code", r.Unpaid.Code())
	}
	return r, ok
}

func (m *Recorder) newKey() types.Name {
	if m.Key != nil {
		return m.Key()
	}
	return flow.Key(rand.Text())
}

// execute has the node record usage of a tenant.
func (m *Recorder) execute(ctx context.Context, u *accounting.MeteredUsage) (event.Reply, bool) {
	if terms := m.Prepaid()[u.Command.Tenant]; terms != nil {
		return m.pay(ctx, u.Command, terms)
	}
	return m.Execute(ctx, &u.Command)
}

// Close flushes for the last time, when no request is counted any more. What has no room even now is lost.
func (m *Recorder) Close(ctx context.Context) {
	m.Flush(ctx)
	m.mu.Lock()
	rest := m.meter.Take()
	m.mu.Unlock()
	lost := uint64(0)
	for _, u := range rest {
		lost += u.Requests
	}
	if lost > 0 {
		m.end(Lost, lost)
		m.Log.Warn("metered usage is lost: the node had no room for it before it stopped", "lost", lost)
	}
}

// losses are the requests of a flush that are not recorded, or perhaps not.
type losses struct {
	lost, unknown atomic.Uint64
}

// record records the usage of a tenant, or counts it again. If the command is rejected because of some of its rows, its
// halves are tried: one row without room or with too large a sum must not keep out the others. It returns false if
// there is no use in trying more of the tenant now.
func (m *Recorder) record(ctx context.Context, u *accounting.MeteredUsage, l *losses) (more bool) {
	r, ok := m.execute(ctx, u)
	switch {
	case ok && r.Problem == event.None:
		m.settle(func() { m.credit.Recorded(u) })
		m.end(Recorded, u.Requests)
		return true
	case ok && r.Problem == event.OutcomeUnknown:
		upto := m.Status().LSN
		m.settle(func() { m.credit.Unknown(u, upto) })
		m.end(Unknown, u.Requests)
		l.unknown.Add(u.Requests)
		return true
	case ok && (r.Problem == event.UsageCapacity || isForever(r.Problem)):
		if first, second, ok := u.Halves(); ok {
			if m.record(ctx, first, l) {
				return m.record(ctx, second, l)
			}
			m.later(second, l)
			return false
		}
		if isForever(r.Problem) {
			m.settle(func() { m.credit.Recorded(u) })
			m.lose(u.Requests, l)
			return true
		}
	}
	m.later(u, l)
	return false
}

// settle lets the credit settle what was recorded.
func (m *Recorder) settle(how func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	how()
}

// isForever reports whether the same usage will always be rejected.
func isForever(p event.Problem) bool {
	return p == event.EventTooOld || p == event.UsageOverflow || p == event.AmountLimitExceeded || p == event.BadRequest
}

// later counts usage again that was rejected for now.
func (m *Recorder) later(u *accounting.MeteredUsage, l *losses) {
	m.mu.Lock()
	lost := m.meter.Return(u)
	m.mu.Unlock()
	m.lose(lost, l)
}

// lose counts lost requests.
func (m *Recorder) lose(requests uint64, l *losses) {
	if requests > 0 {
		m.end(Lost, requests)
		l.lost.Add(requests)
	}
}

// report logs a loss, once until a flush loses nothing.
func (m *Recorder) report(lost, unknown uint64) {
	if lost+unknown == 0 {
		m.failing = false
		return
	}
	if !m.failing {
		m.failing = true
		m.Log.Warn("metered usage is lost, or may be", "lost", lost, "unknown", unknown)
	}
}
