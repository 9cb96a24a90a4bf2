package sim

import (
	"time"

	"macronode/chaos/charges"
	"macronode/chaos/trace"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// A run with usage has clients that report events, beside those of money. Two have a key of another tenant, and one the
// administrator's. An oracle with the reference model predicts each answer and each slice.
const (
	usageTenant types.Tenant = 2
	usageKey    types.KeyID  = 301
	usageWindow              = 10 * time.Second
	usageGrace               = time.Second
)

// usageLimits are small, so that each of them is reached: of all tenants and of one.
var usageLimits = accounting.Limits{Rows: 6, Streams: 3, Tenants: 2, TenantRow: 4, TenantDim: 2, Window: usageWindow, Grace: usageGrace}

// usageWorld is the part of a run that concerns usage.
type usageWorld struct {
	oracle   *usageOracle
	clients  []*usageClient
	enter    []event.Event // submitted, not stepped
	sent     map[types.Ticket]*usageAttempt
	attempts map[types.Ticket]*usageAttempt // of this process, those of clients that left included
	past     []usageEvent                   // that were ever sent
	acked    map[usageID]bool               // events that were acknowledged
	reports  map[types.Position]bool        // acknowledged
	doubted  map[usageID]bool               // events of clients that left without an answer
	meter    *usageMeter
	prepaid  *prepaidWorld // nil: the tenant is postpaid
	charger  *charger      // nil: its slices are not charged
	serial   int           // of events
	hasKey   bool          // the creation of the API key was acknowledged
	asksKey  bool          // it was requested from this process
}

// beginUsage gives a run its clients that report usage, if it has any.
func (w *World) beginUsage() {
	if w.odds.usage == 0 {
		return
	}
	u := &usageWorld{meter: newUsageMeter(), sent: map[types.Ticket]*usageAttempt{}, attempts: map[types.Ticket]*usageAttempt{},
		acked: map[usageID]bool{}, reports: map[types.Position]bool{}, doubted: map[usageID]bool{}}
	for i := range 3 {
		c := &usageClient{number: i, tenant: usageTenant, caller: usageKey}
		if i == 2 {
			c.tenant, c.caller = boss.Tenant, boss.ID
		}
		u.clients = append(u.clients, c)
	}
	w.usage, w.planes = u, append(w.planes, u)
	w.limits.Idempotency.Keys += 16 // events are refs
	w.limits.Idempotency.PerTenant += 8
	if w.odds.prepaid > 0 {
		w.beginPrepaid()
		return
	}
	w.beginCharges()
	u.oracle = newUsageOracle(w)
	w.limits.Planes = append(w.limits.Planes, accounting.Spec(usageLimits))
	w.config.State = w.limits
	w.promise.begin(state.New(w.limits, 0))
}

func (*usageWorld) name() string               { return "usage" }
func (u *usageWorld) arrivals() *[]event.Event { return &u.enter }
func (u *usageWorld) unanswered() int          { return len(u.sent) }

// move is a move of a client that reports usage.
func (u *usageWorld) move(w *World) {
	if w.exports != nil && w.c.Choose("usage/exports", 2) == 1 {
		w.exportMove()
		return
	}
	if !u.hasKey {
		w.createUsageKey()
		return
	}
	others := 1
	switch {
	case u.prepaid != nil:
		others = 7
	case u.charger != nil:
		others = 3
	}
	if i := w.c.Choose("usage/client", len(u.clients)+others); i < len(u.clients) {
		u.clients[i].move(w)
		return
	}
	if u.prepaid != nil {
		u.prepaid.move(w)
		return
	}
	if u.charger != nil && w.c.Choose("usage/charges", 3) > 0 {
		u.charger.move(w)
		return
	}
	u.meter.move(w)
}

// createUsageKey makes the administrator create the API key of the clients.
func (w *World) createUsageKey() {
	u := w.usage
	if u.asksKey || len(w.clerk.admin) > 0 {
		return
	}
	u.asksKey = true
	in := &event.CreateKey{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant,
		Key: event.Key{ID: usageKey, Tenant: usageTenant, Scopes: event.ScopeMeter, Label: types.NewLabel("meter")}}
	if u.prepaid != nil || u.charger != nil {
		in.Key.Scopes = event.AllScopes
	}
	w.boss(in.Ticket, in, func(r event.Reply) { u.asksKey, u.hasKey = false, r.Problem == event.None })
}

// stepped checks a step that may concern usage: a command is decided, and windows are sealed, as the model predicts.
func (u *usageWorld) stepped(w *World, in event.Event, body []byte) {
	var a *usageAttempt
	var m *meteredAttempt
	if in, ok := in.(*event.Execute); ok {
		if a = u.attempts[in.Command.Head().Ticket]; a != nil {
			u.oracle.predict(w, a)
		}
		if m = u.meter.attempts[in.Command.Head().Ticket]; m != nil {
			u.meter.predict(w, m)
		}
	}
	if _, ok := in.(event.Tick); ok {
		_, after := w.trace.Around()
		w.note(after.DegradedBy.Has(types.ClockUntrusted) && u.oracle.isDue(after.At), "usage is due while the clock is untrusted")
	}
	if len(body) == 0 {
		if u.prepaid != nil {
			u.prepaid.stepped(w, in, a, nil)
		}
		return
	}
	f := readUsage(w, body)
	if f.report != nil || len(f.usage) > 0 {
		u.oracle.records(w, a, &f)
	}
	if u.prepaid != nil {
		u.prepaid.stepped(w, in, a, &f)
	} else if len(f.metered) > 0 {
		u.meter.records(w, m, &f)
	}
	if len(f.slices) > 0 {
		u.oracle.seals(w, in, &f)
	}
}

// crashed forgets what the last process had not answered, and the frames that are lost.
func (u *usageWorld) crashed(w *World) {
	for _, c := range u.clients {
		if c.out != 0 {
			c.crashed, c.doubts = true, true
		}
		c.out = 0
	}
	u.meter.crashed()
	if u.charger != nil {
		u.charger.starts()
	}
	if u.prepaid != nil {
		u.prepaid.crashed(w)
	}
	u.enter, u.asksKey = nil, false
	u.sent, u.attempts = map[types.Ticket]*usageAttempt{}, map[types.Ticket]*usageAttempt{}
	u.oracle = u.oracle.upto(w, w.node.LSN())
}

// recovers compares a recovered state with the model and with all that was acknowledged.
func (u *usageWorld) recovers(w *World, st *state.State, _ []record.Sealed) {
	o := u.oracle.upto(w, st.LSN)
	if !w.unlawful {
		for at := range u.reports { //nolint:maporder // the rule is the same for each
			if !o.reported[at] {
				w.fail("usage-acknowledged-lost", "the report %v was acknowledged, and is lost", at)
			}
		}
		for id := range u.acked { //nolint:maporder // the rule is the same for each
			if _, known := o.events[id]; !known {
				w.fail("usage-acknowledged-lost", "%v was acknowledged, and is lost", id)
			}
		}
	}
	o.compare(w, st)
	if u.charger != nil {
		u.charger.recovers(w, st)
	}
	if u.prepaid != nil {
		u.prepaid.recovers(w, st)
	}
}

// certify compares the durable frames and the state at the end of a run with the model: all acknowledged usage is
// counted, once, and nothing else but what clients left without an answer.
func (u *usageWorld) certify(w *World) {
	st := state.New(w.limits, 1)
	var slices []usageSlice
	for i := range w.testified.frames {
		if err := st.Fold(w.testified.frames[i].Body, nil); err != nil {
			w.fail("usage-fold", "%v: %v", w.testified.frames[i].LSN, err)
			return
		}
		f := readUsage(w, w.testified.frames[i].Body)
		slices = append(slices, f.slices...)
	}
	if st.Hash() != w.fol.Hash() || st.LSN != w.node.LSN() {
		w.fail("usage-fold", "the fold of all frames differs from the follower, or frames are not durable")
	}
	u.recovers(w, &st, w.testified.frames)
	u.certifyCharges(w)
	if len(slices) != len(u.oracle.slices) {
		w.fail("usage-slices", "%d slices are in the frames, %d were sealed", len(slices), len(u.oracle.slices))
	}
	for id := range u.oracle.events { //nolint:maporder // the rule is the same for each
		if !u.acked[id] && !u.doubted[id] {
			w.fail("usage-without-answer", "%v is counted, and its report was not answered", id)
		}
	}
}

// certifyCharges has the durable frames certified: an event is recorded once, and what is recorded is sealed once. Of a prepaid tenant the
// chain goes from each request to its payment.
func (u *usageWorld) certifyCharges(w *World) {
	j := charges.New(charges.Config{Lists: priceLists[:], Payer: prepaidPayer, Beneficiary: prepaidEarner})
	for i := range w.testified.frames {
		if err := j.Frame(&w.testified.frames[i]); err != nil {
			w.fail("usage-certificate", "%v", err)
			return
		}
	}
	if u.charger != nil {
		u.charger.certify(w, j)
	}
	if u.prepaid != nil {
		u.prepaid.certify(w, j)
	}
}

// usageHead returns the header of a new attempt.
func (w *World) usageHead(c *usageClient) command.Header {
	w.ticket++
	return command.Header{Ticket: types.NewTicket(w.ticket%8, w.ticket), Caller: c.caller, Tenant: c.tenant}
}

// insist submits what clients still report.
func (u *usageWorld) insist(w *World) {
	for _, c := range u.clients {
		if c.want != nil && c.out == 0 {
			c.ask(w)
		}
	}
	if u.prepaid != nil {
		u.prepaid.insist(w)
		return
	}
	u.meter.record(w)
	if u.charger != nil && u.hasKey {
		u.charger.insist(w)
	}
}

// busy reports whether a client has a report without an answer.
func (u *usageWorld) busy() bool {
	for _, c := range u.clients {
		if c.want != nil {
			return true
		}
	}
	return u.meter.out != 0 || u.meter.waiting || u.prepaid != nil && u.prepaid.busy() || u.charger != nil && u.hasKey && !u.charger.isDone
}

// indexUsage gives the index the events of a record.
func (x *index) indexUsage(s *record.Sealed, h *record.Header, i uint16, r *record.Record) {
	for _, e := range trace.UsageEvents(r) {
		x.seen[refOf(r.Tenant, e)] = command.PriorOutcome{Hash: e.Content, ID: types.NewTxID(s.Journal, types.Position{LSN: h.LSN, Index: i}), At: h.At}
	}
}
