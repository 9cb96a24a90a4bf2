package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"macronode/core/event"
	"macronode/core/words"
)

// life tells what the node says of itself at the moment of the scrape.
type life struct{ status func() event.Status }

var (
	readyState = prometheus.NewDesc("readyz_state", "0 unready, 1 degraded, 2 ready.", []string{"service"}, nil)
	unmet      = prometheus.NewDesc("ready_dependency_unmet", "1 while a dependency is missing.", []string{"dependency"}, nil)
	restarts   = prometheus.NewDesc("service_restarts_total", "How often a child was started again.", []string{"service"}, nil)
	lag        = prometheus.NewDesc("follower_lag_lsn", "Frames emitted and not folded.", nil, nil)
	offset     = prometheus.NewDesc("clock_offset_seconds", "How far the machine's clock is ahead of the node's.", nil, nil)
)

func (*life) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{readyState, unmet, restarts, lag, offset} {
		to <- d
	}
}

func (l *life) Collect(to chan<- prometheus.Metric) {
	s := l.status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(readyState, state(s), "node")
	for c := range words.AllDependencies.Each {
		missing := 0.0
		if s.Unmet.Has(c) {
			missing = 1
		}
		gauge(unmet, missing, c.String())
	}
	for c := range words.Children {
		to <- prometheus.MustNewConstMetric(restarts, prometheus.CounterValue, float64(s.Restarts[c]), c.String())
	}
	gauge(lag, float64(s.LSN-min(s.LSN, s.Folded)))
	gauge(offset, s.Offset.Seconds())
}

func state(s event.Status) float64 {
	switch {
	case !s.Ready:
		return 0
	case s.Phase == words.Degraded:
		return 1
	}
	return 2
}
