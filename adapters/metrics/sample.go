package metrics

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/types"
)

// samples ask others at the moment of the scrape.
type samples struct {
	descs map[string]*prometheus.Desc // of all that is sampled

	mu  sync.RWMutex // of all; whoever is asked may take a lock of his own
	all map[string][]sample
}

type sample struct {
	value  func() float64
	labels []string
}

func newSamples() *samples {
	s := &samples{descs: make(map[string]*prometheus.Desc), all: make(map[string][]sample)}
	for i := range registry.Metrics {
		if d := &registry.Metrics[i]; d.Sampled {
			s.descs[d.Name] = prometheus.NewDesc(d.Name, d.Help, labels(d), nil)
		}
	}
	return s
}

func (s *samples) add(name string, one sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	twice := slices.ContainsFunc(s.all[name], func(other sample) bool { return slices.Equal(other.labels, one.labels) })
	types.Assert(!twice, "metrics: sampled twice: "+name)
	s.all[name] = append(s.all[name], one)
}

func (s *samples) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		to <- d
	}
}

// Collect asks without the lock: an answer may take others.
func (s *samples) Collect(to chan<- prometheus.Metric) {
	for name, all := range s.taken() {
		for _, one := range all {
			to <- s.is(name, one.value(), one.labels...)
		}
	}
}

func (s *samples) taken() map[string][]sample {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make(map[string][]sample, len(s.all))
	for name, some := range s.all {
		all[name] = some[:len(some):len(some)]
	}
	return all
}

// is a series as it is now.
func (s *samples) is(name string, value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if declared(name, labels).Type == registry.Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(s.descs[name], kind, value, labels...)
}

// count is a number that only grows.
type count struct{ n atomic.Uint64 }

func (c *count) value() float64 { return float64(c.n.Load()) }
