package main

import (
	"context"
	"fmt"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// meters are the benchmarks of counting one request.
var meters = [...]struct{ name, what string }{
	{"Recorder", "macronode, as the node does it: under a lock; the request, and the bytes of both bodies"},
	{"Meter", "macronode, without the lock"},
	{"Counter", "Prometheus, `WithLabelValues(…).Inc()`: the request alone"},
	{"Counters", "Prometheus, three times: the request, and the bytes of both bodies"},
	{"Handle", "Prometheus, a counter that was found before: the request alone"},
}

const sealing = "Seal"

// inProcess runs each benchmark once.
func (u *events) inProcess(ctx context.Context) error {
	for _, run := range [...]struct{ what, times string }{{"^Benchmark(Recorder|Meter|Counter|Counters|Handle)$", "2000000x"}, {"^Benchmark" + sealing + "$", "50x"}} {
		if err := u.benchmark(ctx, u.binary("meter.test"), run.what, run.times); err != nil {
			return err
		}
	}
	if len(u.cpu[sealing]) == 0 {
		return fmt.Errorf("no benchmark is called %s", sealing)
	}
	for _, m := range meters {
		if len(u.nanos[m.name]) == 0 {
			return fmt.Errorf("no benchmark is called %s", m.name)
		}
	}
	return nil
}

// ratio returns the spread of the time of a benchmark against that of another in the same round.
func (u *events) ratio(of, to string) sample.Spread {
	var all []float64
	for i := range min(len(u.nanos[of]), len(u.nanos[to])) {
		all = append(all, u.nanos[of][i]/u.nanos[to][i])
	}
	return sample.Of(all)
}

func (u *events) reportInProcess() {
	rows := [][]string{}
	for _, m := range meters {
		rows = append(rows, []string{m.what, spread1(sample.Of(u.nanos[m.name]), ""), times(u.ratio(m.name, "Counter")), times(u.ratio(m.name, "Counters")), fmt.Sprintf("%.0f", u.allocs[m.name])})
	}
	u.page.Sections = append(u.page.Sections, sheet.Section{Title: "Counting a request", Text: metersText,
		Head: []string{"what", "ns", "÷ `Inc()`", "÷ three", "allocations"}, Rows: rows})
	millis := func(ns []float64) sample.Spread {
		s := sample.Of(ns)
		return sample.Spread{Least: s.Least / 1e6, Median: s.Median / 1e6, Most: s.Most / 1e6}
	}
	cpu := millis(u.cpu[sealing])
	u.page.Sections = append(u.page.Sections, sheet.Section{Title: "Sealing", Text: sealingText, Head: []string{"rows", "CPU ms", "ms", "CPU µs per row", "allocations"},
		Rows: [][]string{{sheet.Count(sealedRows), spread1(cpu, ""), spread1(millis(u.nanos[sealing]), ""), sheet.Number(1000 * cpu.Median / sealedRows), fmt.Sprintf("%.0f", u.allocs[sealing])}}})
	u.page.Goals = append(u.page.Goals,
		sheet.Goal{What: "CPU of sealing " + sheet.Count(sealedRows) + " rows", Want: sheet.Most(1), Got: cpu.Median, Unit: " ms"},
		sheet.Goal{What: "time of counting the request and the bytes of both bodies: macronode against three counters of Prometheus", Want: sheet.Most(0.3), Got: u.ratio("Recorder", "Counters").Median, Unit: "×"},
		sheet.Goal{What: "the same against one `WithLabelValues(…).Inc()`", Want: sheet.Most(0.3), Got: u.ratio("Recorder", "Counter").Median, Unit: "×"})
	u.page.Missing = append(u.page.Missing, "the time of counting by a handle against a counter of Prometheus that was found before (goal ≤ 1.5×): macronode has no such handle")
}

// sealedRows is the number of rows that ci/bench/meter seals.
const sealedRows = 8000

const metersText = `One goroutine, in process; nanoseconds of wall time, which a busy machine stretches. 256 sets of labels in turn: 8 tenants, 4 services, 2 methods, 4 routes.
Nothing reads the counters meanwhile. macronode hands over what it counted to the journal each second; this is not in the numbers.`

const sealingText = `One goroutine, in process. All rows are of one dimension, in one window that has ended. The state machine makes the records of its slices, with the rows in order and the
digests of the chain, and applies them. The node applies each record a second time for the readers. That, and the write to the journal, are not in the numbers.`
