package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

// upstreams has the configured upstreams.
type upstreams struct {
	names []string
	all   map[string]*Upstream
}

// An Upstream has the metrics of one upstream. The series are looked up once, in advance.
type Upstream struct {
	requests, fails map[string]prometheus.Counter
	up, down        prometheus.Counter
	latency         prometheus.Observer
}

// Name sets the configured upstreams and removes the series of all others.
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
	for i := range m.declared {
		d := &m.declared[i]
		switch {
		case !d.OfUpstreams() || d.Sampled:
		case d.Type == registry.Counter:
			m.counters[d.Name].DeletePartialMatch(of)
		default:
			m.histograms[d.Name].DeletePartialMatch(of)
		}
	}
}

// Upstream returns the metrics of an upstream. ok is false if it is no longer configured.
func (m *Metrics) Upstream(name string) (u *Upstream, ok bool) {
	u, ok = m.upstreams.Load().all[name]
	return u, ok
}

// Ended counts a completed request by outcome. first is the time until the header of the response; 0
// if no response began.
func (u *Upstream) Ended(outcome string, first time.Duration) {
	c := u.requests[outcome]
	types.Assert(c != nil, "metrics: no such outcome: "+outcome)
	c.Inc()
	if first > 0 {
		u.latency.Observe(first.Seconds())
	}
}

// Failed counts a failed attempt by symptom.
func (u *Upstream) Failed(symptom string) {
	c := u.fails[symptom]
	types.Assert(c != nil, "metrics: no such symptom: "+symptom)
	c.Inc()
}

// Moved counts bytes of bodies and tunnels, sent to the upstream and received from it.
func (u *Upstream) Moved(up, down uint64) {
	u.up.Add(float64(up))
	u.down.Add(float64(down))
}

// Standings registers look, which is called for each upstream at each scrape. look returns false if
// it does not know the upstream; the upstream then has no sampled series.
func (m *Metrics) Standings(look func(name string) (event.UpstreamStats, bool)) {
	m.registry.MustRegister(&standings{m, look})
}

type standings struct {
	of   *Metrics
	look func(name string) (event.UpstreamStats, bool)
}

// Describe sends nothing, because samples describes these metrics.
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
		is("upstream_endpoints", float64(v.Ejected[event.Authenticated]), "ejected")
		is("upstream_endpoints", float64(v.Ejected[event.Anonymous]), "ejected_anonymous")
		is("upstream_endpoints", float64(v.Unhealthy), "unhealthy")
		is("upstream_retries_total", float64(v.Retries))
		is("upstream_retries_refused_total", float64(v.RetriesDenied))
		for by, c := range v.Circuits {
			callers := event.Callers(by).String()
			is("circuit_open_total", float64(c.Opened), callers)
			is("circuit_state", map[event.CircuitState]float64{event.CircuitClosed: 0, event.CircuitHalfOpen: 1, event.CircuitOpen: 2}[c.State], callers)
		}
	}
}
