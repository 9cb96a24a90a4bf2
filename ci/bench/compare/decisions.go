package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// decisions is the cost of one admission decision, in process: benchmarks of the product, and of
// ci/bench/rate.
type decisions struct {
	*bench
	nanos  map[string][]float64 // by benchmark
	allocs map[string]float64   // the most
}

const decidedTimes = "300000x"

// round runs each benchmark once.
func (d *decisions) round(ctx context.Context) error {
	if d.nanos == nil {
		d.nanos, d.allocs = map[string][]float64{}, map[string]float64{}
	}
	for _, run := range [...]struct{ program, what string }{{"rate.test", "."}, {"node.test", "^BenchmarkArrive$"}} {
		cmd := exec.CommandContext(ctx, d.binary(run.program), "-test.run", "^$", "-test.bench", run.what, "-test.benchtime", decidedTimes, "-test.benchmem", "-test.cpu", "1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", run.program, err, out)
		}
		for _, m := range benchLine.FindAllSubmatch(out, -1) {
			name := string(m[1])
			ns, err1 := strconv.ParseFloat(string(m[2]), 64)
			allocs, err2 := strconv.ParseFloat(string(m[3]), 64)
			if err1 != nil || err2 != nil {
				return fmt.Errorf("%s: %s", run.program, m[0])
			}
			d.nanos[name] = append(d.nanos[name], ns)
			d.allocs[name] = max(d.allocs[name], allocs)
		}
	}
	for _, b := range benchmarks {
		if len(d.nanos[b.name]) == 0 {
			return fmt.Errorf("no benchmark is called %s", b.name)
		}
	}
	return nil
}

// benchLine is a benchmark's result, as `go test -bench . -benchmem` prints it.
var benchLine = regexp.MustCompile(`(?m)^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op.*?\s(\d+) allocs/op$`)

// benchmarks are the reported ones.
var benchmarks = [...]struct{ name, what string }{
	{"Limiter", "x/time/rate, of a map under a lock, reading the clock"},
	{"LimiterAt", "x/time/rate, of a map, told the time"},
	{"Take", "core/gateway/quota, one rule of tenants, told the time"},
	{"TakeThree", "core/gateway/quota, rules of peers, keys and, in bytes, tenants"},
	{"Arrive", "the node: a request arrives (quotas of instance, peer and tenant; queue; permit), goes, and is settled"},
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
		sheet.Goal{What: "the whole of a request at the node's gate", Want: sheet.Most(1000), Got: sample.Of(d.nanos["Arrive"]).Median, Unit: " ns"},
		sheet.Goal{What: "allocations of it", Want: sheet.Most(0), Got: d.allocs["Arrive"]})
}

const decisionsText = `One goroutine, 256 tenants in turn, all admitted; nanoseconds of wall time, which a busy machine stretches. The last line is two steps of the node that serves,
both words of one request.`
