package sim

import (
	"fmt"
	"math"
	"time"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/idempotency"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// usageSeries are what usage is counted of: as a client writes it, and as it is stored.
var usageSeries = [...]struct {
	dimension string
	labels    []accounting.Label
	text      string
}{
	{"requests", nil, ""},
	{"requests", []accounting.Label{{Name: "method", Value: "GET"}, {Name: "service", Value: "a"}}, "service=a,method=get"},
	{"bytes_in", []accounting.Label{{Name: "service", Value: "B"}}, "service=b"},
	{"custom:x", nil, ""},
}

// usageID identifies an event.
type usageID struct {
	tenant     types.Tenant
	source, id string
}

// A usageEvent is an event as a client has it.
type usageEvent struct {
	usageID
	series  int // in usageSeries
	value   uint64
	time    types.Time
	undated bool
}

// meant is the event as the model has it, if it is reported at a time.
func (e *usageEvent) meant(at types.Time) meaning.Event {
	m := meaning.Event{ID: e.source + "/" + e.id, Dimension: usageSeries[e.series].dimension, Labels: usageSeries[e.series].text, Value: e.value, Time: int64(e.time), Undated: e.undated}
	if e.undated {
		m.Time = int64(at)
	}
	return m
}

// A usageClient makes one report at a time, and repeats it until it has the answer.
type usageClient struct {
	number  int
	tenant  types.Tenant
	caller  types.KeyID
	want    []usageEvent
	out     types.Ticket // called, not answered; 0: none
	crashed bool         // the node stopped while the report was out
	doubts  bool         // the outcome of an attempt is unknown
}

// A usageAttempt is one submitted report.
type usageAttempt struct {
	client   *usageClient
	events   []usageEvent
	meant    []meaning.Event
	blind    bool      // the index was not read
	mark     types.LSN // of the index when it was read
	indexed  bool      // the index has one of the events
	problems []meaning.Outcome
	counted  meaning.Counts
	saw      types.LSN // the last frame when it was decided
	keys     int       // in the window of idempotency keys when it was decided
	recorded types.Position

	// Of a prepaid tenant.
	list    int // of the prices; postpaid: none
	terms   *flow.Terms
	expects prepaidOutcome
	counts  *prepaidAttempt // what the request itself counts as, in its frame
}

// move makes a report, repeats it, or leaves.
func (c *usageClient) move(w *World) {
	switch {
	case c.out != 0 && w.odd("usage/leave", 24, w.odds.leave):
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		delete(w.usage.sent, c.out)
		c.out, c.doubts = 0, true
	case c.out != 0:
	case c.want == nil:
		if w.c.Choose("usage/waits", 6) == 1 { // to the end of a window
			w.pass(time.Duration(w.c.Choose("usage/for", 11)) * time.Second)
		}
		c.want = c.wish(w)
		c.ask(w)
	case w.c.Choose("usage/gives-up", 16) == 1:
		c.givesUp(w)
	default:
		c.ask(w)
	}
}

// givesUp ends a report without its answer: if the outcome of an attempt is unknown, its events may be recorded.
func (c *usageClient) givesUp(w *World) {
	for i := range c.want {
		if c.doubts {
			w.usage.doubted[c.want[i].usageID] = true
		}
	}
	c.ends()
}

func (c *usageClient) ends() { c.want, c.crashed, c.doubts = nil, false, false }

// wish draws the events of a report.
func (c *usageClient) wish(w *World) (all []usageEvent) {
	u := w.usage
	for range 1 + w.c.Choose("usage/events", 3) {
		e := c.event(w)
		same := false
		for i := range all {
			same = same || all[i].usageID == e.usageID
		}
		if !same { // Seal compares the events of one request
			all = append(all, e)
		}
	}
	u.past = append(u.past, all...)
	return all
}

// event draws an event: a new one, one that was sent before, or one with its ID and other content.
func (c *usageClient) event(w *World) usageEvent {
	u := w.usage
	if what := w.c.Choose("usage/what", 8); what > 4 && len(u.past) > 0 {
		e := u.past[len(u.past)-1-w.c.Choose("usage/past", min(len(u.past), 12))]
		if e.tenant = c.tenant; what == 7 {
			e.value++
		}
		return e
	}
	u.serial++
	e := usageEvent{usageID: usageID{c.tenant, [...]string{"s", "t"}[u.serial%2], fmt.Sprint((u.serial + 1) / 2)}, series: [...]int{0, 1, 0, 1, 2, 2, 0, 3}[w.c.Choose("usage/series", 8)],
		value: [...]uint64{1, 0, 7, math.MaxUint64 - 3}[w.c.Choose("usage/value", 4)]}
	if u.prepaid != nil && e.value > 7 && w.c.Choose("usage/small", 4) > 0 {
		e.value = 2
	}
	var s event.Status
	w.node.Status(&s)
	e.time = s.At
	switch w.c.Choose("usage/time", 12) {
	case 0, 1, 2, 3:
	case 4:
		e.undated = true
	case 5, 6: // around the begin of the window
		e.time -= s.At%types.Time(usageWindow.Milliseconds()) + types.Time(w.c.Choose("usage/boundary", 2))
	case 7, 8:
		e.time -= types.Time(w.c.Choose("usage/late", 40)) * 1000
	case 9:
		e.time += types.Time(w.c.Choose("usage/early", 15)) * 1000
	case 10:
		e.time = e.time.Add(-accounting.MaxAge) + types.Time(w.c.Choose("usage/old", 3)*2000) - 2000
	case 11:
		e.time = e.time.Add(accounting.MaxFuture) + types.Time(w.c.Choose("usage/future", 3)*2000) - 2000
	}
	e.time = max(1, e.time)
	return e
}

// ask submits the report, with what the index has of its events.
func (c *usageClient) ask(w *World) {
	u := w.usage
	var s event.Status
	w.node.Status(&s)
	a := &usageAttempt{client: c, events: c.want, blind: w.c.Choose("usage/blind", 12) == 1, list: postpaid}
	in := &accounting.RecordEvents{Header: w.usageHead(c)}
	for i := range c.want {
		e := &c.want[i]
		a.meant = append(a.meant, e.meant(s.At))
		series, err := accounting.NewSeries(usageSeries[e.series].dimension, usageSeries[e.series].labels)
		if err != nil {
			w.fail("usage-series", "%v", err)
			return
		}
		in.Events = append(in.Events, accounting.Event{Source: e.source, ID: e.id, Series: series, Value: e.value, Time: types.Time(a.meant[i].Time), Undated: e.undated, Place: uint16(i)})
	}
	if u.prepaid != nil && c.tenant == usageTenant {
		u.prepaid.asks(w, a, &in.Header)
	}
	var cmd sealedEvents = in
	if a.terms != nil {
		u.prepaid.serial++
		paid := &flow.PrepaidEvents{RecordEvents: *in, Terms: a.terms, Key: flow.Key(fmt.Sprint("event-", u.prepaid.serial))}
		cmd, in = paid, &paid.RecordEvents
	}
	if err := cmd.Seal(); err != nil {
		w.fail("usage-seal", "%v", err)
		return
	}
	if !a.blind {
		in.IndexedTo = w.index.mark
		in.Refs(func(name types.NameHash, prior *command.PriorOutcome) {
			*prior = w.index.seen[idempotency.Key{Tenant: c.tenant, Name: name, Ref: true}]
			a.indexed = a.indexed || prior.ID.Position().LSN > 0 && prior.ID.Position().LSN <= s.Forgot
		})
	}
	a.mark, c.out = in.IndexedTo, in.Ticket
	u.sent[c.out], u.attempts[c.out], u.enter = a, a, append(u.enter, &event.Execute{Command: cmd})
	w.tell(clients, noLane, plain, "usage client %d: %d events", c.number, len(a.events))
}

// sealedEvents is a command that records events.
type sealedEvents interface {
	command.Command
	Seal() error
}

// takesReserved reports whether a report needs keys of the quarter of the window that other requests have.
func (a *usageAttempt) takesReserved(w *World) bool {
	keys := a.keys + len(a.events)
	if a.list != postpaid { // a transfer in each asset
		keys += len(assetsOf(a.list))
	}
	return 4*keys > 3*w.limits.Idempotency.Keys
}
