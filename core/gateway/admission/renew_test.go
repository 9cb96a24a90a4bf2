package admission_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/types"
	model "macronode/models/admission"
)

// change draws other limits for admission and its model. Admitted requests stay; waiting ones of a class without
// weight are rejected.
func change(t *rapid.T, now types.Instant, a *admission.Admit, m *model.Admission, l *admission.Limits) {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	m.Permits, m.Queue, m.Flow = n("permits", 0, 4), n("queue", 1, 4), n("flow", 1, 4)
	m.Wait = time.Duration(n("wait", 0, 50)) * time.Millisecond
	m.Routes = m.Routes[:0:0]
	for range n("routes", 0, 4) {
		m.Routes = append(m.Routes, model.Route{Requests: n("route", 0, 4), PerFlow: n("route flow", 0, 3)})
	}
	for c := range types.NumClasses {
		m.Class[c], m.Weight[c] = n("class", 1, 4), n("weight", 0, 2)
		l.Weights[c] = uint64(m.Weight[c])
	}
	permitShares(t, m, l)
	for f := range l.Facets {
		of := &l.Facets[f]
		of.Permits, of.Queue, of.PerClass, of.PerFlow = m.Permits, m.Queue, m.Class, m.Flow
	}
	l.Quantum, l.Wait, l.Routes = uint64(n("quantum", 10, 2*quantum)), m.Wait, nil
	for _, r := range m.Routes {
		l.Routes = append(l.Routes, event.RouteLimits(r))
	}
	a.Renew(*l)
	for {
		ticket, waited, any := a.Unserved(now)
		if !any {
			break
		}
		gone := m.Gone(ticket)
		if gone == nil || waited != time.Duration(now-gone.Since) {
			t.Fatalf("%v goes, after %v, who may stay", ticket, waited)
		}
		m.Settle(ticket)
	}
	if left := m.Gone(0); left != nil {
		t.Fatalf("%+v waits, and is not served", left)
	}
}

// modelRoutes returns the limits of routes for the model.
func modelRoutes(all []event.RouteLimits) (of []model.Route) {
	for _, r := range all {
		of = append(of, model.Route(r))
	}
	return of
}

// permitShares draws the shares of classes and flows.
func permitShares(t *rapid.T, m *model.Admission, l *admission.Limits) {
	var of admission.Facet
	of.FlowPermits = rapid.IntRange(0, 3).Draw(t, "flow permits")
	for c := range of.ClassPermits {
		of.ClassPermits[c] = rapid.IntRange(0, 3).Draw(t, "class permits")
	}
	for f := range l.Facets {
		l.Facets[f].FlowPermits, l.Facets[f].ClassPermits = of.FlowPermits, of.ClassPermits
	}
	m.FlowPermits, m.ClassPermits = of.FlowPermits, of.ClassPermits
}

// TestRenewWithSameLimits changes nothing.
func TestRenewWithSameLimits(t *testing.T) {
	a := admission.New(limits(), 1)
	for slot := range uint32(6) {
		in := event.Admit{Ticket: types.NewTicket(slot, 1), Class: types.ClassAuthed, Tenant: types.Tenant(1 + slot/2), Key: 1, Route: uint16(slot % 2), TimeLeft: time.Second}
		if a.Would(&in) == nil {
			a.Arrive(5, &in)
		}
		if slot < 2 {
			a.Next(6)
		}
	}
	was := a.HashInto(0)
	if a.Renew(limits()); a.HashInto(0) != was || a.Waiting() == 0 {
		t.Error("it has another hash")
	}
}

// TestRenewAppliesToStreams: waiting reservations use the new quantum and the new weights.
func TestRenewAppliesToStreams(t *testing.T) {
	l := limits()
	a, tickets := admission.New(l, 1), []types.Ticket(nil)
	for slot := range uint32(2) {
		in := event.Admit{Ticket: types.NewTicket(slot, 1), Class: types.ClassAuthed, Tenant: 1, Key: 1, TimeLeft: time.Second}
		if slot == 1 {
			in.Class, in.Key, in.Tenant = types.ClassAnon, 0, 0
		}
		a.Arrive(0, &in)
		a.Next(0)
		tickets = append(tickets, in.Ticket)
	}
	l.Quantum, l.Weights = 4*quantum, [types.NumClasses]uint64{1, 1, 9}
	a.Renew(l)
	for _, ticket := range tickets {
		a.Line(ticket, 4*quantum, types.Instant(time.Second))
	}
	if err := a.Check(); err != nil || a.Lined() != 2 {
		t.Fatalf("%d wait: %v", a.Lined(), err)
	}
	for _, want := range tickets {
		if got, bytes := a.NextPart(); got != want || bytes != 4*quantum {
			t.Errorf("%v goes with %d bytes, want %v", got, bytes, want)
		}
	}
}

// TestQueuedRequestsPayNewQuantum: a request that was queued with the old quantum is charged the new one, and gets
// back at most that. So its flow gets turns by its actual cost.
func TestQueuedRequestsPayNewQuantum(t *testing.T) {
	l := looseLimits(200, 1000, 1)
	a := admission.New(l, 1)
	for n := range uint32(l.Places) {
		tenant, bytes := types.Tenant(1+n%2), []int64{-1, 50}[n%2]
		a.Arrive(1, &event.Admit{Ticket: types.NewTicket(n, 1), Class: types.ClassAuthed, Facet: types.FacetWallet, Tenant: tenant, Key: types.KeyID(tenant), DeclaredBytes: bytes, TimeLeft: 8 * time.Hour})
	}
	l.Quantum = 100
	a.Renew(l)
	went := [2]int{}
	for range l.Places / 2 {
		ticket, _ := a.Next(2)
		went[ticket.Slot()%2]++
		a.Settle(ticket, 50)
	}
	if went[0] < went[1]-3 || went[0] > went[1]+3 {
		t.Errorf("who said nothing went %d times, who said 50 %d times; both moved 50", went[0], went[1])
	}
}

// TestRenewCopiesRoutes: a later change of the caller's slice changes nothing.
func TestRenewCopiesRoutes(t *testing.T) {
	l := limits()
	a, in := admission.New(l, 1), event.Admit{Ticket: types.NewTicket(0, 1), Class: types.ClassAuthed, Tenant: 1, Key: 1, Route: 1, TimeLeft: time.Second}
	l.Routes = []event.RouteLimits{{}, {Requests: 1}}
	a.Renew(l)
	a.Arrive(1, &in)
	l.Routes[1].Requests = 5
	if err := a.Would(&in); !errors.Is(err, admission.ErrRoute) {
		t.Errorf("a route of one takes another: %v", err)
	}
}
