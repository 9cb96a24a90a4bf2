package sim

import (
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// spent returns the CPU time of this process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRuns runs the simulator with the default length and every check. It reports steps and
// simulated hours per CPU time, which does not depend on the load of the machine.
func BenchmarkRuns(b *testing.B) {
	var steps, asked int
	var lived time.Duration
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // as in TestSeeds
	began := spent(b)
	for seed := range b.N {
		w := New(Choices(uint64(seed+1), 500))
		if err := w.Run(); err != nil {
			b.Fatal(err)
		}
		steps, asked, lived = steps+w.Steps, asked+int(w.ticket), lived+time.Duration(w.now.Mono)-w.idled
	}
	cpu := (spent(b) - began).Seconds()
	b.ReportMetric(float64(steps)/cpu, "steps/cpu-s")
	b.ReportMetric(lived.Seconds()/cpu, "hours/cpu-h")
	b.ReportMetric(float64(asked)/lived.Seconds(), "asked/s")
	b.ReportMetric(float64(b.N)/cpu, "runs/cpu-s")
	b.Logf("evidence: sim.moves_per_cpu_second = %.0f steps", float64(steps)/cpu)
	b.Logf("evidence: sim.hours_per_cpu_hour = %.0f, at %.1f requests a second", lived.Seconds()/cpu, float64(asked)/lived.Seconds())
}
