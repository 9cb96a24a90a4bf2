package metrics

import "github.com/prometheus/client_golang/prometheus"

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

// Collected counts what the collector removed.
func (m *Metrics) Collected(files int, bytes uint64) {
	m.counter("storage_collected_files_total").Add(float64(files))
	m.counter("storage_collected_bytes_total").Add(float64(bytes))
}
