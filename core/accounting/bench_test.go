package accounting_test

import (
	"testing"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
)

// BenchmarkRecord is the cost of an event of a command with a hundred, each of another series, and of sealing it.
func BenchmarkRecord(b *testing.B) {
	at := types.Time(1_700_000_000_000)
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p}
	c := wide(b, 100, at)
	var reply event.Reply
	b.ReportAllocs()
	for n := 0; b.Loop(); n += 100 {
		at = at.Add(2 * window)
		f.at = at
		for i := range c.Events {
			c.Events[i].Time = at
		}
		p.Decide(at, c, f, &reply)
		for p.Expire(at.Add(window+grace), &f.rec) {
			f.Add()
		}
	}
	if reply.Problem != event.None || p.Rows() > 0 {
		b.Fatal(reply.Problem)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
}
