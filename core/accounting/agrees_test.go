package accounting_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
	reference "macronode/models/accounting"
)

const (
	window = time.Minute
	grace  = 2 * time.Second
)

// limits returns the limits of a plane and of its model. Shared ones have none of a tenant, so that tenants leave room.
func limits(shared bool) (accounting.Limits, reference.Limits) {
	m := reference.Limits{Rows: 7, Streams: 3, TenantRows: 5, TenantStreams: 2, Window: window.Milliseconds(), Grace: grace.Milliseconds(),
		MaxAge: accounting.MaxAge.Milliseconds(), MaxFuture: accounting.MaxFuture.Milliseconds()}
	if shared {
		m.TenantRows = 0
	}
	return accounting.Limits{Rows: m.Rows, Streams: m.Streams, Tenants: 2, TenantRow: m.TenantRows, TenantDim: m.TenantStreams, Lines: 2, Window: window, Grace: grace}, m
}

type refKey struct {
	tenant types.Tenant
	name   types.NameHash
}

// books drives a plane and the reference model. It has the refs that the node has.
type books struct {
	*rapid.T
	plane *accounting.Plane // decides
	fold  *accounting.Plane // folds the records
	model *reference.Book
	seen  map[string]int

	now      types.Time
	lsn      types.LSN
	index    uint16
	rec      record.Record
	window   map[refKey]command.PriorOutcome // refs in memory
	disk     map[refKey]command.PriorOutcome // refs in the index only
	reported map[refKey]accounting.Event     // all that were recorded
	slices   []accounting.Slice
	dues     []types.Time     // of slices
	asked    map[asked]string // the answers to questions as of a time
	metered  int              // events of metered usage
	lines    map[accounting.LineKey]accounting.Line
	body     []byte // of the open frame
}

func newBooks(t *rapid.T, seen map[string]int) *books {
	l, m := limits(rapid.Bool().Draw(t, "shared"))
	other, _ := limits(true) // what was recorded with a limit is folded without
	return &books{T: t, plane: accounting.New(l, 1), fold: accounting.New(other, 2), model: &reference.Book{Limits: m}, seen: seen,
		now: types.Time(1_700_000_000_000), window: map[refKey]command.PriorOutcome{}, disk: map[refKey]command.PriorOutcome{}, reported: map[refKey]accounting.Event{}, lines: map[accounting.LineKey]accounting.Line{}, asked: map[asked]string{}}
}

func (b *books) Record() *record.Record { return &b.rec }
func (b *books) Savepoint()             {}
func (b *books) Undo()                  {}
func (b *books) Commit()                {}
func (b *books) FindRef(t types.Tenant, ref types.NameHash, prior command.PriorOutcome) (command.PriorOutcome, bool) {
	if s, ok := b.window[refKey{t, ref}]; ok {
		return s, true
	}
	return prior, prior.ID.Position().LSN > 0
}

var _ plane.Frame = (*books)(nil)

// Add applies the record to the plane, and what it reads back as to the fold.
func (b *books) Add() types.Position {
	at := types.Position{LSN: b.lsn, Index: b.index}
	b.index++
	id := types.NewTxID(1, at)
	if len(b.body) == 0 {
		b.body = record.Begin(nil, b.lsn, b.now)
	}
	var index uint16
	b.body, index = record.Add(b.body, 0, &b.rec)
	var read record.Record
	if _, err := record.Read(b.body, index, &read); err != nil {
		b.Fatal(err)
	}
	read.Identify()
	if !b.plane.Fits(&b.rec) || !b.fold.Fits(&read) {
		b.Fatalf("%v does not fit", b.rec.Kind)
	}
	for i := range b.fold.Refs(&read) {
		ref, content := b.fold.Ref(&read, i)
		k := refKey{read.Tenant, ref}
		if _, twice := b.window[k]; twice {
			b.Fatalf("event %x is recorded twice", ref)
		}
		b.window[k] = command.PriorOutcome{Hash: content, ID: id, At: b.now}
	}
	b.plane.Apply(b.now, id, &b.rec)
	b.fold.Apply(b.now, id, &read)
	if _, ok := accounting.ReadSlice(&read); ok {
		payload := bytes.Clone(read.Payload)
		s, err := accounting.DecodeSlice(read.Tenant, payload)
		if err != nil {
			b.Fatal(err)
		}
		b.slices, b.dues = append(b.slices, s), append(b.dues, accounting.SliceDue(payload))
	}
	if b.plane.Hash() != b.fold.Hash() {
		b.Fatalf("%v: the fold is another state", b.rec.Kind)
	}
	return at
}

// frame begins a frame.
func (b *books) frame() {
	b.lsn++
	b.index, b.body = 0, nil
}

var labels = [][]accounting.Label{nil, {{Name: "service", Value: "a"}}, {{Name: "method", Value: "GET"}, {Name: "service", Value: "b"}}}

func series(t fataler, dimension string, labels []accounting.Label) accounting.Series {
	s, err := accounting.NewSeries(dimension, labels)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type fataler interface{ Fatal(...any) }

// drawEvent draws an event at a time, often one that was reported before.
func drawEvent(t *rapid.T, now types.Time, reported func(name types.NameHash) (accounting.Event, bool)) (e accounting.Event) {
	e = accounting.Event{Source: "s", ID: fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "id")),
		Series: series(t, rapid.SampledFrom([]string{"requests", "bytes_in", "custom:a"}).Draw(t, "dimension"), rapid.SampledFrom(labels).Draw(t, "labels")),
		Value:  uint64(rapid.IntRange(0, 3).Draw(t, "value")), Time: now}
	if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
		e.Value = math.MaxUint64
	}
	switch rapid.IntRange(0, 29).Draw(t, "time") {
	case 0:
		e.Time = now.Add(-accounting.MaxAge) - types.Time(rapid.IntRange(0, 1).Draw(t, "old"))
	case 1:
		e.Time = now.Add(accounting.MaxFuture) + types.Time(rapid.IntRange(0, 1).Draw(t, "future"))
	case 2:
		e.Undated = true
	default:
		e.Time = now + types.Time(rapid.IntRange(-150_000, 60_000).Draw(t, "offset"))
	}
	if known, ok := reported(accounting.EventName("s", e.ID)); ok && rapid.IntRange(0, 3).Draw(t, "again") > 0 {
		e = known
		if e.Undated {
			e.Time = now
		}
	}
	return e
}

// meant is an event as the model has it.
func meant(e *accounting.Event) reference.Event {
	return reference.Event{ID: e.ID, Dimension: string(e.Series.Dimension), Labels: string(e.Series.Labels), Value: e.Value, Time: int64(e.Time), Undated: e.Undated}
}

// report records events, some of which were reported before.
func (b *books) report(*rapid.T) {
	tenant := types.Tenant(rapid.IntRange(1, 2).Draw(b.T, "tenant"))
	c := &accounting.RecordEvents{Header: command.Header{Tenant: tenant}}
	var events []reference.Event
	for i := range rapid.IntRange(1, 6).Draw(b.T, "events") {
		e := drawEvent(b.T, b.now, func(name types.NameHash) (accounting.Event, bool) {
			e, ok := b.reported[refKey{tenant, name}]
			return e, ok
		})
		e.Place = uint16(i)
		c.Events = append(c.Events, e)
		events = append(events, meant(&e))
	}
	given := slices.Clone(c.Events)
	prepaid, record, seal := rapid.Bool().Draw(b.T, "prepaid"), b.model.Record, c.Seal
	if prepaid {
		record, seal = b.model.RecordPrepaid, c.SealPrepaid
	}
	problems, want := record(int64(b.now), tenant, events)
	if err := seal(); err != nil {
		if !slices.Contains(problems, reference.Conflict) {
			b.Fatalf("%v; the model has %v", err, problems)
		}
		b.seen["conflict within a request"]++
		return
	}
	c.Refs(func(ref types.NameHash, prior *command.PriorOutcome) { *prior = b.disk[refKey{tenant, ref}] })
	if err := c.ValidateFields(); err != nil {
		b.Fatal(err)
	}
	b.frame()
	var reply event.Reply
	if prepaid {
		b.decidePrepaid(c, &reply)
	} else {
		b.plane.Decide(b.now, c, b, &reply)
	}
	b.compare(&reply, problems, want)
	if len(problems) == 0 {
		for _, e := range given {
			b.reported[refKey{tenant, accounting.EventName(e.Source, e.ID)}] = e
		}
	}
}

// decidePrepaid records events with a line that grows by any amount, if there is room for it.
func (b *books) decidePrepaid(c *accounting.RecordEvents, reply *event.Reply) {
	d := b.plane.CheckPrepaid(b.now, c, b, reply)
	if reply.Problem != event.None {
		return
	}
	k := accounting.LineKey{Tenant: c.Tenant, Price: types.NameHash{byte(rapid.IntRange(1, 2).Draw(b.T, "price"))},
		Month: accounting.MonthOf(b.now.Add(-accounting.MaxAge * time.Duration(rapid.IntRange(0, 1).Draw(b.T, "months ago")))).From}
	l, exists := b.lines[k]
	more := 1
	if exists {
		more = 0
	}
	var changes []accounting.LineChange
	if short := b.plane.LineShortage(more).Limit != event.NoLimit; short != (len(b.lines)+more > 2) {
		b.Fatalf("%d lines and %d more: short %v", len(b.lines), more, short)
	} else if !short {
		l.Units.Lo += uint64(rapid.IntRange(0, 3).Draw(b.T, "units"))
		l.Paid.Lo += uint64(rapid.IntRange(0, 3).Draw(b.T, "paid"))
		b.lines[k] = l
		changes = append(changes, accounting.LineChange{LineKey: k, Line: l})
		b.seen["line"]++
	} else {
		b.seen["no room for a line"]++
	}
	d.Record(accounting.Digest{1}, changes, b, reply)
}

// meter records usage that the node counted.
func (b *books) meter(*rapid.T) {
	tenant := types.Tenant(rapid.IntRange(1, 2).Draw(b.T, "tenant"))
	c := &accounting.RecordMetered{Header: command.Header{Tenant: tenant}}
	var usage []reference.Metered
	events := 0
	for range rapid.IntRange(1, 4).Draw(b.T, "metered") {
		e := drawEvent(b.T, b.now, func(types.NameHash) (accounting.Event, bool) { return accounting.Event{}, false })
		m := accounting.Metered{Series: e.Series, Time: e.Time, Count: accounting.Count{Value: e.Value, Events: uint64(rapid.IntRange(1, 3).Draw(b.T, "events"))}}
		c.Metered = append(c.Metered, m)
		usage = append(usage, reference.Metered{Dimension: string(m.Series.Dimension), Labels: string(m.Series.Labels), Value: m.Value, Events: int(m.Events), Time: int64(m.Time)})
		events += int(m.Events)
	}
	c.Sort()
	if err := c.ValidateFields(); err != nil {
		b.Fatal(err)
	}
	problems := b.model.Meter(int64(b.now), tenant, usage)
	b.frame()
	var reply event.Reply
	b.plane.Decide(b.now, c, b, &reply)
	if len(problems) > 0 {
		if got := outcomes[reply.Problem]; !slices.Contains(problems, got) || len(b.body) > 0 {
			b.Fatalf("%v, frame %x; the model has %v", reply.Problem, b.body, problems)
		}
		b.seen["metered: "+string(outcomes[reply.Problem])]++
		return
	}
	if reply.Problem != event.None || int(b.index) != len(usage) {
		b.Fatalf("%v with %d records of %d", reply.Problem, b.index, len(usage))
	}
	b.metered += events
	b.seen["metered"]++
}

var outcomes = map[event.Problem]reference.Outcome{event.EventConflict: reference.Conflict, event.EventTooOld: reference.TooOld, event.EventInFuture: reference.InFuture,
	event.UsageOverflow: reference.Overflow, event.UsageCapacity: reference.Capacity}

// compare compares the answer of a command with that of the model.
func (b *books) compare(reply *event.Reply, problems []reference.Outcome, want reference.Counts) {
	if len(problems) > 0 {
		got := outcomes[reply.Problem]
		if !slices.Contains(problems, got) || len(b.body) > 0 || (reply.Item == 0) != (got == reference.Capacity) {
			b.Fatalf("%v at %d, frame %x; the model has %v", reply.Problem, reply.Item, b.body, problems)
		}
		if s := reply.Shortage; (s.Limit != event.NoLimit) != (got == reference.Capacity) || got == reference.Capacity && s.Needed <= s.Left {
			b.Fatalf("%v, with %+v", reply.Problem, s)
		}
		b.seen[string(got)]++
		return
	}
	answer, status, _, err := b.plane.Render(nil, &record.Sealed{LSN: b.lsn, Body: b.body}, reply.Position.Index)
	text := fmt.Sprintf(`{"recorded":%d,"duplicate":%d,"late":%d}`, want.Recorded, want.Duplicate, want.Late)
	if reply.Problem != event.None || string(answer) != text || status != 202 || err != nil {
		b.Fatalf("%v %s %d %v; the model has %s", reply.Problem, answer, status, err, text)
	}
	b.seen["recorded"] += want.Recorded
	b.seen["duplicate"] += want.Duplicate
	b.seen["late"] += want.Late
}

// pass lets time go by and seals what is due.
func (b *books) pass(*rapid.T) {
	b.now += types.Time(rapid.SampledFrom([]int{0, 1, 1999, 2000, 2001, 30_000, 60_000, 400_000, 1_000_000_000}).Draw(b.T, "time"))
	if rapid.Bool().Draw(b.T, "to a boundary") {
		b.now += types.Time(window.Milliseconds()) - b.now%types.Time(window.Milliseconds()) + types.Time(rapid.IntRange(1998, 2001).Draw(b.T, "grace"))
	}
	if rapid.IntRange(0, 3).Draw(b.T, "seal") == 0 {
		return // later
	}
	before := len(b.slices)
	for b.frame(); b.plane.Expire(b.now, &b.rec); b.frame() {
		b.Add()
	}
	b.lsn--
	for k := range b.lines {
		if accounting.MonthOf(k.Month).To.Add(36*24*time.Hour) <= b.now {
			delete(b.lines, k)
			b.seen["line closed"]++
		}
	}
	want := b.model.Seal(int64(b.now), 1000)
	if len(b.slices)-before != len(want) {
		b.Fatalf("%d slices, the model has %d", len(b.slices)-before, len(want))
	}
	for i, s := range b.slices[before:] {
		if got := plain(&s); !reflect.DeepEqual(got, want[i]) {
			b.Fatalf("slice %+v, the model has %+v", got, want[i])
		}
		b.seen[s.Kind.String()]++
	}
}

// plain is a slice as the model has it.
func plain(s *accounting.Slice) reference.Slice {
	p := reference.Slice{Tenant: s.Tenant, Dimension: string(s.Dimension), Seq: int(s.Seq), Late: s.Kind.IsLate(), Prepaid: s.Kind.IsPrepaid(),
		From: int64(s.Window.From), To: int64(s.Window.To)}
	for _, r := range s.Rows {
		p.Rows = append(p.Rows, reference.Row{Labels: string(r.Labels), Value: r.Value, Events: int(r.Events)})
	}
	return p
}

// forget moves the refs to the index.
func (b *books) forget(*rapid.T) {
	maps.Copy(b.disk, b.window)
	clear(b.window)
}

// restart loads a snapshot, often with another configuration of windows.
func (b *books) restart(*rapid.T) {
	l, _ := limits(b.model.Limits.TenantRows == 0)
	l.Window = rapid.SampledFrom([]time.Duration{window, window, window / 2, 3 * window}).Draw(b.T, "window")
	l.Grace = rapid.SampledFrom([]time.Duration{grace, grace, 0, time.Minute}).Draw(b.T, "grace")
	b.model.Limits.Window, b.model.Limits.Grace = l.Window.Milliseconds(), l.Grace.Milliseconds()
	fresh := accounting.New(l, 3)
	b.plane.Dump(func(kind uint8, row []byte) {
		if err := fresh.Load(kind, row); err != nil {
			b.Fatal(err)
		}
		if err := fresh.Load(kind, row); !errors.Is(err, plane.ErrRow) {
			b.Fatalf("a row twice: %v", err)
		}
	})
	if fresh.Hash() != b.plane.Hash() {
		b.Fatal("the snapshot is another state")
	}
	b.plane = fresh
	b.fold = fresh.CopyTo(b.fold).(*accounting.Plane)
}

// checkUsage compares all usage with that of the model, verifies the chains of the slices, and returns the number of
// events that are counted.
func checkUsage(t *rapid.T, p *accounting.Plane, sealed []accounting.Slice, model *reference.Book) (events int) {
	type at struct {
		tenant            types.Tenant
		dimension, labels string
		from              types.Time
	}
	sums := map[at]accounting.Count{}
	add := func(k at, c accounting.Count) {
		sums[k] = accounting.Count{Value: sums[k].Value + c.Value, Events: sums[k].Events + c.Events}
	}
	for of := range types.Tenant(3) {
		p.Open(of, func(r accounting.OpenRow) bool {
			add(at{of, string(r.Dimension), string(r.Labels), r.Window.From}, r.Count)
			return true
		})
	}
	heads := map[at]accounting.Digest{}
	for _, s := range sealed {
		chain := at{tenant: s.Tenant, dimension: string(s.Dimension)}
		if s.Previous != heads[chain] {
			t.Fatalf("slice %d does not follow the one before", s.Seq)
		}
		heads[chain] = s.Digest
		for _, r := range s.Rows {
			add(at{s.Tenant, string(s.Dimension), string(r.Labels), s.Window.From}, r.Count)
		}
	}
	for k, c := range sums {
		value, n := model.Total(k.tenant, k.dimension, k.labels, int64(k.from))
		if value != c.Value || uint64(n) != c.Events {
			t.Fatalf("%+v: %+v, the model has %d of %d events", k, c, value, n)
		}
		events += n
	}
	return events
}

// check compares all usage, and the invariants.
func (b *books) check(*rapid.T) {
	if err := errors.Join(b.plane.Check(), b.fold.Check()); err != nil {
		b.Fatal(err)
	}
	lines := map[accounting.LineKey]accounting.Line{}
	for of := range types.Tenant(3) {
		b.fold.Lines(of, func(c accounting.LineChange) { lines[c.LineKey] = c.Line })
	}
	if !maps.Equal(lines, b.lines) {
		b.Fatalf("lines %v, want %v", lines, b.lines)
	}
	b.askAgain()
	events := checkUsage(b.T, b.fold, b.slices, b.model)
	if all := len(b.reported) + b.metered; events != all {
		b.Fatalf("%d events are counted, %d were recorded", events, all)
	}
}

// TestUsageAgreesWithModel: whatever is reported, late, again or in conflict, the plane counts each event once, in the
// window of its time, as the model does; and its slices are those of the model.
func TestUsageAgreesWithModel(t *testing.T) {
	seen := map[string]int{}
	want := []string{"recorded", "duplicate", "late", "usage", "correction", "conflict within a request", "conflict", "too old", "in the future", "overflow", "capacity",
		"metered", "metered: too old", "metered: overflow", "metered: capacity",
		"prepaid", "prepaid_correction", "line", "no room for a line", "line closed",
		"asked", "asked as of now", "asked while usage is due", "asked of late usage"}
	rare := func(what string) bool { return seen[what] < 3 }
	for range 20 {
		rapid.Check(t, func(r *rapid.T) {
			b := newBooks(r, seen)
			r.Repeat(map[string]func(*rapid.T){"report": b.report, "meter": b.meter, "pass": b.pass, "forget": b.forget, "restart": b.restart, "ask": b.ask, "": b.check})
		})
		if t.Failed() || !slices.ContainsFunc(want, rare) {
			break
		}
	}
	if i := slices.IndexFunc(want, rare); i >= 0 {
		t.Errorf("%s occurred %d times", want[i], seen[want[i]])
	}
	t.Log(seen)
}
