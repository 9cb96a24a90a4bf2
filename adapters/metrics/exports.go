package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
)

// Exports has the metrics of a sink.
type Exports struct{ attempts map[string]prometheus.Counter }

// Exports returns the metrics of a sink. The configuration limits the number of sinks.
func (m *Metrics) Exports(sink string) *Exports {
	e := &Exports{attempts: map[string]prometheus.Counter{}}
	for _, outcome := range registry.ExportOutcomes {
		e.attempts[outcome] = m.counter("exports_total", sink, outcome)
	}
	return e
}

// ForgetSink removes all series of a sink.
func (m *Metrics) ForgetSink(sink string) {
	m.counters["exports_total"].DeletePartialMatch(prometheus.Labels{"sink": sink})
	m.samples.remove(func(name string, of sample) bool { return strings.HasPrefix(name, "export_") && of.labels[0] == sink })
}

// Attempted counts an attempt to deliver an item, by its outcome.
func (e *Exports) Attempted(outcome string) { e.attempts[outcome].Inc() }
