// Package metrics exports the metrics of the node to Prometheus. Package registry declares all
// names, labels and label values. No label value comes from input.
package metrics

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

// Metrics has the metrics of one node. Two nodes in one process share no metrics.
type Metrics struct {
	declared   declarations
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	samples    *samples
	upstreams  atomic.Pointer[upstreams] // the configured upstreams
	quotas     atomic.Pointer[quotas]    // the configured quotas

	sync           prometheus.Observer
	frames         prometheus.Observer
	crowded        prometheus.Counter
	perPeer        prometheus.Counter
	smuggle        prometheus.Counter
	floods         prometheus.Counter
	delayed        prometheus.Counter
	rejectedFloods prometheus.Counter
	panics         count
}

// New returns metrics in which all counters are 0. It calls status at each scrape. Sampled metrics
// that are not part of the status are registered with Sample. Planes that package registry does not
// declare add their own.
func New(status func() event.Status, planes ...registry.Entries) *Metrics {
	m := &Metrics{declared: registry.With(planes...), registry: prometheus.NewRegistry(), counters: make(map[string]*prometheus.CounterVec),
		histograms: make(map[string]*prometheus.HistogramVec)}
	m.samples = newSamples(m.declared)
	m.upstreams.Store(new(upstreams))
	m.registry.MustRegister(m.samples, &life{status: status, samples: m.samples},
		collectors.NewGoCollector(), collectors.NewBuildInfoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for i := range m.declared {
		if d := &m.declared[i]; !d.Sampled {
			m.count(d)
		}
	}
	m.sync, m.frames = m.histogram("journal_sync_seconds"), m.histogram("journal_batch_frames")
	m.crowded = m.counter("rejected_total", "node", "max_conns")
	m.perPeer = m.counter("rejected_total", "node", "max_conns_per_peer")
	m.smuggle = m.counter("rejected_total", "node", "framing")
	m.floods = m.counter("rejected_total", "node", "frame_flood")
	m.rejectedFloods, m.delayed = m.counter("rejected_total", "node", "rejected_flood"), m.counter("connections_delayed_total")
	m.Sample("tasks_aborted_total", m.panics.value, "request")
	return m
}

// count registers a metric with all of its series, so that a counter is 0 until its first event.
func (m *Metrics) count(d *registry.Metric) {
	switch d.Type {
	case registry.Counter:
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, labels(d))
		m.counters[d.Name] = v
		m.registry.MustRegister(v)
		for _, values := range d.All() {
			v.WithLabelValues(values...)
		}
	case registry.Histogram:
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, labels(d))
		m.histograms[d.Name] = v
		m.registry.MustRegister(v)
		for _, values := range d.All() {
			v.WithLabelValues(values...)
		}
	default:
		types.Assert(false, "metrics: a gauge must be sampled: "+d.Name)
	}
}

func labels(d *registry.Metric) (names []string) {
	for _, l := range d.Labels {
		names = append(names, l.Name)
	}
	return names
}

// declarations are the metrics of a node.
type declarations []registry.Metric

// find returns the metric called name. It panics if the series is not declared.
func (all declarations) find(name string, values []string) *registry.Metric {
	i := slices.IndexFunc(all, func(d registry.Metric) bool { return d.Name == name })
	types.Assert(i >= 0, "metrics: no such metric: "+name)
	d := &all[i]
	is := slices.ContainsFunc(d.All(values...), func(s []string) bool { return slices.Equal(s, values) })
	types.Assert(is, "metrics: no such series of "+name)
	return d
}

func (m *Metrics) counter(name string, values ...string) prometheus.Counter {
	m.declared.find(name, values)
	return m.counters[name].WithLabelValues(values...)
}

func (m *Metrics) histogram(name string, values ...string) prometheus.Observer {
	m.declared.find(name, values)
	return m.histograms[name].WithLabelValues(values...)
}

// Handler serves all metrics. A scraper that accepts OpenMetrics also gets exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true})
}

// Sample registers a function that returns the value of a series at each scrape. It panics if the
// series already has a function.
func (m *Metrics) Sample(name string, value func() float64, values ...string) {
	m.SampleKnown(name, func() (float64, bool) { return value(), true }, values...)
}

// SampleKnown is Sample for a value that is not always known. While it is not, a scrape does not have the series.
func (m *Metrics) SampleKnown(name string, value func() (value float64, isKnown bool), values ...string) {
	types.Assert(m.declared.find(name, values).Sampled, "metrics: not a sampled metric: "+name)
	m.samples.add(name, sample{value, values})
}

// Flushed records a batch of the journal that became durable.
func (m *Metrics) Flushed(frames, _ int, took time.Duration) {
	m.sync.Observe(took.Seconds())
	m.frames.Observe(float64(frames))
}

// Failed counts a failed I/O operation, TimedOut a wait that reached its deadline, and Retried an
// operation that was retried after a backoff.
func (m *Metrics) Failed(op string)   { m.counter("io_errors_total", op).Inc() }
func (m *Metrics) TimedOut(op string) { m.counter("io_timeouts_total", op).Inc() }
func (m *Metrics) Retried(op string)  { m.counter("backoff_retries_total", op).Inc() }

// Crowded counts a connection or an HTTP/2 request that was rejected at listen.max_conns.
func (m *Metrics) Crowded() { m.crowded.Inc() }

// PeerCrowded counts a connection that was rejected at listen.max_conns_per_peer.
func (m *Metrics) PeerCrowded() { m.perPeer.Inc() }

// IdleClosed counts an idle connection that was closed for a new one, by the limit reached.
func (m *Metrics) IdleClosed(by string) { m.counter("idle_connections_closed_total", by).Inc() }

// Smuggled counts a request that was rejected because of ambiguous framing.
func (m *Metrics) Smuggled() { m.smuggle.Inc() }

// Flooded counts an HTTP/2 connection that was closed for frames without progress.
func (m *Metrics) Flooded() { m.floods.Inc() }

// RejectedFlood counts a connection that ends because its peer had too many rejected requests, Delayed
// a new one that starts with a delay for that.
func (m *Metrics) RejectedFlood() { m.rejectedFloods.Inc() }
func (m *Metrics) Delayed()       { m.delayed.Inc() }

// Greeted counts a completed or failed TLS handshake, by result.
func (m *Metrics) Greeted(how string) { m.counter("handshakes_total", how).Inc() }
