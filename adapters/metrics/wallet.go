package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

// Wallet has the metrics of the public API. The series are looked up once, in advance.
type Wallet struct {
	of        *Metrics
	rejected  [types.NumFacets][256]prometheus.Counter // by problem; nil for a problem that is not in registry.BeforeWork
	admission [types.NumClasses][event.NumRejectReasons]prometheus.Counter
	replays   prometheus.Counter
	decision  prometheus.Observer
	timeout   prometheus.Counter
	await     prometheus.Counter
}

// Wallet returns the metrics of the public API.
func (m *Metrics) Wallet() *Wallet {
	w := &Wallet{of: m, decision: m.histogram("decision_seconds", "wallet"), replays: m.counter("idempotency_replays_total"),
		timeout: m.counter("io_timeouts_total", "reply"), await: m.counter("io_timeouts_total", "await_seq")}
	for _, p := range registry.BeforeWork {
		for f := range types.NumFacets {
			w.rejected[f][p] = m.counter("rejected_total", registry.Plane(f), p.Code())
		}
	}
	for c := range types.NumClasses {
		for why := event.Admitted + 1; why < event.NumRejectReasons; why++ {
			w.admission[c][why] = m.counter("admission_refused_total", c.String(), why.String())
		}
	}
	return w
}

// Rejected counts a request that was rejected at admission.
func (w *Wallet) Rejected(c types.Class, why event.RejectReason) { w.admission[c][why].Inc() }

// An exemplar links an observation to a decision. Exemplars are expensive, so only slow requests
// and one request of many get one.
const (
	slow = 100 * time.Millisecond
	many = 1024
)

// Endpoint returns functions for one endpoint: answered counts a request that has ended and records its
// latency, and busy counts a request rejected with 429. Status is of HTTP; 0: no response.
func (w *Wallet) Endpoint(name, method string) (answered func(took time.Duration, status int, decision []byte), busy func()) {
	latency := w.of.histogram("request_latency_seconds", name, method)
	named := latency.(prometheus.ExemplarObserver)
	requests := make(map[string]prometheus.Counter, len(registry.StatusClasses))
	for _, class := range registry.StatusClasses {
		requests[class] = w.of.counter("http_requests_total", name, method, class)
	}
	var seen atomic.Uint64
	return func(took time.Duration, status int, decision []byte) {
		requests[registry.StatusClass(status)].Inc()
		if seen.Add(1)%many == 1 || took > slow {
			named.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"decision_id": string(decision)})
			return
		}
		latency.Observe(took.Seconds())
	}, w.of.counter("busy_rejections_total", name).Inc
}

// Refused counts a problem if it rejected the request before any work.
func (w *Wallet) Refused(f types.Facet, p event.Problem) {
	if c := w.rejected[f][p.General()]; c != nil {
		c.Inc()
	}
}

// Decided records the latency of a reply of the core. Replayed counts a stored response that was
// returned for a repeated idempotency key.
func (w *Wallet) Decided(took time.Duration) { w.decision.Observe(took.Seconds()) }
func (w *Wallet) Replayed()                  { w.replays.Inc() }

// TimedOut counts a wait that reached its deadline: for Timeout a read that waited for its position,
// for any other problem a write that waited for its outcome.
func (w *Wallet) TimedOut(p event.Problem) {
	if p == event.Timeout {
		w.await.Inc()
		return
	}
	w.timeout.Inc()
}

// Panicked counts a request whose handler panicked.
func (w *Wallet) Panicked() { w.of.panics.n.Add(1) }
