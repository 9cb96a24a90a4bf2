package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Objects has the metrics of the contents of objects.
type Objects struct{ stored, sent, unreadable prometheus.Counter }

// Objects returns the metrics of the contents of objects.
func (m *Metrics) Objects() *Objects {
	return &Objects{stored: m.counter("storage_transferred_bytes_total", "in"), sent: m.counter("storage_transferred_bytes_total", "out"),
		unreadable: m.counter("storage_unreadable_total")}
}

// Stored counts the bytes of an upload, Sent those of a response.
func (o *Objects) Stored(bytes uint64) { o.stored.Add(float64(bytes)) }
func (o *Objects) Sent(bytes uint64)   { o.sent.Add(float64(bytes)) }

// Damaged counts a read of an object that is lost or damaged.
func (o *Objects) Damaged() { o.unreadable.Inc() }

// CollectionDeferred counts a collection that a backup deferred.
func (m *Metrics) CollectionDeferred() { m.counter("storage_collections_deferred_total").Inc() }

// Collected counts what the collector removed.
func (m *Metrics) Collected(files int, bytes uint64) {
	m.counter("storage_collected_files_total").Add(float64(files))
	m.counter("storage_collected_bytes_total").Add(float64(bytes))
}

// Repairs has the metrics of copies of objects.
type Repairs struct {
	restored, failed, lost, waiting prometheus.Counter
	wait                            prometheus.Observer
}

// Repairs returns the metrics of copies of objects.
func (m *Metrics) Repairs() *Repairs {
	return &Repairs{restored: m.counter("repair_copies_total", "restored"), failed: m.counter("repair_copies_total", "failed"),
		lost: m.counter("repair_copies_total", "lost"), waiting: m.counter("repair_copies_total", "waiting"), wait: m.histogram("repair_wait_seconds")}
}

// Repaired counts a copy that was restored, or could not be.
func (r *Repairs) Repaired(ok bool) {
	if ok {
		r.restored.Inc()
	} else {
		r.failed.Inc()
	}
}

// Lost counts a repair that found no good copy in any provider, Waiting one that found too little while a provider did not answer.
func (r *Repairs) Lost()    { r.lost.Inc() }
func (r *Repairs) Waiting() { r.waiting.Inc() }

// Waited observes the time that a read of a repair or a scrub waited for the budget.
func (r *Repairs) Waited(d time.Duration) { r.wait.Observe(d.Seconds()) }
