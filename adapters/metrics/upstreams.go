package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

// upstreams are those of a configuration.
type upstreams struct {
	names []string
	all   map[string]*Upstream
}

// An Upstream counts what becomes of requests to one, every series found beforehand.
type Upstream struct {
	requests, fails map[string]prometheus.Counter
	up, down        prometheus.Counter
	latency         prometheus.Observer
}

// Name has the upstreams of these names counted, from when the first configuration is
// there. Those that were named before and are not now have no series any more.
func (m *Metrics) Name(names []string) {
	was := m.upstreams.Load()
	to := &upstreams{names: names, all: make(map[string]*Upstream)}
	for _, name := range names {
		if to.all[name] = was.all[name]; to.all[name] == nil {
			to.all[name] = m.newUpstream(name)
		}
	}
	m.upstreams.Store(to)
	for _, name := range was.names {
		if !slices.Contains(names, name) {
			m.forget(name)
		}
	}
}

func (m *Metrics) newUpstream(name string) *Upstream {
	u := &Upstream{requests: make(map[string]prometheus.Counter), fails: make(map[string]prometheus.Counter),
		up: m.counters["upstream_bytes_total"].WithLabelValues(name, "up"), down: m.counters["upstream_bytes_total"].WithLabelValues(name, "down"),
		latency: m.histograms["downstream_latency_seconds"].WithLabelValues(name)}
	for _, s := range registry.Fails {
		u.fails[s] = m.counters["upstream_fail_total"].WithLabelValues(name, s)
	}
	for _, outcome := range slices.Concat([]string{"ok"}, registry.Symptoms, registry.Stops) {
		u.requests[outcome] = m.counters["upstream_requests_total"].WithLabelValues(name, outcome)
	}
	return u
}

func (m *Metrics) forget(name string) {
	of := prometheus.Labels{"upstream": name}
	for i := range registry.Metrics {
		d := &registry.Metrics[i]
		switch {
		case !d.OfUpstreams() || d.Sampled:
		case d.Type == registry.Counter:
			m.counters[d.Name].DeletePartialMatch(of)
		default:
			m.histograms[d.Name].DeletePartialMatch(of)
		}
	}
}

// Upstream is one by its name; false: it is not configured any more.
func (m *Metrics) Upstream(name string) (u *Upstream, ok bool) {
	u, ok = m.upstreams.Load().all[name]
	return u, ok
}

// Ended counts a request that is over: what became of it, and when its answer began; 0: none did.
func (u *Upstream) Ended(outcome string, first time.Duration) {
	c := u.requests[outcome]
	types.Assert(c != nil, "metrics: no such outcome: "+outcome)
	c.Inc()
	if first > 0 {
		u.latency.Observe(first.Seconds())
	}
}

// Failed counts a try that did.
func (u *Upstream) Failed(symptom string) {
	c := u.fails[symptom]
	types.Assert(c != nil, "metrics: no such symptom: "+symptom)
	c.Inc()
}

// Moved counts bytes of bodies.
func (u *Upstream) Moved(up, down uint64) {
	u.up.Add(float64(up))
	u.down.Add(float64(down))
}

// Standings has look asked for each upstream at every scrape, by its name; false: it is
// not there.
func (m *Metrics) Standings(look func(name string) (event.UpstreamStats, bool)) {
	m.registry.MustRegister(&standings{m, look})
}

type standings struct {
	of   *Metrics
	look func(name string) (event.UpstreamStats, bool)
}

// Describe says nothing: the samples have said it.
func (*standings) Describe(chan<- *prometheus.Desc) {}

func (s *standings) Collect(to chan<- prometheus.Metric) {
	for _, name := range s.of.upstreams.Load().names {
		v, ok := s.look(name)
		if !ok {
			continue
		}
		is := func(metric string, value float64, labels ...string) {
			to <- s.of.samples.is(metric, value, append([]string{name}, labels...)...)
		}
		is("upstream_inflight", float64(v.InFlight))
		is("upstream_endpoints", float64(v.Healthy), "healthy")
		is("upstream_endpoints", float64(v.Ejected), "ejected")
		is("upstream_endpoints", float64(v.Unhealthy), "unhealthy")
		is("upstream_retries_total", float64(v.Retries))
		is("upstream_retries_refused_total", float64(v.RetriesDenied))
		is("circuit_open_total", float64(v.Opened))
		is("circuit_state", map[event.CircuitState]float64{event.CircuitClosed: 0, event.CircuitHalfOpen: 1, event.CircuitOpen: 2}[v.Circuit])
	}
}
