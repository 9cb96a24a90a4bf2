package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// benchmarked has the results of Go benchmarks by name, one per round.
type benchmarked struct {
	nanos  map[string][]float64
	cpu    map[string][]float64 // ns of CPU, of those that measure it
	allocs map[string]float64   // the most
}

// benchmark runs the benchmarks of a test program that match a pattern, on one core.
func (d *benchmarked) benchmark(ctx context.Context, program, what, times string) error {
	if d.nanos == nil {
		d.nanos, d.cpu, d.allocs = map[string][]float64{}, map[string][]float64{}, map[string]float64{}
	}
	out, err := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.bench", what, "-test.benchtime", times, "-test.benchmem", "-test.cpu", "1").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	for _, m := range benchLine.FindAllSubmatch(out, -1) {
		name := string(m[1])
		ns, err1 := strconv.ParseFloat(string(m[2]), 64)
		allocs, err2 := strconv.ParseFloat(string(m[4]), 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%s: %s", program, m[0])
		}
		d.nanos[name] = append(d.nanos[name], ns)
		d.allocs[name] = max(d.allocs[name], allocs)
		if cpu, err := strconv.ParseFloat(string(m[3]), 64); err == nil {
			d.cpu[name] = append(d.cpu[name], cpu)
		}
	}
	return nil
}

// benchLine is a benchmark's result, as `go test -bench . -benchmem` prints it; cpu-ns/op is
// optional.
var benchLine = regexp.MustCompile(`(?m)^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:\s+([\d.]+) cpu-ns/op)?.*?\s(\d+) allocs/op$`)
