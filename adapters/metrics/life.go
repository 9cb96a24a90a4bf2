package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"macronode/core/event"
	"macronode/core/types"
)

// life collects the metrics that come from the status of the node. All values of a scrape are from
// one status.
type life struct {
	status  func() event.Status
	samples *samples
}

// Describe sends nothing, because samples describes these metrics.
func (*life) Describe(chan<- *prometheus.Desc) {}

func (l *life) Collect(to chan<- prometheus.Metric) {
	s := l.status()
	is := func(name string, value float64, labels ...string) { to <- l.samples.is(name, value, labels...) }
	is("readyz_state", state(s), "node")
	for c := range types.AllDependencies.Each {
		missing := 0.0
		if s.WaitingFor.Has(c) {
			missing = 1
		}
		is("ready_dependency_unmet", missing, c.String())
	}
	for c := range types.NumServices {
		is("service_restarts_total", float64(s.Restarts[c]), c.String())
	}
	is("journal_lsn", float64(s.Durable))
	is("follower_lag_lsn", float64(s.LSN-min(s.LSN, s.Applied)))
	is("clock_offset_seconds", s.Offset.Seconds())
}

func state(s event.Status) float64 {
	switch {
	case !s.Ready:
		return 0
	case s.Phase == types.Degraded:
		return 1
	}
	return 2
}
