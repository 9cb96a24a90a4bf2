package metrics

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/types"
)

// samples collects the sampled metrics: it calls the registered functions at each scrape.
type samples struct {
	declared declarations
	descs    map[string]*prometheus.Desc // of all sampled metrics, by name

	mu  sync.RWMutex // guards all; not held during calls, because a function may take other locks
	all map[string][]sample
}

type sample struct {
	value  func() (value float64, isKnown bool) // a series without a known value is absent from the scrape
	labels []string
}

func newSamples(all declarations) *samples {
	s := &samples{declared: all, descs: make(map[string]*prometheus.Desc), all: make(map[string][]sample)}
	for i := range all {
		if d := &all[i]; d.Sampled {
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

// remove removes the functions that is reports.
func (s *samples) remove(is func(name string, of sample) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, all := range s.all { //nolint:maporder // the order of removal has no effect
		s.all[name] = slices.DeleteFunc(slices.Clone(all), func(of sample) bool { return is(name, of) }) // a scrape may read the old ones
	}
}

func (s *samples) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		to <- d
	}
}

// Collect calls the functions without holding the lock, because they may take other locks.
func (s *samples) Collect(to chan<- prometheus.Metric) {
	for name, all := range s.taken() {
		for _, one := range all {
			if value, isKnown := one.value(); isKnown {
				to <- s.is(name, value, one.labels...)
			}
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

// is returns a series with its current value.
func (s *samples) is(name string, value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if s.declared.find(name, labels).Type == registry.Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(s.descs[name], kind, value, labels...)
}

// count is a counter that is safe for concurrent use.
type count struct{ n atomic.Uint64 }

func (c *count) value() float64 { return float64(c.n.Load()) }
