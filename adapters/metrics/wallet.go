package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/types"
)

// Wallet is what the wallet's doors count, every series found beforehand.
type Wallet struct {
	of       *Metrics
	rejected [types.NumFacets][256]prometheus.Counter // by problem; nil for those that are not
	barred   [types.NumClasses][event.NumRejectReasons]prometheus.Counter
	replays  prometheus.Counter
	decision prometheus.Observer
	timeout  prometheus.Counter
	await    prometheus.Counter
}

// Wallet is the wallet's view of m.
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
			w.barred[c][why] = m.counter("admission_refused_total", c.String(), why.String())
		}
	}
	return w
}

// Barred counts a request that was refused at the gate.
func (w *Wallet) Barred(c types.Class, why event.RejectReason) { w.barred[c][why].Inc() }

// An exemplar names the decision behind an observation. It is dear, so it comes
// with what was slow and with one of many.
const (
	slow = 100 * time.Millisecond
	many = 1024
)

// Endpoint counts one endpoint: what was answered, and who was told to come back.
func (w *Wallet) Endpoint(name, method string) (answered func(took time.Duration, decision []byte), busy func()) {
	latency := w.of.histogram("request_latency_seconds", name, method)
	named := latency.(prometheus.ExemplarObserver)
	var seen atomic.Uint64
	return func(took time.Duration, decision []byte) {
		if seen.Add(1)%many == 1 || took > slow {
			named.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"decision_id": string(decision)})
			return
		}
		latency.Observe(took.Seconds())
	}, w.of.counter("busy_rejections_total", name).Inc
}

// Refused counts a problem, if it was met before any work.
func (w *Wallet) Refused(f types.Facet, p event.Problem) {
	if c := w.rejected[f][p]; c != nil {
		c.Inc()
	}
}

// Decided counts a reply of the node, Replayed one that was shown again.
func (w *Wallet) Decided(took time.Duration) { w.decision.Observe(took.Seconds()) }
func (w *Wallet) Replayed()                  { w.replays.Inc() }

// TimedOut counts a wait that ended at the deadline: Deadline for a read, Unknown
// for the outcome of a write.
func (w *Wallet) TimedOut(p event.Problem) {
	if p == event.Timeout {
		w.await.Inc()
		return
	}
	w.timeout.Inc()
}

// Panicked counts a request that met a bug.
func (w *Wallet) Panicked() { w.of.panics.n.Add(1) }
