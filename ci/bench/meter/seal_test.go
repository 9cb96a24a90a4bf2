package meter

import (
	"fmt"
	"testing"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

const (
	sealedRows = 8000
	perCommand = 1000
	window     = 5 * time.Minute
)

// A frame applies each record at once.
type frame struct {
	plane *accounting.Plane
	at    types.Time
	rec   record.Record
	n     uint16
}

func (f *frame) Record() *record.Record { return &f.rec }
func (*frame) Savepoint()               {}
func (*frame) Undo()                    {}
func (*frame) Commit()                  {}
func (*frame) FindRef(_ types.Tenant, _ types.NameHash, prior command.PriorOutcome) (command.PriorOutcome, bool) {
	return prior, false
}

func (f *frame) Add() types.Position {
	f.plane.Apply(f.at, types.TxID{}, &f.rec)
	f.n++
	return types.Position{LSN: 1, Index: f.n}
}

// commands record an event for each row.
func commands(b *testing.B) (all []*accounting.RecordEvents) {
	for first := 0; first < sealedRows; first += perCommand {
		c := &accounting.RecordEvents{Header: command.Header{Tenant: 1}}
		for i := range perCommand {
			labels := []accounting.Label{{Name: "service", Value: "search"}, {Name: "method", Value: "get"}, {Name: "route", Value: fmt.Sprintf("route-%d", first+i)}}
			s, err := accounting.NewSeries("requests", labels)
			if err != nil {
				b.Fatal(err)
			}
			c.Events = append(c.Events, accounting.Event{Source: "a", ID: fmt.Sprint(first + i), Series: s, Value: 1, Time: 1, Place: uint16(i)})
		}
		if err := c.Seal(); err != nil {
			b.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// BenchmarkSeal seals rows of one window: the state machine makes the records of all slices, with
// their digests, and applies them.
func BenchmarkSeal(b *testing.B) {
	at := types.Time(1_700_000_000_000)
	p := accounting.New(accounting.Limits{Rows: 2 * sealedRows, Streams: 1, Tenants: 1, TenantRow: 2 * sealedRows, TenantDim: 1, Window: window}, 1)
	f, all := &frame{plane: p}, commands(b)
	var used time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		at = at.Add(2 * window)
		f.at = at
		for _, c := range all {
			for i := range c.Events {
				c.Events[i].Time = at
			}
			var reply event.Reply
			if p.Decide(at, c, f, &reply); reply.Problem != event.None {
				b.Fatal(reply.Problem)
			}
		}
		if p.Rows() != sealedRows {
			b.Fatalf("%d rows", p.Rows())
		}
		before := gauge.Own()
		b.StartTimer()
		for p.Expire(at.Add(window), &f.rec) {
			f.Add()
		}
		b.StopTimer()
		used += gauge.Own() - before
		if p.Rows() > 0 {
			b.Fatalf("%d rows are not sealed", p.Rows())
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
}
