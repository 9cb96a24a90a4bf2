package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"macronode/core/event"
)

// Wallet is what the wallet's doors count, every handle found beforehand.
type Wallet struct {
	of       *Metrics
	rejected [256]prometheus.Counter // by problem; nil for those that are not
	decision prometheus.Observer
	timeout  prometheus.Counter
	await    prometheus.Counter
	panics   prometheus.Counter
}

// Wallet is the wallet's view of m.
func (m *Metrics) Wallet() *Wallet {
	w := &Wallet{of: m, decision: m.decision.WithLabelValues("wallet"),
		timeout: m.timeouts.WithLabelValues("reply"), await: m.timeouts.WithLabelValues("await_seq"),
		panics: m.tasks[Aborted].WithLabelValues("request")}
	for _, p := range beforeWork {
		w.rejected[p] = m.rejected.WithLabelValues("wallet", p.Code())
	}
	return w
}

// beforeWork are the problems that a request meets before anything is done for it.
// The others are answers.
var beforeWork = [...]event.Problem{event.BadRequest, event.Unauthorized, event.Forbidden, event.PayloadTooLarge,
	event.UnsupportedMedia, event.MethodNotAllowed, event.Busy, event.IdempotencyFull, event.Unavailable}

// An exemplar names the decision behind an observation. It is dear, so it comes
// with what was slow and with one of many.
const (
	slow = 100 * time.Millisecond
	many = 1024
)

// Endpoint counts one endpoint: what was answered, and who was told to come back.
func (w *Wallet) Endpoint(name, method string) (answered func(took time.Duration, decision []byte), busy func()) {
	latency := w.of.latency.WithLabelValues(of(endpoints, name), of(methods, method))
	named := latency.(prometheus.ExemplarObserver)
	var seen atomic.Uint64
	return func(took time.Duration, decision []byte) {
		if seen.Add(1)%many == 1 || took > slow {
			named.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"decision_id": string(decision)})
			return
		}
		latency.Observe(took.Seconds())
	}, w.of.busy.WithLabelValues(name).Inc
}

// Refused counts a problem, if it was met before any work.
func (w *Wallet) Refused(p event.Problem) {
	if c := w.rejected[p]; c != nil {
		c.Inc()
	}
}

// Decided counts a reply of the node, Replayed one that was shown again.
func (w *Wallet) Decided(took time.Duration) { w.decision.Observe(took.Seconds()) }
func (w *Wallet) Replayed()                  { w.of.replays.Inc() }

// TimedOut counts a wait that ended at the deadline: Deadline for a read, Unknown
// for the outcome of a write.
func (w *Wallet) TimedOut(p event.Problem) {
	if p == event.Deadline {
		w.await.Inc()
		return
	}
	w.timeout.Inc()
}

// Panicked counts a request that met a bug.
func (w *Wallet) Panicked() { w.panics.Inc() }
