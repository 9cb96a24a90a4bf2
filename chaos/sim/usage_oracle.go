package sim

import (
	"reflect"
	"slices"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/state"
	"macronode/core/types"
	meaning "macronode/models/accounting"
)

// A usageChange is what a frame did to the model: it recorded a report, or sealed what was due.
type usageChange struct {
	lsn    types.LSN
	at     types.Time
	place  types.Position // of the report; zero: a seal
	tenant types.Tenant
	events []usageEvent
	meant  []meaning.Event

	metered []meaning.Metered // instead of events
	prepaid bool
}

// usageOracle follows the frames with the reference model of accounting. It shares no code with the plane.
type usageOracle struct {
	book     *meaning.Book
	changes  []usageChange
	slices   []usageSlice
	asked    []usageAnswer
	reported map[types.Position]bool
	events   map[usageID]usageEvent // that are recorded
}

func newUsageOracle(w *World) *usageOracle {
	l := usageLimits
	if w.usage.prepaid != nil {
		l = prepaidLimits
	}
	return &usageOracle{reported: map[types.Position]bool{}, events: map[usageID]usageEvent{},
		book: &meaning.Book{Limits: meaning.Limits{Rows: l.Rows, Streams: l.Streams, TenantRows: l.TenantRow, TenantStreams: l.TenantDim, Window: l.Window.Milliseconds(),
			Grace: l.Grace.Milliseconds(), MaxAge: accounting.MaxAge.Milliseconds(), MaxFuture: accounting.MaxFuture.Milliseconds()}}}
}

// mostSliceRows is more than any window of a run has.
const mostSliceRows = 1 << 10

// upto returns the oracle of the frames up to last. The frames of o are unchanged.
func (o *usageOracle) upto(w *World, last types.LSN) *usageOracle {
	if n := len(o.changes); n == 0 || o.changes[n-1].lsn <= last {
		return o
	}
	w.Saw["usage is lost with its frames"]++
	left := newUsageOracle(w)
	for _, c := range o.changes {
		if c.lsn > last {
			break
		}
		switch {
		case c.place.LSN == 0:
			left.book.Seal(int64(c.at), mostSliceRows)
		default:
			c.makes(left.book)
		}
		left.add(c)
	}
	for _, s := range o.slices {
		if s.lsn <= last {
			left.slices = append(left.slices, s)
		}
	}
	for _, a := range o.asked {
		if a.upto <= last {
			left.asked = append(left.asked, a)
		}
	}
	return left
}

// makes makes a change of usage on a book.
func (c *usageChange) makes(b *meaning.Book) {
	switch {
	case c.metered != nil && c.prepaid:
		b.MeterPrepaid(int64(c.at), c.tenant, c.metered)
	case c.metered != nil:
		b.Meter(int64(c.at), c.tenant, c.metered)
	case c.prepaid:
		b.RecordPrepaid(int64(c.at), c.tenant, c.meant)
	default:
		b.Record(int64(c.at), c.tenant, c.meant)
	}
}

// meters makes the metered usage of a frame on the model.
func (o *usageOracle) meters(f *usageFrame, meant []meaning.Metered, prepaid bool) {
	c := usageChange{lsn: f.lsn, at: f.at, place: f.meteredPlace, tenant: usageTenant, metered: meant, prepaid: prepaid}
	c.makes(o.book)
	o.add(c)
}

// add notes a change that the model has made.
func (o *usageOracle) add(c usageChange) {
	o.changes = append(o.changes, c)
	if c.place.LSN == 0 {
		return
	}
	o.reported[c.place] = true
	for _, e := range c.events {
		if _, known := o.events[e.usageID]; !known {
			o.events[e.usageID] = e
		}
	}
}

// isDue reports whether the model has usage to seal at a time.
func (o *usageOracle) isDue(at types.Time) bool {
	copied := *o.book
	return len(copied.Seal(int64(at), mostSliceRows)) > 0
}

// predict notes what becomes of a report that was decided in the last step.
func (o *usageOracle) predict(w *World, a *usageAttempt) {
	before, after := w.trace.Around()
	a.keys = int(before.Keys)
	copied := *o.book
	a.saw = w.node.LSN()
	if a.list == postpaid {
		a.problems, a.counted = copied.Record(int64(after.At), a.client.tenant, a.meant)
		return
	}
	p := w.usage.prepaid
	if a.problems, a.counted = copied.RecordPrepaid(int64(after.At), a.client.tenant, a.meant); len(a.problems) > 0 {
		return
	}
	var uses []prepaidUse
	for i, m := range a.meant {
		if _, known := o.events[a.events[i].usageID]; !known {
			uses = append(uses, prepaidUse{m.Dimension, m.Labels, m.Value, monthOf(windowOf(types.Time(m.Time)))})
		}
	}
	if a.expects = p.last().events(a.list, p.room, after.At, uses); a.expects.problem != event.None {
		a.problems = append(a.problems, usageOutcomes[a.expects.problem])
	}
}

// records compares the report of a frame with the prediction, and makes it on the model.
func (o *usageOracle) records(w *World, a *usageAttempt, f *usageFrame) {
	before, _ := w.trace.Around()
	switch {
	case a == nil || f.report == nil:
		w.fail("usage-without-request", "%v records usage that no client has asked for", f.lsn)
		return
	case len(a.problems) > 0:
		w.fail("usage-accepts", "%v records %v, which must be refused: %v", f.lsn, a.events, a.problems)
		return
	case a.mark < before.Forgot:
		w.fail("usage-stale-index", "%v records usage, with an index read to %v and forgotten to %v", f.lsn, a.mark, before.Forgot)
		return
	case a.takesReserved(w):
		w.fail("usage-takes-reserved-keys", "%v records %d events beside %d keys of %d", f.lsn, len(a.events), a.keys, w.limits.Idempotency.Keys)
		return
	case *f.report != a.counted || len(f.usage) != a.counted.Recorded || f.tenant != a.client.tenant:
		w.fail("usage-counts", "%v reports %+v with %d events, the model has %+v", f.lsn, *f.report, len(f.usage), a.counted)
		return
	}
	a.recorded = f.place
	c := usageChange{lsn: f.lsn, at: f.at, place: f.place, tenant: a.client.tenant, events: a.events, meant: a.meant, prepaid: a.list != postpaid}
	c.makes(o.book)
	sum := uint64(0)
	for i := range f.usage {
		sum += f.usage[i].Value
	}
	for i := range a.events {
		if _, known := o.events[a.events[i].usageID]; !known {
			sum -= a.events[i].value
		}
	}
	if sum != 0 {
		w.fail("usage-counts", "%v records other values than were reported: %v", f.lsn, a.events)
	}
	o.add(c)
	w.note(a.counted.Late > 0, "usage comes after its window was sealed")
	w.note(a.counted.Recorded == 0, "a report has no new event")
	w.note(a.indexed, "an event that only the index has is reported again")
	w.note(a.client.crashed && a.counted.Recorded == 0, "a report is repeated after a crash, and its events are there")
	w.note(a.client.crashed && a.counted.Recorded > 0, "a report is repeated after a crash, and was lost")
}

// seals compares the slices of a frame with those of the model.
func (o *usageOracle) seals(w *World, in event.Event, f *usageFrame) {
	_, after := w.trace.Around()
	if _, ok := in.(event.Tick); !ok || after.DegradedBy.Has(types.ClockUntrusted) {
		w.fail("usage-sealed", "%v: %T seals usage; the clock is untrusted: %v", f.lsn, in, after.DegradedBy.Has(types.ClockUntrusted))
	}
	want := o.book.Seal(int64(f.at), mostSliceRows)
	windows := map[int64]bool{}
	for i := range f.slices {
		s := &f.slices[i]
		if i >= len(want) || !reflect.DeepEqual(s.Slice, want[i]) {
			w.fail("usage-slice", "%v seals %+v, the model has %+v", f.lsn, s.Slice, want)
			return
		}
		w.note(s.Late, "a correction is sealed")
		w.note(!s.Late, "usage is sealed")
		windows[s.From] = true
	}
	if len(f.slices) != len(want) {
		w.fail("usage-slice", "%v seals %d slices, the model has %d", f.lsn, len(f.slices), len(want))
	}
	o.slices = append(o.slices, f.slices...)
	o.add(usageChange{lsn: f.lsn, at: f.at})
	w.note(len(windows) > 1, "several windows are sealed in one step")
	w.note(after.Offset < 0, "usage is sealed while the time is ahead of the clock")
}

// usageSum is what a window has of a series.
type usageSum struct {
	value  uint64
	events int
}

// usageAt identifies a series in a window.
type usageAt struct {
	tenant            types.Tenant
	dimension, labels string
	from              int64
	prepaid           bool
}

// compare compares a state and all slices with the events: each is counted once, in the window of its time.
func (o *usageOracle) compare(w *World, st *state.State) {
	p, _ := st.Plane(types.PlaneAccounting).(*accounting.Plane)
	got := map[usageAt]usageSum{}
	add := func(at usageAt, value uint64, events int) {
		got[at] = usageSum{got[at].value + value, got[at].events + events}
	}
	for _, t := range []types.Tenant{boss.Tenant, usageTenant} {
		p.Open(t, func(r accounting.OpenRow) bool {
			add(usageAt{t, string(r.Dimension), string(r.Labels), int64(r.Window.From), r.Prepaid}, r.Value, int(r.Events))
			return true
		})
	}
	o.asksAgain(w)
	heads := map[usageAt]*usageSlice{}
	for i := range o.slices {
		s := &o.slices[i]
		stream := usageAt{tenant: s.Tenant, dimension: s.Dimension}
		seq, previous := 1, string(make([]byte, 32))
		if last := heads[stream]; last != nil {
			seq, previous = last.Seq+1, last.digest
		}
		if s.Seq != seq || s.previous != previous {
			w.fail("usage-chain", "slice %d of %s follows seq %d: another digest %v", s.Seq, s.Dimension, seq-1, s.previous != previous)
		}
		heads[stream] = s
		for _, r := range s.Rows {
			add(usageAt{s.Tenant, s.Dimension, r.Labels, s.From, s.Prepaid}, r.Value, r.Events)
		}
	}
	for stream, s := range heads { //nolint:maporder // the rule is the same for each
		if has, ok := p.Stream(stream.tenant, []byte(stream.dimension)); !ok || has.Seq != uint64(s.Seq) || string(has.Head[:]) != s.digest {
			w.fail("usage-chain", "the stream %s is at %d, its last slice is %d", stream.dimension, has.Seq, s.Seq)
		}
	}
	if want := o.sums(); !reflect.DeepEqual(got, want) {
		w.fail("usage-sum", "counted is %v, reported was %v", got, want)
	}
	if i := slices.IndexFunc(o.slices, func(s usageSlice) bool { return s.From%usageWindow.Milliseconds() != 0 }); i >= 0 {
		w.fail("usage-window", "a slice of a window from %d", o.slices[i].From)
	}
}

// sums adds up the events and the metered usage that are recorded, without the model.
func (o *usageOracle) sums() map[usageAt]usageSum {
	want := map[usageAt]usageSum{}
	counted := map[usageID]bool{}
	for i := range o.changes {
		c := &o.changes[i]
		for _, m := range c.metered {
			of := min(m.Time, int64(c.at))
			at := usageAt{c.tenant, m.Dimension, m.Labels, of - of%usageWindow.Milliseconds(), c.prepaid}
			want[at] = usageSum{want[at].value + m.Value, want[at].events + m.Events}
		}
		for n := range c.events {
			id, m := c.events[n].usageID, &c.meant[n]
			if counted[id] {
				continue
			}
			counted[id] = true
			at := usageAt{id.tenant, m.Dimension, m.Labels, m.Time - m.Time%usageWindow.Milliseconds(), c.prepaid}
			want[at] = usageSum{want[at].value + m.Value, want[at].events + 1}
		}
	}
	return want
}
