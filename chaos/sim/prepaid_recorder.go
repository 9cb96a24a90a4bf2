package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"macronode/adapters/metering"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// A prepaidRecorder is the recorder of the product. Its flush has a goroutine, which waits whenever the simulator goes on: the two never
// run at the same time, so that a run is deterministic.
type prepaidRecorder struct {
	*metering.Recorder
	calls      chan recorderCall // from the flush
	ended      chan any          // the flush; what it panicked with
	running    sync.WaitGroup
	isFlushing bool
	isDead     bool // the process has ended
	flight     *prepaidFlight
	taken      []*prepaidCall // of the flush, and not recorded yet
}

// A recorderCall is a command that a flush gives to the node.
type recorderCall struct {
	command command.Command
	reply   chan recorderReply
}

type recorderReply struct {
	event.Reply
	isTaken bool // the node had a slot
}

// A prepaidFlight is a command of the recorder without a reply.
type prepaidFlight struct {
	recorderCall
	ticket   types.Ticket
	list     int // of its terms
	calls    []*prepaidCall
	meant    []meaning.Metered
	problems []meaning.Outcome
	expects  prepaidOutcome
	saw      types.LSN // the last frame when it was decided
	recorded types.Position
	isPaying bool // it has no requests
}

func newPrepaidRecorder(w *World) *prepaidRecorder {
	r := &prepaidRecorder{calls: make(chan recorderCall), ended: make(chan any)}
	p := w.usage.prepaid
	r.Recorder = metering.New(metering.Config{Window: usageWindow, Interval: time.Second, Execute: r.execute, Log: slog.New(slog.DiscardHandler),
		Ended: func(o metering.Outcome, n uint64) {
			if o == metering.Lost && !r.isDead {
				w.fail("prepaid-lost", "%d requests are lost, although the meter has room", n)
			}
		},
		Prepaid: func() map[types.Tenant]*flow.Terms {
			if p.terms == nil {
				return nil
			}
			return map[types.Tenant]*flow.Terms{usageTenant: p.terms}
		},
		Read:   func(read func(flow.Books)) { w.fol.ReadBooks(read) },
		Status: w.status,
		Key: func() types.Name {
			p.serial++
			return flow.Key(fmt.Sprint("paid-", p.serial))
		}})
	return r
}

// status returns the status of the node.
func (w *World) status() (s event.Status) {
	w.node.Status(&s)
	return s
}

// execute hands a command over to the simulator, and waits.
func (r *prepaidRecorder) execute(_ context.Context, c command.Command) (event.Reply, bool) {
	if r.isDead {
		return event.Reply{Problem: event.OutcomeUnknown}, true
	}
	call := recorderCall{c, make(chan recorderReply)}
	r.calls <- call
	reply := <-call.reply
	return reply.Reply, reply.isTaken
}

// flush begins a flush, unless one is in progress.
func (r *prepaidRecorder) flush(w *World) {
	if r.isFlushing {
		return
	}
	p := w.usage.prepaid
	r.isFlushing = true
	r.taken, p.counted = p.counted, nil
	r.running.Go(func() {
		defer func() { r.ended <- recover() }()
		r.Flush(context.Background())
	})
	r.next(w)
}

// next waits for the next command of the flush, or for its end.
func (r *prepaidRecorder) next(w *World) {
	select {
	case call := <-r.calls:
		r.submits(w, call)
	case failed := <-r.ended:
		r.isFlushing, r.flight = false, nil
		if failed != nil {
			panic(failed)
		}
		p := w.usage.prepaid
		p.counted = append(r.taken, p.counted...)
		r.taken = nil
		w.note(len(p.counted) > 0, "prepaid: requests are recorded later")
		if n := r.Waiting(); int(n) != len(p.counted) {
			w.fail("prepaid-waiting", "the recorder has %d requests that are not recorded, %d were served", n, len(p.counted))
		}
	}
}

// dies ends the flush of a process that has ended.
func (r *prepaidRecorder) dies() {
	if r.isDead = true; r.isFlushing {
		r.flight.reply <- recorderReply{event.Reply{Problem: event.OutcomeUnknown}, true}
		<-r.ended
	}
	r.isFlushing = false
}

// submits checks a command of the flush and submits it.
func (r *prepaidRecorder) submits(w *World, call recorderCall) {
	p := w.usage.prepaid
	f := &prepaidFlight{recorderCall: call, list: postpaid}
	r.flight = f
	var rows []accounting.Metered
	switch c := call.command.(type) {
	case *flow.PayRequests:
		rows, f.list, f.isPaying = c.Metered, p.list, len(c.Metered) == 0
	case *accounting.RecordMetered:
		rows = c.Metered
	}
	for i := range rows {
		m := &rows[i]
		f.meant = append(f.meant, meaning.Metered{Dimension: string(m.Series.Dimension), Labels: string(m.Series.Labels), Value: m.Value, Events: int(m.Events), Time: int64(m.Time)})
	}
	of := func(c *prepaidCall) bool {
		return slices.ContainsFunc(f.meant, func(m meaning.Metered) bool {
			return m.Labels == c.labels() && m.Time == int64(max(1, windowOf(c.At)))
		})
	}
	for _, c := range r.taken {
		if of(c) {
			f.calls = append(f.calls, c)
		}
	}
	r.taken = slices.DeleteFunc(r.taken, of)
	if want := meteredOf(f.calls); !slices.Equal(f.meant, want) {
		w.fail("prepaid-records-others", "the recorder records %+v, served was %+v", f.meant, want)
	}
	if w.c.Choose("prepaid/no-slot", 16) == 1 {
		r.answers(w, recorderReply{})
		return
	}
	w.ticket++
	f.ticket = types.NewTicket(w.ticket%8, w.ticket)
	call.command.Head().Ticket = f.ticket
	w.usage.enter = append(w.usage.enter, &event.Execute{Command: call.command})
	w.tell(clients, noLane, plain, "the recorder records %d requests", len(f.calls))
}

// answers lets the flush go on with the reply to its command.
func (r *prepaidRecorder) answers(w *World, reply recorderReply) {
	p, f := w.usage.prepaid, r.flight
	switch {
	case reply.isTaken && reply.Problem == event.None:
	case reply.isTaken && reply.Problem == event.OutcomeUnknown:
		for _, c := range f.calls {
			c.frame, c.until = f.recorded.LSN, w.node.LSN()
		}
		p.unsure = append(p.unsure, f.calls...)
	default:
		r.taken = append(r.taken, f.calls...) // recorded later
	}
	r.flight = nil
	f.reply <- reply
	r.next(w)
}

// replied handles the reply to a command of the recorder; false if it is not to one.
func (r *prepaidRecorder) replied(w *World, reply event.Reply) bool {
	f := r.flight
	if f == nil || f.ticket != reply.Ticket {
		return false
	}
	recorded := f.recorded.LSN > 0
	switch {
	case reply.Problem == event.None:
		if reply.Replayed || reply.Position != f.recorded || reply.Unpaid.General() != f.expects.unpaid {
			w.fail("prepaid-acknowledged-nothing", "%v is acknowledged and %q is unpaid, recorded was %v and %q", reply.Position, reply.Unpaid.Code(), f.recorded, f.expects.unpaid.Code())
		}
		w.Saw["prepaid: requests are recorded"]++
		if recorded && !f.isPaying {
			w.usage.reports[reply.Position] = true
		} else if recorded {
			w.usage.prepaid.acked = append(w.usage.prepaid.acked, reply.Position.LSN)
		}
		w.note(f.list != postpaid && w.usage.prepaid.list == postpaid, "prepaid: recorded as prepaid, and the tenant is postpaid by now")
		w.note(reply.Unpaid != event.None, "prepaid: a payment is rejected: "+reply.Unpaid.Code())
	case reply.Problem == event.OutcomeUnknown:
		w.note(recorded, "prepaid: a payment is recorded, and its outcome is unknown")
	case recorded:
		w.fail("prepaid-refused-and-recorded", "%v is told, and %v was recorded", reply.Problem.Code(), f.recorded)
	case !blank(reply.Problem):
		if why := usageOutcomes[reply.Problem]; !slices.Contains(f.problems, why) {
			w.fail("prepaid-refusal", "%v is refused with %v, predicted was %v", f.meant, reply.Problem.Code(), f.problems)
		}
		w.Saw["prepaid: requests are refused: "+reply.Problem.Code()]++
	}
	r.answers(w, recorderReply{reply, true})
	if reply.Problem == event.OutcomeUnknown { // a request comes before the frame is there
		w.usage.prepaid.begins(w)
	}
	return true
}

// predict notes what becomes of a command that was decided in the last step.
func (f *prepaidFlight) predict(w *World, p *prepaidWorld) {
	_, after := w.trace.Around()
	f.saw = w.node.LSN()
	copied := *w.usage.oracle.book
	if f.list == postpaid {
		f.problems = copied.Meter(int64(after.At), usageTenant, f.meant)
		return
	}
	if f.problems = copied.MeterPrepaid(int64(after.At), usageTenant, f.meant); len(f.problems) > 0 {
		return
	}
	f.expects = p.last().requests(f.list, p.room, after.At, usesOf(f.meant, after.At))
	if f.expects.problem != event.None {
		f.problems = append(f.problems, usageOutcomes[f.expects.problem])
	}
}

// usesOf returns metered usage by months.
func usesOf(all []meaning.Metered, at types.Time) (uses []prepaidUse) {
	for _, m := range all {
		uses = append(uses, prepaidUse{m.Dimension, m.Labels, m.Value, monthOf(windowOf(min(types.Time(m.Time), at)))})
	}
	return uses
}

// records compares a frame with the command of the recorder.
func (f *prepaidFlight) records(w *World, frame *usageFrame) {
	switch {
	case f.recorded.LSN > 0:
		w.fail("prepaid-records-twice", "%v records a command again", frame.lsn)
	case len(f.problems) > 0:
		w.fail("prepaid-accepts", "%v records %v, which must be refused: %v", frame.lsn, f.meant, f.problems)
	case !slices.EqualFunc(frame.metered, f.meant, sameMetered) || frame.isPrepaid(len(f.meant)) != (f.list != postpaid) && len(f.meant) > 0:
		w.fail("prepaid-counts", "%v records %+v, %d of them prepaid; counted was %+v by list %d", frame.lsn, frame.metered, frame.prepaidRows, f.meant, f.list)
	}
	f.recorded = frame.meteredPlace
	if f.isPaying {
		f.recorded = frame.linesPlace
		w.Saw["prepaid: arrears are paid without requests"]++
	}
	before, _ := w.trace.Around()
	w.note(before.Phase == types.Draining, "prepaid: requests are recorded while the node drains")
	w.note(f.list != postpaid && slices.ContainsFunc(f.calls, func(c *prepaidCall) bool { return c.isReserved && c.list != f.list }), "prepaid: recorded by other prices than reserved")
	w.note(f.list != postpaid && f.expects.unpaid == event.None && f.expects.owes(), "prepaid: a payment in part")
	w.note(f.expects.pastMonth(frame.at), "prepaid: usage of the month before")
	for _, c := range f.calls {
		w.usage.prepaid.history = append(w.usage.prepaid.history, c.counted(frame.lsn, f.list != postpaid))
	}
	if len(f.meant) > 0 {
		w.usage.oracle.meters(frame, f.meant, f.list != postpaid)
	}
}

// owes reports whether something is left unpaid.
func (o *prepaidOutcome) owes() bool {
	for i, asset := range o.bill.assets {
		if n := o.pays[asset]; n == nil && o.bill.due[i].Sign() > 0 || n != nil && n.Cmp(o.bill.due[i]) < 0 {
			return true
		}
	}
	return false
}

// pastMonth reports whether a line of an earlier month gets units.
func (o *prepaidOutcome) pastMonth(at types.Time) bool {
	for k, c := range o.bill.lines { //nolint:maporder // any of them
		if c.isUsed && k.month < monthOf(at) {
			return true
		}
	}
	return false
}

// meteredOf returns what calls count as, in the order of the command.
func meteredOf(calls []*prepaidCall) (rows []meaning.Metered) {
	add := func(c *prepaidCall, dimension string, value uint64, events int) {
		m := meaning.Metered{Dimension: dimension, Labels: c.labels(), Time: int64(max(1, windowOf(c.At)))}
		i := slices.IndexFunc(rows, func(r meaning.Metered) bool {
			return r.Dimension == m.Dimension && r.Labels == m.Labels && r.Time == m.Time
		})
		if i < 0 {
			i, rows = len(rows), append(rows, m)
		}
		rows[i].Value, rows[i].Events = rows[i].Value+value, rows[i].Events+events
	}
	for _, c := range calls {
		requests := uint64(1)
		if c.InFrame {
			requests = 0
		}
		add(c, "requests", requests, int(requests))
		add(c, "bytes_in", c.In, 1)
		add(c, "bytes_out", c.Out, 1)
	}
	rows = slices.DeleteFunc(rows, func(m meaning.Metered) bool { return m.Value == 0 })
	slices.SortFunc(rows, func(a, b meaning.Metered) int {
		if a.Dimension != b.Dimension {
			return strings.Compare(a.Dimension, b.Dimension)
		}
		if a.Labels != b.Labels {
			return strings.Compare(a.Labels, b.Labels)
		}
		return int(a.Time - b.Time)
	})
	return rows
}
