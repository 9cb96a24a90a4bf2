package sim

import (
	"encoding/binary"
	"slices"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// recordMetered is the kind of usage that the node counted itself.
const recordMetered = 3

// A usageMeter counts requests as the node does: what it has is recorded by one command at a time, and counted again if
// that is refused. What a crash or an unknown outcome costs is never recorded twice.
type usageMeter struct {
	meter    *accounting.Meter
	out      types.Ticket                     // submitted, not answered; 0: none
	attempts map[types.Ticket]*meteredAttempt // of this process
	waiting  bool                             // the meter has usage that was refused
}

// A meteredAttempt is one submitted command.
type meteredAttempt struct {
	usage    *accounting.MeteredUsage
	meant    []meaning.Metered
	problems []meaning.Outcome
	saw      types.LSN
	recorded types.Position
}

func newUsageMeter() *usageMeter {
	m := new(usageMeter)
	m.crashed()
	return m
}

// crashed forgets what the last process counted and did not record.
func (m *usageMeter) crashed() {
	*m = usageMeter{meter: accounting.NewMeter(usageWindow, 8, 8), attempts: map[types.Ticket]*meteredAttempt{}}
}

// move counts a request, or records what was counted.
func (m *usageMeter) move(w *World) {
	if w.c.Choose("usage/request", 3) == 0 {
		m.record(w)
		return
	}
	var s event.Status
	w.node.Status(&s)
	r := accounting.Request{Tenant: usageTenant, At: max(1, s.At+types.Time(w.c.Choose("usage/ahead", 3))*500), Labels: accounting.NewRequestLabels([...]string{"a", "b"}[w.c.Choose("usage/service", 2)], "get", "r"), In: uint64(w.c.Choose("usage/in", 2) * 5)}
	_, ok := m.meter.Add(&r)
	w.note(!ok, "a request finds the meter full")
}

// record submits what was counted, unless a command is out.
func (m *usageMeter) record(w *World) {
	if m.out != 0 {
		return
	}
	for _, u := range m.meter.Take() { // of one tenant
		w.ticket++
		m.out = types.NewTicket(w.ticket%8, w.ticket)
		u.Command.Ticket = m.out
		a := &meteredAttempt{usage: u}
		for _, row := range u.Command.Metered {
			a.meant = append(a.meant, meaning.Metered{Dimension: string(row.Series.Dimension), Labels: string(row.Series.Labels), Value: row.Value, Events: int(row.Events), Time: int64(row.Time)})
		}
		m.attempts[m.out], m.waiting = a, false
		w.usage.enter = append(w.usage.enter, &event.Execute{Command: &u.Command})
		w.tell(clients, noLane, plain, "the meter records %d requests", u.Requests)
	}
}

// reply handles a reply to the meter; false if it is not of one.
func (m *usageMeter) reply(w *World, r event.Reply) bool {
	a := m.attempts[r.Ticket]
	if a == nil {
		return false
	}
	m.out = 0
	recorded := a.recorded.LSN > 0
	switch {
	case r.Problem == event.None:
		if r.Replayed || r.Position != a.recorded {
			w.fail("metered-acknowledged-nothing", "%v is acknowledged, recorded was %v", r.Position, a.recorded)
		}
		w.usage.reports[r.Position] = true
		w.Saw["metered usage is recorded"]++
		return true
	case r.Problem == event.OutcomeUnknown:
		w.note(recorded, "metered usage is recorded, and its outcome is unknown")
		return true // never repeated
	case recorded:
		w.fail("metered-refused-and-recorded", "%v is told, and %v was recorded", r.Problem.Code(), a.recorded)
	case !blank(r.Problem):
		if !slices.Contains(a.problems, usageOutcomes[r.Problem]) {
			w.fail("metered-refusal", "%v is refused with %v, predicted was %v", a.meant, r.Problem.Code(), a.problems)
		}
		w.Saw["metered usage is refused: "+string(usageOutcomes[r.Problem])]++
	}
	m.waiting = m.meter.Return(a.usage) < a.usage.Requests && blank(r.Problem)
	return true
}

// predict notes what becomes of a command that was decided in the last step.
func (m *usageMeter) predict(w *World, a *meteredAttempt) {
	_, after := w.trace.Around()
	copied := *w.usage.oracle.book
	a.problems = copied.Meter(int64(after.At), usageTenant, a.meant)
	a.saw = w.node.LSN()
}

// records compares the metered usage of a frame with the command, and makes it on the model.
func (m *usageMeter) records(w *World, a *meteredAttempt, f *usageFrame) {
	switch {
	case a == nil || a.recorded.LSN > 0:
		w.fail("metered-without-request", "%v records metered usage that the meter has not asked for", f.lsn)
		return
	case len(a.problems) > 0:
		w.fail("metered-accepts", "%v records %v, which must be refused: %v", f.lsn, a.meant, a.problems)
		return
	case !slices.EqualFunc(f.metered, a.meant, sameMetered):
		w.fail("metered-counts", "%v records %+v, counted was %+v", f.lsn, f.metered, a.meant)
		return
	}
	a.recorded = f.meteredPlace
	before, _ := w.trace.Around()
	w.note(before.Phase == types.Draining, "metered usage is recorded while the node drains")
	w.usage.oracle.meters(f, a.meant, false)
}

func sameMetered(a, b meaning.Metered) bool {
	a.Time, b.Time = 0, 0 // the record has the window: compare checks that
	return a == b
}

// readMetered returns the metered usage of a record.
func readMetered(r *record.Record) (m meaning.Metered, ok bool) {
	b := r.Payload[1+3*8:]
	m.Dimension, b = string(b[1:1+b[0]]), b[1+b[0]:]
	m.Labels, b = string(b[1:1+b[0]]), b[1+b[0]:]
	if len(b) != 2*8 {
		return m, false
	}
	m.Value, m.Events = binary.LittleEndian.Uint64(b), int(binary.LittleEndian.Uint64(b[8:]))
	return m, true
}
