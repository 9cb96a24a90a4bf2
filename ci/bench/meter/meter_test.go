// Package meter compares counting a request in core/accounting and adapters/metering with
// counters of prometheus/client_golang, all for the same labels in turn, and measures the sealing
// of usage. `go test -bench . -count 20`; the smallest value is the cost, the rest is noise.
package meter

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/metering"
	"macronode/core/accounting"
	"macronode/core/flow"
	"macronode/core/types"
)

// requests are those of 8 tenants to 4 services with 2 methods and 4 routes each.
func requests() (all []accounting.Request) {
	for tenant := range types.Tenant(8) {
		for _, service := range [...]string{"search", "shop", "mail", "login"} {
			for _, method := range [...]string{"get", "post"} {
				for _, route := range [...]string{"list", "item", "create", "remove"} {
					all = append(all, accounting.Request{Tenant: 1 + tenant, At: 1_700_000_000_000, Labels: accounting.NewRequestLabels(service, method, route), In: 200, Out: 4000})
				}
			}
		}
	}
	return all
}

// labelsOf returns the values of the labels of a counter.
func labelsOf(r *accounting.Request) []string {
	return []string{strconv.Itoa(int(r.Tenant)), r.Labels.Service, r.Labels.Method, r.Labels.Route}
}

func counters(n int) (all []*prometheus.CounterVec) {
	for i := range n {
		all = append(all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c" + strconv.Itoa(i)}, []string{"tenant", "service", "method", "route"}))
	}
	return all
}

// BenchmarkCounter finds a counter by its labels, and adds one.
func BenchmarkCounter(b *testing.B) {
	all, c := requests(), counters(1)[0]
	labels := make([][]string, len(all))
	for i := range all {
		labels[i] = labelsOf(&all[i])
	}
	b.ResetTimer()
	for i := range b.N {
		c.WithLabelValues(labels[i%len(labels)]...).Inc()
	}
}

// BenchmarkCounters does so for a request, the bytes of its body and those of the response.
func BenchmarkCounters(b *testing.B) {
	all, c := requests(), counters(3)
	labels := make([][]string, len(all))
	for i := range all {
		labels[i] = labelsOf(&all[i])
	}
	b.ResetTimer()
	for i := range b.N {
		r, l := &all[i%len(all)], labels[i%len(all)]
		c[0].WithLabelValues(l...).Inc()
		c[1].WithLabelValues(l...).Add(float64(r.In))
		c[2].WithLabelValues(l...).Add(float64(r.Out))
	}
}

// BenchmarkHandle adds one to a counter that was found before.
func BenchmarkHandle(b *testing.B) {
	all, c := requests(), counters(1)[0]
	handles := make([]prometheus.Counter, len(all))
	for i := range all {
		handles[i] = c.WithLabelValues(labelsOf(&all[i])...)
	}
	b.ResetTimer()
	for i := range b.N {
		handles[i%len(handles)].Inc()
	}
}

// BenchmarkMeter counts a request with its bytes, without a lock.
func BenchmarkMeter(b *testing.B) {
	all := requests()
	m := accounting.NewMeter(5*time.Minute, metering.MaxRows, metering.MaxTenantRows)
	for i := range b.N {
		if _, ok := m.Add(&all[i%len(all)]); !ok {
			b.Fatal("no room")
		}
	}
}

// BenchmarkRecorder counts a request with its bytes as the node does.
func BenchmarkRecorder(b *testing.B) {
	all := requests()
	m := metering.New(metering.Config{Window: 5 * time.Minute, Ended: func(metering.Outcome, uint64) { b.Fatal("no room") }})
	for i := range b.N {
		m.Count(all[i%len(all)], flow.Reservation{})
	}
}
