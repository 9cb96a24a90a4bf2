package main

import (
	"context"
	"fmt"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// decisions is the cost of one admission decision, in process: benchmarks of the product, and of
// ci/bench/rate.
type decisions struct {
	*bench
	benchmarked
}

const decidedTimes = "300000x"

// round runs each benchmark once.
func (d *decisions) round(ctx context.Context) error {
	for _, run := range [...]struct{ program, what string }{{"rate.test", "."}, {"node.test", "^BenchmarkArrive$"}} {
		if err := d.benchmark(ctx, d.binary(run.program), run.what, decidedTimes); err != nil {
			return err
		}
	}
	for _, b := range benchmarks {
		if len(d.nanos[b.name]) == 0 {
			return fmt.Errorf("no benchmark is called %s", b.name)
		}
	}
	return nil
}

// benchmarks are the reported ones.
var benchmarks = [...]struct{ name, what string }{
	{"Limiter", "x/time/rate, of a map under a lock, reading the clock"},
	{"LimiterAt", "x/time/rate, of a map, with the time as argument"},
	{"Take", "core/gateway/quota, one rule of tenants, with the time as argument"},
	{"TakeThree", "core/gateway/quota, rules of peers, keys and, in bytes, tenants"},
	{"Arrive", "the node: a request is admitted (quotas of instance, peer and tenant; queue; permit) and finishes"},
}

func (d *decisions) report() {
	rows := [][]string{}
	for _, b := range benchmarks {
		rows = append(rows, []string{b.what, spread1(sample.Of(d.nanos[b.name]), ""), fmt.Sprintf("%.0f", d.allocs[b.name])})
	}
	d.page.Sections = append(d.page.Sections, sheet.Section{Title: "Gateway: a decision in process", Text: decisionsText,
		Head: []string{"what", "ns", "allocations"}, Rows: rows})
	var against []float64
	for i := range d.nanos["Take"] {
		against = append(against, d.nanos["Take"][i]/d.nanos["Limiter"][i])
	}
	d.page.Goals = append(d.page.Goals,
		sheet.Goal{What: "a decision about a tenant's quota, against x/time/rate from a map", Want: sheet.Most(0.5), Got: sample.Of(against).Median, Unit: "×"},
		sheet.Goal{What: "all admission steps of a request in the node", Want: sheet.Most(1000), Got: sample.Of(d.nanos["Arrive"]).Median, Unit: " ns"},
		sheet.Goal{What: "allocations of these", Want: sheet.Most(0), Got: d.allocs["Arrive"]})
}

const decisionsText = `One goroutine, 256 tenants in turn, all admitted. The unit is nanoseconds of wall time, which are longer on a busy machine. The last row is two steps of the node,
for both events of one request.`
