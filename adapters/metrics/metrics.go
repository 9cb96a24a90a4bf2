// Package metrics counts what the node does, for Prometheus. Every name and every
// label is of an enum here, never from input.
package metrics

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"macronode/core/event"
	"macronode/core/words"
)

// The values that labels take.
var (
	endpoints = []string{"issue", "transfer", "burn", "balance", "tx", "openapi", "other"}
	methods   = []string{http.MethodGet, http.MethodPost, "other"}
	queues    = []string{"work", "late", "gone", "folds"}
	ops       = []string{"journal", "reply", "await_seq"}
	tasks     = []string{"http", "admin", "sampler", "request"}
)

// seconds are the buckets of every latency, so that any two can be compared.
func seconds() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// Metrics is all that one node counts: two nodes in one process share nothing.
type Metrics struct {
	registry *prometheus.Registry
	latency  *prometheus.HistogramVec
	busy     *prometheus.CounterVec
	rejected *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	timeouts *prometheus.CounterVec
	decision *prometheus.HistogramVec
	tasks    [4]*prometheus.CounterVec // by ending
	replays  prometheus.Counter
	sync     prometheus.Histogram
	frames   prometheus.Histogram
	crowded  prometheus.Counter
}

// New counts from nothing. Status is asked at every scrape.
func New(status func() event.Status) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		latency: histograms("request_latency_seconds", "Time from the header of a request to its answer.",
			seconds(), "endpoint", "method"),
		busy:     counters("busy_rejections_total", "Requests told to come back because a queue was full.", "endpoint"),
		rejected: counters("rejected_total", "What was refused before any work was done for it.", "plane", "reason"),
		dropped:  counters("queue_dropped_total", "Items accepted, then dropped by the policy of their queue.", "queue", "reason"),
		errors:   counters("io_errors_total", "Operations on the world that failed.", "op"),
		timeouts: counters("io_timeouts_total", "Waits that ended at their deadline.", "op"),
		decision: histograms("decision_seconds", "Time from handing a request to the node to its reply, durability included.",
			seconds(), "plane"),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "idempotency_replays_total",
			Help: "Answers that were shown again under their idempotency key."}),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "journal_sync_seconds",
			Help: "Time to write a batch and make it durable.", Buckets: seconds()}),
		frames: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "journal_batch_frames",
			Help: "Frames that one flush made durable.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
	}
	m.registry.MustRegister(m.latency, m.busy, m.rejected, m.dropped, m.errors, m.timeouts, m.decision,
		m.replays, m.sync, m.frames, &life{status: status},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for e := range m.tasks {
		m.tasks[e] = counters("tasks_"+Ending(e).String()+"_total", "Tasks that were "+Ending(e).String()+".", "kind")
		m.registry.MustRegister(m.tasks[e])
	}
	m.dropped.WithLabelValues("work", "oldest") // a series that says 0: nothing accepted is ever dropped
	m.crowded = m.rejected.WithLabelValues("node", "max_conns")
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// of asserts that a label's value is of its enum: a bug of ours otherwise.
func of(enum []string, value string) string {
	words.Assert(slices.Contains(enum, value), "metrics: no such label: "+value)
	return value
}

// Handler shows everything, with exemplars to those who ask for OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true})
}

// Flushed counts a batch of the journal.
func (m *Metrics) Flushed(frames, _ int, took time.Duration) {
	m.sync.Observe(took.Seconds())
	m.frames.Observe(float64(frames))
}

// Failed and TimedOut count what the world did not do.
func (m *Metrics) Failed(op string)   { m.errors.WithLabelValues(of(ops, op)).Inc() }
func (m *Metrics) TimedOut(op string) { m.timeouts.WithLabelValues(of(ops, op)).Inc() }

// Crowded counts a connection that was one too many.
func (m *Metrics) Crowded() { m.crowded.Inc() }

// Queue shows how much a queue holds. It is registered once.
func (m *Metrics) Queue(name string, depth func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "queue_depth",
		Help: "Items held.", ConstLabels: prometheus.Labels{"queue": of(queues, name)}},
		func() float64 { return float64(depth()) }))
}

// InFlight shows how many requests are admitted and not answered. It is registered
// once.
func (m *Metrics) InFlight(count func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "worker_inflight",
		Help: "Requests admitted and not answered."}, func() float64 { return float64(count()) }))
}

// An Ending is what became of a task.
type Ending uint8

const (
	Spawned Ending = iota // it has not ended yet
	Completed
	Canceled // asked to end before it was done
	Aborted  // given up
)

func (e Ending) String() string {
	return [...]string{"spawned", "completed", "canceled", "aborted"}[e]
}

// Task counts a task of a kind.
func (m *Metrics) Task(kind string, e Ending) { m.tasks[e].WithLabelValues(of(tasks, kind)).Inc() }
