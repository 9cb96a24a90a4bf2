package accounting_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	reference "macronode/models/accounting"
)

// direct is a frame that applies each record at once, without refs.
type direct struct {
	plane *accounting.Plane
	at    types.Time
	rec   record.Record
	n     uint16
}

func (d *direct) Record() *record.Record { return &d.rec }
func (*direct) Savepoint()               {}
func (*direct) Undo()                    {}
func (*direct) Commit()                  {}
func (*direct) FindRef(_ types.Tenant, _ types.NameHash, prior command.PriorOutcome) (command.PriorOutcome, bool) {
	return prior, false
}

func (d *direct) Add() types.Position {
	d.plane.Apply(d.at, types.TxID{}, &d.rec)
	d.n++
	return types.Position{LSN: 1, Index: d.n - 1}
}

// wide returns a command with events of as many series.
func wide(t fataler, events int, at types.Time) *accounting.RecordEvents {
	c := &accounting.RecordEvents{Header: command.Header{Tenant: 1}}
	for i := range events {
		s := series(t, "requests", []accounting.Label{{Name: "service", Value: fmt.Sprintf("%060d", i)}, {Name: "route", Value: strings.Repeat("r", 64)}})
		c.Events = append(c.Events, accounting.Event{Source: "s", ID: fmt.Sprint(i), Series: s, Value: uint64(i), Time: at, Place: uint16(i)})
	}
	rand.Shuffle(len(c.Events), func(i, j int) { c.Events[i], c.Events[j] = c.Events[j], c.Events[i] })
	if err := c.Seal(); err != nil {
		t.Fatal(err)
	}
	return c
}

func wideLimits() accounting.Limits {
	return accounting.Limits{Rows: 2000, Streams: 1, Tenants: 1, TenantRow: 2000, TenantDim: 1, Window: window, Grace: grace}
}

// TestLargeWindowHasSeveralSlices: a window whose rows do not fit into one slice has as many as it takes, full and in
// the order of the labels.
func TestLargeWindowHasSeveralSlices(t *testing.T) {
	const at, rows = types.Time(1_700_000_000_000), 500
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	c := wide(t, rows, at)
	if p.Decide(at, c, f, &reply); reply.Problem != event.None {
		t.Fatal(reply.Problem)
	}
	model := &reference.Book{Limits: reference.Limits{Rows: 2 * rows, Streams: 1, TenantRows: 2 * rows, TenantStreams: 1, Window: window.Milliseconds(), Grace: grace.Milliseconds(), MaxAge: 1e12}}
	for _, e := range c.Events {
		if problems, _ := model.Record(int64(at), 1, []reference.Event{{ID: e.ID, Dimension: "requests", Labels: string(e.Series.Labels), Value: e.Value, Time: int64(at)}}); problems != nil {
			t.Fatal(problems)
		}
	}
	end := at.Add(window + grace)
	perSlice := (types.MaxPlaneRecord - 8 - 65 - 1 - len("requests") - 2 - 32) / (17 + len(c.Events[0].Series.Labels))
	want := model.Seal(int64(end), perSlice)
	for i := 0; p.Expire(end, &f.rec); i++ {
		s, err := accounting.DecodeSlice(1, bytes.Clone(f.rec.Payload))
		if err != nil {
			t.Fatal(err)
		}
		if got := plain(&s); i >= len(want) || !reflect.DeepEqual(got, want[i]) {
			t.Fatalf("slice %d has %d rows from %s, the model has %d slices", i, len(s.Rows), s.Rows[0].Labels, len(want))
		}
		if !p.Fits(&f.rec) {
			t.Fatal("the slice does not fit")
		}
		f.Add()
	}
	if s, _ := p.Stream(1, []byte("requests")); int(s.Seq) != len(want) || len(want) < rows/perSlice || p.Rows() != 0 || p.HasTimers() {
		t.Errorf("%d slices, %d rows are left; the model has %d slices", s.Seq, p.Rows(), len(want))
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestFitsRejectsOtherSlices: a slice that differs in one byte from the one that is due does not fit.
func TestFitsRejectsOtherSlices(t *testing.T) {
	const at = types.Time(1_700_000_000_000)
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	p.Decide(at, wide(t, 3, at), f, &reply)
	if !p.Expire(at.Add(window+grace), &f.rec) || !p.Fits(&f.rec) {
		t.Fatal("no slice is due")
	}
	for i := range f.rec.Payload {
		r := f.rec
		r.Payload = bytes.Clone(r.Payload)
		r.Payload[i] ^= 1
		if p.Fits(&r) {
			t.Errorf("byte %d is changed, and the slice fits", i)
		}
		r.Payload = f.rec.Payload[:i]
		if p.Fits(&r) {
			t.Errorf("the first %d bytes fit", i)
		}
	}
	second := accounting.New(wideLimits(), 1)
	if second.Fits(&f.rec) {
		t.Error("a slice of rows that do not exist fits")
	}
}

// TestFitsRejectsOtherContent: a slice with the digest of its content does not fit if that differs in one bit from what is due.
func TestFitsRejectsOtherContent(t *testing.T) {
	const at = types.Time(1_700_000_000_000)
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	p.Decide(at, wide(t, 3, at), f, &reply)
	if !p.Expire(at.Add(window+grace), &f.rec) {
		t.Fatal("no slice is due")
	}
	end := len(f.rec.Payload) - 32
	signed := func(payload []byte) record.Record {
		sum := digest.Sum(append([]byte("macronode slice 1\n\x01\x00\x00\x00"), payload[8:end]...))
		r := f.rec
		r.Payload = append(bytes.Clone(payload[:end]), sum[:]...)
		return r
	}
	if r := signed(f.rec.Payload); !p.Fits(&r) {
		t.Fatal("the slice that is due does not fit")
	}
	for bit := range 8 * end {
		b := bytes.Clone(f.rec.Payload)
		b[bit/8] ^= 1 << (bit % 8)
		if r := signed(b); p.Fits(&r) {
			t.Errorf("bit %d of byte %d is changed, and the slice fits", bit%8, bit/8)
		}
	}
}

// TestStepsAllocateNothing: neither recording events nor sealing them allocates.
func TestStepsAllocateNothing(t *testing.T) {
	at := types.Time(1_700_000_000_000)
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	const runs = 20
	commands := make([]*accounting.RecordEvents, 0, runs+1)
	for i := range types.Time(runs + 1) {
		commands = append(commands, wide(t, 100, at+(i+1)*types.Time(2*window.Milliseconds())))
	}
	n := 0
	if got := testing.AllocsPerRun(runs, func() {
		c := commands[n]
		n++
		f.at = c.Events[0].Time
		p.Decide(f.at, c, f, &reply)
		for p.Expire(f.at.Add(window+grace), &f.rec) {
			f.Add()
		}
	}); got > 0 || reply.Problem != event.None || p.Rows() > 0 {
		t.Errorf("%v allocations, %v, %d rows are left", got, reply.Problem, p.Rows())
	}
}
